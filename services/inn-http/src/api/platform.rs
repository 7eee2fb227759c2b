//! What the platform says about itself: keys, health, metrics, help.

use std::time::Duration;

use actix_web::http::header::CONTENT_SECURITY_POLICY;
use actix_web::web::{Data, Path};
use actix_web::{HttpRequest, HttpResponse};
use inn_protocol::{Code, Refusal};
use serde_json::json;

use crate::error::ApiError;
use crate::incoming::Incoming;
use crate::people;
use crate::respond;
use crate::state::HttpState;

/// The database must answer within this for a node to count as ready.
const READY_WITHIN: Duration = Duration::from_secs(2);

pub(super) async fn keys(incoming: Incoming) -> Result<HttpResponse, ApiError> {
    Ok(respond::ok(incoming.id, &incoming.state.keys.published))
}

/// Liveness. Asked by address, not by name, so the host name does not matter here.
pub(super) async fn health() -> HttpResponse {
    HttpResponse::Ok().json(json!({"ok": true}))
}

/// Readiness: not draining, and the database answers.
pub(super) async fn ready(state: Data<HttpState>) -> HttpResponse {
    if state.vitals.draining() {
        return HttpResponse::ServiceUnavailable().json(json!({"ok": false, "reason": "draining"}));
    }
    let answer = tokio::time::timeout(READY_WITHIN, state.store.database_now()).await;
    match answer {
        Ok(Ok(now)) => HttpResponse::Ok().json(json!({"ok": true, "databaseTime": now})),
        _ => HttpResponse::ServiceUnavailable().json(json!({"ok": false, "reason": "the database does not answer"})),
    }
}

pub(super) async fn metrics(state: Data<HttpState>) -> HttpResponse {
    HttpResponse::Ok().content_type("text/plain; version=0.0.4; charset=utf-8").body(state.vitals.metrics())
}

/// The help page of one error code: HTML for browsers, else Markdown text.
pub(super) async fn help(
    incoming: Incoming,
    path: Path<String>,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let code = Code::ALL.iter().find(|code| code.as_str() == path.as_str());
    let page = code.and_then(|code| crate::help::page(*code));
    let page = page.ok_or_else(|| incoming.fail(Refusal::new(Code::NotFound, "There is no code of that name.")))?;
    let config = &incoming.state.config;
    if people::wants_page(request.headers()) {
        return Ok(HttpResponse::Ok()
            .content_type("text/html; charset=utf-8")
            .insert_header(("X-Content-Type-Options", "nosniff"))
            .insert_header(("Vary", "Accept"))
            .insert_header((CONTENT_SECURITY_POLICY, people::policy(config)))
            .body(people::help_page(config, &path, page)));
    }
    Ok(HttpResponse::Ok()
        .content_type("text/markdown; charset=utf-8")
        .insert_header(("Vary", "Accept"))
        .insert_header(("X-Content-Type-Options", "nosniff"))
        .body(page))
}

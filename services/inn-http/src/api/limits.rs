//! Weights and caps of the queue.

use actix_web::HttpResponse;
use inn_protocol::call::Action;
use inn_protocol::queue::{LimitKind, NewLimit, QueueLimit};
use inn_protocol::receipt::Receipt;
use inn_protocol::{AgentId, AppId, Code, Refusal, Violation};
use serde::Deserialize;
use serde_json::Value;

use super::session::person;
use super::views;
use crate::error::ApiError;
use crate::incoming::Incoming;
use crate::respond;

pub(super) async fn list(incoming: Incoming) -> Result<HttpResponse, ApiError> {
    let store = &incoming.state.store;
    let limits: Vec<QueueLimit> = incoming
        .read(Action::ListQueueLimits, |admitted| async move {
            Ok(store.queue_limits(person(&admitted.caller)?.tenant).await?)
        })
        .await?;
    Ok(respond::ok(incoming.id, &views::items(limits)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Set {
    kind: String,
    app: Option<String>,
    #[serde(default)]
    subject: String,
    weight: Option<u32>,
    most: Option<u32>,
}

/// Weight and cap of one thing. Left out, they are what everything has: weight 1, no cap.
pub(super) async fn set(incoming: Incoming) -> Result<HttpResponse, ApiError> {
    let body: Set = incoming.document().await?;
    let (kind, app) = incoming.fit(check(&body)).await?;
    let app = match app {
        None => None,
        Some(slug) => Some(incoming.state.gateway.app(slug).await.map_err(|refusal| incoming.fail(refusal))?),
    };
    let limit = NewLimit {
        kind,
        app: app.as_ref().and_then(|app| app.as_ref().map(|app| app.id)),
        subject: body.subject.trim().to_owned(),
        weight: body.weight.unwrap_or(1),
        most: body.most,
    };
    let parts = [body.kind.as_str(), body.app.as_deref().unwrap_or_default(), limit.subject.as_str()];
    let about = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    let receipt: Receipt = incoming
        .perform(Action::SetQueueLimit { about }, (limit, app), |store, admitted, input| async move {
            let (limit, app) = &*input;
            let tenant = person(&admitted.caller)?.tenant;
            // An app of another tenant is none.
            let known: Option<AppId> =
                app.as_ref().and_then(|app| app.as_ref()).filter(|app| app.tenant == tenant).map(|app| app.id);
            if app.is_some() && known.is_none() {
                return Err(Refusal::new(Code::UnknownApp, "There is no app of that name here.").into());
            }
            store.set_queue_limit(&admitted.record, tenant, limit).await
        })
        .await?;
    Ok(respond::ok(incoming.id, &receipt))
}

fn check(body: &Set) -> Result<(LimitKind, Option<&str>), Refusal> {
    let mut violations = Vec::new();
    let mut wrong = |field: &str, expected: &str, got: Value| {
        violations.push(Violation::new(Code::InvalidParameter, field, expected).got(&got));
    };
    let kind = LimitKind::parse(&body.kind);
    match kind {
        None => wrong("kind", "tenant, app, capability, person or agent", body.kind.clone().into()),
        Some(kind) => {
            let of_app = matches!(kind, LimitKind::App | LimitKind::Capability);
            if of_app != body.app.is_some() {
                let expected = if of_app { "the app's slug" } else { "nothing: this is not about an app" };
                wrong("app", expected, body.app.clone().into());
            }
            let subject = body.subject.trim();
            let usable = match kind {
                LimitKind::App => subject.is_empty(),
                LimitKind::Agent => AgentId::parse(subject).is_some(),
                _ => (1..=320).contains(&subject.chars().count()) && !subject.chars().any(char::is_control),
            };
            if !usable {
                let expected = match kind {
                    LimitKind::App => "nothing: the app is named already",
                    LimitKind::Agent => "an agent's id",
                    LimitKind::Tenant => "a tenant's slug",
                    LimitKind::Capability => "a capability's name",
                    LimitKind::Person => "a member's e-mail address, or the name a visitor or app user asks by",
                };
                wrong("subject", expected, body.subject.clone().into());
            }
            if kind == LimitKind::Tenant && body.most.is_some() {
                wrong("most", "nothing: tenants have weights only", body.most.into());
            }
        }
    }
    if body.weight.is_some_and(|weight| !(1..=NewLimit::MOST_WEIGHT).contains(&weight)) {
        wrong("weight", "a whole number from 1 to 100", body.weight.into());
    }
    if body.most.is_some_and(|most| most > NewLimit::HIGHEST_CAP) {
        wrong("most", "a whole number from 0 to 100000", body.most.into());
    }
    match kind {
        Some(kind) if violations.is_empty() => Ok((kind, body.app.as_deref())),
        _ => Err(Refusal::violations("This limit cannot be set.", violations)),
    }
}

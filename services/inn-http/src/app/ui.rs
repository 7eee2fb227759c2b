//! The files of an app's UI, on its own origin and nowhere else, under a strict content policy.

use actix_web::http::Method;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use actix_web::{HttpRequest, HttpResponse};
use inn_protocol::call::Action;
use inn_protocol::caller::Caller;
use inn_protocol::{Code, Refusal};
use serde_json::Value;

use super::operations;
use crate::error::{ApiError, CALL_HEADER};
use crate::incoming::Incoming;

/// Own files only; nothing inline, no frames, no plug-ins, no form to elsewhere.
const POLICY: &str = "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; \
                      form-action 'self'; frame-ancestors 'none'";

/// Anything on the own origin that is no API route.
pub(super) async fn serve(request: HttpRequest, incoming: Incoming) -> Result<HttpResponse, ApiError> {
    let path = request.path();
    if path.starts_with("/api/") || !matches!(*request.method(), Method::GET | Method::HEAD) {
        return operations::by_path(request, incoming).await;
    }
    let call = incoming.call(Action::DescribeApp, Value::Null);
    let admitted = incoming.state.gateway.glance(call).await.map_err(|refusal| incoming.fail(refusal))?;
    let app = admitted.app().map_err(|refusal| incoming.fail(refusal))?;
    if matches!(admitted.caller, Caller::Stranger) {
        // Off loopback the app is for members: the console hands them over.
        let to = incoming.state.config.platform(&format!("/open/{}", app.slug));
        return Ok(HttpResponse::SeeOther().insert_header(("Location", to)).finish());
    }
    let definition = &app.definition;
    let entry = definition.ui_entry.as_deref();
    let wanted = match path.trim_start_matches('/') {
        "" => entry,
        path => Some(path),
    };
    let digest = wanted.and_then(|path| app.ui_files.get(path).map(|digest| (path, *digest)));
    let Some((path, digest)) = digest else {
        let message = if entry.is_none() {
            "This app has no user interface. Its API is at /api/_a2app/describe."
        } else {
            "The app has no such page or file."
        };
        return Err(incoming.fail(Refusal::new(Code::NotFound, message)));
    };
    let tag = format!("\"{digest}\"");
    if request.headers().get(IF_NONE_MATCH).and_then(|value| value.to_str().ok()) == Some(tag.as_str()) {
        return Ok(HttpResponse::NotModified().insert_header((ETAG, tag)).finish());
    }
    let bytes = incoming.state.blobs.get(digest).await.map_err(|error| incoming.fail(error.into()))?;
    let Some(bytes) = bytes else {
        tracing::error!(app = %app.slug, %digest, path, "a file of the UI is missing from the blob store");
        return Err(incoming.fail(Refusal::internal()));
    };
    Ok(HttpResponse::Ok()
        .insert_header((CALL_HEADER.clone(), incoming.id.to_string()))
        .insert_header((CONTENT_TYPE, content_type(path)))
        .insert_header((CONTENT_SECURITY_POLICY, POLICY))
        .insert_header(("X-Content-Type-Options", "nosniff"))
        .insert_header(("Referrer-Policy", "same-origin"))
        // Asked again each time, answered from the digest: a deploy shows at once in a warm browser.
        .insert_header((CACHE_CONTROL, "no-cache"))
        .insert_header((ETAG, tag))
        .body(bytes))
}

fn content_type(path: &str) -> &'static str {
    let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
    match extension.to_ascii_lowercase().as_str() {
        "html" | "htm" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "json" | "map" | "webmanifest" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "woff" => "font/woff",
        "wasm" => "application/wasm",
        "txt" | "md" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

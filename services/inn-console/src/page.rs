//! From a template to an answer. Every page leaves with the same strict headers.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, REFERRER_POLICY};
use askama::Template;
use inn_http::error::CALL_HEADER;
use inn_protocol::CallId;

/// Own style sheet and icon; no script at all, nothing inline, no frame around it, no form to elsewhere.
const POLICY: &str = "default-src 'self'; script-src 'none'; object-src 'none'; base-uri 'none'; form-action 'self'; \
                      frame-ancestors 'none'";

/// A page that shows the outcome of a call.
pub(crate) fn html(call: CallId, status: StatusCode, page: &impl Template) -> HttpResponse {
    match page.render() {
        Ok(text) => answer(call, status).insert_header((CONTENT_TYPE, "text/html; charset=utf-8")).body(text),
        Err(error) => {
            tracing::error!(%call, %error, "a page could not be rendered");
            answer(call, StatusCode::INTERNAL_SERVER_ERROR)
                .insert_header((CONTENT_TYPE, "text/plain; charset=utf-8"))
                .body("This page could not be made. The log has the cause under this call's id.")
        }
    }
}

/// Look there now: after a form has done its work, so that a reload does not send it again.
pub(crate) fn see_other(call: CallId, to: &str) -> HttpResponse {
    answer(call, StatusCode::SEE_OTHER).insert_header((LOCATION, to)).finish()
}

fn answer(call: CallId, status: StatusCode) -> actix_web::HttpResponseBuilder {
    let mut response = HttpResponse::build(status);
    response
        .insert_header((CALL_HEADER.clone(), call.to_string()))
        .insert_header((CONTENT_SECURITY_POLICY, POLICY))
        .insert_header((CACHE_CONTROL, "no-store"))
        // `no-referrer` would turn the Origin of our own forms into `null`, and they would be refused.
        .insert_header((REFERRER_POLICY, "same-origin"))
        .insert_header(("X-Content-Type-Options", "nosniff"))
        .insert_header(("X-Frame-Options", "DENY"))
        .insert_header(("Cross-Origin-Opener-Policy", "same-origin"));
    response
}

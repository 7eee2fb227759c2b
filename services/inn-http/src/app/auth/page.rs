//! `/_/`: the page behind the links in mails, on the app's own origin.

use actix_web::HttpResponse;
use actix_web::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};

const PAGE: &str = include_str!("page.html");
const SCRIPT: &str = include_str!("page.js");

/// The token stands behind the `#` and never reaches a log. The page does nothing by itself: programs that follow links
/// in mails must not confirm anything.
pub(in crate::app) async fn page() -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, "text/html; charset=utf-8"))
        .insert_header((
            CONTENT_SECURITY_POLICY,
            "default-src 'none'; script-src 'self'; connect-src 'self'; form-action 'none'; frame-ancestors 'none'; \
             base-uri 'none'",
        ))
        .insert_header(("X-Content-Type-Options", "nosniff"))
        .insert_header(("Referrer-Policy", "no-referrer"))
        .insert_header(("Cache-Control", "no-store"))
        .body(PAGE)
}

pub(in crate::app) async fn script() -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, "text/javascript; charset=utf-8"))
        .insert_header(("X-Content-Type-Options", "nosniff"))
        .body(SCRIPT)
}

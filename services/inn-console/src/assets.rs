//! The style sheet and the icon, part of the binary.

use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use actix_web::{HttpRequest, HttpResponse};
use inn_protocol::Digest;

pub(crate) const STYLE: &str = "/console/style.css";
pub(crate) const ICON: &str = "/console/icon.svg";

pub(crate) async fn style(request: HttpRequest) -> HttpResponse {
    serve(&request, "text/css; charset=utf-8", include_str!("../assets/style.css"))
}

pub(crate) async fn icon(request: HttpRequest) -> HttpResponse {
    serve(&request, "image/svg+xml", include_str!("../assets/icon.svg"))
}

/// Asked again each time and answered from the digest, so that a new release shows at once.
fn serve(request: &HttpRequest, kind: &'static str, bytes: &'static str) -> HttpResponse {
    let tag = format!("\"{}\"", Digest::of(bytes.as_bytes()));
    let known = request.headers().get(IF_NONE_MATCH).and_then(|value| value.to_str().ok()) == Some(tag.as_str());
    let mut response = if known { HttpResponse::NotModified() } else { HttpResponse::Ok() };
    response.insert_header((ETAG, tag)).insert_header((CACHE_CONTROL, "no-cache"));
    response.insert_header(("X-Content-Type-Options", "nosniff"));
    if known { response.finish() } else { response.insert_header((CONTENT_TYPE, kind)).body(bytes) }
}

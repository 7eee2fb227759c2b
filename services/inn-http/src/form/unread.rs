//! Forms that are left unread until a handler takes them.

use actix_web::HttpRequest;
use actix_web::dev::Payload;
use actix_web::http::Method;

/// A form whose bytes have not been looked at.
pub(crate) struct UnreadForm {
    pub(crate) payload: Payload,
    pub(crate) boundary: String,
    /// Its length, as the client announces it.
    pub(crate) declared: Option<u64>,
    /// `Content-Digest` of a signed form: must fit what arrives.
    pub(crate) signed_digest: Option<String>,
}

/// Records may be written with forms, alone and in a batch, whose files are too large for memory.
pub(crate) fn is_read_by_handler(request: &HttpRequest) -> bool {
    let records = request.match_pattern().is_some_and(|pattern| {
        pattern.ends_with("/api/collections/{entity}/records")
            || pattern.ends_with("/api/collections/{entity}/records/{id}")
    });
    let batch = request.match_pattern().is_some_and(|pattern| pattern.ends_with("/api/batch"));
    records && matches!(*request.method(), Method::POST | Method::PATCH) || batch && *request.method() == Method::POST
}

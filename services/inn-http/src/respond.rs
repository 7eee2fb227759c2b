//! Answers. Every one names its call and forbids sniffing.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::ContentType;
use inn_protocol::CallId;
use serde::Serialize;
use serde_json::{Value, json};

use crate::error::CALL_HEADER;

pub fn answer(call: CallId, status: StatusCode, body: &impl Serialize) -> HttpResponse {
    HttpResponse::build(status)
        .insert_header((CALL_HEADER.clone(), call.to_string()))
        .insert_header(("X-Content-Type-Options", "nosniff"))
        .insert_header(("Cache-Control", "no-store"))
        .json(body)
}

/// A document with further members.
pub fn with<const N: usize>(body: &impl Serialize, members: [(&str, Value); N]) -> Value {
    let mut body = json!(body);
    if let Value::Object(object) = &mut body {
        object.extend(members.map(|(name, value)| (name.to_owned(), value)));
    }
    body
}

pub fn ok(call: CallId, body: &impl Serialize) -> HttpResponse {
    answer(call, StatusCode::OK, body)
}

/// 200 with a body that is JSON text already.
pub fn json(call: CallId, body: String) -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((CALL_HEADER.clone(), call.to_string()))
        .insert_header(("X-Content-Type-Options", "nosniff"))
        .insert_header(("Cache-Control", "no-store"))
        .content_type(ContentType::json())
        .body(body)
}

pub fn created(call: CallId, body: &impl Serialize) -> HttpResponse {
    answer(call, StatusCode::CREATED, body)
}

pub fn no_content(call: CallId) -> HttpResponse {
    HttpResponse::NoContent()
        .insert_header((CALL_HEADER.clone(), call.to_string()))
        .insert_header(("X-Content-Type-Options", "nosniff"))
        .finish()
}

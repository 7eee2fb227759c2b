//! The one place where a refusal becomes an HTTP answer.

use std::fmt;

use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use actix_web::{HttpResponse, ResponseError};
use inn_protocol::{CallId, Code, Refusal, Retry};
use inn_rules::values;
use serde_json::{Map, Value, json};

/// Header that names the call on every answer; the register entry and the log carry the same id.
pub static CALL_HEADER: HeaderName = HeaderName::from_static("innkeeper-call");

/// Which clothes the body wears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Plain,
    /// Record routes: PocketBase's `status`, `message` and `data` too, so that both kinds of client can read it.
    Records,
}

#[derive(Debug)]
pub struct ApiError {
    pub refusal: Box<Refusal>,
    pub call: CallId,
    /// `<platform>/help/`
    pub help: String,
    pub shape: Shape,
    pub server_now: String,
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.refusal.fmt(f)
    }
}

impl ApiError {
    /// The body of the answer (DESIGN section 6, Errors).
    pub fn body(&self) -> Value {
        let refusal = &*self.refusal;
        let mut body = match serde_json::to_value(refusal) {
            Ok(Value::Object(body)) => body,
            _ => Map::new(),
        };
        body.insert("a2app".to_owned(), true.into());
        body.insert("ok".to_owned(), false.into());
        body.insert("help".to_owned(), format!("{}{}", self.help, refusal.code.as_str()).into());
        body.insert("call".to_owned(), self.call.to_string().into());
        if self.shape == Shape::Records {
            if let Some(first) = refusal.violations.first() {
                // A2App 1.0 promotes the first violation and tells the server's time.
                body.insert("field".to_owned(), first.field.clone().into());
                body.insert("expected".to_owned(), json!(first.expected));
                body.insert("got".to_owned(), json!(first.got));
                body.insert("serverNow".to_owned(), self.server_now.clone().into());
            }
            body.insert("status".to_owned(), refusal.code.status().into());
            body.insert("data".to_owned(), values::pb_data(&refusal.violations).into());
        }
        Value::Object(body)
    }
}

impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        StatusCode::from_u16(self.refusal.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = HttpResponse::build(self.status_code());
        response.insert_header((CALL_HEADER.clone(), self.call.to_string()));
        response.insert_header(("X-Content-Type-Options", "nosniff"));
        response.insert_header(("Cache-Control", "no-store"));
        if self.refusal.retry == Retry::After {
            response.insert_header((RETRY_AFTER, self.refusal.retry_after_seconds.unwrap_or(1).to_string()));
        }
        if self.refusal.code.status() == 401 {
            response.insert_header((WWW_AUTHENTICATE, challenge(self.refusal.code)));
        }
        response.json(self.body())
    }
}

/// Names the scheme that would have been accepted.
fn challenge(code: Code) -> HeaderValue {
    HeaderValue::from_static(match code {
        Code::AgentTokenRequired => "X-A2App-Token realm=\"innkeeper\"",
        Code::SignatureRequired
        | Code::InvalidSignature
        | Code::SignatureExpired
        | Code::ReplayedNonce
        | Code::DigestMismatch
        | Code::UnknownAgent => "Signature realm=\"innkeeper\", tag=\"innkeeper\"",
        _ => "Bearer realm=\"innkeeper\"",
    })
}

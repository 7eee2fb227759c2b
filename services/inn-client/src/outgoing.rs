//! One call before it is signed.

use std::fmt::Write as _;
use std::time::Duration;

use bytes::Bytes;
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use serde_json::Value;

use crate::error::ClientError;

/// Time an answer may take when nothing else is said. The platform itself gives up after 30 s.
const TIMEOUT: Duration = Duration::from_secs(40);

/// A call: method, path and query below the platform, headers, body.
#[derive(Debug, Clone)]
pub struct Outgoing {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Option<Bytes>,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) timeout: Duration,
}

impl Outgoing {
    /// `path` starts with `/`, is percent-encoded and may have a query.
    pub fn new(method: Method, path: impl Into<String>) -> Self {
        Self { method, path: path.into(), headers: Vec::new(), body: None, idempotency_key: None, timeout: TIMEOUT }
    }

    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    pub fn delete(path: impl Into<String>) -> Self {
        Self::new(Method::DELETE, path)
    }

    pub fn post(path: impl Into<String>, body: &Value) -> Self {
        Self::new(Method::POST, path).json(body)
    }

    pub fn json(self, body: &Value) -> Self {
        self.bytes(HeaderValue::from_static("application/json"), Bytes::from(body.to_string()))
    }

    pub fn bytes(mut self, content_type: HeaderValue, body: Bytes) -> Self {
        self.headers.retain(|(name, _)| name != CONTENT_TYPE);
        self.headers.push((CONTENT_TYPE, content_type));
        self.body = Some(body);
        self
    }

    /// A body whose `Content-Type`, if any, is among the headers.
    pub fn raw_body(mut self, body: Bytes) -> Self {
        self.body = Some(body);
        self
    }

    /// Makes the call safe to send again: what happened once does not happen twice.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.idempotency_key = Some(key.into());
        self
    }

    pub fn header(mut self, name: &str, value: &str) -> Result<Self, ClientError> {
        let invalid = |_| ClientError::Invalid(format!("`{name}: {value}` is not an HTTP header."));
        let parsed =
            HeaderName::try_from(name).map_err(|_| ClientError::Invalid(format!("`{name}` names no header.")))?;
        self.headers.push((parsed, HeaderValue::try_from(value).map_err(invalid)?));
        Ok(self)
    }

    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// May be sent again when no answer came: a read, or a write with a key.
    pub(crate) fn is_repeatable(&self) -> bool {
        self.idempotency_key.is_some() || matches!(self.method, Method::GET | Method::HEAD)
    }
}

/// A key nobody used before: 32 hex digits of randomness.
pub fn new_idempotency_key() -> String {
    hex_text(rand::random::<u128>())
}

pub(crate) fn hex_text(bits: u128) -> String {
    format!("{bits:032x}")
}

/// One segment of a path, percent-encoded so that it can be nothing else.
pub fn segment(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_~".contains(&byte) || (byte == b'.' && !matches!(text, "." | "..")) {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// `?name=value&…`, encoded; empty without pairs.
pub fn query<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let text = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
    if text.is_empty() { text } else { format!("?{text}") }
}

use bytes::Bytes;
use reqwest::header::HeaderMap;
use serde_json::Value;

use crate::error::{ClientError, RefusalBody};

/// Header that names the call on every answer.
const CALL: &str = "innkeeper-call";

/// Whatever came back, read to its end.
#[derive(Debug, Clone)]
pub struct Answer {
    pub url: String,
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    /// True for 2xx.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// Id of the call: its receipt and its register entry carry the same one.
    pub fn call(&self) -> Option<&str> {
        self.header(CALL)
    }

    /// The answer when it is a success, else the refusal it holds.
    pub fn checked(self) -> Result<Self, ClientError> {
        if self.is_success() {
            return Ok(self);
        }
        let call = self.call().map(str::to_owned);
        match RefusalBody::read(self.status, &self.body, call) {
            Some(mut body) => {
                let header = self.header("retry-after").and_then(|text| text.parse().ok());
                body.retry_after_seconds = body.retry_after_seconds.or(header);
                Err(ClientError::Refused(Box::new(body)))
            }
            None => Err(ClientError::Protocol {
                what: format!("status {} without a refusal in it. Is this the address of an Innkeeper?", self.status),
                url: self.url,
            }),
        }
    }

    /// The body as JSON; an empty one (204) is `null`.
    pub fn json(&self) -> Result<Value, ClientError> {
        if self.body.is_empty() {
            return Ok(Value::Null);
        }
        serde_json::from_slice(&self.body).map_err(|error| ClientError::Protocol {
            url: self.url.clone(),
            what: format!("the body is not JSON ({error})"),
        })
    }
}

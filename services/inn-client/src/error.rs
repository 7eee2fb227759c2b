//! How a call can end without an answer that was asked for.

use inn_protocol::Refusal;
use serde_json::Value;

/// A call that gave no answer, or another one than asked for.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody answered. With `sent: false` the call certainly had no effect; otherwise it may have had one.
    #[error("{url} cannot be reached: {cause}")]
    Unreachable { url: String, cause: String, sent: bool },
    /// The platform answered with a refusal.
    #[error("{}: {}", .0.code, .0.message)]
    Refused(Box<RefusalBody>),
    /// Something answered that is not the platform, or is of another version.
    #[error("{url} gave an answer that is not understood: {what}")]
    Protocol { url: String, what: String },
    /// The call could not even be made: an address that is none, a value that cannot be signed.
    #[error("{0}")]
    Invalid(String),
}

impl ClientError {
    /// The refusal's code, when it is one.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Refused(body) => Some(&body.code),
            _ => None,
        }
    }

    /// True when the call may have had an effect although no answer came.
    pub fn outcome_unknown(&self) -> bool {
        match self {
            Self::Unreachable { sent, .. } => *sent,
            Self::Refused(body) => body.outcome == "unknown",
            Self::Protocol { .. } => true,
            Self::Invalid(_) => false,
        }
    }
}

impl From<Refusal> for ClientError {
    fn from(refusal: Refusal) -> Self {
        Self::Invalid(refusal.message)
    }
}

/// The body of a refusal (DESIGN section 6, Errors). Read leniently: a newer platform may say more.
#[derive(Debug, Clone, PartialEq)]
pub struct RefusalBody {
    /// HTTP status.
    pub status: u16,
    pub code: String,
    pub message: String,
    /// `none` or `unknown`.
    pub outcome: String,
    /// `no`, `same_key` or `after`.
    pub retry: String,
    pub retry_after_seconds: Option<u64>,
    /// Address of the page about the code.
    pub help: Option<String>,
    pub scope: Option<String>,
    pub leg: Option<String>,
    pub who_can_fix: Option<String>,
    /// Id of the record or request an earlier attempt made.
    pub id: Option<String>,
    /// Id of the call, as in the register.
    pub call: Option<String>,
    /// The whole body.
    pub raw: Value,
}

impl RefusalBody {
    /// `None` when the body is not one of the platform's refusals.
    pub fn read(status: u16, body: &[u8], call: Option<String>) -> Option<Self> {
        let raw: Value = serde_json::from_slice(body).ok()?;
        let text = |name: &str| raw.get(name).and_then(Value::as_str).map(str::to_owned);
        let code = text("code")?;
        Some(Self {
            status,
            code,
            message: text("message")?,
            outcome: text("outcome").unwrap_or_else(|| "none".to_owned()),
            retry: text("retry").unwrap_or_else(|| "no".to_owned()),
            retry_after_seconds: raw.get("retryAfterSeconds").and_then(Value::as_u64),
            help: text("help"),
            scope: text("scope"),
            leg: text("leg"),
            who_can_fix: text("whoCanFix"),
            id: text("id"),
            call: call.or_else(|| text("call")),
            raw,
        })
    }

    /// What is wrong, one line each: the field, what was expected and what came.
    pub fn violations(&self) -> Vec<String> {
        let list = self.raw.get("violations").and_then(Value::as_array);
        list.into_iter().flatten().map(violation).collect()
    }
}

fn violation(value: &Value) -> String {
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    let mut line = format!("{}: {}", text("field"), text("code"));
    if !text("expected").is_empty() {
        line.push_str(", expected ");
        line.push_str(text("expected"));
    }
    if let Some(got) = value.get("got") {
        line.push_str(", got ");
        line.push_str(&got.to_string());
    }
    line
}

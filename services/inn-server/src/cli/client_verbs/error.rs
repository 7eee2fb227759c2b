//! How a verb ends when it does not end well, and what is said about it.

use std::process::ExitCode;

use inn_client::{ClientError, RefusalBody};
use inn_protocol::Refusal;
use serde_json::{Value, json};

use super::out::{Out, clean};

pub(crate) type CliResult<T> = Result<T, CliError>;

const REFUSED: u8 = 1;
const USAGE: u8 = 2;
const UNREACHABLE: u8 = 3;

#[derive(Debug)]
pub(crate) enum CliError {
    /// The command line asks for something that makes no sense.
    Usage(String),
    /// Refused here, before anything was sent: what, where, what to do.
    Local {
        code: &'static str,
        message: String,
        details: Vec<String>,
    },
    Client(ClientError),
    /// Everything was said already; only the exit code is left.
    Said,
    /// As [`Self::Said`], with another code.
    SaidWith(u8),
}

impl CliError {
    pub(crate) fn local(code: &'static str, message: impl Into<String>) -> Self {
        Self::Local { code, message: message.into(), details: Vec::new() }
    }

    /// A file or a program of this machine did not do what it should.
    pub(crate) fn io(what: impl Into<String>, error: &std::io::Error) -> Self {
        Self::local("local_file", format!("{}: {error}.", what.into()))
    }

    pub(crate) fn exit(&self) -> u8 {
        match self {
            Self::SaidWith(code) => *code,
            Self::Usage(_) | Self::Client(ClientError::Invalid(_)) => USAGE,
            Self::Local { .. } | Self::Said | Self::Client(ClientError::Refused(_)) => REFUSED,
            Self::Client(ClientError::Unreachable { .. } | ClientError::Protocol { .. }) => UNREACHABLE,
        }
    }

    pub(crate) fn text(&self) -> String {
        match self {
            Self::Usage(message) => message.clone(),
            Self::Said | Self::SaidWith(_) => String::new(),
            Self::Local { message, details, .. } => {
                details.iter().fold(message.clone(), |text, detail| format!("{text}\n  {detail}"))
            }
            Self::Client(error) => client_text(error),
        }
    }

    /// The error as one JSON document, for `--json`.
    fn document(&self) -> Option<Value> {
        match self {
            Self::Said | Self::SaidWith(_) => None,
            Self::Client(ClientError::Refused(body)) => Some(body.raw.clone()),
            Self::Client(ClientError::Unreachable { .. }) => Some(envelope("unreachable", &self.text(), &[])),
            Self::Client(ClientError::Protocol { .. }) => Some(envelope("protocol", &self.text(), &[])),
            Self::Usage(_) | Self::Client(ClientError::Invalid(_)) => Some(envelope("usage", &self.text(), &[])),
            Self::Local { code, message, details } => Some(envelope(code, message, details)),
        }
    }

    /// Says it and gives the code to end with.
    pub(crate) fn report(&self, json: bool) -> ExitCode {
        let out = Out::new(json);
        if let (true, Some(document)) = (json, self.document()) {
            out.data(&document);
        }
        let text = self.text();
        if !text.is_empty() {
            out.say(format!("inn: {}", clean(&text)));
        }
        ExitCode::from(self.exit())
    }
}

fn envelope(code: &str, message: &str, details: &[String]) -> Value {
    json!({"a2app": true, "ok": false, "code": code, "message": message, "details": details})
}

fn client_text(error: &ClientError) -> String {
    match error {
        ClientError::Refused(body) => refusal_text(body),
        ClientError::Unreachable { url, cause, sent } => {
            let effect = if *sent { "It may have had an effect." } else { "Nothing was sent." };
            format!(
                "{url} cannot be reached. {effect}\n  cause: {cause}\n  to do: see that it runs (`inn up`), or name another one with --url"
            )
        }
        other => other.to_string(),
    }
}

fn refusal_text(body: &RefusalBody) -> String {
    let mut text = format!("refused ({}): {}", body.code, body.message);
    let mut line = |name: &str, value: &str| {
        text.push_str("\n  ");
        text.push_str(name);
        text.push_str(": ");
        text.push_str(value);
    };
    for violation in body.violations() {
        line("at", &violation);
    }
    for (name, value) in [
        ("scope", body.scope.as_deref()),
        ("refused by", body.leg.as_deref()),
        ("who can change that", body.who_can_fix.as_deref()),
        ("it is about", body.id.as_deref()),
    ] {
        if let Some(value) = value {
            line(name, value);
        }
    }
    if body.code == "unknown_app" {
        line("to do", "see what there is with `inn app ls`");
    }
    if body.outcome == "unknown" {
        line("careful", "it may have had an effect all the same");
    }
    if let Some(seconds) = body.retry_after_seconds {
        line("try again after", &format!("{seconds} s"));
    }
    if let Some(call) = body.call.as_deref() {
        line("call", call);
    }
    if let Some(help) = body.help.as_deref() {
        line("help", help);
    }
    text
}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> Self {
        Self::Client(error)
    }
}

impl From<Refusal> for CliError {
    fn from(refusal: Refusal) -> Self {
        let details = refusal.violations.iter().map(|violation| {
            let expected = violation.expected.as_deref().unwrap_or_default();
            let got = violation.got.as_ref().map(|got| format!(" (got {got})")).unwrap_or_default();
            format!("{}: {expected}{got}", violation.field)
        });
        Self::Local { code: refusal.code.as_str(), message: refusal.message.clone(), details: details.collect() }
    }
}

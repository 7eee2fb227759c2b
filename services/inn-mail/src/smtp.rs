//! SMTP (RFC 5321) with `lettre`.

use std::time::Duration;

use async_trait::async_trait;
use inn_ports::{Mail, MailError, Message, ShownMail};
use inn_protocol::TenantId;
use lettre::message::header::{Header, HeaderName, HeaderValue};
use lettre::message::{Mailbox, MultiPart};
use lettre::{Address, AsyncSmtpTransport, AsyncTransport as _, Tokio1Executor};

use crate::text::plain;

/// How a mail server is reached.
#[derive(Clone)]
pub struct SmtpConfig {
    pub host: String,
    pub port: u16,
    pub tls: Tls,
    pub credentials: Option<Credentials>,
    /// Address mails come from.
    pub from: String,
    /// For connecting, and for every answer of the server.
    pub timeout: Duration,
}

/// Never printed.
#[derive(Clone)]
pub struct Credentials {
    pub user: String,
    pub password: String,
}

/// When the connection is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tls {
    /// From the first byte (port 465).
    Implicit,
    /// After a greeting in the clear; a server that does not offer it is refused (port 587).
    StartTls,
    /// Not at all: a relay on this machine.
    None,
}

/// Why mail could not be set up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    #[error("{0:?} is no address mails could come from")]
    From(String),
    #[error("the mail server cannot be used: {0}")]
    Server(String),
}

pub struct Smtp {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Address,
}

impl Smtp {
    /// Reads the settings; the server is asked with the first mail.
    pub fn new(config: &SmtpConfig) -> Result<Self, SetupError> {
        let from = config.from.parse().map_err(|_| SetupError::From(config.from.clone()))?;
        let wrong = |error: lettre::transport::smtp::Error| SetupError::Server(error.to_string());
        let host = config.host.as_str();
        let builder = match config.tls {
            Tls::Implicit => AsyncSmtpTransport::<Tokio1Executor>::relay(host).map_err(wrong)?,
            Tls::StartTls => AsyncSmtpTransport::<Tokio1Executor>::starttls_relay(host).map_err(wrong)?,
            Tls::None => AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(host),
        };
        // A connection for each mail: they are few, and a pool would need its runtime even to be dropped.
        let mut builder = builder.port(config.port).timeout(Some(config.timeout));
        if let Some(Credentials { user, password }) = &config.credentials {
            let known = lettre::transport::smtp::authentication::Credentials::new(user.clone(), password.clone());
            builder = builder.credentials(known);
        }
        Ok(Self { transport: builder.build(), from })
    }

    fn letter(&self, message: &Message) -> Result<lettre::Message, MailError> {
        let never = |what: &str| MailError::Never(what.to_owned());
        let to: Address = message.to.parse().map_err(|_| never("the recipient's address cannot be read"))?;
        let line =
            |text: &str, most: usize| -> String { text.chars().filter(|c| !c.is_control()).take(most).collect() };
        let name = line(&message.app_name, 100);
        lettre::Message::builder()
            .from(Mailbox::new(Some(name).filter(|name| !name.is_empty()), self.from.clone()))
            .to(Mailbox::new(None, to))
            .subject(line(&message.subject, 200))
            .header(AutoSubmitted)
            .multipart(MultiPart::alternative_plain_html(plain(&message.html), message.html.clone()))
            .map_err(|_| never("the mail could not be put together"))
    }
}

/// Nobody answers it automatically (RFC 3834).
#[derive(Clone)]
struct AutoSubmitted;

impl Header for AutoSubmitted {
    fn name() -> HeaderName {
        HeaderName::new_from_ascii_str("Auto-Submitted")
    }

    fn parse(_: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Self)
    }

    fn display(&self) -> HeaderValue {
        HeaderValue::new(Self::name(), "auto-generated".to_owned())
    }
}

#[async_trait]
impl Mail for Smtp {
    fn is_ready(&self) -> bool {
        true
    }

    async fn send(&self, message: &Message) -> Result<(), MailError> {
        let letter = self.letter(message)?;
        match self.transport.send(letter).await {
            Ok(_) => Ok(()),
            Err(error) => {
                // The server's code says enough; its words may repeat the address.
                let code = error.status().map_or_else(|| "no answer".to_owned(), |code| format!("answer {code}"));
                let kind = if error.is_timeout() { "it took too long" } else { "it was not taken" };
                let what = format!("{kind} ({code})");
                Err(if error.is_permanent() { MailError::Never(what) } else { MailError::Later(what) })
            }
        }
    }

    fn shown(&self, _: TenantId) -> Option<Vec<ShownMail>> {
        None
    }
}

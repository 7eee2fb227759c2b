//! Mail that leaves the house: by SMTP, or, on a machine in development, into the log and onto a page of the console.
//!
//! The only crate that speaks SMTP. Whom a mail goes to and what it says is made elsewhere.

mod shown;
mod smtp;
mod text;

use std::sync::Arc;

use inn_ports::Mail;

pub use shown::Shown;
pub use smtp::{Credentials, SetupError, Smtp, SmtpConfig, Tls};

/// Nothing is set up: mail cannot leave, and whoever needs one is told before anything is promised.
pub struct NoMail;

#[async_trait::async_trait]
impl Mail for NoMail {
    fn is_ready(&self) -> bool {
        false
    }

    async fn send(&self, _: &inn_ports::Message) -> Result<(), inn_ports::MailError> {
        Err(inn_ports::MailError::Never("no mail server is set".to_owned()))
    }

    fn shown(&self, _: inn_protocol::TenantId) -> Option<Vec<inn_ports::ShownMail>> {
        None
    }
}

/// What fits the settings: SMTP when a server is named, else shown on loopback, else nothing.
pub fn choose(smtp: Option<&SmtpConfig>, loopback: bool) -> Result<Arc<dyn Mail>, SetupError> {
    match smtp {
        Some(config) => Ok(Arc::new(Smtp::new(config)?)),
        None if loopback => Ok(Arc::new(Shown::default())),
        None => Ok(Arc::new(NoMail)),
    }
}

#[cfg(test)]
mod tests;

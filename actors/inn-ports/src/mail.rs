//! Mail that leaves the house.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use inn_protocol::{AppId, TenantId};

/// One mail to one person, about an account of an app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub tenant: TenantId,
    pub app: AppId,
    /// The app's name, shown as the sender's.
    pub app_name: String,
    pub to: String,
    pub subject: String,
    pub html: String,
}

/// A mail that was shown instead of sent, on a machine in development.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownMail {
    pub at: DateTime<Utc>,
    pub message: Message,
    /// Its words, without markup.
    pub text: String,
}

/// Why a mail was not taken. The text is for the log and holds nothing of the mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MailError {
    /// It may be taken later: the server does not answer, or is busy.
    Later(String),
    /// It will never be taken.
    Never(String),
}

#[async_trait]
pub trait Mail: Send + Sync {
    /// Whether mail can leave at all. Asked before anything is promised to anybody.
    fn is_ready(&self) -> bool;
    /// Gives it to the mail server. May take seconds.
    async fn send(&self, message: &Message) -> Result<(), MailError>;
    /// In development: the last mails of a tenant, newest first. `None` when mail is really sent.
    fn shown(&self, tenant: TenantId) -> Option<Vec<ShownMail>>;
}

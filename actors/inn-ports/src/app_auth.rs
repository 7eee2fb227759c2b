//! Accounts of an app's own users: records of its auth collections (`reference` notes on PocketBase, section E).
//! Passwords arrive as argon2id hashes, codes as keyed digests.

use std::sync::Arc;

use async_trait::async_trait;
use inn_grants::app_token::AppSecret;
use inn_protocol::app::AppSnapshot;
use inn_protocol::model::Collection;
use inn_protocol::receipt::Receipt;
use inn_protocol::register::CallRecord;
use serde_json::{Map, Value};

use crate::error::StoreResult;

/// What verifying a token takes; the gateway asks for it too.
#[async_trait]
pub trait AppUsers: Send + Sync {
    /// The secret the app's tokens hang on, when it has one: made by the first that is given out.
    async fn app_secret(&self, app: &AppSnapshot) -> StoreResult<Option<AppSecret>>;
    /// The whole stored record, `password` and `tokenKey` included. `None` for a collection that keeps no accounts.
    async fn app_user(
        &self,
        app: &AppSnapshot,
        collection: &Collection,
        id: &str,
    ) -> StoreResult<Option<Map<String, Value>>>;
}

/// What a confirmed step changes in an account.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AccountChange {
    pub record: String,
    /// The record's `tokenKey` as it was when the caller proved something with it: changed meanwhile, nothing happens.
    pub token_key: String,
    /// Fields to set. A new password or email comes with a new `tokenKey`.
    pub set: Map<String, Value>,
    /// For the receipt: "A new password was set".
    pub sentence: String,
}

/// A one-time password, or the first of two factors, that waits for its second half.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTicket {
    /// Told to whoever asked.
    pub id: String,
    pub kind: TicketKind,
    /// Name of the collection.
    pub collection: String,
    pub record: String,
    /// The record's `tokenKey` digest: a new key ends its tickets too.
    pub token_key: [u8; 32],
    /// Keyed digest of the code; the method of the first factor.
    pub proof: Vec<u8>,
    pub seconds: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TicketKind {
    Otp,
    Mfa,
}

impl TicketKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Otp => "otp",
            Self::Mfa => "mfa",
        }
    }
}

/// A mail that is about to go to a record's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMail {
    pub record: String,
    /// `verification`, `password-reset`, …
    pub purpose: String,
    /// Seconds that must have passed since the last of its purpose.
    pub pause: u32,
    /// For the receipt.
    pub sentence: String,
}

/// A ticket as it is kept, attempts counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ticket {
    pub record: String,
    pub token_key: [u8; 32],
    pub proof: Vec<u8>,
}

#[async_trait]
pub trait AppAuth: AppUsers {
    /// By the first of these fields that holds `identity`. Each has a unique index.
    async fn app_user_by(
        &self,
        app: &AppSnapshot,
        collection: &Collection,
        fields: &[String],
        identity: &str,
    ) -> StoreResult<Option<Map<String, Value>>>;
    /// Registers that somebody signed in, or was given a token.
    async fn open_account(&self, call: &CallRecord, sentence: &str) -> StoreResult<Receipt>;
    /// `None` when the record is gone or its `tokenKey` another one; then nothing was changed.
    async fn change_account(
        &self,
        call: &CallRecord,
        app: &Arc<AppSnapshot>,
        collection: &Collection,
        change: &AccountChange,
    ) -> StoreResult<Option<Receipt>>;
    /// Registers that a mail goes to a record, and keeps the ticket it is about. `false` when one of its purpose went a
    /// moment ago: then none must be sent, and no ticket was kept.
    async fn open_mail(
        &self,
        call: &CallRecord,
        app: &AppSnapshot,
        mail: &NewMail,
        ticket: Option<&NewTicket>,
    ) -> StoreResult<bool>;
    /// The app's secret, made now when there was none. Nothing hangs on it yet, so it is nobody's call.
    async fn make_app_secret(&self, app: &AppSnapshot) -> StoreResult<AppSecret>;
    /// Keeps the first factor until the second comes.
    async fn open_ticket(&self, call: &CallRecord, app: &AppSnapshot, ticket: &NewTicket) -> StoreResult<()>;
    /// Looks at a ticket and counts the attempt; after the fifth, or its time, there is none.
    async fn try_ticket(
        &self,
        app: &AppSnapshot,
        kind: TicketKind,
        collection: &str,
        id: &str,
    ) -> StoreResult<Option<Ticket>>;
    /// Uses a ticket up, and with it every other of its kind of that record, and registers the sign-in. `false` when
    /// somebody else was quicker; then nothing happened.
    async fn use_ticket(
        &self,
        call: &CallRecord,
        app: &AppSnapshot,
        kind: TicketKind,
        id: &str,
        sentence: &str,
    ) -> StoreResult<bool>;
}

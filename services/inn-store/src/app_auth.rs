//! Accounts of an app's own users, as far as they are more than records: the app's token secret, mails that went out,
//! and tickets that wait for their second half.

mod accounts;
mod mails;
mod secrets;
#[cfg(test)]
mod tests;
mod tickets;

use std::sync::Arc;

use async_trait::async_trait;
use inn_grants::app_token::AppSecret;
use inn_ports::{AccountChange, AppAuth, AppUsers, NewMail, NewTicket, StoreResult, Ticket, TicketKind};
use inn_protocol::app::AppSnapshot;
use inn_protocol::model::Collection;
use inn_protocol::receipt::Receipt;
use inn_protocol::register::CallRecord;
use serde_json::{Map, Value};

use crate::PgStore;
use crate::people::sql::facts;

impl PgStore {
    /// Numbers of the keys that secrets in this database are sealed with: a node without one of them could not verify a
    /// token.
    pub async fn sealed_with(&self) -> StoreResult<Vec<u32>> {
        let client = self.client().await?;
        secrets::keys(&client).await
    }
}

#[async_trait]
impl AppUsers for PgStore {
    async fn app_secret(&self, app: &AppSnapshot) -> StoreResult<Option<AppSecret>> {
        let client = self.client().await?;
        secrets::find(&client, &self.inner.vault, app).await
    }

    async fn app_user(
        &self,
        app: &AppSnapshot,
        collection: &Collection,
        id: &str,
    ) -> StoreResult<Option<Map<String, Value>>> {
        accounts::find(self, app, collection, "id", id).await
    }
}

#[async_trait]
impl AppAuth for PgStore {
    async fn app_user_by(
        &self,
        app: &AppSnapshot,
        collection: &Collection,
        fields: &[String],
        identity: &str,
    ) -> StoreResult<Option<Map<String, Value>>> {
        for field in fields {
            if let Some(row) = accounts::find(self, app, collection, field, identity).await? {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    async fn open_account(&self, call: &CallRecord, sentence: &str) -> StoreResult<Receipt> {
        let mut client = self.client().await?;
        let step = self.begin(&mut client, call).await?;
        step.commit(sentence.to_owned(), facts(serde_json::json!({ "account": call.draft.target }))).await
    }

    async fn change_account(
        &self,
        call: &CallRecord,
        app: &Arc<AppSnapshot>,
        collection: &Collection,
        change: &AccountChange,
    ) -> StoreResult<Option<Receipt>> {
        accounts::change(self, call, app, collection, change).await
    }

    async fn open_mail(
        &self,
        call: &CallRecord,
        app: &AppSnapshot,
        mail: &NewMail,
        ticket: Option<&NewTicket>,
    ) -> StoreResult<bool> {
        mails::open(self, call, app, mail, ticket).await
    }

    async fn make_app_secret(&self, app: &AppSnapshot) -> StoreResult<AppSecret> {
        let client = self.client().await?;
        secrets::make(&client, &self.inner.vault, app).await
    }

    async fn open_ticket(&self, call: &CallRecord, app: &AppSnapshot, ticket: &NewTicket) -> StoreResult<()> {
        tickets::open(self, call, app, ticket).await
    }

    async fn try_ticket(
        &self,
        app: &AppSnapshot,
        kind: TicketKind,
        collection: &str,
        id: &str,
    ) -> StoreResult<Option<Ticket>> {
        tickets::attempt(self, app, kind, collection, id).await
    }

    async fn use_ticket(
        &self,
        call: &CallRecord,
        app: &AppSnapshot,
        kind: TicketKind,
        id: &str,
        sentence: &str,
    ) -> StoreResult<bool> {
        tickets::take(self, call, app, kind, id, sentence).await
    }
}

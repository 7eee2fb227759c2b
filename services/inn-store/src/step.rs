//! The stepped form of a commit: everything that is not a plain record write. Effect, entry, outbox and receipt are
//! one transaction, opened by the same guards as the one-statement form.

pub(crate) mod account;
pub(crate) mod guard;
pub(crate) mod once;

use chrono::{DateTime, Utc};
use deadpool_postgres::{Object, Transaction};
use inn_ports::{StoreError, StoreResult};
use inn_protocol::receipt::Receipt;
use inn_protocol::register::{CallRecord, EntryDraft};
use inn_protocol::{AppId, Refusal, TenantId, canonical};
use serde_json::{Map, Value};
use tokio_postgres::types::ToSql;

use crate::error::{broken, committing};
use crate::people::sql::storable;
use crate::{PgStore, register};

/// One open transaction of one call. Dropped without a word, it rolls back.
pub(crate) struct Step<'c> {
    tx: Transaction<'c>,
    draft: EntryDraft,
}

impl PgStore {
    /// Begins a transaction and makes sure, inside it, that the call's nonce and idempotency key are unused and that
    /// what the decision was made from still holds (those rows stay locked against change until the end).
    ///
    /// Refused: `in_progress`, `duplicate_request`, `key_reused`, `replayed_nonce`. `Stale` when an epoch moved.
    pub(crate) async fn begin<'c>(&self, client: &'c mut Object, call: &CallRecord) -> StoreResult<Step<'c>> {
        self.begin_for(client, call, None).await
    }

    /// [`Self::begin`] for a call that writes this record: a later duplicate names it.
    pub(crate) async fn begin_for<'c>(
        &self,
        client: &'c mut Object,
        call: &CallRecord,
        record: Option<&str>,
    ) -> StoreResult<Step<'c>> {
        let tx = client.transaction().await.map_err(broken("begin"))?;
        guard::pass(&tx, call, record).await?;
        account::pass(&tx, call).await?;
        Ok(Step { tx, draft: call.draft.clone() })
    }
}

const OUTBOX: &str = "INSERT INTO inn.outbox (tenant, app, topic, body) VALUES ($1, $2, $3, $4)";

const FINISH: &str = "
WITH moment AS MATERIALIZED (SELECT clock_timestamp() AS at),
effect AS MATERIALIZED (
    SELECT at, sha256(convert_to(coalesce($12::text, '') || E'\\n' || coalesce($13::text, '') || E'\\n' || $14::text || E'\\n' || coalesce($15::text, ''), 'UTF8')) AS effect
    FROM moment
),
entry AS (
    INSERT INTO inn.entries (call, tenant, at, app, caller, user_id, agent, grant_id, action, target, facts, outcome, effect, digest)
    SELECT $1, $2, at, $3, $4, $5, $6, $7, $8, $9, $10, 'done', effect,
        sha256(convert_to($10::text || E'\\ndone\\n' || ((extract(epoch FROM at) * 1000000)::bigint)::text || E'\\n' || encode(effect, 'hex'), 'UTF8'))
    FROM effect
),
receipt AS (
    INSERT INTO inn.receipts (call, tenant, app, at, action, entity, record, verb, sentence, shape, \"row\", labels)
    SELECT $1, $2, $3, at, $8, $11, $16, $17, $12, $13, $14, $15 FROM effect
)
SELECT at FROM moment";

/// What the receipt of a step says.
pub(crate) struct Said<'a> {
    pub(crate) sentence: Option<&'a str>,
    pub(crate) shape: Option<&'a str>,
    /// JSON text of what was stored.
    pub(crate) row: &'a str,
    pub(crate) labels: Option<&'a str>,
    pub(crate) entity: Option<&'a str>,
    pub(crate) record: Option<&'a str>,
    pub(crate) verb: Option<&'a str>,
}

impl<'c> Step<'c> {
    /// The open transaction, with its statement cache (`prepare_cached`). Never commit through it.
    pub(crate) fn tx(&self) -> &Transaction<'c> {
        &self.tx
    }

    /// Tells the world after the commit, and only then.
    pub(crate) async fn outbox(&self, topic: &str, app: Option<AppId>, body: Value) -> StoreResult<()> {
        outbox(&self.tx, self.draft.tenant, topic, app, body).await
    }

    /// Writes the entry (`done`) and the receipt and commits. `Unknown` when the connection was lost meanwhile.
    pub(crate) async fn commit(self, sentence: String, stored: Map<String, Value>) -> StoreResult<Receipt> {
        let stored = Value::Object(stored);
        let row = canonical::to_string(&stored);
        // Sentences quote what people and agents wrote.
        let sentence = storable(&sentence).into_owned();
        let said = Said {
            sentence: Some(&sentence),
            shape: None,
            row: &row,
            labels: None,
            entity: None,
            record: None,
            verb: None,
        };
        let (call, app, action) = (self.draft.call, self.draft.app, self.draft.action.clone());
        let at = self.finish(&said).await?;
        // Read back from the kept text, so that the receipt says later exactly what it says now.
        let stored = register::object(&row)?;
        Ok(Receipt { id: call, app, at, action, sentence, entity: None, record: None, stored })
    }

    /// Entry, receipt and `COMMIT`. Answers the entry's time.
    pub(crate) async fn finish(self, said: &Said<'_>) -> StoreResult<DateTime<Utc>> {
        let at = enter(&self.tx, &self.draft, said).await?;
        self.tx.commit().await.map_err(committing("commit"))?;
        Ok(at)
    }

    /// Rolls everything back, nonce and idempotency key included: the caller writes the refused entry with them.
    pub(crate) async fn refuse(self, refusal: Refusal) -> StoreError {
        self.abandon().await;
        StoreError::from(refusal)
    }

    /// Rolls back a call that leaves no entry of its own here.
    pub(crate) async fn abandon(self) {
        // A connection that cannot roll back is broken, and the server rolls back for it.
        if let Err(error) = self.tx.rollback().await {
            tracing::warn!(error = %crate::error::chain(&error), "rollback was not confirmed");
        }
    }
}

/// Puts one event into the outbox of the transaction.
pub(crate) async fn outbox(
    tx: &Transaction<'_>,
    tenant: TenantId,
    topic: &str,
    app: Option<AppId>,
    body: Value,
) -> StoreResult<()> {
    let statement = tx.prepare_cached(OUTBOX).await.map_err(broken("outbox"))?;
    let (tenant, app) = (tenant.uuid(), app.map(AppId::uuid));
    tx.execute(&statement, &[&tenant, &app, &topic, &body]).await.map_err(broken("outbox"))?;
    Ok(())
}

/// Entry (`done`) and receipt of one effect of the transaction. Answers the entry's time.
pub(crate) async fn enter(tx: &Transaction<'_>, draft: &EntryDraft, said: &Said<'_>) -> StoreResult<DateTime<Utc>> {
    let facts = draft.canonical();
    let (action, target) = (register::printable(&draft.action), register::printable(&draft.target));
    let agent = draft.agent.as_ref().map(inn_protocol::AgentId::as_str);
    let parameters: [&(dyn ToSql + Sync); 17] = [
        &draft.call.uuid(),
        &draft.tenant.uuid(),
        &draft.app.map(AppId::uuid),
        &draft.caller,
        &draft.user.map(inn_protocol::UserId::uuid),
        &agent,
        &draft.grant.map(inn_protocol::GrantId::uuid),
        &action,
        &target,
        &facts,
        &said.entity,
        &said.sentence,
        &said.shape,
        &said.row,
        &said.labels,
        &said.record,
        &said.verb,
    ];
    let statement = tx.prepare_cached(FINISH).await.map_err(broken("entry"))?;
    let at = tx.query_one(&statement, &parameters).await.map_err(broken("entry"))?.get(0);
    Ok(at)
}

#[cfg(test)]
mod tests;

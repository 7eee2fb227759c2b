//! What has to be done now and then, by any node: partitions ahead, expired rows away.

use inn_ports::StoreResult;

use crate::PgStore;
use crate::error::broken;

/// What one round did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Housekept {
    pub partitions: i32,
    pub nonces: u64,
    pub idempotency_keys: u64,
    pub outbox_events: u64,
    /// Changes of records that nobody can ask for any more.
    pub changes: u64,
    /// Of accounts of apps: tickets that ran out, marks of mails that went.
    pub account_rows: u64,
}

/// Rows one statement deletes; the rest waits for the next statement, so that no transaction grows long and holds back
/// the sealer.
const PIECE: u64 = 5000;

/// A minute of grace: the signature is refused by its own expiry before its nonce is forgotten.
const NONCES: &str = "DELETE FROM inn.nonces WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM inn.nonces WHERE expires < clock_timestamp() - interval '1 minute' LIMIT 5000))";

/// Kept 24 hours: after that a repeat is a new call.
const KEYS: &str = "DELETE FROM inn.idempotency WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM inn.idempotency WHERE created_at < clock_timestamp() - interval '24 hours' LIMIT 5000))";

/// Events are hints to whoever listens; who was away for three days reads the data anew.
const EVENTS: &str = "DELETE FROM inn.outbox WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM inn.outbox WHERE at < clock_timestamp() - interval '3 days' LIMIT 5000))";

/// The oldest come first, so each statement looks at no more than it may delete.
const CHANGES: &str = "DELETE FROM inn.changes WHERE ctid = ANY (ARRAY(
    SELECT c.ctid FROM (SELECT ctid, at FROM inn.changes ORDER BY txid, id LIMIT 5000) AS c
    WHERE c.at < clock_timestamp() - interval '1 hour'))";

/// An hour of grace: whoever comes late is told that it ran out, and not that it never was.
const TICKETS: &str = "DELETE FROM inn.app_tickets WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM inn.app_tickets WHERE expires_at < clock_timestamp() - interval '1 hour' LIMIT 5000))";

/// Longer than every pause between two mails.
const MAILS: &str = "DELETE FROM inn.app_mails WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM inn.app_mails WHERE sent_at < clock_timestamp() - interval '1 day' LIMIT 5000))";

impl PgStore {
    /// Makes the partitions of the next two months, drops expired nonces, idempotency keys older than 24 hours and
    /// old outbox events. Safe to run on several nodes at once; run it every few minutes.
    pub async fn housekeeping(&self) -> StoreResult<Housekept> {
        let client = self.client().await?;
        let row = client.query_one("SELECT inn.ensure_partitions(2)", &[]).await.map_err(broken("partitions"))?;
        let partitions = row.try_get(0).map_err(broken("partitions"))?;
        drop(client);
        Ok(Housekept {
            partitions,
            nonces: self.prune("nonces", NONCES).await?,
            idempotency_keys: self.prune("idempotency keys", KEYS).await?,
            outbox_events: self.prune("outbox", EVENTS).await?,
            changes: self.prune("changes", CHANGES).await?,
            account_rows: self.prune("tickets", TICKETS).await? + self.prune("mails", MAILS).await?,
        })
    }

    async fn prune(&self, context: &'static str, text: &str) -> StoreResult<u64> {
        let client = self.client().await?;
        let mut total = 0;
        loop {
            let deleted = client.execute(text, &[]).await.map_err(broken(context))?;
            total += deleted;
            if deleted < PIECE {
                return Ok(total);
            }
        }
    }
}

#[cfg(test)]
mod tests;

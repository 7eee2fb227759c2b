//! Sealing the register: committed entries are chained per tenant in batches and the head is signed.
//!
//! Entries are read below the oldest running transaction, in the order (transaction id, call): neither time nor insert
//! order is the order of commits, and a late commit must not land before what is sealed already. So chaining never
//! holds up a commit. The row of `seal_state` is locked while a batch is chained, so that two sealers cannot fork the
//! chain; the lease in it only keeps them from taking turns at the same work.

use std::time::Duration;

use chrono::{DateTime, Utc};
use deadpool_postgres::Transaction;
use inn_ports::StoreResult;
use inn_protocol::{Digest, TenantId};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::PgStore;
use crate::error::{broken, committing};
use crate::register::{digest, read};

/// How heads are chained, signed and checked. The recipe and the keys belong to whoever implements it (the platform's
/// key ring); the store only keeps what comes out.
pub trait HeadSigner: Send + Sync {
    /// The head after an entry. The first entry of a tenant is chained to 32 zero bytes.
    fn chain(&self, previous: Digest, entry: Digest) -> Digest;
    /// Signs a head; answers the key's id and the signature.
    fn sign(&self, head: &UnsignedHead) -> (String, Vec<u8>);
    /// Whether the key is known and made this signature.
    fn verify(&self, head: &UnsignedHead, key: &str, signature: &[u8]) -> bool;
}

/// What a head says: at this time, `seq` entries of this tenant chained to `head`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnsignedHead {
    pub tenant: TenantId,
    /// Number of the last entry, from 1.
    pub seq: i64,
    pub head: Digest,
    /// Database time, to the microsecond.
    pub at: DateTime<Utc>,
}

/// Entries chained under one head, at most.
const BATCH: usize = 5000;
/// Between two rounds; a sealed head is at most this much older than its entries, plus the time of a round.
const PAUSE: Duration = Duration::from_millis(250);

/// The chain itself says where it ends: a saved place behind that end must not fork it.
const LEASE: &str = "
SELECT s.txid::text AS txid_text, s.call, s.seq, s.head, c.seq AS chain_seq, c.chain AS chain_head
FROM inn.seal_state s
LEFT JOIN LATERAL (SELECT seq, chain FROM inn.sealed WHERE tenant = s.tenant ORDER BY seq DESC LIMIT 1) c ON true
WHERE s.tenant = $1 AND (s.holder = $2 OR s.lease_until < clock_timestamp()) FOR UPDATE OF s SKIP LOCKED";

/// `LIMIT` as text: [`BATCH`]. Ordered by the transaction id itself: as text, 1000 comes before 999, hence the columns
/// are named with their table and the text has a name of its own.
const NEXT: &str = "
SELECT e.call, e.at, e.txid::text AS txid_text, e.digest,
    EXISTS (SELECT FROM inn.sealed s WHERE s.tenant = e.tenant AND s.call = e.call AND s.at = e.at) AS sealed
FROM inn.entries e
WHERE e.tenant = $1 AND (e.txid, e.call) > ($2::text::xid8, $3) AND e.txid < pg_snapshot_xmin(pg_current_snapshot())
ORDER BY e.txid, e.call LIMIT 5000";

const CHAIN: &str = "
INSERT INTO inn.sealed (tenant, seq, call, at, chain)
SELECT $1, t.seq, t.call, t.at, t.chain
FROM unnest($2::int8[], $3::uuid[], $4::timestamptz[], $5::bytea[]) AS t (seq, call, at, chain)";

const HEAD: &str = "INSERT INTO inn.heads (tenant, seq, head, at, key, signature) VALUES ($1, $2, $3, $4, $5, $6)";

const STATE: &str = "
UPDATE inn.seal_state
SET txid = $2::text::xid8, call = $3, seq = $4, head = $5, holder = $6, lease_until = clock_timestamp() + interval '1 second'
WHERE tenant = $1";

/// Tenants with entries that can be sealed now. One index probe per tenant.
const WAITING: &str = "
SELECT t.id FROM (SELECT id FROM inn.tenants UNION ALL SELECT '00000000-0000-0000-0000-000000000000'::uuid) AS t
LEFT JOIN inn.seal_state s ON s.tenant = t.id
WHERE (s.tenant IS NULL OR s.holder = $1 OR s.lease_until < clock_timestamp())
    AND EXISTS (
        SELECT FROM inn.entries e
        WHERE e.tenant = t.id
            AND (e.txid, e.call) > (coalesce(s.txid, '0'::xid8), coalesce(s.call, '00000000-0000-0000-0000-000000000000'::uuid))
            AND e.txid < pg_snapshot_xmin(pg_current_snapshot()))";

impl PgStore {
    /// Chains and signs everything of the tenant that can be sealed now. Answers how many entries that was; 0 also
    /// when another sealer holds the tenant.
    pub async fn seal_once(&self, tenant: TenantId) -> StoreResult<usize> {
        let mut total = 0;
        loop {
            let Round { read, sealed } = self.seal_batch(tenant).await?;
            total += sealed;
            if read < BATCH {
                return Ok(total);
            }
        }
    }

    /// Seals every tenant with something to seal. One that cannot be sealed does not hold up the others: the error is
    /// answered when all had their turn.
    pub async fn seal_all(&self) -> StoreResult<usize> {
        let waiting = {
            let client = self.client().await?;
            let statement = client.prepare_cached(WAITING).await.map_err(broken("sealer"))?;
            client.query(&statement, &[&self.inner.node]).await.map_err(broken("sealer"))?
        };
        let (mut total, mut failed) = (0, None);
        for row in &waiting {
            let tenant = TenantId::from_uuid(read(row, "id")?);
            match self.seal_once(tenant).await {
                Ok(sealed) => total += sealed,
                Err(error) => {
                    tracing::error!(%tenant, ?error, "the register of a tenant could not be sealed");
                    failed = Some(error);
                }
            }
        }
        failed.map_or(Ok(total), Err)
    }

    /// Seals until cancelled, then once more, so that a clean stop leaves nothing unsealed. Runs on every node.
    pub async fn run_sealer(&self, cancel: CancellationToken) {
        loop {
            let ended = cancel.run_until_cancelled(tokio::time::sleep(PAUSE)).await.is_none();
            // The cause has been logged where it happened; the entries wait for the next round.
            if let Err(error) = self.seal_all().await {
                tracing::warn!(?error, "the register could not be sealed in this round");
            }
            if ended {
                return;
            }
        }
    }

    async fn seal_batch(&self, tenant: TenantId) -> StoreResult<Round> {
        let mut client = self.client().await?;
        client
            .execute("INSERT INTO inn.seal_state (tenant) VALUES ($1) ON CONFLICT DO NOTHING", &[&tenant.uuid()])
            .await
            .map_err(broken("seal state"))?;
        let tx = client.transaction().await.map_err(broken("seal"))?;
        let Some(position) = self.position(&tx, tenant).await? else { return Ok(Round::default()) };
        let batch = Batch::read(&tx, tenant, &position, &*self.inner.signer).await?;
        if batch.read == 0 {
            return Ok(Round::default());
        }
        self.keep(&tx, tenant, &batch).await?;
        tx.commit().await.map_err(committing("seal"))?;
        Ok(Round { read: batch.read, sealed: batch.calls.len() })
    }

    async fn position(&self, tx: &Transaction<'_>, tenant: TenantId) -> StoreResult<Option<Position>> {
        let statement = tx.prepare_cached(LEASE).await.map_err(broken("seal state"))?;
        let row = tx.query_opt(&statement, &[&tenant.uuid(), &self.inner.node]).await.map_err(broken("seal state"))?;
        let position = |row: tokio_postgres::Row| {
            let (seq, head): (i64, &[u8]) = (read(&row, "seq")?, read(&row, "head")?);
            let chained: Option<i64> = read(&row, "chain_seq")?;
            let end: Option<&[u8]> = read(&row, "chain_head")?;
            let (seq, head) = chained.zip(end).filter(|(chained, _)| *chained > seq).unwrap_or((seq, head));
            Ok(Position { txid: read(&row, "txid_text")?, call: read(&row, "call")?, seq, head: digest(head)? })
        };
        row.map(position).transpose()
    }

    async fn keep(&self, tx: &Transaction<'_>, tenant: TenantId, batch: &Batch) -> StoreResult<()> {
        let tenant_id = tenant.uuid();
        let end = &batch.end;
        // Nothing new when all of it had been sealed already: then only the place moves on.
        if !batch.calls.is_empty() {
            let chain = tx.prepare_cached(CHAIN).await.map_err(broken("chain"))?;
            tx.execute(&chain, &[&tenant_id, &batch.seqs, &batch.calls, &batch.times, &batch.chains])
                .await
                .map_err(broken("chain"))?;
            let now = tx.query_one("SELECT clock_timestamp()", &[]).await.map_err(broken("head"))?;
            let at: DateTime<Utc> = now.try_get(0).map_err(broken("head"))?;
            let (key, signature) = self.inner.signer.sign(&UnsignedHead { tenant, seq: end.seq, head: end.head, at });
            let head = tx.prepare_cached(HEAD).await.map_err(broken("head"))?;
            tx.execute(&head, &[&tenant_id, &end.seq, &end.head.0.as_slice(), &at, &key, &signature])
                .await
                .map_err(broken("head"))?;
        }
        let state = tx.prepare_cached(STATE).await.map_err(broken("seal state"))?;
        tx.execute(&state, &[&tenant_id, &end.txid, &end.call, &end.seq, &end.head.0.as_slice(), &self.inner.node])
            .await
            .map_err(broken("seal state"))?;
        Ok(())
    }
}

/// What one batch did.
#[derive(Default)]
struct Round {
    /// Entries looked at.
    read: usize,
    /// Those of them that were not sealed yet.
    sealed: usize,
}

/// The last sealed entry of a tenant.
struct Position {
    /// A transaction id, as text: it has no counterpart among this side's types.
    txid: String,
    call: Uuid,
    seq: i64,
    head: Digest,
}

struct Batch {
    /// Entries looked at; the lists hold those that were not sealed yet.
    read: usize,
    seqs: Vec<i64>,
    calls: Vec<Uuid>,
    times: Vec<DateTime<Utc>>,
    chains: Vec<Vec<u8>>,
    end: Position,
}

impl Batch {
    async fn read(
        tx: &Transaction<'_>,
        tenant: TenantId,
        from: &Position,
        signer: &dyn HeadSigner,
    ) -> StoreResult<Self> {
        let statement = tx.prepare_cached(NEXT).await.map_err(broken("entries to seal"))?;
        let rows =
            tx.query(&statement, &[&tenant.uuid(), &from.txid, &from.call]).await.map_err(broken("entries to seal"))?;
        let end = Position { txid: from.txid.clone(), call: from.call, seq: from.seq, head: from.head };
        let mut batch =
            Self { read: rows.len(), seqs: Vec::new(), calls: Vec::new(), times: Vec::new(), chains: Vec::new(), end };
        for row in &rows {
            let end = &mut batch.end;
            end.call = read(row, "call")?;
            end.txid = read(row, "txid_text")?;
            if read(row, "sealed")? {
                continue;
            }
            end.seq += 1;
            end.head = signer.chain(end.head, digest(read(row, "digest")?)?);
            batch.seqs.push(end.seq);
            batch.calls.push(end.call);
            batch.times.push(read(row, "at")?);
            batch.chains.push(end.head.0.to_vec());
        }
        Ok(batch)
    }
}

#[cfg(test)]
mod tests;

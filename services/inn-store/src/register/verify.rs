//! Checking the register as a stranger would: from the rows alone, with the public keys. Finds edited, removed,
//! inserted and reordered entries, edited receipts, a rewritten chain, heads that do not hold, and (against a head
//! that was exported earlier) an end cut off.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use deadpool_postgres::Transaction;
use inn_ports::StoreResult;
use inn_protocol::register::{Head, Verification, entry_digest};
use inn_protocol::{CallId, Digest, TenantId};
use tokio_postgres::{IsolationLevel, Row};

use super::{digest, read};
use crate::error::broken;
use crate::{PgStore, UnsignedHead};

/// Problems named; more are counted by nobody, since the register is worth nothing then.
const MOST_PROBLEMS: usize = 100;

/// The chain in pieces, so that a register of any length fits into memory. `row` is what the receipt says.
const PIECE: &str = "
SELECT s.seq, s.call, s.chain, e.at, e.facts, e.outcome, e.effect, e.digest, r.call IS NOT NULL AS receipt,
    sha256(convert_to(coalesce(r.sentence, '') || E'\\n' || coalesce(r.shape, '') || E'\\n' || r.\"row\" || E'\\n' || coalesce(r.labels, ''), 'UTF8'))
        AS receipt_effect
FROM (SELECT * FROM inn.sealed WHERE tenant = $1 AND seq > $2 ORDER BY seq LIMIT 2000) s
LEFT JOIN inn.entries e ON e.call = s.call AND e.at = s.at AND e.tenant = s.tenant
LEFT JOIN inn.receipts r ON r.call = e.call AND r.at = e.at AND r.tenant = e.tenant
ORDER BY s.seq";

/// Entries that should be in the chain and are not: written by a transaction the sealer has gone past.
const UNSEALED: &str = "
SELECT e.call FROM inn.entries e JOIN inn.seal_state t ON t.tenant = e.tenant
WHERE e.tenant = $1 AND (e.txid, e.call) <= (t.txid, t.call)
    AND NOT EXISTS (SELECT FROM inn.sealed s WHERE s.tenant = e.tenant AND s.call = e.call AND s.at = e.at)
ORDER BY e.txid, e.call LIMIT 100";

/// The newest entries are not sealed yet; their own digests must hold all the same. `overdue`: nothing keeps the sealer
/// from them, and it had a minute.
const TAIL: &str = "
SELECT e.call, e.at, e.facts, e.outcome, e.effect, e.digest,
    e.at < now() - interval '60 seconds' AND e.txid < pg_snapshot_xmin(pg_current_snapshot()) AS overdue
FROM inn.entries e LEFT JOIN inn.seal_state t ON t.tenant = e.tenant
WHERE e.tenant = $1 AND (t.tenant IS NULL OR (e.txid, e.call) > (t.txid, t.call))
    AND NOT EXISTS (SELECT FROM inn.sealed s WHERE s.tenant = e.tenant AND s.call = e.call AND s.at = e.at)
ORDER BY e.txid, e.call LIMIT 100000";

pub(super) async fn verify(store: &PgStore, tenant: TenantId, expected: Option<&Head>) -> StoreResult<Verification> {
    let mut client = store.client().await?;
    // One snapshot for everything, or the sealer at work would look like a forger.
    let tx = client
        .build_transaction()
        .isolation_level(IsolationLevel::RepeatableRead)
        .read_only(true)
        .start()
        .await
        .map_err(broken("verify"))?;
    let mut check = Check { store, tx, tenant, problems: Vec::new(), sealed: 0, entries: 0, chain: GENESIS };
    let heads = check.heads().await?;
    check.chain(&heads, expected).await?;
    check.unsealed().await?;
    check.tail().await?;
    if let Some(expected) = expected {
        check.expected(expected);
    }
    let Check { tx, problems, sealed, entries, .. } = check;
    let newest = heads.last().map(|kept| kept.head.clone());
    tx.commit().await.map_err(broken("verify"))?;
    Ok(Verification {
        ok: problems.is_empty(),
        entries,
        sealed,
        heads: i64::try_from(heads.len()).unwrap_or(i64::MAX),
        problems,
        head: newest,
    })
}

/// What the first entry is chained to.
pub(crate) const GENESIS: Digest = Digest([0; 32]);

struct Check<'a> {
    store: &'a PgStore,
    tx: Transaction<'a>,
    tenant: TenantId,
    problems: Vec<String>,
    sealed: i64,
    entries: i64,
    /// The head after `sealed` entries, recomputed.
    chain: Digest,
}

struct KeptHead {
    head: Head,
    signature: Vec<u8>,
}

impl Check<'_> {
    fn problem(&mut self, text: String) {
        if self.problems.len() < MOST_PROBLEMS {
            self.problems.push(text);
        }
    }

    /// Every kept head with a good signature is a promise the chain has to meet.
    async fn heads(&mut self) -> StoreResult<Vec<KeptHead>> {
        const TEXT: &str = "SELECT seq, head, at, key, signature FROM inn.heads WHERE tenant = $1 ORDER BY seq";
        let statement = self.tx.prepare_cached(TEXT).await.map_err(broken("heads"))?;
        let rows = self.tx.query(&statement, &[&self.tenant.uuid()]).await.map_err(broken("heads"))?;
        let mut heads = Vec::with_capacity(rows.len());
        for row in &rows {
            let kept = KeptHead { head: super::head(self.tenant, row)?, signature: read(row, "signature")? };
            if !self.signed(&kept.head, &kept.signature) {
                self.problem(format!("Head {} is not signed by a key of this platform.", kept.head.seq));
            }
            heads.push(kept);
        }
        Ok(heads)
    }

    fn signed(&self, head: &Head, signature: &[u8]) -> bool {
        let statement = UnsignedHead { tenant: head.tenant, seq: head.seq, head: head.head, at: head.at };
        self.store.inner.signer.verify(&statement, &head.key, signature)
    }

    async fn chain(&mut self, heads: &[KeptHead], expected: Option<&Head>) -> StoreResult<()> {
        let statement = self.tx.prepare_cached(PIECE).await.map_err(broken("chain"))?;
        let mut heads =
            heads.iter().map(|kept| (kept.head.seq, kept.head.head)).collect::<Vec<_>>().into_iter().peekable();
        let expected = expected.filter(|head| head.tenant == self.tenant);
        loop {
            let rows =
                self.tx.query(&statement, &[&self.tenant.uuid(), &self.sealed]).await.map_err(broken("chain"))?;
            if rows.is_empty() {
                break;
            }
            for row in &rows {
                self.link(row)?;
                while let Some((seq, head)) = heads.next_if(|(seq, _)| *seq <= self.sealed) {
                    if seq != self.sealed || head != self.chain {
                        self.problem(format!("Head {seq} does not match the entries before it."));
                    }
                }
                if let Some(expected) = expected.filter(|head| head.seq == self.sealed && head.head != self.chain) {
                    self.problem(format!("The exported head {} does not match the entries before it.", expected.seq));
                }
            }
        }
        for (seq, _) in heads {
            self.problem(format!("Head {seq} is about entries that are no longer there."));
        }
        Ok(())
    }

    fn link(&mut self, row: &Row) -> StoreResult<()> {
        let seq: i64 = read(row, "seq")?;
        let call = CallId::from_uuid(read(row, "call")?);
        if seq != self.sealed + 1 {
            self.problem(format!("Places {} to {} of the chain are missing.", self.sealed + 1, seq - 1));
        }
        self.sealed = seq;
        let own = match read::<Option<DateTime<Utc>>>(row, "at")? {
            None => {
                self.problem(format!("Entry {call} (place {seq}) was removed."));
                None
            }
            Some(at) => {
                self.entries += 1;
                Some(self.entry(row, call, at)?)
            }
        };
        let kept = digest(read(row, "chain")?)?;
        let computed = own.map(|own| self.store.inner.signer.chain(self.chain, own));
        if computed.is_some_and(|computed| computed != kept) {
            self.problem(format!("Entry {call} (place {seq}) is not what was sealed."));
        }
        // One bad entry is one problem, not one for each that follows.
        self.chain = kept;
        let effect: Option<&[u8]> = read(row, "effect")?;
        if own.is_some() && effect.is_some() != read::<bool>(row, "receipt")? {
            self.problem(format!("The receipt of {call} was removed, or put in later."));
        } else if effect.is_some() && effect != read::<Option<&[u8]>>(row, "receipt_effect")? && own.is_some() {
            self.problem(format!("The receipt of {call} was changed."));
        }
        Ok(())
    }

    /// The digest the entry should have.
    fn entry(&mut self, row: &Row, call: CallId, at: DateTime<Utc>) -> StoreResult<Digest> {
        let effect = read::<Option<&[u8]>>(row, "effect")?.and_then(Digest::from_slice);
        let own = entry_digest(read(row, "facts")?, read(row, "outcome")?, at, effect);
        if own != digest(read(row, "digest")?)? {
            self.problem(format!("Entry {call} was changed: its digest does not match."));
        }
        Ok(own)
    }

    async fn unsealed(&mut self) -> StoreResult<()> {
        let statement = self.tx.prepare_cached(UNSEALED).await.map_err(broken("unsealed entries"))?;
        let rows = self.tx.query(&statement, &[&self.tenant.uuid()]).await.map_err(broken("unsealed entries"))?;
        for row in &rows {
            let call = CallId::from_uuid(read(row, "call")?);
            self.entries += 1;
            self.problem(format!("Entry {call} was put in after its place in the chain had been sealed."));
        }
        Ok(())
    }

    async fn tail(&mut self) -> StoreResult<()> {
        let statement = self.tx.prepare_cached(TAIL).await.map_err(broken("newest entries"))?;
        let rows = self.tx.query(&statement, &[&self.tenant.uuid()]).await.map_err(broken("newest entries"))?;
        let mut overdue: Option<(CallId, DateTime<Utc>)> = None;
        let mut waiting = 0_u64;
        for row in &rows {
            let call = CallId::from_uuid(read(row, "call")?);
            self.entries += 1;
            let at = read(row, "at")?;
            self.entry(row, call, at)?;
            if read(row, "overdue")? {
                waiting += 1;
                overdue.get_or_insert((call, at));
            }
        }
        if let Some((call, at)) = overdue {
            let at = at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
            self.problem(format!(
                "{waiting} entries have waited for more than a minute to be sealed, from {call} of {at} on: the sealer does not run or fails."
            ));
        }
        Ok(())
    }

    /// A head that was handed out must still be met: otherwise the end was cut off or the chain written anew.
    fn expected(&mut self, head: &Head) {
        if head.tenant != self.tenant {
            self.problem(format!("The exported head is about {}, not about {}.", head.tenant, self.tenant));
            return;
        }
        let signature = URL_SAFE_NO_PAD.decode(&head.signature).unwrap_or_default();
        // Kept as number and digest alone, it is vouched for by whoever kept it.
        if !head.signature.is_empty() && !self.signed(head, &signature) {
            self.problem(format!("The exported head {} is not signed by a key of this platform.", head.seq));
        }
        if head.seq > self.sealed {
            self.problem(format!(
                "The exported head counts {} entries, the register has {} sealed ones: its end was cut off.",
                head.seq, self.sealed
            ));
        }
    }
}

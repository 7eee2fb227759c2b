//! Reading the register: entries, receipts, heads. Checking it: [`verify`].

mod verify;

use std::fmt::Write as _;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use inn_ports::{Register, StoreError, StoreResult};
use inn_protocol::receipt::Receipt;
use inn_protocol::register::{CallRecord, Entry, EntryDraft, EntrySearch, Head, Verification};
use inn_protocol::{AgentId, AppId, CallId, Digest, GrantId, TenantId, UserId};
use serde_json::{Map, Value};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, ToSql};
use uuid::Uuid;

use crate::PgStore;
use crate::error::broken;

/// Most entries of one answer.
const MOST: u32 = 500;

const ENTRIES: &str = "
SELECT e.call, e.tenant, e.at, e.facts, e.outcome, e.effect, e.digest, s.seq
FROM inn.entries e LEFT JOIN inn.sealed s ON s.tenant = e.tenant AND s.call = e.call AND s.at = e.at
WHERE e.tenant = $1";

/// A condition and the value it is about.
struct Condition<'a>(&'static str, &'a (dyn ToSql + Sync));

#[async_trait]
impl Register for PgStore {
    async fn entries(&self, tenant: TenantId, search: &EntrySearch) -> StoreResult<Vec<Entry>> {
        let app = search.app.map(AppId::uuid);
        let user = search.user.map(UserId::uuid);
        let grant = search.grant.map(GrantId::uuid);
        let agent = search.agent.as_ref().map(AgentId::as_str);
        let action = search.action.as_deref().map(printable);
        // `refused` stands for every refusal, whatever its code.
        let (refused, outcome) = match search.outcome.as_deref() {
            Some("refused") => (Some("refused:%"), None),
            other => (None, other.map(printable)),
        };
        let before_call = search.before.map(|(_, call)| call.uuid());
        let before_at = search.before.map(|(at, _)| at);
        let wanted = [
            app.as_ref().map(|app| Condition("e.app = ", app)),
            user.as_ref().map(|user| Condition("e.user_id = ", user)),
            grant.as_ref().map(|grant| Condition("e.grant_id = ", grant)),
            agent.as_ref().map(|agent| Condition("e.agent = ", agent)),
            action.as_ref().map(|action| Condition("e.action = ", action)),
            refused.as_ref().map(|refused| Condition("e.outcome LIKE ", refused)),
            outcome.as_ref().map(|outcome| Condition("e.outcome = ", outcome)),
            search.since.as_ref().map(|since| Condition("e.at >= ", since)),
            // A bound of its own beside the pair, so that whole partitions are left out.
            before_at.as_ref().map(|at| Condition("e.at <= ", at)),
        ];
        let tenant = tenant.uuid();
        let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&tenant];
        let mut text = ENTRIES.to_owned();
        for Condition(condition, value) in wanted.into_iter().flatten() {
            parameters.push(value);
            let _ = write!(text, " AND {condition}${}", parameters.len());
        }
        if let (Some(at), Some(call)) = (&before_at, &before_call) {
            parameters.extend([at as &(dyn ToSql + Sync), call]);
            let _ = write!(text, " AND (e.at, e.call) < (${}, ${})", parameters.len() - 1, parameters.len());
        }
        // Few fixed sizes, as text: with a parameter the planner expects a tenth of the table.
        let limit = search.limit.clamp(1, MOST);
        let size = [1, 10, 50, 100, MOST].into_iter().find(|size| *size >= limit).unwrap_or(MOST);
        let _ = write!(text, " ORDER BY e.at DESC, e.call DESC LIMIT {size}");

        let client = self.client().await?;
        let statement = client.prepare_cached(&text).await.map_err(broken("entries"))?;
        let rows = client.query(&statement, &parameters).await.map_err(broken("entries"))?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        rows.iter().take(limit).map(entry).collect()
    }

    async fn entry(&self, tenant: TenantId, call: CallId) -> StoreResult<Option<Entry>> {
        let client = self.client().await?;
        let text = format!("{ENTRIES} AND e.call = $2 AND e.at BETWEEN $3 AND $4 ORDER BY e.at LIMIT 1");
        let (from, to) = around(call);
        let statement = client.prepare_cached(&text).await.map_err(broken("entry"))?;
        let parameters: [&(dyn ToSql + Sync); 4] = [&tenant.uuid(), &call.uuid(), &from, &to];
        let row = client.query_opt(&statement, &parameters).await.map_err(broken("entry"))?;
        row.as_ref().map(entry).transpose()
    }

    async fn receipt(&self, tenant: TenantId, call: CallId) -> StoreResult<Option<Receipt>> {
        const TEXT: &str = "SELECT app, at, action, entity, record, sentence, shape, \"row\", labels FROM inn.receipts
            WHERE call = $1 AND tenant = $2 AND at BETWEEN $3 AND $4 ORDER BY at LIMIT 1";
        let client = self.client().await?;
        let (from, to) = around(call);
        let statement = client.prepare_cached(TEXT).await.map_err(broken("receipt"))?;
        let parameters: [&(dyn ToSql + Sync); 4] = [&call.uuid(), &tenant.uuid(), &from, &to];
        let row = client.query_opt(&statement, &parameters).await.map_err(broken("receipt"))?;
        row.map(|row| receipt(call, &row)).transpose()
    }

    async fn head(&self, tenant: TenantId) -> StoreResult<Option<Head>> {
        const TEXT: &str =
            "SELECT seq, head, at, key, signature FROM inn.heads WHERE tenant = $1 ORDER BY seq DESC LIMIT 1";
        let client = self.client().await?;
        let statement = client.prepare_cached(TEXT).await.map_err(broken("head"))?;
        let row = client.query_opt(&statement, &[&tenant.uuid()]).await.map_err(broken("head"))?;
        row.map(|row| head(tenant, &row)).transpose()
    }

    async fn verify(&self, tenant: TenantId, expected: Option<&Head>) -> StoreResult<Verification> {
        verify::verify(self, tenant, expected).await
    }
}

/// Where in time a call's rows can be: its id (UUID version 7) holds when a node began it, and no node's clock is a day
/// wrong. Leaves out the partitions of all other months.
fn around(call: CallId) -> (DateTime<Utc>, DateTime<Utc>) {
    let began = call.uuid().get_timestamp().and_then(|stamp| {
        let (seconds, nanos) = stamp.to_unix();
        DateTime::from_timestamp(i64::try_from(seconds).ok()?, nanos)
    });
    // The years PostgreSQL and chrono both know; a call id that is not ours matches nothing anyway.
    let (first, last) = (DateTime::UNIX_EPOCH, DateTime::UNIX_EPOCH + TimeDelta::days(365_000));
    let Some(began) = began.filter(|began| (first..last).contains(began)) else { return (first, last) };
    (began - TimeDelta::days(1), began + TimeDelta::days(1))
}

fn entry(row: &Row) -> StoreResult<Entry> {
    let facts: &str = read(row, "facts")?;
    Ok(Entry {
        call: CallId::from_uuid(read(row, "call")?),
        tenant: TenantId::from_uuid(read(row, "tenant")?),
        at: read(row, "at")?,
        // Damaged facts are shown as the text they are; `verify` says what is wrong with them.
        facts: serde_json::from_str(facts).unwrap_or_else(|_| Value::String(facts.to_owned())),
        outcome: read(row, "outcome")?,
        effect: read::<Option<&[u8]>>(row, "effect")?.and_then(Digest::from_slice),
        digest: digest(read(row, "digest")?)?,
        seq: read(row, "seq")?,
    })
}

fn receipt(call: CallId, row: &Row) -> StoreResult<Receipt> {
    let stored = object(read(row, "row")?)?;
    let at: DateTime<Utc> = read(row, "at")?;
    let sentence = if let Some(sentence) = read::<Option<String>>(row, "sentence")? {
        sentence
    } else {
        let shape = serde_json::from_str(read(row, "shape")?).map_err(|error| {
            tracing::error!(%error, "a kept sentence shape cannot be read");
            StoreError::Broken
        })?;
        let labels = read::<Option<&str>>(row, "labels")?.map(object).transpose()?.unwrap_or_default();
        inn_rules::sentence::sentence(&shape, &stored, &labels, at)
    };
    Ok(Receipt {
        id: call,
        app: read::<Option<Uuid>>(row, "app")?.map(AppId::from_uuid),
        at,
        action: read(row, "action")?,
        sentence,
        entity: read(row, "entity")?,
        record: read(row, "record")?,
        stored,
    })
}

fn head(tenant: TenantId, row: &Row) -> StoreResult<Head> {
    let signature: &[u8] = read(row, "signature")?;
    Ok(Head {
        tenant,
        seq: read(row, "seq")?,
        head: digest(read(row, "head")?)?,
        at: read(row, "at")?,
        key: read(row, "key")?,
        signature: URL_SAFE_NO_PAD.encode(signature),
    })
}

/// Text for an indexed column: PostgreSQL keeps no U+0000 in text (the canonical facts have it escaped).
pub(crate) fn printable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// A kept JSON object.
pub(crate) fn object(text: &str) -> StoreResult<Map<String, Value>> {
    serde_json::from_str(text).map_err(|error| {
        tracing::error!(%error, "a kept row is not a JSON object");
        StoreError::Broken
    })
}

pub(crate) fn read<'r, T: FromSql<'r>>(row: &'r Row, column: &str) -> StoreResult<T> {
    row.try_get(column).map_err(broken("a row of the register"))
}

pub(crate) fn digest(bytes: &[u8]) -> StoreResult<Digest> {
    Digest::from_slice(bytes).ok_or_else(|| {
        tracing::error!(length = bytes.len(), "a kept digest has the wrong length");
        StoreError::Broken
    })
}

/// What the platform does by itself: its effect is in the register like anybody else's.
pub(crate) fn platform_call(tenant: TenantId, app: Option<AppId>, action: &str, target: &str) -> CallRecord {
    let draft = EntryDraft {
        call: CallId::new(),
        tenant,
        app,
        caller: "platform",
        user: None,
        agent: None,
        helper: None,
        grant: None,
        via: None,
        app_user: None,
        action: action.to_owned(),
        target: target.to_owned(),
        body: Digest::of(b""),
        claimed_agent: None,
        signature_base: None,
        signature: None,
    };
    CallRecord { draft, live: inn_protocol::call::LiveCheck::default(), nonce: None, idempotency: None }
}

#[cfg(test)]
mod tests;

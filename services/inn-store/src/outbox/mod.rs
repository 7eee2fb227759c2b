//! What happened to records (`inn.changes`): written by the commits, read by realtime (ADR 0016).

mod holds;
mod standing;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use async_trait::async_trait;
use deadpool_postgres::Transaction;
use inn_ports::{Change, Changes, NewChanges, Standing, StoreError, StoreResult, Topic};
use inn_protocol::AppId;
use inn_protocol::app::AppSnapshot;
use inn_protocol::call::LiveCheck;
use inn_protocol::model::{Collection, FieldKind};
use inn_protocol::receipt::Verb;
use inn_rules::filter::Expr;
use inn_rules::realtime::{Action, Snapshot};
use tokio_postgres::Row;

use crate::error::broken;
use crate::{PgStore, columns, register};

/// Changes one look takes at most.
const PAGE: usize = 500;

const CHANGED: &str = "INSERT INTO inn.changes (app, verb, collection, record, \"row\") VALUES ($1, $2, $3, $4, $5)";

/// An SQL expression for the JSON that a change of the row `alias` holds; `None` when it is the row that everybody may
/// see. Hidden fields go along, because rules look at them; passwords and token keys are nobody's business.
pub(crate) fn whole(collection: &Collection, alias: &str) -> Option<String> {
    let secret = |name: &str, kind: &FieldKind| {
        matches!(kind, FieldKind::Password { .. }) || (collection.is_auth() && name == "tokenKey")
    };
    collection.fields.iter().any(|field| field.hidden || secret(&field.name, &field.kind)).then(|| {
        let fields = collection.fields.iter().filter(|field| !secret(&field.name, &field.kind)).cloned().collect();
        columns::row_json(&Collection { fields, ..collection.clone() }, alias)
    })
}

/// Tells one change. Called after the record was changed, while it is locked.
pub(crate) async fn changed(
    tx: &Transaction<'_>,
    app: AppId,
    verb: Verb,
    collection: &str,
    record: &str,
    row: &str,
) -> StoreResult<()> {
    let statement = tx.prepare_cached(CHANGED).await.map_err(broken("change"))?;
    tx.execute(&statement, &[&app.uuid(), &verb.as_str(), &collection, &record, &row])
        .await
        .map_err(broken("change"))?;
    Ok(())
}

/// Snapshot and changes come from one statement, and so from one moment. `$1` seen, `$2` up to, `$3` after, `$4` app.
static NEW: LazyLock<String> = LazyLock::new(|| {
    format!(
        "WITH moment AS MATERIALIZED (SELECT coalesce($2::text::pg_snapshot, pg_current_snapshot()) AS upto)
SELECT m.upto::text, c.* FROM moment m LEFT JOIN LATERAL (
    SELECT c.id, c.txid::text, c.app, c.verb, c.collection, c.record, c.\"row\" FROM inn.changes c
    WHERE c.txid >= pg_snapshot_xmin($1::text::pg_snapshot) AND c.txid < pg_snapshot_xmax(m.upto)
        AND NOT pg_visible_in_snapshot(c.txid, $1::text::pg_snapshot) AND pg_visible_in_snapshot(c.txid, m.upto)
        AND c.id > $3 AND ($4::uuid IS NULL OR c.app = $4)
    ORDER BY c.id LIMIT {PAGE}
) c ON true ORDER BY c.id"
    )
});

impl PgStore {
    /// Records were changed: whoever listens looks.
    pub(crate) async fn tell(&self) {
        if let Some(bus) = &self.inner.bus {
            bus.publish(Topic::Changes).await;
        }
    }
}

#[async_trait]
impl Changes for PgStore {
    async fn snapshot(&self) -> StoreResult<Snapshot> {
        let client = self.client().await?;
        let statement =
            client.prepare_cached("SELECT pg_current_snapshot()::text").await.map_err(broken("snapshot"))?;
        let row = client.query_one(&statement, &[]).await.map_err(broken("snapshot"))?;
        snapshot(&row)
    }

    async fn changes(
        &self,
        seen: &Snapshot,
        upto: Option<&Snapshot>,
        after: i64,
        app: Option<AppId>,
    ) -> StoreResult<NewChanges> {
        let client = self.client().await?;
        let statement = client.prepare_cached(&NEW).await.map_err(broken("changes"))?;
        let (seen, upto) = (seen.to_string(), upto.map(ToString::to_string));
        let rows = client
            .query(&statement, &[&seen, &upto, &after, &app.map(AppId::uuid)])
            .await
            .map_err(broken("changes"))?;
        let upto = rows.first().map(snapshot).ok_or(StoreError::Broken)??;
        let changes: Vec<Change> = rows.iter().filter_map(|row| change(row).transpose()).collect::<StoreResult<_>>()?;
        let more = changes.len() == PAGE;
        Ok(NewChanges { upto, changes, more })
    }

    async fn standing(&self, app: AppId, checks: &[&LiveCheck]) -> StoreResult<Standing> {
        standing::look(self, app, checks).await
    }

    async fn holds(
        &self,
        app: &AppSnapshot,
        collection: &Collection,
        change: &Change,
        conditions: &[Expr],
    ) -> StoreResult<Vec<bool>> {
        holds::decide(self, app, collection, change, conditions).await
    }
}

fn snapshot(row: &Row) -> StoreResult<Snapshot> {
    let text: &str = row.try_get(0).map_err(broken("snapshot"))?;
    text.parse().map_err(|()| StoreError::Broken)
}

/// `None`: nothing new.
fn change(row: &Row) -> StoreResult<Option<Change>> {
    let read = broken("changes");
    let Some(number) = row.try_get(1).map_err(&read)? else { return Ok(None) };
    let text = |place: usize| row.try_get::<_, &str>(place).map_err(&read);
    let (transaction, action) = (text(2)?.parse(), Action::parse(text(4)?));
    let (Ok(transaction), Some(action)) = (transaction, action) else { return Err(StoreError::Broken) };
    Ok(Some(Change {
        number,
        transaction,
        app: AppId::from_uuid(row.try_get(3).map_err(&read)?),
        action,
        collection: text(5)?.to_owned(),
        record: text(6)?.to_owned(),
        row: register::object(text(7)?)?,
    }))
}

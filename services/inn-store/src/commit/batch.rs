//! Several record writes in one transaction: the guards of the call that brought them, then write after write, each
//! with its own entry and receipt, then the entry of the whole.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use deadpool_postgres::{Object, Transaction};
use inn_ports::{Batch, BatchDone, BatchFailed, BatchLook, Plan, Seen, StoreError, StoreResult};
use inn_ports::{batch_sentence, batch_stored};
use inn_protocol::model::CollectionKind;
use inn_protocol::plan::Committed;
use inn_protocol::receipt::Verb;
use inn_protocol::{Code, Refusal};
use inn_rules::filter::Expr;
use tokio_postgres::types::{ToSql, Type};

use super::{carry_out, cascade, refusal, written};
use crate::columns::{self, SqlValue};
use crate::error::broken;
use crate::filter_sql::{self, SqlParams};
use crate::{PgStore, register};

/// A transaction that is open for longer than this holds up others: it is given up.
const MOST_TIME: Duration = Duration::from_secs(10);

pub(crate) async fn commit_all(store: &PgStore, batch: &Batch) -> Result<BatchDone, BatchFailed> {
    let mut client = store.client().await?;
    let done = run(store, &mut client, batch).await;
    if !matches!(done, Err(BatchFailed { error: StoreError::Refused(_) | StoreError::Stale, .. })) {
        store.tell().await;
    }
    if matches!(done, Err(BatchFailed { error: StoreError::Unknown, .. })) {
        // The pool may not have noticed yet that this connection is dead; the next call must not get it.
        drop(Object::take(client));
    }
    done
}

async fn run(store: &PgStore, client: &mut Object, batch: &Batch) -> Result<BatchDone, BatchFailed> {
    let step = store.begin(client, &batch.record).await?;
    let started = Instant::now();
    if let Err(error) = lock(step.tx(), batch).await {
        step.abandon().await;
        return Err(error.into());
    }
    let mut writes = Vec::with_capacity(batch.steps.len());
    for index in 0..batch.steps.len() {
        let kept = if started.elapsed() > MOST_TIME { Err(too_slow()) } else { one(step.tx(), batch, index).await };
        match kept {
            Ok(committed) => writes.push(committed),
            Err(error) => {
                step.abandon().await;
                return Err(BatchFailed { step: Some(index), error });
            }
        }
    }
    let stored = batch_stored(&writes);
    let receipt = step.commit(batch_sentence(writes.len()), stored).await?;
    Ok(BatchDone { writes, receipt })
}

/// Every record that is changed, in one order for all batches.
async fn lock(tx: &Transaction<'_>, batch: &Batch) -> StoreResult<()> {
    let mut targets: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (entity, id) in batch.steps.iter().filter_map(|step| step.target()) {
        targets.entry(entity).or_default().insert(id);
    }
    if targets.values().map(BTreeSet::len).sum::<usize>() < 2 {
        return Ok(());
    }
    for (entity, ids) in targets {
        let Some(collection) = batch.app.definition.model.collection(&entity) else { continue };
        if collection.kind == CollectionKind::View {
            continue;
        }
        let ids: Vec<String> = ids.into_iter().filter(|id| !id.contains('\0')).collect();
        let table = columns::table(batch.app.id, collection);
        let text = format!("SELECT FROM {table} AS t WHERE t.id = ANY ($1) ORDER BY t.id FOR UPDATE OF t");
        let statement = tx.prepare_typed_cached(&text, &[Type::TEXT_ARRAY]).await.map_err(refusal::moved("lock"))?;
        tx.execute(&statement, &[&ids]).await.map_err(refusal::moved("lock"))?;
    }
    Ok(())
}

async fn one(tx: &Transaction<'_>, batch: &Batch, index: usize) -> StoreResult<Committed> {
    let step = batch.steps.get(index).ok_or(StoreError::Broken)?;
    let seen = match step.look() {
        Some(look) => look_at(tx, batch, &look).await?,
        None => None,
    };
    let plan = step.plan(seen)?;
    let kept = write(tx, &plan).await;
    // Nothing is committed yet: a connection that is lost here takes everything along.
    kept.map_err(|error| if matches!(error, StoreError::Unknown) { StoreError::Unavailable } else { error })
}

async fn write(tx: &Transaction<'_>, plan: &Plan) -> StoreResult<Committed> {
    let collection = written(plan)?;
    if plan.write.verb == Verb::Delete && cascade::has_referrers(&plan.app.definition.model, collection) {
        return cascade::within(tx, plan, collection).await;
    }
    carry_out(tx, plan, collection).await
}

/// The row as the transaction has it now, locked, so that what is planned from it still holds when it is written.
async fn look_at(tx: &Transaction<'_>, batch: &Batch, look: &BatchLook) -> StoreResult<Option<Seen>> {
    let Some(collection) = batch.app.definition.model.collection(&look.entity) else { return Ok(None) };
    if look.id.contains('\0') {
        return Ok(None);
    }
    let mut params = SqlParams::starting_at(2);
    let shown = match &look.rule {
        Expr::Always => "true".to_owned(),
        rule => filter_sql::render(rule, batch.app.id, "t", &mut params),
    };
    let text = format!(
        "SELECT CASE WHEN {shown} THEN {} END FROM {} AS t WHERE t.id = $1 FOR UPDATE OF t",
        columns::row_json(collection, "t"),
        columns::table(batch.app.id, collection)
    );
    let types: Vec<Type> = std::iter::once(Type::TEXT).chain(params.values().iter().map(SqlValue::pg_type)).collect();
    let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&look.id];
    parameters.extend(params.refs());
    let statement = tx.prepare_typed_cached(&text, &types).await.map_err(refusal::moved("look"))?;
    let Some(row) = tx.query_opt(&statement, &parameters).await.map_err(refusal::moved("look"))? else {
        return Ok(None);
    };
    let shown: Option<&str> = row.try_get(0).map_err(broken("look"))?;
    Ok(Some(Seen(shown.map(register::object).transpose()?)))
}

fn too_slow() -> StoreError {
    let limit = MOST_TIME.as_secs();
    let message = format!(
        "The batch was not done within {limit} seconds and was given up; nothing was kept. Send fewer writes at once."
    );
    Refusal::new(Code::Timeout, message).into()
}

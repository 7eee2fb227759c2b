//! The commit of a record write: one statement, one round trip, everything or nothing.
//!
//! The statement carries the guards (`step::guard`), the record, the receipt, the entry and the change. Whatever
//! stops it ends it through `inn.stop`, so that nothing at all is kept: neither nonce nor idempotency key, which the
//! refused entry written afterwards brings along again.

mod batch;
mod cascade;
mod refusal;
mod text;

use deadpool_postgres::{GenericClient, Object};
use inn_ports::{Plan, StoreError, StoreResult};
use inn_protocol::model::Collection;
use inn_protocol::plan::Committed;
use inn_protocol::receipt::{Receipt, SentenceShape, Verb};
use inn_protocol::{AgentId, AppId, Code, GrantId, Refusal, UserId};
use tokio_postgres::types::{ToSql, Type};

use crate::error::broken;
use crate::step::guard;
use crate::{PgStore, register};

pub(crate) use batch::commit_all;
pub(crate) use refusal::moved;

pub(crate) async fn commit(store: &PgStore, plan: &Plan) -> StoreResult<Committed> {
    let collection = written(plan)?;
    let committed = alone(store, plan, collection).await;
    // Also when nobody knows whether it was committed: who looks in vain has lost nothing.
    if !matches!(committed, Err(StoreError::Refused(_) | StoreError::Stale)) {
        store.tell().await;
    }
    committed
}

async fn alone(store: &PgStore, plan: &Plan, collection: &Collection) -> StoreResult<Committed> {
    if plan.write.verb == Verb::Delete && cascade::has_referrers(&plan.app.definition.model, collection) {
        return cascade::delete(store, plan, collection).await;
    }
    at_once(store, plan, collection).await
}

/// The collection a plan writes to.
fn written(plan: &Plan) -> StoreResult<&Collection> {
    let entity = &plan.write.entity;
    let Some(collection) = plan.app.definition.model.collection(entity) else {
        return Err(Refusal::new(Code::UnknownEntity, format!("This app has no entity \"{entity}\".")).into());
    };
    if plan.write.id.contains('\0') {
        return Err(Refusal::not_found().into());
    }
    Ok(collection)
}

/// Types of the parameters between the guard's and the record's own.
const ENTRY_TYPES: [Type; 15] = [
    Type::UUID,
    Type::UUID,
    Type::TEXT,
    Type::UUID,
    Type::TEXT,
    Type::UUID,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT_ARRAY,
    Type::TEXT_ARRAY,
    Type::TEXT_ARRAY,
];

async fn at_once(store: &PgStore, plan: &Plan, collection: &Collection) -> StoreResult<Committed> {
    let client = store.client().await?;
    let committed = carry_out(&client, plan, collection).await;
    if matches!(committed, Err(StoreError::Unknown)) {
        // The pool may not have noticed yet that this connection is dead; the next call must not get it.
        drop(Object::take(client));
    }
    committed
}

/// The one statement, committed by itself or as part of an open transaction.
async fn carry_out<C>(client: &C, plan: &Plan, collection: &Collection) -> StoreResult<Committed>
where
    C: GenericClient + Sync,
{
    let write = &plan.write;
    let draft = &plan.record.draft;
    let statement = text::build(plan, collection)?;
    let shape = shape_text(&write.sentence)?;
    let facts = draft.canonical();
    let (action, target) = (register::printable(&draft.action), register::printable(&draft.target));
    let agent = draft.agent.as_ref().map(AgentId::as_str);
    let set: Vec<&str> = write.values.keys().map(String::as_str).collect();
    let added: Vec<&str> = write.increments.keys().map(String::as_str).collect();
    let (tenant, app) = (draft.tenant.uuid(), draft.app.map(AppId::uuid));
    let (user, grant) = (draft.user.map(UserId::uuid), draft.grant.map(GrantId::uuid));
    let verb = write.verb.as_str();
    let guard = guard::Parameters::new(&plan.record, Some(&write.id));
    let entry: [&(dyn ToSql + Sync); 15] = [
        &tenant,
        &app,
        &draft.caller,
        &user,
        &agent,
        &grant,
        &action,
        &target,
        &facts,
        &collection.name,
        &verb,
        &shape,
        &write.read_back,
        &set,
        &added,
    ];
    let own = statement.values.refs();
    let parameters: Vec<_> = guard.list().into_iter().chain(entry).chain(own).collect();
    let types: Vec<Type> = guard::TYPES
        .into_iter()
        .chain(ENTRY_TYPES)
        .chain(statement.values.values().iter().map(crate::columns::SqlValue::pg_type))
        .collect();

    let prepared = client.prepare_typed_cached(&statement.text, &types).await.map_err(moved("record statement"))?;
    let row = match client.query_one(&prepared, &parameters).await {
        Ok(row) => row,
        Err(error) => {
            return Err(refusal::explain(client, plan, collection, &error).await);
        }
    };
    let kept = Kept {
        row: row.try_get(0).map_err(broken("stored row"))?,
        hidden: row.try_get(1).map_err(broken("stored row"))?,
        labels: row.try_get(2).map_err(broken("stored row"))?,
        at: row.try_get(3).map_err(broken("stored row"))?,
    };
    kept.answer(plan, collection)
}

fn shape_text(shape: &SentenceShape) -> StoreResult<String> {
    serde_json::to_string(shape).map_err(|error| {
        tracing::error!(%error, "a sentence's shape cannot be written");
        StoreError::Broken
    })
}

/// What the transaction kept.
struct Kept<'a> {
    /// JSON of the fields that may be shown: what the receipt holds.
    row: &'a str,
    /// JSON of the hidden ones, which only the caller inside the platform gets.
    hidden: Option<&'a str>,
    labels: Option<&'a str>,
    at: chrono::DateTime<chrono::Utc>,
}

impl Kept<'_> {
    /// The receipt as it will be read later, too, and the whole row.
    fn answer(&self, plan: &Plan, collection: &Collection) -> StoreResult<Committed> {
        let stored = register::object(self.row)?;
        let labels = self.labels.map(register::object).transpose()?.unwrap_or_default();
        let sentence = inn_rules::sentence::sentence(&plan.write.sentence, &stored, &labels, self.at);
        let mut row = stored.clone();
        if let Some(hidden) = self.hidden {
            row.extend(register::object(hidden)?);
        }
        let draft = &plan.record.draft;
        let receipt = Receipt {
            id: draft.call,
            app: draft.app,
            at: self.at,
            action: draft.action.clone(),
            sentence,
            entity: Some(collection.name.clone()),
            record: Some(plan.write.id.clone()),
            stored,
        };
        Ok(Committed { verb: plan.write.verb, receipt, row, earlier: false })
    }
}

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;

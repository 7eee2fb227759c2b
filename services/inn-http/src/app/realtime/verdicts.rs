//! What one change is to those it may concern: decided by the rules and the listener as they are now, once for all
//! clients of one principal and topic.

use std::sync::Arc;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use inn_actors::Admitted;
use inn_ports::{Change, StoreError, StoreResult};
use inn_protocol::Refusal;
use inn_protocol::app::AppSnapshot;
use inn_protocol::model::Collection;
use inn_rules::filter::{self, Expr, Scope, compile_client};
use inn_rules::query::ListParams;
use inn_rules::realtime::{Place, Snapshot, Topic, event};
use serde_json::Value;

use super::Realtime;
use super::hub::Target;
use crate::app::records::{dress, rule};

/// Between which two looks at the database the change was found.
#[derive(Clone, Copy)]
pub(super) struct Between<'a> {
    pub(super) seen: &'a Snapshot,
    pub(super) upto: &'a Snapshot,
}

/// One target that may hear of the change, if the condition holds.
struct Asked<'t> {
    target: &'t Target,
    admitted: Admitted,
    condition: Expr,
}

impl Realtime {
    /// The message for each target that hears of the change. An error says that it could not be found out: nothing may be
    /// told then, and nothing counts as told.
    pub(super) async fn verdicts<'t>(
        &self,
        app: &Arc<AppSnapshot>,
        collection: &Collection,
        change: &Change,
        targets: &'t [Target],
        between: Between<'_>,
    ) -> StoreResult<Vec<(&'t Target, Bytes)>> {
        let now = self.clock.now();
        let asked: Vec<Asked<'t>> =
            targets.iter().filter_map(|target| ask(app, collection, change, target, now)).collect();
        let elsewhere: Vec<Expr> =
            asked.iter().filter(|asked| !asked.condition.is_local()).map(|asked| asked.condition.clone()).collect();
        let mut elsewhere = match elsewhere.as_slice() {
            [] => Vec::new(),
            conditions => self.store.holds(app, collection, change, conditions).await?,
        }
        .into_iter();
        let mut told = Vec::new();
        for Asked { target, admitted, condition } in asked {
            let holds = if condition.is_local() {
                filter::matches(&condition, &change.row)
            } else {
                elsewhere.next().ok_or(StoreError::Broken)?
            };
            if holds {
                let record = self.shown(&admitted, collection, change, &target.topic).await?;
                let data = format!(r#"{{"record":{record},"action":"{}"}}"#, change.action.as_str());
                let cursor = self.cursor(target, change, between, now);
                told.push((target, Bytes::from(event(&cursor, &target.topic.text, &data))));
            }
        }
        Ok(told)
    }

    /// As this listener may see it, with what the topic's options ask for. Options that cannot be read count for nothing.
    async fn shown(
        &self,
        admitted: &Admitted,
        collection: &Collection,
        change: &Change,
        topic: &Topic,
    ) -> StoreResult<Value> {
        let rows = || vec![change.row.clone()];
        let shown = match dress(&*self.store, admitted, collection, rows(), &topic.params).await {
            Err(refusal) if refusal.code.status() < 500 => {
                dress(&*self.store, admitted, collection, rows(), &ListParams::default()).await
            }
            shown => shown,
        };
        let mut shown = shown.map_err(|refusal| unavailable(&refusal))?;
        shown.pop().ok_or(StoreError::Broken)
    }

    /// Where whoever gets this message is after it.
    fn cursor(&self, target: &Target, change: &Change, between: Between<'_>, now: DateTime<Utc>) -> String {
        let place = Place {
            seen: between.seen.clone(),
            upto: between.upto.clone(),
            change: change.number,
            topic: target.topic.order,
            at: now.timestamp(),
        };
        self.cursors.seal(&whose(change.app, &target.principal.listener().scope()), &place.to_bytes())
    }
}

/// For whom and where a cursor counts.
pub(super) fn whose(app: inn_protocol::AppId, scope: &str) -> String {
    format!("{app} {scope}")
}

fn unavailable(refusal: &Refusal) -> StoreError {
    tracing::warn!(%refusal, "an event could not be made");
    StoreError::Unavailable
}

/// `None`: nothing of this collection is for this listener, or its filter means nothing.
fn ask<'t>(
    app: &Arc<AppSnapshot>,
    collection: &Collection,
    change: &Change,
    target: &'t Target,
    now: DateTime<Utc>,
) -> Option<Asked<'t>> {
    let topic = &target.topic;
    let action = topic.action(collection, &change.record);
    let admitted = target.principal.listener().decide(app, &action, &topic.facts, now).ok()?;
    let scope = admitted.scope(collection).ok()?;
    // As in PocketBase nobody listens by hidden fields, owners too; they may ask about the call.
    let open = Scope { see_hidden: false, ..scope };
    compile_client(topic.params.filter.as_deref(), &[], &open).ok()?;
    let filter = topic.params.client_filter(&scope).ok()?;
    let condition = rule(&admitted.permit).and(filter);
    (condition != Expr::Never).then_some(Asked { target, admitted, condition })
}

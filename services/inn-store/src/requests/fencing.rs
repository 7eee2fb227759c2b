//! Claims whose grant was revoked.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use inn_ports::StoreResult;
use inn_protocol::AppId;
use inn_rules::requests as rules;
use serde_json::json;
use uuid::Uuid;

use super::apply::{Locked, Many};
use super::rows;
use crate::people::sql::{all, column};
use crate::step::Step;

/// The grants are locked already, so nothing is claimed under them meanwhile.
const HELD: &str = concat!(
    "SELECT ",
    rows::columns!(),
    ", now() AS now FROM inn.requests r JOIN inn.apps a ON a.id = r.app
     WHERE r.state IN ('working', 'input-required') AND r.holder_grant = ANY($1) ORDER BY r.id FOR UPDATE OF r"
);

/// Takes back what is held under these grants; answers how many of each.
pub(crate) async fn fence(step: &Step<'_>, grants: &[Uuid]) -> StoreResult<BTreeMap<Uuid, i64>> {
    let held = all(step.tx(), "held under grants", HELD, &[&grants]).await?;
    let mut fenced: BTreeMap<Uuid, i64> = BTreeMap::new();
    let mut by_app: BTreeMap<AppId, Vec<inn_protocol::RequestId>> = BTreeMap::new();
    let mut changes = Vec::with_capacity(held.len());
    for row in &held {
        let current = Locked::read(row)?;
        let Some(change) = rules::fence(&current.facts, column::<DateTime<Utc>>(row, "now")?) else { continue };
        let id: Uuid = column(row, "id")?;
        *fenced.entry(column(row, "holder_grant")?).or_default() += 1;
        let app = AppId::from_uuid(column(row, "app")?);
        by_app.entry(app).or_default().push(inn_protocol::RequestId::from_uuid(id));
        changes.push((current, change));
    }
    let mut many = Many::default();
    for (current, change) in &changes {
        many.add(current, change);
    }
    many.apply(step.tx()).await?;
    for (app, requests) in by_app {
        step.outbox("requests.submitted", Some(app), json!({ "requests": requests, "state": "submitted" })).await?;
    }
    Ok(fenced)
}

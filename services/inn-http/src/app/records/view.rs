//! One record.

use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::web::Path;
use inn_ports::ViewPlan;
use inn_protocol::Refusal;
use inn_protocol::call::Action;
use inn_rules::query::ListParams;
use serde_json::Value;

use super::dress::{dress, plain};
use super::{Record, collection, rule};
use crate::error::ApiError;
use crate::incoming::Incoming;
use crate::respond;

/// `GET /api/collections/{entity}/records/{id}`
pub(in crate::app) async fn view(incoming: Incoming, path: Path<Record>) -> Result<HttpResponse, ApiError> {
    let fail = |refusal| incoming.fail(refusal);
    let params = incoming.fit(ListParams::of_one(&incoming.query)).await?;
    let action = Action::ViewRecord { entity: path.entity.clone(), id: path.id.clone() };
    let (store, params, path) = (&*incoming.state.store, &params, &*path);
    let read = incoming.state.gateway.read(incoming.call(action, Value::Null), |admitted| async move {
        let app = admitted.app()?;
        let plan = ViewPlan {
            app: Arc::clone(app),
            entity: path.entity.clone(),
            ids: vec![path.id.clone()],
            rule: rule(&admitted.permit),
        };
        let collection = collection(app, &path.entity)?;
        if let Some(shape) = plain(&admitted, collection, params) {
            return store.view_text(&plan, &shape).await?.ok_or_else(Refusal::not_found);
        }
        let row = store.view(&plan).await?.pop().ok_or_else(Refusal::not_found)?;
        let record = dress(store, &admitted, collection, vec![row], params).await?.pop();
        record.map(|record| record.to_string()).ok_or_else(Refusal::not_found)
    });
    let record = read.await.map_err(fail)?;
    Ok(respond::json(incoming.id, record))
}

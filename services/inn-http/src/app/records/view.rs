//! One record.

use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::web::Path;
use inn_actors::{Admitted, Looked};
use inn_ports::{Store, ViewPlan};
use inn_protocol::Refusal;
use inn_protocol::call::Action;
use inn_protocol::caller::Caller;
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
    let look = incoming.state.gateway.look(incoming.call(action, Value::Null), |admitted| async move {
        view_record(store, &admitted, path, params).await.unwrap_or_else(|refusal| Looked::Seen(Err(refusal)))
    });
    let record = look.await.map_err(fail)?;
    Ok(respond::json(incoming.id, record))
}

async fn view_record(
    store: &dyn Store,
    admitted: &Admitted,
    path: &Record,
    params: &ListParams,
) -> Result<Looked<String>, Refusal> {
    let app = admitted.app()?;
    let collection = collection(app, &path.entity)?;
    let plan = ViewPlan {
        app: Arc::clone(app),
        entity: path.entity.clone(),
        ids: vec![path.id.clone()],
        rule: rule(&admitted.permit),
    };
    match plain(admitted, collection, params) {
        Some(shape) if matches!(admitted.caller, Caller::Stranger) => {
            let found = store.view_text(&plan, &shape).await?;
            Ok(Looked::Seen(found.ok_or_else(Refusal::not_found)))
        }
        Some(shape) => {
            let found = store.view_entered(admitted.record.clone(), &plan, &shape).await;
            Ok(Looked::Entered(found.map(|found| found.ok_or_else(Refusal::not_found))))
        }
        None => {
            let row = store.view(&plan).await?.pop().ok_or_else(Refusal::not_found)?;
            let record = dress(store, admitted, collection, vec![row], params).await?.pop();
            Ok(Looked::Seen(record.map(|record| record.to_string()).ok_or_else(Refusal::not_found)))
        }
    }
}

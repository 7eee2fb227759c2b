//! Pages of records.

use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::web::Path;
use inn_actors::Admitted;
use inn_ports::{ListPlan, Store};
use inn_protocol::Refusal;
use inn_protocol::call::Action;
use inn_rules::filter::Expr;
use inn_rules::query::ListParams;
use serde_json::{Value, json};

use super::dress::dress;
use super::{Entity, collection, rule};
use crate::error::ApiError;
use crate::incoming::Incoming;
use crate::respond;

/// `GET /api/collections/{entity}/records`
pub(in crate::app) async fn list(incoming: Incoming, path: Path<Entity>) -> Result<HttpResponse, ApiError> {
    let fail = |refusal| incoming.fail(refusal);
    let params = incoming.fit(ListParams::from_pairs(&incoming.query)).await?;
    let call = incoming.call(Action::ListRecords { entity: path.entity.clone() }, Value::Null);
    let (store, params, entity) = (&*incoming.state.store, &params, path.entity.as_str());
    let read = incoming
        .state
        .gateway
        .read(call, |admitted| async move { list_page(store, &admitted, entity, params, Expr::Always).await });
    let page: Value = read.await.map_err(fail)?;
    Ok(respond::ok(incoming.id, &page))
}

/// One page of an entity: rule ∧ fixed filter ∧ the caller's filter, sorted, dressed.
pub(in crate::app) async fn list_page(
    store: &dyn Store,
    admitted: &Admitted,
    entity: &str,
    params: &ListParams,
    fixed: Expr,
) -> Result<Value, Refusal> {
    let app = admitted.app()?;
    let collection = collection(app, entity)?;
    let scope = admitted.scope(collection)?;
    let plan = ListPlan {
        app: Arc::clone(app),
        entity: collection.name.clone(),
        filter: rule(&admitted.permit).and(fixed).and(params.client_filter(&scope)?),
        sort: params.client_sort(&scope)?,
        paging: params.paging,
    };
    let page = store.list(&plan).await?;
    let items = dress(store, admitted, collection, page.rows, params).await?;
    let per_page = u64::from(params.paging.per_page);
    let (total, pages) = match page.total {
        Some(total) => (json!(total), json!(total.div_ceil(per_page))),
        None => (json!(-1), json!(-1)),
    };
    let paging = params.paging;
    Ok(
        json!({"items": items, "page": paging.page, "perPage": paging.per_page, "totalItems": total, "totalPages": pages}),
    )
}

//! Pages of records.

use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::web::Path;
use inn_actors::Admitted;
use inn_ports::{ListPlan, PageText, Store};
use inn_protocol::Refusal;
use inn_protocol::call::Action;
use inn_rules::filter::Expr;
use inn_rules::query::ListParams;
use serde_json::Value;

use super::dress::{dress, plain};
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
    let page = read.await.map_err(fail)?;
    Ok(respond::json(incoming.id, page))
}

/// One page of an entity: rule ∧ fixed filter ∧ the caller's filter, sorted, dressed.
pub(in crate::app) async fn list_page(
    store: &dyn Store,
    admitted: &Admitted,
    entity: &str,
    params: &ListParams,
    fixed: Expr,
) -> Result<String, Refusal> {
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
    let PageText { items, total } = if let Some(shape) = plain(admitted, collection, params) {
        store.list_text(&plan, &shape).await?
    } else {
        let page = store.list(&plan).await?;
        let items = dress(store, admitted, collection, page.rows, params).await?;
        PageText { items: Value::Array(items).to_string(), total: page.total }
    };
    let (page, size) = (params.paging.page, params.paging.per_page);
    let (total, pages) = match total {
        Some(total) => (total.to_string(), total.div_ceil(u64::from(size)).to_string()),
        None => ("-1".to_owned(), "-1".to_owned()),
    };
    Ok(format!(r#"{{"items":{items},"page":{page},"perPage":{size},"totalItems":{total},"totalPages":{pages}}}"#))
}

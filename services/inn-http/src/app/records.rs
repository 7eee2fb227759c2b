//! Records, at PocketBase's paths and in its shapes (`reference` notes, section B), behind guard and decision.

use std::collections::HashMap;
use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::web::Path;
use inn_actors::{Admitted, RecordWrite};
use inn_ports::{ListPlan, Store, ViewPlan};
use inn_protocol::app::AppSnapshot;
use inn_protocol::call::Action;
use inn_protocol::model::Collection;
use inn_protocol::plan::Committed;
use inn_protocol::receipt::Verb;
use inn_protocol::{Code, Refusal};
use inn_rules::access::Permit;
use inn_rules::filter::Expr;
use inn_rules::query::{self, ExpandSpec, ListParams};
use inn_rules::values::render_record;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::error::ApiError;
use crate::incoming::Incoming;
use crate::respond;

/// Header that points at the receipt of a write.
const RECEIPT_HEADER: &str = "innkeeper-receipt";

/// `{entity}` (and `{slug}` on the platform's face).
#[derive(Deserialize)]
pub(super) struct Entity {
    entity: String,
}

#[derive(Deserialize)]
pub(super) struct Record {
    entity: String,
    id: String,
}

/// `GET /api/collections/{entity}/records`
pub(super) async fn list(incoming: Incoming, path: Path<Entity>) -> Result<HttpResponse, ApiError> {
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

/// `GET /api/collections/{entity}/records/{id}`
pub(super) async fn view(incoming: Incoming, path: Path<Record>) -> Result<HttpResponse, ApiError> {
    let fail = |refusal| incoming.fail(refusal);
    let params = incoming.fit(ListParams::from_pairs(&incoming.query)).await?;
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
        let row = store.view(&plan).await?.pop().ok_or_else(Refusal::not_found)?;
        let collection = collection(app, &path.entity)?;
        dress(store, &admitted, collection, vec![row], params).await?.pop().ok_or_else(Refusal::not_found)
    });
    let record: Value = read.await.map_err(fail)?;
    Ok(respond::ok(incoming.id, &record))
}

/// `POST /api/collections/{entity}/records`
pub(super) async fn create(incoming: Incoming, path: Path<Entity>) -> Result<HttpResponse, ApiError> {
    let action = Action::CreateRecord { entity: path.entity.clone() };
    write(&incoming, action, Verb::Create, &path.entity, None).await
}

/// `PATCH /api/collections/{entity}/records/{id}`
pub(super) async fn update(incoming: Incoming, path: Path<Record>) -> Result<HttpResponse, ApiError> {
    let action = Action::UpdateRecord { entity: path.entity.clone(), id: path.id.clone() };
    write(&incoming, action, Verb::Update, &path.entity, Some(&path.id)).await
}

/// `DELETE /api/collections/{entity}/records/{id}`
pub(super) async fn delete(incoming: Incoming, path: Path<Record>) -> Result<HttpResponse, ApiError> {
    let action = Action::DeleteRecord { entity: path.entity.clone(), id: path.id.clone() };
    write(&incoming, action, Verb::Delete, &path.entity, Some(&path.id)).await
}

async fn write(
    incoming: &Incoming,
    action: Action,
    verb: Verb,
    entity: &str,
    id: Option<&str>,
) -> Result<HttpResponse, ApiError> {
    let fail = |refusal| incoming.fail(refusal);
    let params = incoming.fit(ListParams::from_pairs(&incoming.query)).await?;
    let body = if verb == Verb::Delete { Value::Null } else { incoming.json().await? };
    let call = incoming.call(action, Value::Null);
    let prepare = |admitted: &Admitted| {
        let app = admitted.app()?;
        check_size(app, incoming.body.len())?;
        Ok(RecordWrite {
            verb,
            entity: collection(app, entity)?.name.clone(),
            id: id.map(str::to_owned),
            body: body.clone(),
            fixed: None,
        })
    };
    let (admitted, committed) = incoming.state.gateway.write(call, prepare).await.map_err(fail)?;
    answer(incoming, &admitted, committed, verb, entity, &params).await
}

/// The app's own limit on bodies, below the host's.
fn check_size(app: &AppSnapshot, length: usize) -> Result<(), Refusal> {
    match app.definition.limits.max_body_bytes {
        Some(limit) if u64::try_from(length).unwrap_or(u64::MAX) > limit => Err(Refusal::new(
            Code::TooLarge,
            format!("This app takes bodies of at most {limit} bytes; nothing was kept."),
        )),
        _ => Ok(()),
    }
}

/// What a committed write answers: PocketBase's record (or 204), with the receipt named in a header.
pub(super) async fn answer(
    incoming: &Incoming,
    admitted: &Admitted,
    committed: Committed,
    verb: Verb,
    entity: &str,
    params: &ListParams,
) -> Result<HttpResponse, ApiError> {
    let receipt = incoming.state.config.platform(&format!("/v1/receipts/{}", committed.receipt.id));
    let mut response = if verb == Verb::Delete {
        respond::no_content(incoming.id)
    } else {
        let app = admitted.app().map_err(|refusal| incoming.fail(refusal))?;
        let collection = collection(app, entity).map_err(|refusal| incoming.fail(refusal))?;
        if reads(admitted, entity) {
            // The write has happened: whatever goes wrong while dressing it up must not read as a refusal.
            let see_hidden = admitted.permit.see_hidden;
            let plain = Value::Object(render_record(collection, &committed.row, see_hidden, see_hidden));
            let dressed = dress(&*incoming.state.store, admitted, collection, vec![committed.row], params).await;
            let record = dressed.ok().and_then(|mut records| records.pop()).unwrap_or(plain);
            respond::ok(incoming.id, &record)
        } else {
            // Who may only write learns that it was written, not what else is there.
            let (name, key, id) = (&collection.name, &collection.id, &committed.receipt.record);
            respond::ok(incoming.id, &json!({"collectionId": key, "collectionName": name, "id": id}))
        }
    };
    if let (Ok(name), Ok(value)) = (RECEIPT_HEADER.parse(), receipt.parse()) {
        response.headers_mut().insert(name, value);
    }
    Ok(response)
}

/// May the caller look at the entity's records at all? People who write may; an agent needs the scope.
fn reads(admitted: &Admitted, entity: &str) -> bool {
    admitted.also(&Action::ViewRecord { entity: entity.to_owned(), id: String::new() }).is_ok()
        || !matches!(admitted.caller, inn_protocol::caller::Caller::Agent(_))
}

/// One page of an entity: rule ∧ fixed filter ∧ the caller's filter, sorted, dressed.
pub(super) async fn list_page(
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

/// Rows as the caller sees them: rendered, relations expanded, fields picked.
async fn dress(
    store: &dyn Store,
    admitted: &Admitted,
    collection: &Collection,
    rows: Vec<Map<String, Value>>,
    params: &ListParams,
) -> Result<Vec<Value>, Refusal> {
    let see_hidden = admitted.permit.see_hidden;
    let mut records: Vec<_> = rows.iter().map(|row| render_record(collection, row, see_hidden, see_hidden)).collect();
    if let Some(spec) = &params.expand {
        let spec = query::expand(spec, collection, &admitted.app()?.definition.model, see_hidden);
        expand(store, admitted, &mut records, &spec).await?;
    }
    let mut records: Vec<Value> = records.into_iter().map(Value::Object).collect();
    if let Some(spec) = &params.fields {
        let pick = query::FieldPick::parse(spec)?;
        for record in &mut records {
            pick.apply(record);
        }
    }
    Ok(records)
}

fn rule(permit: &Permit) -> Expr {
    permit.rule.stored().cloned().unwrap_or(Expr::Always)
}

/// One level of relations, one look per relation. What the caller may not view is left out without error.
async fn expand(
    store: &dyn Store,
    admitted: &Admitted,
    records: &mut [Map<String, Value>],
    spec: &ExpandSpec,
) -> Result<(), Refusal> {
    if spec.is_empty() {
        return Ok(());
    }
    let app = admitted.app()?;
    let mut expanded: Vec<Map<String, Value>> = vec![Map::new(); records.len()];
    for relation in &spec.relations {
        let target = collection(app, &relation.target)?;
        // A rule nobody but owners passes makes the path fail silently (PocketBase notes, section B).
        let Ok(permit) = admitted.also(&Action::ViewRecord { entity: target.name.clone(), id: String::new() }) else {
            continue;
        };
        let mut ids: Vec<String> = records.iter().flat_map(|record| ids_of(record.get(&relation.field))).collect();
        ids.sort_unstable();
        ids.dedup();
        let mut found: HashMap<String, Value> = HashMap::new();
        for ids in ids.chunks(1000) {
            let plan =
                ViewPlan { app: Arc::clone(app), entity: target.name.clone(), ids: ids.to_vec(), rule: rule(&permit) };
            for row in store.view(&plan).await? {
                let record = render_record(target, &row, admitted.permit.see_hidden, admitted.permit.see_hidden);
                if let Some(Value::String(id)) = row.get("id") {
                    found.insert(id.clone(), Value::Object(record));
                }
            }
        }
        for (record, expanded) in records.iter().zip(&mut expanded) {
            let mut values: Vec<Value> =
                ids_of(record.get(&relation.field)).iter().filter_map(|id| found.get(id).cloned()).collect();
            let value = if relation.multiple { Some(Value::Array(values)) } else { values.pop() };
            match value {
                Some(Value::Array(list)) if list.is_empty() => {}
                Some(value) => drop(expanded.insert(relation.field.clone(), value)),
                None => {}
            }
        }
    }
    for (record, expanded) in records.iter_mut().zip(expanded) {
        record.insert("expand".to_owned(), Value::Object(expanded));
    }
    Ok(())
}

fn ids_of(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::String(id)) if !id.is_empty() => vec![id.clone()],
        Some(Value::Array(ids)) => ids.iter().filter_map(|id| id.as_str().map(str::to_owned)).collect(),
        _ => Vec::new(),
    }
}

pub(super) fn collection<'a>(app: &'a AppSnapshot, entity: &str) -> Result<&'a Collection, Refusal> {
    app.definition.model.collection(entity).ok_or_else(|| {
        Refusal::new(Code::UnknownEntity, "The app has no entity of that name. `GET /api/_a2app/describe` lists them.")
            .leg("app")
    })
}

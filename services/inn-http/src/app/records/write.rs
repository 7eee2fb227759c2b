//! Creating, changing and deleting one record.

use actix_web::HttpResponse;
use actix_web::web::Path;
use inn_actors::{Admitted, RecordWrite};
use inn_protocol::app::AppSnapshot;
use inn_protocol::call::Action;
use inn_protocol::plan::Committed;
use inn_protocol::receipt::Verb;
use inn_protocol::{CallId, Code, Refusal};
use inn_rules::query::ListParams;
use serde_json::{Value, json};

use super::dress::{dress, shown};
use super::{Entity, Record, collection};
use crate::app::auth::count_passwords;
use crate::app::files::{RecordBody, record_body};
use crate::error::ApiError;
use crate::incoming::Incoming;
use crate::respond;

/// Header that points at the receipt of a write.
const RECEIPT_HEADER: &str = "innkeeper-receipt";

/// `POST /api/collections/{entity}/records`
pub(in crate::app) async fn create(incoming: Incoming, path: Path<Entity>) -> Result<HttpResponse, ApiError> {
    let action = Action::CreateRecord { entity: path.entity.clone() };
    write(&incoming, action, Verb::Create, &path.entity, None).await
}

/// `PATCH /api/collections/{entity}/records/{id}`
pub(in crate::app) async fn update(incoming: Incoming, path: Path<Record>) -> Result<HttpResponse, ApiError> {
    let action = Action::UpdateRecord { entity: path.entity.clone(), id: path.id.clone() };
    write(&incoming, action, Verb::Update, &path.entity, Some(&path.id)).await
}

/// `DELETE /api/collections/{entity}/records/{id}`
pub(in crate::app) async fn delete(incoming: Incoming, path: Path<Record>) -> Result<HttpResponse, ApiError> {
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
    let params = incoming.fit(ListParams::of_one(&incoming.query)).await?;
    let sent = match verb {
        Verb::Delete => RecordBody::nothing(),
        Verb::Create | Verb::Update => record_body(incoming, &action, entity).await?,
    };
    count_passwords(incoming, usize::from(sent.body.get("password").is_some()))?;
    let call = incoming.call_with(action, &sent.body);
    let prepare = |admitted: &Admitted| {
        let app = admitted.app()?;
        check_size(app, sent.length)?;
        Ok(RecordWrite {
            verb,
            entity: collection(app, entity)?.name.clone(),
            id: id.map(str::to_owned),
            body: sent.body.clone(),
            form: sent.form.clone(),
            fixed: None,
        })
    };
    let (admitted, committed) = incoming.state.gateway.write(call, prepare).await.map_err(fail)?;
    if !committed.earlier {
        sent.committed(std::slice::from_ref(&committed));
    }
    answer(incoming, &admitted, committed, verb, entity, &params).await
}

/// The app's own limit on bodies, below the host's.
pub(in crate::app) fn check_size(app: &AppSnapshot, length: usize) -> Result<(), Refusal> {
    match app.definition.limits.max_body_bytes {
        Some(limit) if u64::try_from(length).unwrap_or(u64::MAX) > limit => Err(Refusal::new(
            Code::TooLarge,
            format!("This app takes bodies of at most {limit} bytes; nothing was kept."),
        )),
        _ => Ok(()),
    }
}

/// What a committed write answers: PocketBase's record (or 204), with the receipt named in a header.
pub(in crate::app) async fn answer(
    incoming: &Incoming,
    admitted: &Admitted,
    committed: Committed,
    verb: Verb,
    entity: &str,
    params: &ListParams,
) -> Result<HttpResponse, ApiError> {
    let receipt = committed.receipt.id;
    let mut response = if verb == Verb::Delete {
        respond::no_content(incoming.id)
    } else {
        let record = written(incoming, admitted, committed, entity, params).await;
        respond::ok(incoming.id, &record.map_err(|refusal| incoming.fail(refusal))?)
    };
    receipt_header(incoming, &mut response, receipt);
    Ok(response)
}

/// Says where the receipt of a call is.
pub(in crate::app) fn receipt_header(incoming: &Incoming, response: &mut HttpResponse, call: CallId) {
    let receipt = incoming.state.config.platform(&format!("/v1/receipts/{call}"));
    if let (Ok(name), Ok(value)) = (RECEIPT_HEADER.parse(), receipt.parse()) {
        response.headers_mut().insert(name, value);
    }
}

/// The record a committed write left, as far as the caller may see it.
pub(in crate::app) async fn written(
    incoming: &Incoming,
    admitted: &Admitted,
    committed: Committed,
    entity: &str,
    params: &ListParams,
) -> Result<Value, Refusal> {
    let collection = collection(admitted.app()?, entity)?;
    if reads(admitted, entity) {
        // The write has happened: whatever goes wrong while dressing it up must not read as a refusal.
        let plain = Value::Object(shown(admitted, collection, &committed.row));
        let dressed = dress(&*incoming.state.store, admitted, collection, vec![committed.row], params).await;
        Ok(dressed.ok().and_then(|mut records| records.pop()).unwrap_or(plain))
    } else {
        // Who may only write learns that it was written, not what else is there.
        let (name, key, id) = (&collection.name, &collection.id, &committed.receipt.record);
        Ok(json!({"collectionId": key, "collectionName": name, "id": id}))
    }
}

/// May the caller look at the entity's records at all? People who write may; an agent needs the scope.
fn reads(admitted: &Admitted, entity: &str) -> bool {
    admitted.also(&Action::ViewRecord { entity: entity.to_owned(), id: String::new() }).is_ok()
        || !matches!(admitted.caller, inn_protocol::caller::Caller::Agent(_))
}

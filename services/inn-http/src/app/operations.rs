//! Operations: by name at `/api/ops/{name}` and by the path their executor declares (A2App notes, B.1).

use actix_web::{HttpRequest, HttpResponse};
use inn_actors::{Admitted, RecordWrite};
use inn_protocol::app::{AppSnapshot, Executor, Operation};
use inn_protocol::call::{Action, Place};
use inn_protocol::caller::Caller;
use inn_protocol::receipt::Verb;
use inn_protocol::{Code, Refusal};
use inn_rules::filter::{self, Expr, Scope};
use inn_rules::operations::{self, CrudCall};
use inn_rules::query::ListParams;
use serde_json::{Map, Value};

use super::{jobs, records};
use crate::error::ApiError;
use crate::incoming::Incoming;
use crate::respond;

/// Whatever no other route of the app answers: an operation by name or path, or nothing.
pub(super) async fn by_path(request: HttpRequest, incoming: Incoming) -> Result<HttpResponse, ApiError> {
    let fail = |refusal| incoming.fail(refusal);
    let slug = incoming.slug()?;
    let path = match &incoming.place {
        Place::App { own_origin: false, .. } => {
            request.path().strip_prefix(&format!("/apps/{slug}")).unwrap_or_else(|| request.path())
        }
        _ => request.path(),
    };
    let app = incoming.state.gateway.app(slug).await.map_err(fail)?;
    let app = app.ok_or_else(|| fail(Refusal::new(Code::UnknownApp, "There is no app of that name here.")))?;
    let method = request.method().as_str();
    let Some(operation) = find(&app, method, path) else {
        return Err(incoming.unreadable(missing(&app, method, path)).await);
    };
    let params = params(&incoming, method).await?;
    run(&incoming, &operation.name, params).await
}

fn find<'a>(app: &'a AppSnapshot, method: &str, path: &str) -> Option<&'a Operation> {
    let by_name = || {
        let name = path.strip_prefix("/api/ops/").filter(|_| method == "POST")?;
        operations::find_by_name(&app.definition, name)
    };
    operations::find_by_path(&app.definition, method, path).or_else(by_name)
}

fn missing(app: &AppSnapshot, method: &str, path: &str) -> Refusal {
    let mut allowed = operations::allowed_methods(&app.definition, path);
    let named = path.strip_prefix("/api/ops/").and_then(|name| operations::find_by_name(&app.definition, name));
    if named.is_some() {
        allowed.push("POST".to_owned());
    }
    if !allowed.is_empty() {
        let message = format!("{method} is not how this operation is called; use {}.", allowed.join(" or "));
        return Refusal::new(Code::MethodNotAllowed, message);
    }
    if path.starts_with("/api/ops/") {
        return Refusal::new(Code::UnknownOperation, "The app declares no such operation. `GET /api/_ops` lists them.")
            .leg("app");
    }
    Refusal::not_found()
}

/// Params travel as the JSON body, or as the query of a GET or DELETE.
async fn params(incoming: &Incoming, method: &str) -> Result<Map<String, Value>, ApiError> {
    if matches!(method, "GET" | "DELETE") {
        return Ok(incoming
            .query
            .iter()
            .rev()
            .map(|(key, value)| (key.clone(), Value::String(value.clone())))
            .collect());
    }
    match incoming.json().await? {
        Value::Object(params) => Ok(params),
        _ => Err(incoming
            .fail(Refusal::new(Code::InvalidBody, "The body must be a JSON object with the operation's params."))),
    }
}

async fn run(incoming: &Incoming, name: &str, params: Map<String, Value>) -> Result<HttpResponse, ApiError> {
    let fail = |refusal| incoming.fail(refusal);
    let action = Action::RunOperation { operation: name.to_owned() };
    let app = incoming.state.gateway.app(incoming.slug()?).await.map_err(fail)?;
    let operation = app.as_ref().and_then(|app| app.definition.operation(name));
    if operation.is_some_and(|operation| matches!(operation.executor, Executor::Agent { .. })) {
        return jobs::ask(incoming, name, params).await;
    }
    let lists = operation.is_some_and(is_list);
    let call = incoming.call(action, Value::Null);
    if lists {
        let store = &*incoming.state.store;
        let params = &params;
        let read =
            incoming.state.gateway.read(call, |admitted| async move { list(store, &admitted, name, params).await });
        let page = read.await.map_err(fail)?;
        return Ok(respond::json(incoming.id, page));
    }
    let (admitted, committed) =
        incoming.state.gateway.write(call, |admitted| prepare(admitted, name, &params)).await.map_err(fail)?;
    let (verb, entity) = (committed.verb, committed.receipt.entity.clone().unwrap_or_default());
    records::answer(incoming, &admitted, committed, verb, &entity, &ListParams::default()).await
}

fn is_list(operation: &Operation) -> bool {
    use inn_protocol::app::CrudAction;
    matches!(operation.executor, Executor::Crud { action: CrudAction::List, .. })
}

/// The declared operation with its params checked: strictly for agents, leniently for the app's own pages (A2App notes,
/// E.9), which send what their code has always sent.
fn crud(admitted: &Admitted, name: &str, params: &Map<String, Value>) -> Result<CrudCall, Refusal> {
    let app = admitted.app()?;
    let operation = app.definition.operation(name).ok_or_else(Refusal::internal)?;
    let strict = matches!(admitted.caller, Caller::Agent(_));
    let params = operations::check_params(operation, params, strict)?;
    operations::crud_call(operation, &params)?.ok_or_else(|| {
        Refusal::new(
            Code::NotImplemented,
            "This operation needs a service or script of the app, which this host does not run yet. Operations of kind `crud` and `agent` run.",
        )
        .leg("app")
    })
}

async fn list(
    store: &dyn inn_ports::Store,
    admitted: &Admitted,
    name: &str,
    params: &Map<String, Value>,
) -> Result<String, Refusal> {
    let CrudCall::List { collection, filter } = crud(admitted, name, params)? else { return Err(Refusal::internal()) };
    let fixed = fixed(admitted, &collection, filter.as_deref())?;
    records::list_page(store, admitted, &collection, &ListParams::default(), fixed).await
}

fn prepare(admitted: &Admitted, name: &str, params: &Map<String, Value>) -> Result<RecordWrite, Refusal> {
    let (verb, entity, id, body, filter) = match crud(admitted, name, params)? {
        CrudCall::Create { collection, body } => (Verb::Create, collection, None, body, None),
        CrudCall::Update { collection, id, body, filter } => (Verb::Update, collection, Some(id), body, filter),
        CrudCall::Delete { collection, id, filter } => (Verb::Delete, collection, Some(id), Map::new(), filter),
        CrudCall::List { .. } => return Err(Refusal::internal()),
    };
    let fixed = match filter.as_deref() {
        Some(filter) => Some(fixed(admitted, &entity, Some(filter))?),
        None => None,
    };
    Ok(RecordWrite { verb, entity, id, body: Value::Object(body), form: None, fixed })
}

/// The fixed filter is the author's, not the caller's, so it may use hidden fields.
fn fixed(admitted: &Admitted, entity: &str, text: Option<&str>) -> Result<Expr, Refusal> {
    let Some(text) = text else { return Ok(Expr::Always) };
    let scope = Scope { see_hidden: true, ..admitted.scope(records::collection(admitted.app()?, entity)?)? };
    Ok(filter::compile(text, &scope)?)
}

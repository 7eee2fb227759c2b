//! Jobs as the app's users and agents see them: an operation of kind `agent` is asked, and followed at `/api/_jobs/{id}`
//! (A2App notes, B.12) as a document or, for `Accept: text/event-stream`, as a stream.

mod stream;

use std::sync::Arc;

use actix_web::http::StatusCode;
use actix_web::http::header::{ACCEPT, HeaderName, HeaderValue, LOCATION};
use actix_web::web::Path;
use actix_web::{HttpRequest, HttpResponse};
use inn_actors::Admitted;
use inn_ports::{Store, Topic};
use inn_protocol::app::{AppSnapshot, Executor};
use inn_protocol::call::{Action, Place};
use inn_protocol::caller::Caller;
use inn_protocol::job::{Job, NewJob};
use inn_protocol::request::NewRequest;
use inn_protocol::{Code, JobId, Refusal, RequestId, Violation};
use inn_rules::jobs as rules;
use inn_rules::operations;
use inn_rules::requests::check_schema;
use serde_json::{Map, Value, json};

use super::tasks::{Ids, label, new_request};
use crate::error::ApiError;
use crate::incoming::Incoming;
use crate::respond;

pub use stream::JobStreams;

/// How often a page may ask how its job is doing, in milliseconds.
const POLL_AFTER_MS: u32 = 2_000;
const RECEIPT: HeaderName = HeaderName::from_static("innkeeper-receipt");

/// An operation of kind `agent` is a request of its capability. Answers at once with the job to follow.
pub(super) async fn ask(
    incoming: &Incoming,
    operation: &str,
    params: Map<String, Value>,
) -> Result<HttpResponse, ApiError> {
    let action = Action::RunOperation { operation: operation.to_owned() };
    let (request, job) = (RequestId::new(), JobId::new());
    let bus = Arc::clone(&incoming.state.bus);
    let input = (operation.to_owned(), params);
    let (job, warnings): (Job, Vec<Violation>) = incoming
        .perform(action, input, move |store, admitted, input| {
            let bus = Arc::clone(&bus);
            async move {
                let (name, given) = &*input;
                let app = Arc::clone(admitted.app()?);
                let operation = app.definition.operation(name).ok_or_else(Refusal::internal)?;
                let strict = matches!(admitted.caller, Caller::Agent(_));
                let params = operations::check_params(operation, given, strict)?;
                let warnings = if strict { Vec::new() } else { operations::warnings(operation, given) };
                let new = NewJob {
                    id: job,
                    operation: name.clone(),
                    agent: admitted.caller.agent().cloned(),
                    retry_of: None,
                };
                let new = NewRequest {
                    requester: admitted.caller.user(),
                    requester_label: label(&admitted.caller),
                    ..self::request(request, &app, new, Value::Object(params))?
                };
                store.ask(&admitted.record, &app, &new).await?;
                bus.publish(Topic::Requests(app.id)).await;
                let job = store.job(app.id, job).await?.ok_or_else(Refusal::internal)?;
                Ok((job, warnings))
            }
        })
        .await?;
    Ok(accepted(incoming, &job, &warnings))
}

/// The request that a job of kind `agent` is, without requester. Refused when the release does not run its operation so,
/// or when the params do not fit the capability.
pub(crate) fn request(id: RequestId, app: &AppSnapshot, job: NewJob, params: Value) -> Result<NewRequest, Refusal> {
    let operation = app.definition.operation(&job.operation);
    let Some(Executor::Agent { capability }) = operation.map(|operation| &operation.executor) else {
        let message = format!("The app's release no longer asks agents for \"{}\".", job.operation);
        return Err(Refusal::new(Code::UnknownOperation, message).leg("app"));
    };
    let Some(capability) = app.definition.capability(capability) else {
        let message = format!("The app does not declare the capability {capability:?}.");
        return Err(Refusal::new(Code::NotDeclared, message).leg("app").fix("the app's author, in the manifest"));
    };
    check_schema(&capability.input, &params, "params")?;
    Ok(NewRequest { payload: params, job: Some(job), ..new_request(id, app, capability) })
}

fn accepted(incoming: &Incoming, job: &Job, warnings: &[Violation]) -> HttpResponse {
    let mut body = document(job);
    if let (false, Some(members)) = (warnings.is_empty(), body.as_object_mut()) {
        members.insert("warnings".to_owned(), json!(warnings));
    }
    let base = match &incoming.place {
        Place::App { slug, own_origin: false } => format!("/apps/{slug}"),
        _ => String::new(),
    };
    let mut answer = respond::answer(incoming.id, StatusCode::ACCEPTED, &body);
    for (name, value) in [(LOCATION, format!("{base}/api/_jobs/{}", job.id)), (RECEIPT, incoming.id.to_string())] {
        if let Ok(value) = HeaderValue::from_str(&value) {
            answer.headers_mut().insert(name, value);
        }
    }
    answer
}

/// `GET /api/_jobs/{id}`
pub(super) async fn view(request: HttpRequest, incoming: Incoming, path: Path<Ids>) -> Result<HttpResponse, ApiError> {
    let id = incoming.fit(parse(&path)).await?;
    let accepts = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    if accepts.split(',').any(|kind| kind.trim().starts_with("text/event-stream")) {
        return stream::follow(&request, &incoming, id).await;
    }
    let store = &incoming.state.store;
    let job: Job = incoming
        .read(
            Action::ViewJob { job: id, verb: "view" },
            |admitted| async move { visible(&**store, &admitted, id).await },
        )
        .await?;
    Ok(respond::ok(incoming.id, &document(&job)))
}

/// The job, for somebody who may see it.
async fn visible(store: &dyn Store, admitted: &Admitted, id: JobId) -> Result<Job, Refusal> {
    let job = store.job(admitted.app()?.id, id).await?;
    job.filter(|job| rules::may_see(&admitted.caller, job)).ok_or_else(missing)
}

/// `POST /api/_jobs/{id}/cancel`
pub(super) async fn cancel(incoming: Incoming, path: Path<Ids>) -> Result<HttpResponse, ApiError> {
    let id = incoming.fit(parse(&path)).await?;
    let bus = Arc::clone(&incoming.state.bus);
    let job: Job = incoming
        .perform(Action::CancelJob { job: id }, (), move |store, admitted, _| {
            let bus = Arc::clone(&bus);
            async move {
                let app = admitted.app()?.id;
                let job = store.job(app, id).await?;
                if !job.is_some_and(|job| rules::may_see(&admitted.caller, &job)) {
                    return Err(missing().into());
                }
                let job = store.cancel_job(&admitted.record, app, id, "canceled by its caller").await?;
                bus.publish(Topic::Requests(app)).await;
                Ok(job)
            }
        })
        .await?;
    Ok(respond::ok(incoming.id, &document(&job)))
}

fn parse(path: &Ids) -> Result<JobId, Refusal> {
    path.id.parse().map_err(|_| missing())
}

pub(crate) fn missing() -> Refusal {
    Refusal::new(Code::JobNotFound, "There is no such job, or it is somebody else's.")
}

/// The shape of the A2App wire.
fn document(job: &Job) -> Value {
    json!({
        "jobId": job.id,
        "operation": job.operation,
        "status": job.state.wire(),
        "progress": job.progress,
        "result": job.result,
        "error": job.error.as_ref().filter(|_| job.state.is_terminal()),
        "createdAt": job.created_at,
        "updatedAt": job.updated_at,
        "pollAfterMs": POLL_AFTER_MS,
    })
}

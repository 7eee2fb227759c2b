//! Requests as the app's users see them: the task shape of A2App 0.1 (`reference` notes, C.1), served to every dialect.

use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::web::Path;
use inn_protocol::app::{AppSnapshot, Capability};
use inn_protocol::call::Action;
use inn_protocol::caller::Caller;
use inn_protocol::people::Role;
use inn_protocol::request::{NewRequest, OperateCommand, QueueRequest, RequestState, Unique, UniqueMode};
use inn_protocol::{Code, Refusal, RequestId, UserId, Violation, canonical};
use inn_rules::requests::check_schema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::incoming::Incoming;
use crate::respond;

/// Open requests of one app, unless its manifest asks for fewer.
const MAX_OPEN: u32 = 10_000;
/// How often a page may ask how its request is doing, in milliseconds.
const POLL_AFTER_MS: u32 = 2_000;
const LIST_LIMIT: u32 = 200;
const DEFAULT_PRIORITY: u8 = 3;
const MAX_UNIQUE_KEY: usize = 200;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Ask {
    capability: String,
    #[serde(default)]
    payload: Value,
    /// 1 is served first, 5 last, among what the same requester asked for.
    #[serde(default)]
    priority: Option<u8>,
    /// Of identical requests of this requester one waits (`queued`), is worked on (`running`), or one of each (`both`).
    #[serde(default)]
    unique: Option<UniqueMode>,
    /// What makes them identical; the payload, when it is left out.
    #[serde(default)]
    unique_key: Option<String>,
}

impl Ask {
    /// The key is one of this capability and requester: nobody joins, or waits for, what somebody else asked for.
    fn unique(&self, caller: &Caller) -> Option<Unique> {
        let mode = self.unique?;
        let same = match &self.unique_key {
            Some(key) => json!({"key": key}),
            None => json!({"payload": self.payload}),
        };
        let requester = caller.user().map_or_else(|| label(caller), |user| user.to_string());
        Some(Unique { mode, key: canonical::digest(&json!({"requester": requester, "same": same})) })
    }

    fn check(&self) -> Result<(), Refusal> {
        let usable = |key: &String| (1..=MAX_UNIQUE_KEY).contains(&key.chars().count());
        let expected = match &self.unique_key {
            Some(_) if self.unique.is_none() => "nothing without unique",
            Some(key) if !usable(key) => "1 to 200 characters",
            _ => return Ok(()),
        };
        let violation = Violation::new(Code::InvalidParameter, "uniqueKey", expected);
        Err(Refusal::violations("The key is not usable.", vec![violation]))
    }
}

/// `POST /api/_a2app/tasks`
pub(super) async fn ask(incoming: Incoming) -> Result<HttpResponse, ApiError> {
    let fail = |refusal| incoming.fail(refusal);
    let ask: Ask = incoming.document().await?;
    let priority = incoming.fit(priority(ask.priority)).await?;
    incoming.fit(ask.check()).await?;
    let call = incoming.call(Action::Ask { capability: ask.capability.clone() }, Value::Null);
    let (store, bus) = (Arc::clone(&incoming.state.store), Arc::clone(&incoming.state.bus));
    let id = RequestId::new();
    let ask = Arc::new(ask);
    let asked = incoming.state.gateway.perform(call, move |admitted| {
        let (store, bus) = (Arc::clone(&store), Arc::clone(&bus));
        let ask = Arc::clone(&ask);
        async move {
            let app = Arc::clone(admitted.app()?);
            let capability = app.definition.capability(&ask.capability).ok_or_else(Refusal::internal)?;
            check_schema(&capability.input, &ask.payload, "payload")?;
            let request = NewRequest {
                payload: ask.payload.clone(),
                requester: admitted.caller.user(),
                requester_label: label(&admitted.caller),
                priority,
                unique: ask.unique(&admitted.caller),
                ..new_request(id, &app, capability)
            };
            let asked = store.ask(&admitted.record, &app, &request).await?;
            bus.publish(inn_ports::Topic::Requests(app.id)).await;
            Ok(asked.request)
        }
    });
    let request = asked.await.map_err(fail)?;
    Ok(respond::created(incoming.id, &task(&request)))
}

/// A request of this capability as its app declares it, without payload and requester.
pub(crate) fn new_request(id: RequestId, app: &AppSnapshot, capability: &Capability) -> NewRequest {
    NewRequest {
        id,
        capability: capability.name.clone(),
        payload: Value::Null,
        requester: None,
        requester_label: String::new(),
        lease_seconds: capability.lease_seconds,
        attempts: capability.attempts,
        hard_seconds: capability.hard_seconds,
        priority: DEFAULT_PRIORITY,
        replay_of: None,
        unique: None,
        job: None,
        max_open: app.definition.limits.max_open_requests.unwrap_or(MAX_OPEN),
    }
}

fn priority(asked: Option<u8>) -> Result<u8, Refusal> {
    let priority = asked.unwrap_or(DEFAULT_PRIORITY);
    if (1..=5).contains(&priority) {
        return Ok(priority);
    }
    let violation = Violation::new(Code::InvalidParameter, "priority", "a whole number from 1 (first) to 5 (last)");
    Err(Refusal::violations("The priority is not usable.", vec![violation.got(&priority.into())]))
}

/// `GET /api/_a2app/tasks[?status=]`
pub(super) async fn list(incoming: Incoming) -> Result<HttpResponse, ApiError> {
    let fail = |refusal| incoming.fail(refusal);
    let state = match incoming.param("status") {
        None | Some("") => None,
        Some(text) => Some(RequestState::parse(text).ok_or_else(|| {
            fail(Refusal::new(Code::InvalidParameter, format!("status must be one of {}.", RequestState::WORDS)))
        })?),
    };
    let store = &incoming.state.store;
    let call = incoming.call(Action::ListRequests, Value::Null);
    let read = incoming.state.gateway.read(call, |admitted| async move {
        let app = admitted.app()?;
        let requests = store.requests(app.id, state, only_of(&admitted.caller), LIST_LIMIT).await?;
        Ok(requests.into_iter().filter(|request| may_see(&admitted.caller, request)).collect::<Vec<_>>())
    });
    let tasks: Vec<Value> = read.await.map_err(fail)?.iter().map(task).collect();
    Ok(respond::ok(incoming.id, &json!({"a2app": true, "tasks": tasks, "pollAfterMs": POLL_AFTER_MS})))
}

/// `GET /api/_a2app/tasks/{id}`
pub(super) async fn view(incoming: Incoming, path: Path<Ids>) -> Result<HttpResponse, ApiError> {
    let fail = |refusal| incoming.fail(refusal);
    let id = incoming.fit(parse(&path)).await?;
    let store = &incoming.state.store;
    let call = incoming.call(Action::ViewRequest { request: id }, Value::Null);
    let read = incoming.state.gateway.read(call, |admitted| async move {
        let app = admitted.app()?;
        let request = store.request(app.id, id).await?;
        request.filter(|request| may_see(&admitted.caller, request)).ok_or_else(missing)
    });
    let request = read.await.map_err(fail)?;
    Ok(respond::ok(incoming.id, &task(&request)))
}

/// `POST /api/_a2app/tasks/{id}/cancel`
pub(super) async fn cancel(incoming: Incoming, path: Path<Ids>) -> Result<HttpResponse, ApiError> {
    let fail = |refusal| incoming.fail(refusal);
    let id = incoming.fit(parse(&path)).await?;
    let store = Arc::clone(&incoming.state.store);
    let call = incoming.call(Action::CancelRequest { request: id }, Value::Null);
    let canceled = incoming.state.gateway.perform(call, move |admitted| {
        let store = Arc::clone(&store);
        async move {
            let app = admitted.app()?.id;
            let request = store.request(app, id).await?.filter(|request| may_see(&admitted.caller, request));
            if request.is_none() {
                return Err(missing().into());
            }
            store.cancel(&admitted.record, app, id, "canceled by its requester").await
        }
    });
    let request = canceled.await.map_err(fail)?;
    Ok(respond::ok(incoming.id, &task(&request)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    answer: Value,
}

/// `POST /api/_a2app/tasks/{id}/answer`: the answer to the holder's open question.
pub(super) async fn answer(incoming: Incoming, path: Path<Ids>) -> Result<HttpResponse, ApiError> {
    let id = incoming.fit(parse(&path)).await?;
    let body: Answer = incoming.document().await?;
    let (bus, given) = (Arc::clone(&incoming.state.bus), body.answer);
    let action = Action::OperateRequest { request: id, verb: "answer" };
    let answered: QueueRequest = incoming
        .perform(action, given, move |store, admitted, given| {
            let bus = Arc::clone(&bus);
            async move {
                let app = admitted.app()?.id;
                let request = store.request(app, id).await?.filter(|request| may_see(&admitted.caller, request));
                if request.is_none() {
                    return Err(missing().into());
                }
                let command = OperateCommand::Answer { answer: (*given).clone(), by: label(&admitted.caller) };
                let request = store.operate(&admitted.record, app, id, &command).await?;
                bus.publish(inn_ports::Topic::Requests(app)).await;
                Ok(request)
            }
        })
        .await?;
    Ok(respond::ok(incoming.id, &task(&answered)))
}

/// `{id}` of the path (and `{slug}` on the platform's face).
#[derive(Deserialize)]
pub(super) struct Ids {
    pub(super) id: String,
}

fn parse(path: &Ids) -> Result<RequestId, Refusal> {
    path.id.parse().map_err(|_| missing())
}

fn missing() -> Refusal {
    Refusal::new(Code::NotFound, "There is no such request, or it is somebody else's.")
}

/// Members who may edit see all of the app's requests; others what they asked for themselves. On a loopback host whoever
/// sits at the machine sees what was asked there.
pub(crate) fn may_see(caller: &Caller, request: &QueueRequest) -> bool {
    match caller {
        Caller::Person(person) => person.role >= Role::Editor || request.requester == Some(person.user),
        Caller::Visitor => true,
        Caller::Agent(agent) => request.requester == Some(agent.user),
        // The app's own users are no people of the platform: they are known by their name in the app.
        Caller::AppUser(user) => request.requester.is_none() && request.requester_label == user.name(),
        _ => false,
    }
}

/// Whose requests to look for: the limit must count those that [`may_see`] lets through.
pub(crate) fn only_of(caller: &Caller) -> Option<UserId> {
    match caller {
        Caller::Person(person) => (person.role < Role::Editor).then_some(person.user),
        Caller::Agent(agent) => Some(agent.user),
        _ => None,
    }
}

pub(crate) fn label(caller: &Caller) -> String {
    match caller {
        Caller::Person(person) => person.email.to_string(),
        Caller::Visitor => "somebody at this machine".to_owned(),
        Caller::AppUser(user) => user.name(),
        other => other.kind().to_owned(),
    }
}

/// The question that waits for an answer (`ask` of A2App 0.1).
fn open_question(request: &QueueRequest) -> Option<&str> {
    let waits = request.state == RequestState::InputRequired;
    request.questions.last().filter(|_| waits).map(|question| question.question.as_str())
}

fn task(request: &QueueRequest) -> Value {
    let claim = request.holder.as_ref().map(
        |holder| json!({"credentialId": holder, "principal": request.requester, "leaseUntil": request.lease_until}),
    );
    json!({
        "a2app": true,
        "id": request.id,
        "app": request.app,
        "event": null,
        "status": request.state,
        "request": {"capability": request.capability, "payload": request.payload},
        "claim": claim,
        "progress": request.progress,
        "result": request.result,
        "reason": request.reason,
        "ask": open_question(request),
        "questions": request.questions,
        "attempt": request.attempt,
        "createdAt": request.created_at,
        "updatedAt": request.updated_at,
        "pollAfterMs": POLL_AFTER_MS,
    })
}

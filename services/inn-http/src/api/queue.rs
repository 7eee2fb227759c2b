//! The queue from the tenant's side: look, answer, cancel, take back, end, replay.

use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::web::Path;
use inn_ports::{Store, StoreResult, Topic};
use inn_protocol::call::{Action, Place};
use inn_protocol::request::{CancelFilter, NewRequest, OperateCommand, QueueRequest, RequestState};
use inn_protocol::{AppId, Code, Refusal, RequestId};
use inn_rules::requests::{self as rules, Surroundings, check_schema, replayable};
use serde::Deserialize;
use serde_json::{Value, json};

use super::requests::line;
use super::session::person;
use super::views;
use crate::app::{label, may_see, new_request, only_of};
use crate::error::ApiError;
use crate::host::is_slug;
use crate::incoming::Incoming;
use crate::respond;

const LIST_LIMIT: u32 = 200;

/// A call about an app's requests arrives at the app, wherever its address is: the one decision needs to know which.
pub(super) fn at_app(mut incoming: Incoming, slug: Option<String>) -> Result<Incoming, ApiError> {
    let Some(slug) = slug.filter(|slug| is_slug(slug)) else { return Err(incoming.fail(no_app())) };
    incoming.place = Place::App { slug, own_origin: false };
    Ok(incoming)
}

pub(super) async fn list(incoming: Incoming) -> Result<HttpResponse, ApiError> {
    let slug = incoming.param("app").map(str::to_owned);
    let incoming = at_app(incoming, slug)?;
    let fail = |refusal| incoming.fail(refusal);
    let state = match incoming.param("state") {
        None | Some("") => None,
        Some(text) => Some(RequestState::parse(text).ok_or_else(|| {
            fail(Refusal::new(Code::InvalidParameter, format!("state must be one of {}.", RequestState::WORDS)))
        })?),
    };
    let store = &incoming.state.store;
    let requests: Vec<QueueRequest> = incoming
        .read(Action::ListRequests, |admitted| async move {
            person(&admitted.caller)?;
            Ok(store.requests(admitted.app()?.id, state, only_of(&admitted.caller), LIST_LIMIT).await?)
        })
        .await?;
    Ok(respond::ok(incoming.id, &views::items(requests)))
}

fn no_app() -> Refusal {
    Refusal::new(Code::UnknownApp, "Name the app (`app`: its slug); there is none of that name here.")
}

pub(super) async fn view(incoming: Incoming, path: Path<String>) -> Result<HttpResponse, ApiError> {
    let id: RequestId = incoming.fit(path.parse().map_err(|_| Refusal::not_found())).await?;
    let slug = incoming.param("app").map(str::to_owned);
    let incoming = at_app(incoming, slug)?;
    let store = &incoming.state.store;
    let request: QueueRequest = incoming
        .read(Action::ViewRequest { request: id }, |admitted| async move {
            person(&admitted.caller)?;
            let request = store.request(admitted.app()?.id, id).await?;
            request.filter(|request| may_see(&admitted.caller, request)).ok_or_else(Refusal::not_found)
        })
        .await?;
    Ok(respond::ok(incoming.id, &request))
}

/// What it waits for: what stops it first, then what only delays it.
pub(super) async fn why(incoming: Incoming, path: Path<String>) -> Result<HttpResponse, ApiError> {
    let id: RequestId = incoming.fit(path.parse().map_err(|_| Refusal::not_found())).await?;
    let slug = incoming.param("app").map(str::to_owned);
    let incoming = at_app(incoming, slug)?;
    let store = &incoming.state.store;
    let answer: Value = incoming
        .read(Action::ViewRequest { request: id }, |admitted| async move {
            person(&admitted.caller)?;
            let app = admitted.app()?;
            let request = store.request(app.id, id).await?;
            let request =
                request.filter(|request| may_see(&admitted.caller, request)).ok_or_else(Refusal::not_found)?;
            let declared = app.definition.capability(&request.capability).is_some();
            let around = Surroundings { declared, ..store.around(&request).await? };
            Ok(json!({"id": request.id, "state": request.state, "waitsFor": rules::why(&request, &around)}))
        })
        .await?;
    Ok(respond::ok(incoming.id, &answer))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Because {
    pub(super) app: String,
    #[serde(default)]
    reason: String,
}

impl Because {
    pub(super) fn reason(&self, otherwise: &str) -> String {
        match line(&self.reason, 2_000) {
            reason if reason.is_empty() => otherwise.to_owned(),
            reason => reason,
        }
    }
}

pub(super) async fn cancel(incoming: Incoming, path: Path<String>) -> Result<HttpResponse, ApiError> {
    let id: RequestId = incoming.fit(path.parse().map_err(|_| Refusal::not_found())).await?;
    let body: Because = incoming.document().await?;
    let reason = body.reason("canceled");
    let incoming = at_app(incoming, Some(body.app))?;
    let bus = incoming.state.bus.clone();
    let request: QueueRequest = incoming
        .perform(Action::CancelRequest { request: id }, reason, move |store, admitted, reason| {
            let bus = bus.clone();
            async move {
                person(&admitted.caller)?;
                let app = admitted.app()?.id;
                let request = store.request(app, id).await?;
                if !request.is_some_and(|request| may_see(&admitted.caller, &request)) {
                    return Err(Refusal::not_found().into());
                }
                let request = store.cancel(&admitted.record, app, id, &reason).await?;
                bus.publish(Topic::Requests(app)).await;
                Ok(request)
            }
        })
        .await?;
    Ok(respond::ok(incoming.id, &request))
}

pub(super) async fn take_back(incoming: Incoming, path: Path<String>) -> Result<HttpResponse, ApiError> {
    let body: Because = incoming.document().await?;
    let reason = body.reason("taken back by hand");
    operate(incoming, &path, "take-back", body.app, OperateCommand::Release { reason }).await
}

pub(super) async fn end(incoming: Incoming, path: Path<String>) -> Result<HttpResponse, ApiError> {
    let body: Because = incoming.document().await?;
    let reason = body.reason("ended by hand");
    operate(incoming, &path, "end", body.app, OperateCommand::Fail { reason }).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    app: String,
    answer: Value,
}

pub(super) async fn answer(incoming: Incoming, path: Path<String>) -> Result<HttpResponse, ApiError> {
    let body: Answer = incoming.document().await?;
    let command = OperateCommand::Answer { answer: body.answer, by: String::new() };
    operate(incoming, &path, "answer", body.app, command).await
}

async fn operate(
    incoming: Incoming,
    path: &str,
    verb: &'static str,
    app: String,
    command: OperateCommand,
) -> Result<HttpResponse, ApiError> {
    let id: RequestId = incoming.fit(path.parse().map_err(|_| Refusal::not_found())).await?;
    let incoming = at_app(incoming, Some(app))?;
    let bus = incoming.state.bus.clone();
    let request: QueueRequest = incoming
        .perform(Action::OperateRequest { request: id, verb }, command, move |store, admitted, command| {
            let bus = bus.clone();
            async move {
                person(&admitted.caller)?;
                let app = admitted.app()?.id;
                let request = store.request(app, id).await?;
                if !request.is_some_and(|request| may_see(&admitted.caller, &request)) {
                    return Err(Refusal::not_found().into());
                }
                let request = match &*command {
                    OperateCommand::Answer { answer, .. } => {
                        let by = label(&admitted.caller);
                        let command = OperateCommand::Answer { answer: answer.clone(), by };
                        store.operate(&admitted.record, app, id, &command).await?
                    }
                    command => store.operate(&admitted.record, app, id, command).await?,
                };
                bus.publish(Topic::Requests(app)).await;
                Ok(request)
            }
        })
        .await?;
    Ok(respond::ok(incoming.id, &request))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Replay {
    app: String,
}

/// A new request with the payload of one that failed or was canceled. The old one stays as it ended.
pub(super) async fn replay(incoming: Incoming, path: Path<String>) -> Result<HttpResponse, ApiError> {
    let id: RequestId = incoming.fit(path.parse().map_err(|_| Refusal::not_found())).await?;
    let body: Replay = incoming.document().await?;
    let incoming = at_app(incoming, Some(body.app))?;
    let bus = incoming.state.bus.clone();
    let again = RequestId::new();
    let request: QueueRequest = incoming
        .perform(Action::OperateRequest { request: id, verb: "replay" }, (), move |store, admitted, _| {
            let bus = bus.clone();
            async move {
                person(&admitted.caller)?;
                let app = Arc::clone(admitted.app()?);
                let ended = ended(&*store, app.id, id, |request| may_see(&admitted.caller, request)).await?;
                let capability = app.definition.capability(&ended.capability).ok_or_else(|| undeclared(&ended))?;
                // The release may have changed what it takes since.
                check_schema(&capability.input, &ended.payload, "payload")?;
                let request = NewRequest {
                    payload: ended.payload,
                    requester: ended.requester,
                    requester_label: ended.requester_label,
                    priority: ended.priority,
                    replay_of: Some(id),
                    ..new_request(again, &app, capability)
                };
                let asked = store.ask(&admitted.record, &app, &request).await?;
                bus.publish(Topic::Requests(app.id)).await;
                Ok(asked.request)
            }
        })
        .await?;
    Ok(respond::created(incoming.id, &request))
}

async fn ended(
    store: &dyn Store,
    app: AppId,
    id: RequestId,
    sees: impl Fn(&QueueRequest) -> bool,
) -> StoreResult<QueueRequest> {
    let request = store.request(app, id).await?.filter(sees).ok_or_else(Refusal::not_found)?;
    replayable(request.state).map_err(|refusal| refusal.id(&id))?;
    Ok(request)
}

fn undeclared(request: &QueueRequest) -> Refusal {
    let message = format!("The app's release no longer declares \"{}\", so it cannot be replayed.", request.capability);
    Refusal::new(Code::NotConsented, message).leg("app").id(&request.id)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct CancelMany {
    app: String,
    capability: Option<String>,
    state: Option<String>,
    older_than_seconds: Option<u32>,
    #[serde(default)]
    reason: String,
}

/// Up to 1,000 at once; `more` says that there may be others left.
pub(super) async fn cancel_many(incoming: Incoming) -> Result<HttpResponse, ApiError> {
    let body: CancelMany = incoming.document().await?;
    let state = match body.state.as_deref().map(|text| (text, RequestState::parse(text))) {
        None => None,
        Some((_, Some(state))) if !state.is_terminal() => Some(state),
        Some(_) => {
            let message = "state must be one of submitted, working, input-required.";
            return Err(incoming.unreadable(Refusal::new(Code::InvalidParameter, message)).await);
        }
    };
    let because = Because { app: body.app, reason: body.reason };
    let reason = because.reason("canceled with others");
    let filter = CancelFilter { capability: body.capability, state, older_than_seconds: body.older_than_seconds };
    let incoming = at_app(incoming, Some(because.app))?;
    let bus = incoming.state.bus.clone();
    let (canceled, more) = incoming
        .perform(Action::CancelRequests, (filter, reason), move |store, admitted, input| {
            let bus = bus.clone();
            async move {
                person(&admitted.caller)?;
                let (filter, reason) = &*input;
                let app = admitted.app()?.id;
                let canceled = store.cancel_many(&admitted.record, app, filter, reason).await?;
                bus.publish(Topic::Requests(app)).await;
                Ok(canceled)
            }
        })
        .await?;
    Ok(respond::ok(incoming.id, &json!({"canceled": canceled, "more": more})))
}

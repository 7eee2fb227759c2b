//! The queue from the agents' side: claim and hold.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix_web::HttpResponse;
use actix_web::web::Path;
use inn_grants::signature;
use inn_ports::{Store, StoreError, StoreResult, Topic};
use inn_protocol::app::AppSnapshot;
use inn_protocol::call::{Action, Papers};
use inn_protocol::caller::Caller;
use inn_protocol::register::CallRecord;
use inn_protocol::request::{ClaimOffer, Completion, HoldCommand, Progress, QueueRequest, RequestState};
use inn_protocol::scope::Scope;
use inn_protocol::{AgentId, AppId, Code, Refusal, RequestId, Violation};
use inn_rules::requests::board::{MOST_CLAIMED as MAX_CLAIMED, Turn};
use inn_rules::requests::check_schema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::views;
use crate::error::ApiError;
use crate::incoming::Incoming;
use crate::respond;

/// Longest wait of one claim, in seconds: below the idle limits of common proxies.
const MAX_WAIT_SECONDS: u64 = 30;
/// The claim itself must still be made before the signature expires.
const SIGNATURE_MARGIN_SECONDS: i64 = 3;
/// A hint can be lost; then the next look finds what it was about.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// So soon a waiting agent hears of a new grant. A grant that ended is noticed by the claim itself.
const OFFERS_AGAIN: Duration = Duration::from_secs(5);
/// How often offers that moved on meanwhile are made anew at once.
const OFFERS_TRIES: u32 = 3;

#[derive(Deserialize, Default, Clone)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct Claim {
    apps: Option<Vec<String>>,
    capabilities: Option<Vec<String>>,
    max: Option<u32>,
    wait_seconds: Option<u64>,
}

pub(super) async fn claim(mut incoming: Incoming) -> Result<HttpResponse, ApiError> {
    let body: Claim = incoming.document().await?;
    let agent = key_of(&incoming, Action::Claim).await?;
    let until = Instant::now() + wait(&incoming, body.wait_seconds);
    let max = body.max.unwrap_or(1).clamp(1, MAX_CLAIMED);
    let mut offered = offers(&incoming, &agent, &body).await?;
    let mut since = Instant::now();
    // Somebody waits for nothing only if that is certain; later looks are of the last second, except when a hint came.
    let mut thorough = true;
    let mut again = OFFERS_TRIES;
    // The claim is one call with one entry and one nonce, taken when it ends; waiting asks the node's own picture of the
    // queue and holds no permit.
    loop {
        let store = &incoming.state.store;
        let turn = store.reserve(&agent, &offered, max, thorough).await.map_err(|error| incoming.fail(error.into()))?;
        if let Some(turn) = turn {
            // One claim is one tenant's business.
            incoming.about = Some(turn.tenant);
            match take(&incoming, &agent, &offered, turn).await? {
                Some(claimed) if !claimed.is_empty() => return Ok(respond::ok(incoming.id, &views::items(claimed))),
                None if again > 0 => {
                    again -= 1;
                    offered = offers(&incoming, &agent, &body).await?;
                    continue;
                }
                // Others were faster.
                _ => {}
            }
        }
        // A node that drains answers its waiting agents early; they ask another one.
        let draining = incoming.state.vitals.draining();
        let left = if draining { Duration::ZERO } else { until.saturating_duration_since(Instant::now()) };
        if left.is_zero() {
            incoming.about = offered.first().map(|offer| offer.tenant);
            incoming.read(Action::Claim, |_| async { Ok(()) }).await?;
            return Ok(respond::ok(incoming.id, &views::items(Vec::<QueueRequest>::new())));
        }
        thorough = incoming.state.bus.wait(&topics(&offered), left.min(LOOK_AGAIN)).await;
        if since.elapsed() >= OFFERS_AGAIN {
            offered = offers(&incoming, &agent, &body).await?;
            since = Instant::now();
        }
    }
}

/// As long as asked for, but not beyond the signature's own end: the claim is verified again when it is made.
fn wait(incoming: &Incoming, seconds: Option<u64>) -> Duration {
    let asked = seconds.unwrap_or(0).min(MAX_WAIT_SECONDS);
    let Papers::Signed(papers) = &incoming.papers else { return Duration::ZERO };
    let Ok(parsed) = signature::parse(&papers.signature_input, &papers.signature) else { return Duration::ZERO };
    let left = parsed.expires() - incoming.state.gateway.clock().now().timestamp() - SIGNATURE_MARGIN_SECONDS;
    Duration::from_secs(asked.min(u64::try_from(left).unwrap_or(0)))
}

/// The agent that signed; refuses everybody else, and registers that.
async fn key_of(incoming: &Incoming, action: Action) -> Result<AgentId, ApiError> {
    let call = incoming.call(action.clone(), Value::Null);
    if let Ok(admitted) = incoming.state.gateway.glance(call).await
        && let Some(agent) = admitted.caller.agent()
    {
        return Ok(agent.clone());
    }
    // The same call again, now with an entry of its refusal.
    incoming.read(action, |admitted| async move { key(&admitted.caller).cloned() }).await
}

/// Who may hold claims: an agent, by its own key.
fn key(caller: &Caller) -> Result<&AgentId, Refusal> {
    caller.agent().ok_or_else(|| {
        Refusal::new(
            Code::SignatureRequired,
            "Claims need no token: sign the HTTP request with your agent's key and leave Authorization out.",
        )
    })
}

/// What the agent may claim: its live `queue:` scopes, narrowed by what it asks for.
async fn offers(incoming: &Incoming, agent: &AgentId, wanted: &Claim) -> Result<Vec<ClaimOffer>, ApiError> {
    let grants = incoming.state.store.queue_grants(agent).await.map_err(|error| incoming.fail(error.into()))?;
    let apps = match &wanted.apps {
        None => None,
        Some(slugs) => {
            let mut ids: Vec<AppId> = Vec::new();
            for slug in slugs.iter().take(100) {
                let app = incoming.state.gateway.app(slug).await.map_err(|refusal| incoming.fail(refusal))?;
                ids.extend(app.map(|app| app.id));
            }
            Some(ids)
        }
    };
    let mut offers = Vec::new();
    for grant in grants.iter().filter(|grant| apps.as_ref().is_none_or(|apps| apps.contains(&grant.app))) {
        for scope in &*grant.scopes {
            let Scope::Queue(capability) = scope else { continue };
            if wanted.capabilities.as_ref().is_none_or(|wanted| wanted.contains(capability)) {
                offers.push(ClaimOffer {
                    tenant: grant.tenant,
                    app: grant.app,
                    capability: capability.clone(),
                    grant: grant.grant,
                    grant_epoch: grant.epoch,
                    user: grant.user,
                    others: grant.others_requests,
                });
            }
        }
    }
    if offers.is_empty() && grants.is_empty() {
        return Err(incoming.fail(
            Refusal::new(Code::InsufficientScope, "No live grant lets this agent claim anything.")
                .leg("grant")
                .fix("a person, by granting a queue:<capability> scope"),
        ));
    }
    Ok(offers)
}

fn topics(offers: &[ClaimOffer]) -> Vec<Topic> {
    let apps: BTreeSet<AppId> = offers.iter().map(|offer| offer.app).collect();
    apps.into_iter().map(Topic::Requests).collect()
}

/// Claims what was kept. `None` when a grant is no longer what its offer was made from.
async fn take(
    incoming: &Incoming,
    agent: &AgentId,
    offers: &[ClaimOffer],
    turn: Turn,
) -> Result<Option<Vec<QueueRequest>>, ApiError> {
    let input = (agent.clone(), offers.to_vec(), turn);
    incoming
        .perform(Action::Claim, input, move |store, admitted, input| async move {
            let (agent, offers, turn) = &*input;
            match store.claim(&admitted.record, agent, offers, turn).await {
                Err(StoreError::Stale) => Ok(None),
                claimed => claimed.map(Some),
            }
        })
        .await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Beat {
    epoch: i64,
}

pub(super) async fn heartbeat(incoming: Incoming, path: Path<String>) -> Result<HttpResponse, ApiError> {
    let body: Beat = incoming.document().await?;
    hold(incoming, &path, "heartbeat", body.epoch, HoldCommand::Heartbeat).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HowFar {
    epoch: i64,
    step: String,
    percent: u8,
}

pub(super) async fn progress(incoming: Incoming, path: Path<String>) -> Result<HttpResponse, ApiError> {
    let body: HowFar = incoming.document().await?;
    if body.percent > 100 {
        let refusal = Refusal::new(Code::InvalidParameter, "percent must be 0 to 100.");
        return Err(incoming.unreadable(refusal).await);
    }
    let step = line(&body.step, 200);
    hold(incoming, &path, "progress", body.epoch, HoldCommand::Progress(Progress { step, percent: body.percent })).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Complete {
    epoch: i64,
    result: Value,
}

pub(super) async fn complete(incoming: Incoming, path: Path<String>) -> Result<HttpResponse, ApiError> {
    let body: Complete = incoming.document().await?;
    hold(incoming, &path, "complete", body.epoch, HoldCommand::Complete(body.result)).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Because {
    epoch: i64,
    #[serde(default)]
    reason: String,
}

pub(super) async fn fail(incoming: Incoming, path: Path<String>) -> Result<HttpResponse, ApiError> {
    let body: Because = incoming.document().await?;
    hold(incoming, &path, "fail", body.epoch, HoldCommand::Fail { reason: line(&body.reason, 2_000) }).await
}

pub(super) async fn release(incoming: Incoming, path: Path<String>) -> Result<HttpResponse, ApiError> {
    let body: Because = incoming.document().await?;
    hold(incoming, &path, "release", body.epoch, HoldCommand::Release { reason: line(&body.reason, 2_000) }).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AskBack {
    epoch: i64,
    question: String,
}

pub(super) async fn ask_back(incoming: Incoming, path: Path<String>) -> Result<HttpResponse, ApiError> {
    let body: AskBack = incoming.document().await?;
    let question = readable(&body.question);
    hold(incoming, &path, "ask-back", body.epoch, HoldCommand::Ask { question }).await
}

/// Text for people, which may have several lines.
fn readable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { ' ' } else { c }).collect::<String>().trim().to_owned()
}

/// One line for people.
pub(super) fn line(text: &str, limit: usize) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(limit).collect::<String>().trim().to_owned()
}

async fn hold(
    mut incoming: Incoming,
    path: &str,
    verb: &'static str,
    epoch: i64,
    command: HoldCommand,
) -> Result<HttpResponse, ApiError> {
    let id: RequestId = incoming.fit(path.parse().map_err(|_| Refusal::not_found())).await?;
    let agent = key_of(&incoming, Action::Hold { request: id, verb }).await?;
    let held = incoming.state.store.held_request(&agent, id).await.map_err(|error| incoming.fail(error.into()))?;
    incoming.about = held.as_ref().map(|request| request.tenant);
    let bus = incoming.state.bus.clone();
    let request: QueueRequest = incoming
        .perform(Action::Hold { request: id, verb }, (command, held), move |store, admitted, input| {
            let bus = bus.clone();
            async move {
                let (command, held) = &*input;
                let agent = key(&admitted.caller)?;
                // A claim that is lost is the store's to refuse.
                if let (HoldCommand::Complete(result), Some(held)) = (command, held) {
                    check_result(&*store, held, result).await?;
                }
                let request = store.hold(&admitted.record, id, agent, epoch, command).await?;
                // For whoever waits for work; a heartbeat is not news to them.
                if request.state == RequestState::Submitted {
                    bus.publish(Topic::Requests(request.app)).await;
                }
                Ok(request)
            }
        })
        .await?;
    Ok(respond::ok(incoming.id, &request))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CompleteMany {
    items: Vec<CompleteOne>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CompleteOne {
    id: String,
    epoch: i64,
    result: Value,
}

/// Each result stands for itself; the call is refused when none could be stored.
pub(super) async fn complete_many(mut incoming: Incoming) -> Result<HttpResponse, ApiError> {
    let body: CompleteMany = incoming.document().await?;
    let items = incoming.fit(completions(body)).await?;
    let agent = key_of(&incoming, Action::HoldMany).await?;
    let ids: Vec<RequestId> = items.iter().map(|item| item.request).collect();
    let held = incoming.state.store.held_requests(&agent, &ids).await.map_err(|error| incoming.fail(error.into()))?;
    // One call is one tenant's business.
    let tenant = held.first().map(|request| request.tenant);
    incoming.about = tenant;
    if held.iter().any(|request| Some(request.tenant) != tenant) {
        let message = "These requests belong to several tenants: send each tenant's by themselves.";
        return Err(incoming.unreadable(Refusal::new(Code::InvalidParameter, message)).await);
    }
    let answers: Vec<Result<(), Refusal>> = incoming
        .perform(Action::HoldMany, (items, held), |store, admitted, input| async move {
            let (items, held) = &*input;
            let agent = key(&admitted.caller)?;
            store_results(&*store, &admitted.record, agent, items, held).await
        })
        .await?;
    let shape = |(id, answer): (&RequestId, &Result<(), Refusal>)| match answer {
        Ok(()) => json!({"id": id, "state": "completed"}),
        Err(refusal) => json!({"id": id, "refusal": refusal}),
    };
    let items: Vec<Value> = ids.iter().zip(&answers).map(shape).collect();
    Ok(respond::ok(incoming.id, &views::items(items)))
}

fn completions(body: CompleteMany) -> Result<Vec<Completion>, Refusal> {
    if !(1..=Completion::MOST).contains(&body.items.len()) {
        let expected = format!("1 to {} results", Completion::MOST);
        let violation = Violation::new(Code::InvalidParameter, "items", expected);
        return Err(Refusal::violations("These results cannot be taken.", vec![violation]));
    }
    let completion = |(index, item): (usize, CompleteOne)| {
        let request = item.id.parse().map_err(|_| {
            let violation = Violation::new(Code::InvalidParameter, format!("items[{index}].id"), "req_…");
            Refusal::violations("These results cannot be taken.", vec![violation.got(&item.id.into())])
        })?;
        Ok(Completion { request, epoch: item.epoch, result: item.result })
    };
    body.items.into_iter().enumerate().map(completion).collect()
}

/// Those that fit their schemas go to the store together; the answers come back in the order of the items.
async fn store_results(
    store: &dyn Store,
    record: &CallRecord,
    agent: &AgentId,
    items: &[Completion],
    held: &[QueueRequest],
) -> StoreResult<Vec<Result<(), Refusal>>> {
    let held: BTreeMap<RequestId, &QueueRequest> = held.iter().map(|request| (request.id, request)).collect();
    let mut apps: BTreeMap<AppId, Option<Arc<AppSnapshot>>> = BTreeMap::new();
    for app in held.values().map(|request| request.app) {
        if let Entry::Vacant(place) = apps.entry(app) {
            place.insert(store.app_by_id(app).await?);
        }
    }
    let fits = |item: &Completion| {
        let Some(request) = held.get(&item.request) else { return Ok(()) };
        // An app or a capability that is gone: see `check_result`.
        let app = apps.get(&request.app).and_then(Option::as_ref);
        let capability = app.and_then(|app| app.definition.capability(&request.capability));
        capability.map_or(Ok(()), |capability| check_schema(&capability.result, &item.result, "result"))
    };
    let mut answers: Vec<Result<(), Refusal>> =
        items.iter().map(|item| fits(item).map_err(|refusal| refusal.id(&item.request))).collect();
    let fitting = || answers.iter().zip(items).filter(|(fits, _)| fits.is_ok()).map(|(_, item)| item.clone());
    let fitting: Vec<Completion> = fitting().collect();
    if fitting.is_empty() {
        let refusal = answers.into_iter().find_map(Result::err);
        return Err(refusal.unwrap_or_else(Refusal::internal).into());
    }
    let mut stored = store.complete_many(record, agent, &fitting).await?.into_iter();
    for answer in answers.iter_mut().filter(|answer| answer.is_ok()) {
        *answer = stored.next().unwrap_or_else(|| Err(Refusal::internal()));
    }
    Ok(answers)
}

/// A result must fit the schema its capability declares.
async fn check_result(store: &dyn Store, held: &QueueRequest, result: &Value) -> Result<(), Refusal> {
    // An app that is gone is the store's to refuse.
    let Some(app) = store.app_by_id(held.app).await? else { return Ok(()) };
    match app.definition.capability(&held.capability) {
        Some(capability) => check_schema(&capability.result, result, "result"),
        // The release that declared it was replaced; what its holder worked on is still worth keeping.
        None => Ok(()),
    }
}

//! Jobs from the tenant's side: look, read the log, cancel, retry.

use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::web::Path;
use inn_ports::Topic;
use inn_protocol::call::Action;
use inn_protocol::job::{Job, JobKind, JobLine, JobState, NewJob};
use inn_protocol::request::NewRequest;
use inn_protocol::{Code, JobId, Refusal, RequestId};
use inn_rules::jobs as rules;
use serde::Deserialize;

use super::queue::{Because, at_app};
use super::session::person;
use super::views;
use crate::app::{missing_job, request_of_job};
use crate::error::ApiError;
use crate::incoming::Incoming;
use crate::respond;

const LIST_LIMIT: u32 = 200;
const MOST_LINES: u32 = 1_000;

pub(super) async fn list(incoming: Incoming) -> Result<HttpResponse, ApiError> {
    let slug = incoming.param("app").map(str::to_owned);
    let incoming = at_app(incoming, slug)?;
    let state = match incoming.param("state") {
        None | Some("") => Ok(None),
        Some(text) => JobState::parse(text)
            .map(Some)
            .ok_or_else(|| Refusal::new(Code::InvalidParameter, format!("state must be one of {}.", JobState::WORDS))),
    };
    let state = incoming.fit(state).await?;
    let store = &incoming.state.store;
    let jobs: Vec<Job> = incoming
        .read(Action::ListJobs, |admitted| async move {
            person(&admitted.caller)?;
            Ok(store.jobs(admitted.app()?.id, state, rules::only_of(&admitted.caller), LIST_LIMIT).await?)
        })
        .await?;
    Ok(respond::ok(incoming.id, &views::items(jobs)))
}

pub(super) async fn view(incoming: Incoming, path: Path<String>) -> Result<HttpResponse, ApiError> {
    let id = incoming.fit(parse(&path)).await?;
    let slug = incoming.param("app").map(str::to_owned);
    let incoming = at_app(incoming, slug)?;
    let store = &incoming.state.store;
    let job: Job = incoming
        .read(Action::ViewJob { job: id, verb: "view" }, |admitted| async move {
            person(&admitted.caller)?;
            let job = store.job(admitted.app()?.id, id).await?;
            job.filter(|job| rules::may_see(&admitted.caller, job)).ok_or_else(missing_job)
        })
        .await?;
    Ok(respond::ok(incoming.id, &job))
}

pub(super) async fn logs(incoming: Incoming, path: Path<String>) -> Result<HttpResponse, ApiError> {
    let id = incoming.fit(parse(&path)).await?;
    let after: i64 = incoming.fit(number(incoming.param("after"), "after", 0, i64::MAX)).await?;
    let limit = incoming.fit(number(incoming.param("limit"), "limit", MOST_LINES, MOST_LINES)).await?;
    let slug = incoming.param("app").map(str::to_owned);
    let incoming = at_app(incoming, slug)?;
    let store = &incoming.state.store;
    let lines: Vec<JobLine> = incoming
        .read(Action::ViewJob { job: id, verb: "logs" }, |admitted| async move {
            person(&admitted.caller)?;
            let app = admitted.app()?.id;
            let job = store.job(app, id).await?;
            job.filter(|job| rules::may_see(&admitted.caller, job)).ok_or_else(missing_job)?;
            Ok(store.job_lines(app, id, after, limit).await?)
        })
        .await?;
    Ok(respond::ok(incoming.id, &views::items(lines)))
}

pub(super) async fn cancel(incoming: Incoming, path: Path<String>) -> Result<HttpResponse, ApiError> {
    let id = incoming.fit(parse(&path)).await?;
    let body: Because = incoming.document().await?;
    let reason = body.reason("canceled");
    let incoming = at_app(incoming, Some(body.app))?;
    let bus = Arc::clone(&incoming.state.bus);
    let job: Job = incoming
        .perform(Action::CancelJob { job: id }, reason, move |store, admitted, reason| {
            let bus = Arc::clone(&bus);
            async move {
                person(&admitted.caller)?;
                let app = admitted.app()?.id;
                let job = store.job(app, id).await?;
                job.filter(|job| rules::may_see(&admitted.caller, job)).ok_or_else(missing_job)?;
                let job = store.cancel_job(&admitted.record, app, id, &reason).await?;
                bus.publish(Topic::Requests(app)).await;
                Ok(job)
            }
        })
        .await?;
    Ok(respond::ok(incoming.id, &job))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Retry {
    app: String,
}

/// A new job with the params of one that failed or was canceled, for whoever started that one. The old one stays as it
/// ended.
pub(super) async fn retry(incoming: Incoming, path: Path<String>) -> Result<HttpResponse, ApiError> {
    let id = incoming.fit(parse(&path)).await?;
    let body: Retry = incoming.document().await?;
    let incoming = at_app(incoming, Some(body.app))?;
    let bus = Arc::clone(&incoming.state.bus);
    let (request, again) = (RequestId::new(), JobId::new());
    let job: Job = incoming
        .perform(Action::RetryJob { job: id }, (), move |store, admitted, _| {
            let bus = Arc::clone(&bus);
            async move {
                person(&admitted.caller)?;
                let app = Arc::clone(admitted.app()?);
                let ended = store.job(app.id, id).await?;
                let ended = ended.filter(|job| rules::may_see(&admitted.caller, job)).ok_or_else(missing_job)?;
                rules::retryable(&ended)?;
                if ended.kind != JobKind::Agent {
                    return Err(Refusal::new(Code::NotImplemented, "Only jobs of agents can be retried.").into());
                }
                let new = NewJob { id: again, operation: ended.operation, agent: ended.agent, retry_of: Some(id) };
                // The release may have changed what it takes since.
                let new = NewRequest {
                    requester: ended.requester,
                    requester_label: ended.requester_label,
                    ..request_of_job(request, &app, new, ended.params)?
                };
                store.ask(&admitted.record, &app, &new).await?;
                bus.publish(Topic::Requests(app.id)).await;
                Ok(store.job(app.id, again).await?.ok_or_else(Refusal::internal)?)
            }
        })
        .await?;
    Ok(respond::created(incoming.id, &job))
}

fn parse(path: &str) -> Result<JobId, Refusal> {
    path.parse().map_err(|_| missing_job())
}

/// A whole number of the query from 0 to `most`.
fn number<T>(given: Option<&str>, name: &str, otherwise: T, most: T) -> Result<T, Refusal>
where
    T: std::str::FromStr + PartialOrd + Default + std::fmt::Display,
{
    let Some(text) = given.filter(|text| !text.is_empty()) else { return Ok(otherwise) };
    text.parse::<T>()
        .ok()
        .filter(|number| (T::default()..=most).contains(number))
        .ok_or_else(|| Refusal::new(Code::InvalidParameter, format!("{name} must be a whole number from 0 on.")))
}

//! Reading the register. Reading it is a call too, and has its own entry.

use actix_web::HttpResponse;
use actix_web::web::Bytes;
use chrono::{DateTime, Utc};
use inn_protocol::call::Action;
use inn_protocol::register::{Entry, EntrySearch, Head, Verification};
use inn_protocol::{AgentId, CallId, Code, Digest, Refusal};
use serde_json::{Value, json};

use super::session::person;
use crate::error::{ApiError, CALL_HEADER};
use crate::incoming::Incoming;
use crate::respond;

const DEFAULT_LIMIT: u32 = 50;
const MAX_LIMIT: u32 = 500;

pub(super) async fn search(incoming: Incoming) -> Result<HttpResponse, ApiError> {
    let entries = find(&incoming, "search").await?;
    let next = entries.last().map(cursor);
    Ok(respond::ok(incoming.id, &json!({"items": entries, "next": next})))
}

/// The same entries as JSON lines, for files and pipes.
pub(super) async fn export(incoming: Incoming) -> Result<HttpResponse, ApiError> {
    let entries = find(&incoming, "export").await?;
    let mut lines = String::new();
    for entry in &entries {
        lines.push_str(&json!(entry).to_string());
        lines.push('\n');
    }
    let mut response = HttpResponse::Ok();
    response.insert_header((CALL_HEADER.clone(), incoming.id.to_string()));
    response.insert_header(("Content-Type", "application/x-ndjson"));
    response.insert_header(("X-Content-Type-Options", "nosniff"));
    if let Some(next) = entries.last().map(cursor) {
        response.insert_header(("innkeeper-next", next));
    }
    Ok(response.body(Bytes::from(lines)))
}

async fn find(incoming: &Incoming, verb: &'static str) -> Result<Vec<Entry>, ApiError> {
    let search = parse(incoming).await?;
    let (store, search) = (&incoming.state.store, &search);
    incoming
        .read(Action::ReadRegister { verb }, |admitted| async move {
            Ok(store.entries(person(&admitted.caller)?.tenant, search).await?)
        })
        .await
}

/// The search that the query asks for.
pub async fn parse(incoming: &Incoming) -> Result<EntrySearch, ApiError> {
    let fail = |refusal| incoming.fail(refusal);
    let wrong = |name: &str, what: &str| Refusal::new(Code::InvalidParameter, format!("{name} must be {what}."));
    let param = |name| incoming.param(name).filter(|value| !value.is_empty());
    let app = match param("app") {
        // An app of somebody else's has no entries in this tenant, so there is nothing to hide here.
        Some(slug) => {
            let app = incoming.state.gateway.app(slug).await.map_err(fail)?;
            Some(app.ok_or_else(|| fail(Refusal::new(Code::UnknownApp, "There is no app of that name here.")))?.id)
        }
        None => None,
    };
    let time = |text: &str| DateTime::parse_from_rfc3339(text).ok().map(|time| time.with_timezone(&Utc));
    let parsed = |name: &'static str, what: &'static str| move || wrong(name, what);
    Ok(EntrySearch {
        app,
        user: param("user").map(|text| text.parse().map_err(|_| fail(wrong("user", "a user id")))).transpose()?,
        agent: param("agent")
            .map(|text| AgentId::parse(text).ok_or_else(parsed("agent", "a key thumbprint")).map_err(fail))
            .transpose()?,
        grant: param("grant").map(|text| text.parse().map_err(|_| fail(wrong("grant", "a grant id")))).transpose()?,
        action: param("action").map(str::to_owned),
        outcome: param("outcome").map(str::to_owned),
        since: param("since")
            .map(|text| time(text).ok_or_else(parsed("since", "an RFC 3339 time")).map_err(fail))
            .transpose()?,
        before: param("before")
            .map(|text| before(text).ok_or_else(parsed("before", "the `next` of an earlier page")).map_err(fail))
            .transpose()?,
        limit: match param("limit") {
            None => DEFAULT_LIMIT,
            Some(text) => {
                text.parse::<u32>().map_err(|_| fail(wrong("limit", "a number from 1 to 500")))?.clamp(1, MAX_LIMIT)
            }
        },
    })
}

/// Where a page ended: time and call, so that paging backwards neither repeats nor skips.
pub fn cursor(entry: &Entry) -> String {
    format!("{}.{}", entry.at.timestamp_micros(), entry.call)
}

fn before(text: &str) -> Option<(DateTime<Utc>, CallId)> {
    let (micros, call) = text.split_once('.')?;
    Some((DateTime::from_timestamp_micros(micros.parse().ok()?)?, call.parse().ok()?))
}

pub(super) async fn verify(incoming: Incoming) -> Result<HttpResponse, ApiError> {
    let expected = match (incoming.param("seq"), incoming.param("head")) {
        (Some(seq), Some(head)) => Some(expected(seq, head).ok_or_else(|| {
            incoming.fail(Refusal::new(Code::InvalidParameter, "seq and head must be those of an exported head."))
        })?),
        _ => None,
    };
    let (store, expected) = (&incoming.state.store, expected.as_ref());
    let verification: Verification = incoming
        .read(Action::ReadRegister { verb: "verify" }, |admitted| async move {
            let tenant = person(&admitted.caller)?.tenant;
            let expected = expected.map(|(seq, head)| Head {
                tenant,
                seq: *seq,
                head: *head,
                at: DateTime::<Utc>::MIN_UTC,
                key: String::new(),
                signature: String::new(),
            });
            Ok(store.verify(tenant, expected.as_ref()).await?)
        })
        .await?;
    Ok(respond::ok(incoming.id, &verification))
}

fn expected(seq: &str, head: &str) -> Option<(i64, Digest)> {
    Some((seq.parse().ok()?, Digest::from_hex(head)?))
}

pub(super) async fn head(incoming: Incoming) -> Result<HttpResponse, ApiError> {
    let store = &incoming.state.store;
    let head: Option<Head> = incoming
        .read(Action::ReadRegister { verb: "head" }, |admitted| async move {
            Ok(store.head(person(&admitted.caller)?.tenant).await?)
        })
        .await?;
    Ok(respond::ok(incoming.id, &head.map_or(Value::Null, |head| json!(head))))
}

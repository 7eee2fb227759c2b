//! `POST /api/batch`: record writes that stand or fall together (`reference` notes on PocketBase, section F).
//!
//! Each of them is a call of its own, with its own decision, guard, entry and receipt; papers are shown once, for the
//! whole, and those in the `headers` of a single write count for nothing.

use std::collections::BTreeMap;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use inn_actors::{Admitted, BatchRefused, BatchVerb, BatchWrite};
use inn_ports::BatchDone;
use inn_protocol::call::Action;
use inn_protocol::receipt::Verb;
use inn_protocol::{Code, Refusal};
use inn_rules::query::{FieldPick, ListParams};
use serde_json::{Map, Value, json};

use super::auth::count_passwords;
use super::files::batch_body;
use super::records::{check_size, collection, receipt_header, written};
use crate::error::ApiError;
use crate::incoming::{Incoming, PAPER_HEADERS};
use crate::respond;

const METHODS: [&str; 6] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"];

/// One of the writes as it was sent.
struct Asked {
    method: String,
    url: String,
    body: Map<String, Value>,
    headers: Map<String, Value>,
}

/// `POST /api/batch`
pub(super) async fn batch(incoming: Incoming) -> Result<HttpResponse, ApiError> {
    let most = incoming.state.config.batch_requests;
    if most == 0 {
        let off = Refusal::new(Code::Forbidden, "Batch requests are not allowed.")
            .fix("whoever runs this host, with the setting http.batch-requests");
        return Err(incoming.refuse(Action::Batch, off).await);
    }
    let fields = incoming.param("fields").filter(|spec| !spec.is_empty()).map(FieldPick::parse).transpose();
    let whole = incoming.fit(fields).await?;
    let sent = batch_body(&incoming).await?;
    let Some(asked) = read(&sent.body) else {
        let unread = Refusal::new(Code::InvalidBody, "Failed to read the submitted batch data.");
        return Err(incoming.refuse(Action::Batch, unread).await);
    };
    if let Some(data) = problems(&asked, most) {
        let wrong = Refusal::new(Code::InvalidBody, "Invalid batch request data.");
        let refused = incoming.refuse(Action::Batch, wrong).await;
        return with_members(&incoming, refused, Code::InvalidBody, [("data", json!({ "requests": data }))]);
    }
    count_passwords(&incoming, asked.iter().filter(|asked| asked.body.contains_key("password")).count())?;
    let call = incoming.call(Action::Batch, Value::Null);
    let prepare = |admitted: &Admitted| {
        check_size(admitted.app()?, sent.length)?;
        let writes = asked.iter().enumerate();
        Ok(writes
            .map(|(place, asked)| Ok(BatchWrite { form: sent.of_request(place), ..write(admitted, asked)? }))
            .collect())
    };
    let (admitted, done) = match incoming.state.gateway.batch(call, prepare).await {
        Ok(done) => done,
        Err(refused) => return failed(&incoming, refused, &asked),
    };
    sent.committed(&done.writes);
    answer(&incoming, &admitted, done, &asked, whole).await
}

/// PocketBase's shape: `requests`, each with `method`, `url` and maybe `body` and `headers`; null is as good as nothing.
fn read(body: &Value) -> Option<Vec<Asked>> {
    let text = |request: &Map<String, Value>, name: &str| match request.get(name) {
        None | Some(Value::Null) => Some(String::new()),
        Some(Value::String(text)) => Some(text.clone()),
        Some(_) => None,
    };
    let object = |request: &Map<String, Value>, name: &str| match request.get(name) {
        None | Some(Value::Null) => Some(Map::new()),
        Some(Value::Object(members)) => Some(members.clone()),
        Some(_) => None,
    };
    let requests = match body.as_object()?.get("requests") {
        None | Some(Value::Null) => return Some(Vec::new()),
        Some(Value::Array(requests)) => requests,
        Some(_) => return None,
    };
    let one = |request: &Value| {
        let request = request.as_object()?;
        let (method, url) = (text(request, "method")?, text(request, "url")?);
        Some(Asked { method, url, body: object(request, "body")?, headers: object(request, "headers")? })
    };
    requests.iter().map(one).collect()
}

/// What PocketBase says about writes that cannot be made out, by their place.
fn problems(asked: &[Asked], most: usize) -> Option<Value> {
    let blank = || json!({"code": "validation_required", "message": "Cannot be blank."});
    if asked.is_empty() {
        return Some(blank());
    }
    if asked.len() > most {
        return Some(json!({
            "code": "validation_length_too_long",
            "message": format!("The length must be no more than {most}."),
            "params": {"max": most, "min": 0},
        }));
    }
    let mut found = Map::new();
    for (place, asked) in asked.iter().enumerate() {
        let mut wrong = Map::new();
        if asked.method.is_empty() {
            wrong.insert("method".to_owned(), blank());
        } else if !METHODS.contains(&asked.method.as_str()) {
            let problem = json!({"code": "validation_in_invalid", "message": "Must be a valid value."});
            wrong.insert("method".to_owned(), problem);
        }
        if asked.url.is_empty() {
            wrong.insert("url".to_owned(), blank());
        }
        if !wrong.is_empty() {
            found.insert(place.to_string(), Value::Object(wrong));
        }
    }
    (!found.is_empty()).then_some(Value::Object(found))
}

/// The write that method and URL mean, or why there is none. The URL is a path below the app, as the record routes
/// have it; nothing in it is decoded, since no name or id of a record needs to be.
fn write(admitted: &Admitted, asked: &Asked) -> Result<BatchWrite, Refusal> {
    let (path, _) = asked.url.split_once('?').unwrap_or((&asked.url, ""));
    let parts: Vec<&str> = path.strip_prefix("/api/collections/").unwrap_or_default().split('/').collect();
    let own_id = || match asked.body.get("id") {
        Some(Value::String(id)) if !id.is_empty() => Some(id.clone()),
        Some(Value::Number(id)) => Some(id.to_string()),
        _ => None,
    };
    let (entity, verb) = match (asked.method.as_str(), parts.as_slice()) {
        ("POST", [entity, "records"]) => (entity, BatchVerb::Create),
        ("PUT", [entity, "records"]) => (entity, own_id().map_or(BatchVerb::Create, BatchVerb::Upsert)),
        ("PATCH", [entity, "records", id]) if !id.is_empty() => (entity, BatchVerb::Update((*id).to_owned())),
        ("DELETE", [entity, "records", id]) if !id.is_empty() => (entity, BatchVerb::Delete((*id).to_owned())),
        _ => {
            return Err(Refusal::new(
                Code::InvalidBody,
                "A batch holds POST and PUT to /api/collections/{entity}/records, and PATCH and DELETE with the record's id behind it.",
            ));
        }
    };
    // The answer is shaped as the URL asks; what cannot be read is refused before anything is done.
    params(asked)?;
    let body = if matches!(verb, BatchVerb::Delete(_)) { Value::Null } else { Value::Object(asked.body.clone()) };
    let entity = collection(admitted.app()?, entity)?.name.clone();
    let mut query = BTreeMap::new();
    for (name, value) in pairs(asked) {
        query.entry(name).or_insert(value);
    }
    Ok(BatchWrite { entity, verb, body, query, headers: headers(asked), form: None })
}

/// The parameters of its URL.
fn pairs(asked: &Asked) -> Vec<(String, String)> {
    let (_, query) = asked.url.split_once('?').unwrap_or((&asked.url, ""));
    url::form_urlencoded::parse(query.as_bytes()).into_owned().collect()
}

/// Its own headers by their names in lower snake case, for the rules; papers are shown for the whole only.
fn headers(asked: &Asked) -> BTreeMap<String, String> {
    let own = asked.headers.iter().filter_map(|(name, value)| Some((name.to_ascii_lowercase(), value.as_str()?)));
    let own = own.filter(|(name, _)| !PAPER_HEADERS.contains(&name.as_str()));
    own.map(|(name, value)| (name.replace('-', "_"), value.to_owned())).collect()
}

fn params(asked: &Asked) -> Result<ListParams, Refusal> {
    let params = ListParams::of_one(&pairs(asked))?;
    if let Some(spec) = &params.fields {
        FieldPick::parse(spec)?;
    }
    Ok(params)
}

/// In PocketBase's shape: what each write alone would have answered, and of that what `whole` picks.
async fn answer(
    incoming: &Incoming,
    admitted: &Admitted,
    done: BatchDone,
    asked: &[Asked],
    whole: Option<FieldPick>,
) -> Result<HttpResponse, ApiError> {
    let receipt = done.receipt.id;
    let mut answers = Vec::with_capacity(done.writes.len());
    for (committed, asked) in done.writes.into_iter().zip(asked) {
        if committed.verb == Verb::Delete {
            answers.push(json!({"status": 204, "body": null}));
            continue;
        }
        let entity = committed.receipt.entity.clone().unwrap_or_default();
        let params = params(asked).unwrap_or_default();
        let record = written(incoming, admitted, committed, &entity, &params).await;
        answers.push(json!({"status": 200, "body": record.map_err(|refusal| incoming.fail(refusal))?}));
    }
    let mut answers = Value::Array(answers);
    if let Some(pick) = &whole {
        pick.apply(&mut answers);
    }
    let mut response = respond::ok(incoming.id, &answers);
    receipt_header(incoming, &mut response, receipt);
    Ok(response)
}

/// What is wrong with one write is told below its place, as PocketBase would have told it alone, and in full beside it.
/// What is nobody's mistake, or about the papers of the whole, is answered as for every other call.
fn failed(incoming: &Incoming, refused: BatchRefused, asked: &[Asked]) -> Result<HttpResponse, ApiError> {
    let at_fault = refused.at_fault();
    let refusal = refused.refusal;
    let Some(place) = at_fault else { return Err(incoming.fail(refusal)) };
    let status = refusal.code.status();
    let message = alone(&refusal, asked.get(place));
    let refusal = incoming.fail(refusal).body();
    let data = json!({"requests": {place.to_string(): {
        "code": "batch_request_failed",
        "message": "Batch request failed.",
        "response": {"status": status, "message": message, "data": refusal.get("data")},
    }}});
    let whole = incoming.fail(Refusal::new(Code::BatchFailed, "Batch transaction failed."));
    with_members(incoming, whole, Code::BatchFailed, [("data", data), ("write", json!(place)), ("refusal", refusal)])
}

/// The sentence PocketBase has for a write that came alone.
fn alone(refusal: &Refusal, asked: Option<&Asked>) -> String {
    let words = match refusal.code {
        Code::UnknownEntity => "Missing collection context.",
        Code::InvalidBody if refusal.violations.is_empty() => "Something went wrong while processing your request.",
        Code::RecordReferenced => &refusal.message,
        _ if refusal.violations.is_empty() => &refusal.message,
        _ if asked.is_some_and(|asked| asked.method == "PATCH") => "Failed to update record.",
        _ => "Failed to create record.",
    };
    words.to_owned()
}

/// The refusal with other members, unless it was refused for something else meanwhile.
fn with_members<const N: usize>(
    incoming: &Incoming,
    refused: ApiError,
    code: Code,
    members: [(&str, Value); N],
) -> Result<HttpResponse, ApiError> {
    if refused.refusal.code != code {
        return Err(refused);
    }
    let body = respond::with(&refused.body(), members);
    Ok(respond::answer(incoming.id, StatusCode::BAD_REQUEST, &body))
}

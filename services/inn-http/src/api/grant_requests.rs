//! Grant requests: an agent asks, a person consents to all or part, on the person's own surface (invariant 5).

use std::collections::BTreeSet;

use actix_web::HttpResponse;
use actix_web::web::Path;
use chrono::{DateTime, Duration, Utc};
use inn_grants::app_token;
use inn_ports::{Consent, NewGrantRequest, Store, StoreResult, Topic};
use inn_protocol::call::Action;
use inn_protocol::caller::Caller;
use inn_protocol::grant::{Grant, GrantRequest, GrantRequestStatus};
use inn_protocol::scope::Scope;
use inn_protocol::{AppId, Code, GrantId, GrantRequestId, Refusal, UserId, Violation};
use serde::Deserialize;
use serde_json::{Value, json};

use super::session::{person, same_person};
use super::views;
use crate::error::ApiError;
use crate::incoming::Incoming;
use crate::respond;

/// How long a person has to decide, in hours.
const LIFETIME_HOURS: i64 = 24;
/// Letters and digits that are hard to mix up, for the short code people compare.
const CODE_ALPHABET: &[u8] = b"ABCDEFGHJKMNPQRSTVWXYZ23456789";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Create {
    app: String,
    scopes: Vec<String>,
    #[serde(default)]
    reason: String,
}

pub(super) async fn create(mut incoming: Incoming) -> Result<HttpResponse, ApiError> {
    incoming.rate_auth("")?;
    let body: Create = incoming.document().await?;
    let scopes = incoming.fit(views::parse_scopes(&body.scopes)).await?;
    let app = incoming.state.gateway.app(&body.app).await.map_err(|refusal| incoming.fail(refusal))?;
    let app = app.ok_or_else(|| incoming.fail(Refusal::new(Code::UnknownApp, "There is no app of that name.")))?;
    incoming.fit(check_declared(&scopes, &app.definition.scopes())).await?;
    incoming.about = Some(app.tenant);
    let reason: String = body.reason.chars().filter(|c| !c.is_control()).take(500).collect();
    let input = (app.clone(), scopes, reason, code(rand::random()));
    let request: GrantRequest = incoming
        .perform(Action::RequestGrant { app: app.slug.clone() }, input, |store, admitted, input| async move {
            let (app, scopes, reason, code) = &*input;
            let agent = admitted.caller.agent().ok_or_else(Refusal::internal)?;
            let request = NewGrantRequest {
                id: GrantRequestId::new(),
                app: app.id,
                tenant: app.tenant,
                agent: agent.clone(),
                code: code.clone(),
                scopes: scopes.clone(),
                reason: reason.clone(),
                lifetime: Duration::hours(LIFETIME_HOURS),
            };
            store.request_grant(&admitted.record, &request).await
        })
        .await?;
    let link = incoming.state.config.platform(&format!("/consent/{}", request.id));
    let body = json!({
        "id": request.id,
        "code": request.code,
        "link": link,
        "status": request.status,
        "expiresAt": request.expires_at,
        "scopes": views::scopes(&request.scopes, &app.definition),
    });
    Ok(respond::created(incoming.id, &body))
}

/// Scopes come from the app's own description, so asking for something else is a mistake worth naming.
fn check_declared(scopes: &BTreeSet<Scope>, declared: &[Scope]) -> Result<(), Refusal> {
    if scopes.is_empty() {
        return Err(Refusal::new(
            Code::InvalidParameter,
            "scopes is empty: ask for at least one. `GET /api/_a2app/describe` shows what there is.",
        ));
    }
    let unknown = scopes.iter().filter(|scope| !declared.contains(scope)).map(|scope| {
        Violation::new(Code::NotDeclared, "scopes", "a scope the app declares").got(&Value::String(scope.to_string()))
    });
    let unknown: Vec<Violation> = unknown.collect();
    if unknown.is_empty() {
        Ok(())
    } else {
        Err(Refusal::violations("The app declares no such scope.", unknown).leg("app"))
    }
}

/// Eight characters, as `ABCD-2345`.
fn code(random: [u8; 8]) -> String {
    let letter =
        |byte: &u8| char::from(CODE_ALPHABET.get(usize::from(*byte) % CODE_ALPHABET.len()).copied().unwrap_or(b'A'));
    let (left, right) = random.split_at(4);
    format!("{}-{}", left.iter().map(letter).collect::<String>(), right.iter().map(letter).collect::<String>())
}

pub(super) async fn list(incoming: Incoming) -> Result<HttpResponse, ApiError> {
    let store = &incoming.state.store;
    let requests: Vec<GrantRequest> = incoming
        .read(Action::ListGrants, |admitted| async move {
            Ok(store.grant_requests(person(&admitted.caller)?.tenant).await?)
        })
        .await?;
    let mut items = Vec::with_capacity(requests.len());
    for request in requests.iter().filter(|request| request.status == GrantRequestStatus::Pending) {
        let app = incoming.state.gateway.app(&request.app_slug).await.map_err(|refusal| incoming.fail(refusal))?;
        items.push(views::grant_request(request, app.as_ref().map(|app| &*app.definition)));
    }
    Ok(respond::ok(incoming.id, &views::items(items)))
}

pub(super) async fn view(mut incoming: Incoming, path: Path<String>) -> Result<HttpResponse, ApiError> {
    let id = parse(&incoming, &path).await?;
    let about = incoming.state.store.grant_request(id).await.map_err(|error| incoming.fail(error.into()))?;
    incoming.about = about.map(|request| request.tenant);
    let (store, gateway) = (&incoming.state.store, &incoming.state.gateway);
    let body: Value = incoming
        .read(Action::ViewGrantRequest { request: id }, |admitted| async move {
            let request = store.grant_request(id).await?.filter(|request| match &admitted.caller {
                Caller::Key(agent) => request.agent == *agent,
                Caller::Person(person) => request.tenant == person.tenant,
                _ => false,
            });
            let request = request.ok_or_else(Refusal::not_found)?;
            let app = gateway.app(&request.app_slug).await?;
            Ok(views::grant_request(&request, app.as_ref().map(|app| &*app.definition)))
        })
        .await?;
    Ok(respond::ok(incoming.id, &body))
}

async fn parse(incoming: &Incoming, text: &str) -> Result<GrantRequestId, ApiError> {
    incoming.fit(text.parse().map_err(|_| Refusal::not_found())).await
}

/// What a person answers. Without `scopes` it is a yes to everything that was asked.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Approve {
    /// The short code the agent showed; when given, it must be this request's.
    pub code: Option<String>,
    pub scopes: Option<Vec<String>>,
    pub others_requests: bool,
    pub plain_token: bool,
    /// The record of the app's own users the agent acts as, named by an owner.
    pub app_record: Option<String>,
    /// The same, proved by whoever it is: a token of the app's own sign-in.
    pub app_token: Option<String>,
    pub password: Option<String>,
}

pub(super) async fn approve(incoming: Incoming, path: Path<String>) -> Result<HttpResponse, ApiError> {
    let id = parse(&incoming, &path).await?;
    let body: Approve = incoming.document().await?;
    let grant = decide(&incoming, id, body).await?;
    let app = incoming.state.gateway.app(&grant.app_slug).await.map_err(|refusal| incoming.fail(refusal))?;
    Ok(respond::created(incoming.id, &views::grant(&grant, app.as_ref().map(|app| &*app.definition))))
}

/// Consent, for the API and the console alike.
pub async fn decide(incoming: &Incoming, id: GrantRequestId, body: Approve) -> Result<Grant, ApiError> {
    let chosen = match &body.scopes {
        Some(texts) => Some(incoming.fit(views::parse_scopes(texts)).await?),
        None => None,
    };
    let checked = freshen(incoming, body.password.as_deref()).await?;
    let bus = incoming.state.bus.clone();
    let input = (body, chosen, checked);
    let grant = incoming
        .perform(
            Action::DecideGrant { about: id.to_string(), verb: "approve" },
            input,
            move |store, admitted, input| {
                let bus = bus.clone();
                async move {
                    let (body, chosen, checked) = &*input;
                    let person = person(&admitted.caller)?;
                    if checked.is_some_and(|user| user != person.user) {
                        return Err(Refusal::internal().into());
                    }
                    let request = store.grant_request(id).await?.filter(|request| request.tenant == person.tenant);
                    let request = request.ok_or_else(Refusal::not_found)?;
                    if body.code.as_ref().is_some_and(|code| !code.trim().eq_ignore_ascii_case(&request.code)) {
                        let message =
                            "The code is not this request's. Compare it with what the agent shows before you consent.";
                        return Err(Refusal::new(Code::InvalidParameter, message).into());
                    }
                    let proved = match &body.app_token {
                        Some(token) => Some(proved_record(&*store, request.app, token, admitted.now).await?),
                        None => None,
                    };
                    let consent = Consent {
                        grant: GrantId::new(),
                        user: person.user,
                        scopes: chosen.clone().unwrap_or_else(|| request.scopes.clone()),
                        others_requests: body.others_requests,
                        plain_token: body.plain_token,
                        record_proved: proved.is_some(),
                        app_record: proved.or_else(|| body.app_record.clone()),
                    };
                    let grant = store.approve(&admitted.record, id, &consent).await?;
                    bus.publish(Topic::Policy(grant.tenant)).await;
                    bus.publish(Topic::Requests(grant.app)).await;
                    Ok(grant)
                }
            },
        )
        .await?;
    Ok(grant)
}

/// The record a token of the app's own sign-in is of, when it holds.
async fn proved_record(store: &dyn Store, app: AppId, token: &str, now: DateTime<Utc>) -> StoreResult<String> {
    let refused = || {
        let message =
            "The appToken does not hold: sign in to the app itself once more and send the token it gives you.";
        Refusal::violations(message, vec![Violation::new(Code::InvalidParameter, "appToken", "a token of this app")])
    };
    let app = store.app_by_id(app).await?.ok_or_else(refused)?;
    let claims = app_token::peek(token).ok_or_else(refused)?;
    let secret = store.app_secret(&app).await?.ok_or_else(refused)?;
    // By its collection too: another one may have a record of the same id.
    let collections = &app.definition.model.collections;
    let collection = collections.iter().find(|collection| collection.id == claims.collection_id).ok_or_else(refused)?;
    let name = format!("{}/{}", collection.name, claims.id);
    let record = store.app_record(&app, &name).await?.ok_or_else(refused)?;
    let text = |name: &str| record.get(name).and_then(Value::as_str).unwrap_or_default();
    let held = app_token::verify(token, app_token::Kind::Auth, &secret, text("tokenKey"), now.timestamp());
    held.map(|_| name).ok_or_else(|| refused().into())
}

/// A password that came along makes the session fresh first; without one the session must be fresh already.
async fn freshen(incoming: &Incoming, password: Option<&str>) -> Result<Option<UserId>, ApiError> {
    let Some(password) = password else { return Ok(None) };
    incoming.rate_auth("")?;
    let user = incoming.checked_person("confirm", password).await?;
    incoming
        .perform_as_new(Action::OwnSession { verb: "confirm" }, user, |store, admitted, user| async move {
            store.refresh_session(&admitted.record, same_person(&admitted.caller, *user)?).await
        })
        .await?;
    incoming.state.gateway.forget_all();
    Ok(Some(user))
}

pub(super) async fn refuse(incoming: Incoming, path: Path<String>) -> Result<HttpResponse, ApiError> {
    let id = parse(&incoming, &path).await?;
    let request = decline(&incoming, id, None).await?;
    Ok(respond::ok(incoming.id, &request))
}

/// A no, for the API and the console alike.
pub async fn decline(
    incoming: &Incoming,
    id: GrantRequestId,
    password: Option<&str>,
) -> Result<GrantRequest, ApiError> {
    freshen(incoming, password).await?;
    incoming
        .perform(Action::DecideGrant { about: id.to_string(), verb: "refuse" }, id, |store, admitted, id| async move {
            let person = person(&admitted.caller)?;
            let request = store.grant_request(*id).await?.filter(|request| request.tenant == person.tenant);
            request.ok_or_else(Refusal::not_found)?;
            store.refuse(&admitted.record, *id).await
        })
        .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_has_no_letters_that_look_like_digits() {
        let code = code([0, 1, 2, 3, 252, 253, 254, 255]);
        assert_eq!(code.len(), 9);
        assert!(!code.contains(['O', '0', 'I', '1', 'L', 'U']), "{code}");
    }
}

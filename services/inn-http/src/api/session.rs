//! Sign-in, the session, and hand-over to an app's origin (DESIGN section 5, People).

use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::cookie::Cookie;
use chrono::Duration;
use inn_grants::{opaque, password};
use inn_ports::{NewSession, StoreResult, UserSecret};
use inn_protocol::call::{Action, Papers};
use inn_protocol::caller::Caller;
use inn_protocol::people::{Session, Tenant};
use inn_protocol::{Code, Refusal, SessionId, TenantId, UserId};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::app::session_cookie;
use crate::error::ApiError;
use crate::incoming::{Incoming, SESSION_PREFIX};
use crate::respond;
use crate::state::HttpState;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SignIn {
    email: String,
    password: String,
    tenant: Option<String>,
}

pub(super) async fn sign_in(mut incoming: Incoming) -> Result<HttpResponse, ApiError> {
    // An old session must not stand in the way of a new one.
    incoming.papers = Papers::None;
    let body: SignIn = incoming.document().await?;
    let (session, token) = open_session(&incoming, &body.email, body.password, body.tenant.as_deref()).await?;
    let secure = incoming.state.config.platform_url.scheme() == "https";
    let mut response = respond::ok(incoming.id, &json!({"token": token, "session": session}));
    add_cookie(&mut response, &session_cookie(secure, token));
    Ok(response)
}

/// Sign-in by password, for the API and the console alike: the session and its token.
pub async fn open_session(
    incoming: &Incoming,
    email: &str,
    password: String,
    tenant: Option<&str>,
) -> Result<(Session, String), ApiError> {
    incoming.rate_auth(email)?;
    let fail = |refusal| incoming.fail(refusal);
    let secret = incoming.state.store.user_secret(email).await.map_err(|error| fail(error.into()))?;
    // An unknown address costs as much time as a wrong password, so that it cannot be told apart.
    let phc = secret.as_ref().map_or(password::DECOY, |secret| secret.password.as_str()).to_owned();
    let right = verify(&incoming.state, password, phc).await.map_err(fail)?;
    let Some(secret) = secret.filter(|_| right) else {
        return Err(fail(Refusal::new(Code::WrongCredentials, "That email and password do not belong together.")));
    };
    let tenant = choose_tenant(&secret, tenant).map_err(fail)?;
    let (session, token) = fresh_session(&incoming.state, secret.user, tenant.id);
    let session = incoming
        .perform(Action::SignIn, session, |store, admitted, session| async move {
            store.open_session(&admitted.record, &session).await
        })
        .await?;
    Ok((session, token))
}

/// A session that is about to be opened, and its token.
pub fn fresh_session(state: &HttpState, user: UserId, tenant: TenantId) -> (NewSession, String) {
    let (token, digest) = opaque::opaque_token(rand::random(), SESSION_PREFIX.trim_end_matches('_'));
    let lifetime = Duration::hours(state.config.session_hours);
    (NewSession { id: SessionId::new(), user, tenant, token: digest, app: None, lifetime }, token)
}

fn choose_tenant(secret: &UserSecret, slug: Option<&str>) -> Result<Tenant, Refusal> {
    let wanted = secret.tenants.iter().find(|tenant| slug.is_none_or(|slug| tenant.slug == slug));
    wanted.cloned().ok_or_else(|| match slug {
        Some(_) => {
            Refusal::new(Code::Forbidden, "You are not a member of that tenant.").leg("user").fix("an owner of it")
        }
        None => Refusal::new(Code::Forbidden, "You are not a member of any tenant.").leg("user").fix("an owner of one"),
    })
}

pub(crate) async fn verify(state: &HttpState, given: String, phc: String) -> Result<bool, Refusal> {
    blocking(state, move || password::verify(&given, &phc)).await
}

/// A few CPU-heavy tasks at a time, away from the worker threads.
pub(crate) async fn blocking<T: Send + 'static>(
    state: &HttpState,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refusal> {
    let _turn = state.blocking.acquire().await.map_err(|_| Refusal::internal())?;
    state.io.spawn_blocking(work).await.map_err(|_| Refusal::internal())
}

pub(super) async fn hash(state: &HttpState, given: &str) -> Result<String, Refusal> {
    password::check_password(given)?;
    let given = given.to_owned();
    blocking(state, move || password::hash(&given, rand::random())).await?
}

fn add_cookie(response: &mut HttpResponse, cookie: &Cookie<'_>) {
    if let Err(error) = response.add_cookie(cookie) {
        tracing::error!(%error, "the session cookie could not be set");
    }
}

pub(super) async fn view(incoming: Incoming) -> Result<HttpResponse, ApiError> {
    let store = &incoming.state.store;
    let body: Value = incoming
        .read(Action::OwnSession { verb: "view" }, |admitted| async move {
            let person = person(&admitted.caller)?;
            // Ended on another node a moment ago, which this one has not heard of yet.
            let ended = || Refusal::new(Code::Unauthenticated, "This session has ended. Sign in again.");
            let session = store.session_view(person.session).await?.ok_or_else(ended)?;
            let tenants = store.tenants_of(person.user).await?;
            let tenants: Vec<Value> = tenants
                .iter()
                .map(|(tenant, role)| json!({"id": tenant.id, "slug": tenant.slug, "name": tenant.name, "role": role}))
                .collect();
            Ok(json!({"session": session, "tenants": tenants}))
        })
        .await?;
    Ok(respond::ok(incoming.id, &body))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Switch {
    tenant: String,
}

pub(super) async fn switch(incoming: Incoming) -> Result<HttpResponse, ApiError> {
    let body: Switch = incoming.document().await?;
    let session: Session = incoming
        .perform(Action::OwnSession { verb: "switch" }, body, |store, admitted, body| async move {
            let person = person(&admitted.caller)?.clone();
            let tenants = store.tenants_of(person.user).await?;
            let tenant = tenants.into_iter().find(|(tenant, _)| tenant.slug == body.tenant);
            let (tenant, _) =
                tenant.ok_or_else(|| Refusal::new(Code::Forbidden, "You are not a member of that tenant."))?;
            store.switch_tenant(&admitted.record, person.session, tenant.id).await
        })
        .await?;
    incoming.state.gateway.forget_all();
    Ok(respond::ok(incoming.id, &json!({"session": session})))
}

pub(super) async fn sign_out(incoming: Incoming) -> Result<HttpResponse, ApiError> {
    let all = incoming.param("all") == Some("true");
    let body = end_session(&incoming, all).await?;
    let mut response = respond::ok(incoming.id, &body);
    add_cookie(&mut response, &no_session_cookie(&incoming.state));
    Ok(response)
}

/// Ends this session, or every session of the person.
pub async fn end_session(incoming: &Incoming, all: bool) -> Result<Value, ApiError> {
    incoming
        .perform(Action::OwnSession { verb: "sign-out" }, all, |store, admitted, all| async move {
            let person = person(&admitted.caller)?.clone();
            if *all {
                return Ok(json!({"ended": store.end_sessions(&admitted.record, person.user).await?}));
            }
            Ok(json!(store.end_session(&admitted.record, person.session).await?))
        })
        .await
}

/// Takes the session cookie out of the browser.
pub fn no_session_cookie(state: &HttpState) -> Cookie<'static> {
    let secure = state.config.platform_url.scheme() == "https";
    let mut gone = session_cookie(secure, String::new());
    gone.make_removal();
    gone
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Confirm {
    password: String,
}

pub(super) async fn confirm(incoming: Incoming) -> Result<HttpResponse, ApiError> {
    incoming.rate_auth("")?;
    let body: Confirm = incoming.document().await?;
    let state = incoming.state.clone();
    let password = Arc::new(body.password);
    let checked = incoming.checked_person("confirm", &password).await?;
    let session = incoming
        .perform(Action::OwnSession { verb: "confirm" }, checked, |store, admitted, checked| async move {
            let person = same_person(&admitted.caller, *checked)?;
            store.refresh_session(&admitted.record, person).await?;
            store.session_view(person).await
        })
        .await?;
    state.gateway.forget_all();
    Ok(respond::ok(incoming.id, &json!({"session": session})))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewPassword {
    old: String,
    new: String,
}

pub(super) async fn password(incoming: Incoming) -> Result<HttpResponse, ApiError> {
    incoming.rate_auth("")?;
    let body: NewPassword = incoming.document().await?;
    let checked = incoming.checked_person("password", &body.old).await?;
    let hash = hash(&incoming.state, &body.new).await.map_err(|refusal| incoming.fail(refusal))?;
    incoming
        .perform(Action::OwnSession { verb: "password" }, (checked, hash), |store, admitted, input| async move {
            let (checked, hash) = &*input;
            let session = same_person(&admitted.caller, *checked)?;
            store.set_password(&admitted.record, *checked, hash, Some(session)).await
        })
        .await?;
    incoming.state.gateway.forget_all();
    Ok(respond::ok(incoming.id, &json!({"ok": true})))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Handoff {
    app: String,
}

pub(super) async fn handoff(incoming: Incoming) -> Result<HttpResponse, ApiError> {
    let body: Handoff = incoming.document().await?;
    let url = hand_over(&incoming, &body.app).await?;
    Ok(respond::ok(incoming.id, &json!({"url": url})))
}

/// A one-time link that opens an app signed in, for the API and the console alike.
pub async fn hand_over(incoming: &Incoming, app: &str) -> Result<String, ApiError> {
    let fail = |refusal| incoming.fail(refusal);
    let app = incoming.state.gateway.app(app).await.map_err(fail)?;
    let app = app.ok_or_else(|| fail(Refusal::new(Code::UnknownApp, "There is no app of that name.")))?;
    let (code, digest) = opaque::opaque_token(rand::random(), "go");
    let slug = app.slug.clone();
    incoming
        .perform(Action::OwnSession { verb: "handoff" }, app, move |store, admitted, app| async move {
            let person = person(&admitted.caller)?;
            if store.member(app.tenant, person.user).await?.is_none() {
                return Err(Refusal::new(Code::UnknownApp, "There is no app of that name.").into());
            }
            store.open_handoff(&admitted.record, digest, person.session, app.id).await
        })
        .await?;
    Ok(format!("{}/_inn/enter?code={code}", incoming.state.config.app_origin(&slug)))
}

impl Incoming {
    /// The person of this session, whose password is `given`. Refuses with `wrong_credentials`.
    ///
    /// The password is compared before the call is made, so that a slow hash never runs inside a transaction; whoever
    /// makes the call afterwards must be the same person ([`same_person`]).
    pub(super) async fn checked_person(&self, verb: &'static str, given: &str) -> Result<UserId, ApiError> {
        match self.password_of(verb, given).await {
            Ok(user) => Ok(user),
            Err(refusal) => Err(self.refuse(Action::OwnSession { verb }, refusal).await),
        }
    }

    async fn password_of(&self, verb: &'static str, given: &str) -> Result<UserId, Refusal> {
        let call = self.call(Action::OwnSession { verb }, Value::Null);
        let admitted = self.state.gateway.glance(call).await?;
        let user = person(&admitted.caller)?.user;
        let secret: StoreResult<Option<UserSecret>> = self.state.store.user_secret_by_id(user).await;
        let secret = secret?.ok_or_else(Refusal::internal)?;
        if verify(&self.state, given.to_owned(), secret.password).await? {
            return Ok(user);
        }
        Err(Refusal::new(Code::WrongCredentials, "That is not your password."))
    }
}

pub fn person(caller: &Caller) -> Result<&inn_protocol::caller::Person, Refusal> {
    match caller {
        Caller::Person(person) => Ok(person),
        _ => Err(Refusal::new(Code::Unauthenticated, "Sign in first: this is for people.")),
    }
}

/// The caller's session, when the caller is still who gave the password.
pub(super) fn same_person(caller: &Caller, checked: UserId) -> Result<SessionId, Refusal> {
    let person = person(caller)?;
    if person.user == checked { Ok(person.session) } else { Err(Refusal::internal()) }
}

//! PocketBase's superusers are owners of the app's tenant: they sign in with the platform's password, and what they get is
//! a session that counts on this app and nowhere else.

use actix_web::HttpResponse;
use chrono::{DateTime, Duration, Utc};
use inn_grants::app_token::{self, AppSecret, Claims, Kind, SUPERUSERS, SUPERUSERS_ID};
use inn_grants::password;
use inn_ports::NewSession;
use inn_protocol::call::Action;
use inn_protocol::caller::Caller;
use inn_protocol::people::Role;
use inn_protocol::{Digest, SessionId, UserId};
use serde_json::{Value, json};

use super::failed;
use super::own::{gone, shown};
use super::password::{guess, unguessable};
use crate::api::session::verify;
use crate::error::ApiError;
use crate::incoming::Incoming;
use crate::respond;

/// As PocketBase: a day, or less when the platform's own sessions are shorter.
const HOURS: i64 = 24;

/// `POST …/_superusers/auth-with-password`
pub(super) async fn with_password(incoming: &Incoming, email: &str, given: String) -> Result<HttpResponse, ApiError> {
    incoming.rate_auth(email)?;
    let fail = |refusal| incoming.fail(refusal);
    let (state, slug) = (&incoming.state, incoming.slug()?);
    let app = state.gateway.app(slug).await.map_err(fail)?;
    let secret = state.store.user_secret(email).await.map_err(|error| fail(error.into()))?;
    let phc = secret.as_ref().map_or(password::DECOY, |secret| secret.password.as_str()).to_owned();
    let right = verify(state, given, phc).await.map_err(fail)?;
    let Some((secret, app)) = secret.filter(|_| right).zip(app) else { return Err(guess(incoming, failed())) };
    let member = state.store.member(app.tenant, secret.user).await.map_err(|error| fail(error.into()))?;
    if member.is_none_or(|member| member.role != Role::Owner) {
        // Whose password it is somewhere else is not told here.
        return Err(guess(incoming, failed()));
    }
    let now = state.gateway.clock().now();
    let lifetime = Duration::hours(state.config.session_hours.min(HOURS));
    let token = token(secret.user, now + lifetime);
    let session = NewSession {
        id: SessionId::new(),
        user: secret.user,
        tenant: app.tenant,
        token: Digest::of(token.as_bytes()),
        app: Some(app.id),
        lifetime,
    };
    let verb = "with-password";
    let action = Action::AppAuth { collection: SUPERUSERS.to_owned(), record: secret.user.to_string(), verb };
    incoming
        .perform(action, session, |store, admitted, session| async move {
            store.open_session(&admitted.record, &session).await
        })
        .await?;
    let record = record(secret.user, &secret.email);
    Ok(respond::ok(incoming.id, &json!({ "record": record, "token": token })))
}

/// `POST …/_superusers/auth-refresh`: the same session, which ends when it would have ended.
pub(super) async fn refresh(incoming: &Incoming) -> Result<HttpResponse, ApiError> {
    let action = Action::AppAuth { collection: SUPERUSERS.to_owned(), record: String::new(), verb: "refresh" };
    let body: Value = incoming
        .read(action, |admitted| async move {
            let Caller::Person(person) = &admitted.caller else { return Err(gone()) };
            let token = shown(incoming).ok_or_else(gone)?;
            Ok(json!({ "record": record(person.user, &person.email), "token": token }))
        })
        .await?;
    Ok(respond::ok(incoming.id, &body))
}

/// In the shape of every token, for clients that read it. It proves nothing by its signature (whose key nobody keeps):
/// it is found by its digest, and random enough for that.
fn token(user: UserId, expires: DateTime<Utc>) -> String {
    let claims = Claims {
        collection_id: SUPERUSERS_ID.to_owned(),
        exp: expires.timestamp(),
        id: user.to_string(),
        refreshable: Some(false),
        kind: Kind::Auth,
        email: None,
        new_email: None,
        jti: Some(unguessable()),
    };
    app_token::mint(&claims, &AppSecret::from_bytes(rand::random()), "")
}

/// The person as a record of PocketBase's own collection.
fn record(user: UserId, email: &str) -> Value {
    json!({
        "collectionId": SUPERUSERS_ID, "collectionName": SUPERUSERS, "id": user, "email": email,
        "emailVisibility": false, "verified": true,
    })
}

//! What whoever is signed in does with the token itself: exchange it, end every one; and an owner's token for somebody.

use actix_web::HttpResponse;
use actix_web::web::Path;
use inn_grants::app_token::{self, SUPERUSERS};
use inn_ports::AccountChange;
use inn_protocol::call::Papers;
use inn_protocol::caller::Caller;
use inn_protocol::{Code, Refusal};
use inn_rules::values::{SignInForm, autogenerate};
use serde_json::{Map, Value};

use super::accounts::{Accounts, Row, text};
use super::password::may_sign_in;
use super::{TOKEN_KEY, answer, superuser};
use crate::app::records::{Entity, Record};
use crate::error::ApiError;
use crate::incoming::Incoming;
use crate::respond;

/// `POST …/auth-refresh`
pub(in crate::app) async fn refresh(incoming: Incoming, path: Path<Entity>) -> Result<HttpResponse, ApiError> {
    if path.entity == SUPERUSERS {
        return superuser::refresh(&incoming).await;
    }
    let fail = |refusal| incoming.fail(refusal);
    let accounts = Accounts::find(&incoming, &path.entity, "refresh").await?;
    let action = accounts.action(&own_id(&incoming), "refresh").map_err(fail)?;
    let (state, shared) = (&incoming, &accounts);
    let (row, token) = incoming
        .read(action, |admitted| async move {
            let row = own_row(state, shared, &admitted.caller).await?;
            may_sign_in(state, shared, &row, "default").await?;
            let old = shown(state).unwrap_or_default();
            let lasting = app_token::peek(&old).is_some_and(|claims| claims.refreshable == Some(true));
            // A token that was given for a time is not made to last longer.
            let token = if lasting { answer::token(state, shared, &row, true, 0).await? } else { old };
            Ok((row, token))
        })
        .await?;
    answer::signed_in(&incoming, &accounts, row, token).await
}

/// `POST …/sign-out` (ours): ends every token of the account, also those on other devices.
pub(in crate::app) async fn sign_out(incoming: Incoming, path: Path<Entity>) -> Result<HttpResponse, ApiError> {
    let fail = |refusal| incoming.fail(refusal);
    let accounts = Accounts::find(&incoming, &path.entity, "sign-out").await?;
    let action = accounts.action(&own_id(&incoming), "sign-out").map_err(fail)?;
    let (key, source) = (fresh_key().map_err(fail)?, incoming.state.store.clone());
    incoming
        .perform(action, (accounts, key), move |store, admitted, input| {
            let source = source.clone();
            async move {
                let (accounts, key) = &*input;
                let Caller::AppUser(user) = &admitted.caller else { return Err(Refusal::internal().into()) };
                let collection = accounts.collection()?;
                let row = source.app_user(&accounts.app, collection, &user.record).await?.ok_or_else(gone)?;
                let change = AccountChange {
                    record: user.record.clone(),
                    token_key: text(&row, TOKEN_KEY).to_owned(),
                    set: Map::from_iter([(TOKEN_KEY.to_owned(), key.clone())]),
                    sentence: "Signed out everywhere".to_owned(),
                };
                let changed = store.change_account(&admitted.record, &accounts.app, collection, &change).await?;
                changed.map(|_| ()).ok_or_else(|| gone().into())
            }
        })
        .await?;
    Ok(respond::no_content(incoming.id))
}

/// `POST …/impersonate/{id}`: a token of a record for an owner of the app, which ends by itself.
pub(in crate::app) async fn impersonate(incoming: Incoming, path: Path<Record>) -> Result<HttpResponse, ApiError> {
    let fail = |refusal| incoming.fail(refusal);
    let accounts = Accounts::find(&incoming, &path.entity, "impersonate").await?;
    let sent = incoming.json().await?;
    let read = SignInForm::new(&sent).and_then(|mut form| {
        let seconds = form.seconds("duration");
        form.finish().map(|()| seconds)
    });
    let action = accounts.action(&path.id, "impersonate").map_err(fail)?;
    let seconds = match read {
        Ok(seconds) => seconds,
        Err(refusal) => return Err(incoming.refuse(action, refusal).await),
    };
    let Some(row) = accounts.by_id(&incoming, &path.id).await.map_err(fail)? else {
        return Err(incoming.refuse(action, Refusal::not_found()).await);
    };
    incoming
        .perform(action, (), |store, admitted, _| async move {
            store.open_account(&admitted.record, "An owner took a token of this account").await
        })
        .await?;
    let token = answer::token(&incoming, &accounts, &row, false, seconds).await.map_err(fail)?;
    answer::signed_in(&incoming, &accounts, row, token).await
}

/// The token that was shown.
pub(super) fn shown(incoming: &Incoming) -> Option<String> {
    match &incoming.papers {
        Papers::AppUser { token } | Papers::Session { token, .. } => Some(token.clone()),
        _ => None,
    }
}

/// Which record the caller says it is: for the entry's target. Whether it is true the gateway finds out.
pub(super) fn own_id(incoming: &Incoming) -> String {
    let claims = shown(incoming).as_deref().and_then(app_token::peek);
    claims.map(|claims| claims.id.chars().take(255).collect()).unwrap_or_default()
}

/// The record of whoever is signed in, as it is now.
pub(super) async fn own_row(incoming: &Incoming, accounts: &Accounts, caller: &Caller) -> Result<Row, Refusal> {
    let Caller::AppUser(user) = caller else { return Err(gone()) };
    accounts.by_id(incoming, &user.record).await?.ok_or_else(gone)
}

pub(super) fn gone() -> Refusal {
    Refusal::new(Code::Unauthenticated, "The request requires valid record authorization token.")
}

/// A new `tokenKey`.
pub(super) fn fresh_key() -> Result<Value, Refusal> {
    let random: [u8; 64] = rand::random();
    autogenerate("[a-zA-Z0-9]{50}", &random).map(Value::String).ok_or_else(Refusal::internal)
}

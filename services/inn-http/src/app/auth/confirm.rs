//! `POST …/confirm-…`: somebody shows the token of a mail. It holds for the record as it was when it was made.

use actix_web::HttpResponse;
use actix_web::web::Path;
use inn_grants::app_token::{self, Claims, Kind};
use inn_grants::password;
use inn_ports::AccountChange;
use inn_protocol::call::Papers;
use inn_protocol::{Code, Refusal};
use inn_rules::values::{SignInForm, Wrong};
use serde_json::{Map, Value};

use super::TOKEN_KEY;
use super::accounts::{Accounts, Row, text, verified};
use super::own::fresh_key;
use super::password::guess;
use crate::api::session::{blocking, verify};
use crate::app::records::Entity;
use crate::error::ApiError;
use crate::incoming::Incoming;
use crate::respond;

/// `POST …/confirm-verification`
pub(in crate::app) async fn verification(mut incoming: Incoming, path: Path<Entity>) -> Result<HttpResponse, ApiError> {
    const VERB: &str = "confirm-verification";
    incoming.papers = Papers::None;
    let sent = incoming.json().await?;
    let accounts = Accounts::find(&incoming, &path.entity, VERB).await?;
    let fail = |refusal| incoming.fail(refusal);
    let mut form = SignInForm::new(&sent).map_err(fail)?;
    let token = form.required("token");
    incoming.rate_auth(&accounts.rate_key(""))?;
    let shown = shown(&incoming, &accounts, Kind::Verification, &token, &mut form).await.map_err(fail)?;
    form.finish().map_err(|refusal| guess(&incoming, refusal))?;
    let (row, _) = shown.ok_or_else(|| fail(Refusal::internal()))?;
    if !verified(&row) {
        let fields = Map::from_iter([("verified".to_owned(), Value::Bool(true))]);
        change(&incoming, &accounts, &row, VERB, fields, "The address was confirmed").await?;
    }
    Ok(respond::no_content(incoming.id))
}

/// `POST …/confirm-password-reset`
pub(in crate::app) async fn password_reset(
    mut incoming: Incoming,
    path: Path<Entity>,
) -> Result<HttpResponse, ApiError> {
    const VERB: &str = "confirm-password-reset";
    incoming.papers = Papers::None;
    let sent = incoming.json().await?;
    let accounts = Accounts::find(&incoming, &path.entity, VERB).await?;
    let fail = |refusal| incoming.fail(refusal);
    let mut form = SignInForm::new(&sent).map_err(fail)?;
    let token = form.required("token");
    let given = form.new_password(accounts.collection().map_err(fail)?);
    incoming.rate_auth(&accounts.rate_key(""))?;
    let shown = shown(&incoming, &accounts, Kind::PasswordReset, &token, &mut form).await.map_err(fail)?;
    form.finish().map_err(|refusal| guess(&incoming, refusal))?;
    let (row, _) = shown.ok_or_else(|| fail(Refusal::internal()))?;
    let hash = blocking(&incoming.state, move || password::hash_of_app(&given, rand::random())).await;
    let hash = hash.and_then(|hash| hash).map_err(fail)?;
    // Whoever has the token has read the account's mail.
    let fields = Map::from_iter([
        ("password".to_owned(), Value::String(hash)),
        ("verified".to_owned(), Value::Bool(true)),
        (TOKEN_KEY.to_owned(), fresh_key().map_err(fail)?),
    ]);
    change(&incoming, &accounts, &row, VERB, fields, "A new password was set").await?;
    Ok(respond::no_content(incoming.id))
}

/// `POST …/confirm-email-change`, with the account's password.
pub(in crate::app) async fn email_change(mut incoming: Incoming, path: Path<Entity>) -> Result<HttpResponse, ApiError> {
    const VERB: &str = "confirm-email-change";
    incoming.papers = Papers::None;
    let sent = incoming.json().await?;
    let accounts = Accounts::find(&incoming, &path.entity, VERB).await?;
    let fail = |refusal| incoming.fail(refusal);
    let mut form = SignInForm::new(&sent).map_err(fail)?;
    let (token, given) = (form.required("token"), form.required("password"));
    incoming.rate_auth(&accounts.rate_key(""))?;
    let shown = shown(&incoming, &accounts, Kind::EmailChange, &token, &mut form).await.map_err(fail)?;
    if !given.is_empty() {
        // Compared with something even when there is no such record: that is not told by the time it takes.
        let stored = shown.as_ref().map(|(row, _)| text(row, "password")).filter(|hash| !hash.is_empty());
        let phc = stored.unwrap_or(password::DECOY).to_owned();
        if !verify(&incoming.state, given, phc).await.map_err(fail)? {
            form.wrong("password", Wrong::Password);
        }
    }
    form.finish().map_err(|refusal| guess(&incoming, refusal))?;
    let (row, claims) = shown.ok_or_else(|| fail(Refusal::internal()))?;
    let email = claims.new_email.unwrap_or_default();
    let fields = Map::from_iter([
        ("email".to_owned(), Value::String(email)),
        ("verified".to_owned(), Value::Bool(true)),
        (TOKEN_KEY.to_owned(), fresh_key().map_err(fail)?),
    ]);
    change(&incoming, &accounts, &row, VERB, fields, "The address was changed").await?;
    Ok(respond::no_content(incoming.id))
}

/// The record a token of a mail is about. One that does not hold is a problem of the form, and gives none.
async fn shown(
    incoming: &Incoming,
    accounts: &Accounts,
    kind: Kind,
    token: &str,
    form: &mut SignInForm<'_>,
) -> Result<Option<(Row, Claims)>, Refusal> {
    if token.is_empty() {
        return Ok(None);
    }
    let claims = app_token::peek(token);
    match kind {
        Kind::Verification if claims.as_ref().is_none_or(|claims| claims.email.is_none()) => {
            form.wrong("token", Wrong::TokenClaims);
            return Ok(None);
        }
        Kind::EmailChange if claims.as_ref().is_none_or(|claims| claims.new_email.is_none()) => {
            form.wrong("token", Wrong::TokenPayload);
            return Ok(None);
        }
        _ => {}
    }
    let found = lookup(incoming, accounts, kind, token).await?;
    if found.is_none() {
        form.wrong("token", Wrong::Token);
    }
    Ok(found)
}

async fn lookup(
    incoming: &Incoming,
    accounts: &Accounts,
    kind: Kind,
    token: &str,
) -> Result<Option<(Row, Claims)>, Refusal> {
    let Some(claims) = app_token::peek(token) else { return Ok(None) };
    if claims.collection_id != accounts.collection()?.id {
        return Ok(None);
    }
    let Some(secret) = incoming.state.store.app_secret(&accounts.app).await? else { return Ok(None) };
    let Some(row) = accounts.by_id(incoming, &claims.id).await? else { return Ok(None) };
    let now = incoming.state.gateway.clock().now().timestamp();
    let held = app_token::verify(token, kind, &secret, text(&row, TOKEN_KEY), now);
    // An address that was changed by other means is not the one the mail went to.
    let held = held.filter(|claims| claims.email.as_deref() == Some(text(&row, "email")));
    Ok(held.map(|claims| (row, claims)))
}

/// Commits what was confirmed, unless the record's key is another one by now: then the token is worth nothing.
pub(super) async fn change(
    incoming: &Incoming,
    accounts: &Accounts,
    row: &Row,
    verb: &'static str,
    set: Map<String, Value>,
    sentence: &str,
) -> Result<(), ApiError> {
    let fail = |refusal| incoming.fail(refusal);
    let change = AccountChange {
        record: text(row, "id").to_owned(),
        token_key: text(row, TOKEN_KEY).to_owned(),
        set,
        sentence: sentence.to_owned(),
    };
    let action = accounts.action(&change.record, verb).map_err(fail)?;
    incoming
        .perform_as_new(action, (accounts.clone(), change), |store, admitted, input| async move {
            let (accounts, change) = &*input;
            let collection = accounts.collection()?;
            let changed = store.change_account(&admitted.record, &accounts.app, collection, change).await?;
            let late = || Refusal::new(Code::Conflict, "The account was changed in the same moment; nothing was done.");
            changed.map(|_| ()).ok_or_else(|| late().into())
        })
        .await
}

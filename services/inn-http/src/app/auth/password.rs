//! `POST …/auth-with-password`, and what all ways of signing in have in common after the first proof.

use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Path;
use inn_grants::app_token::SUPERUSERS;
use inn_grants::{opaque, password};
use inn_ports::{NewTicket, TicketKind};
use inn_protocol::call::{Action, Papers, RequestFacts};
use inn_protocol::{Code, Refusal};
use inn_rules::access;
use inn_rules::filter::AuthFacts;
use inn_rules::values::{SignInForm, Wrong, record_id};
use serde_json::{Value, json};

use super::accounts::{Accounts, Row, text, token_key_digest};
use super::{answer, failed, not_allowed, superuser};
use crate::api::session::verify;
use crate::app::records::Entity;
use crate::error::ApiError;
use crate::incoming::Incoming;
use crate::rates::Class;
use crate::respond;

const VERB: &str = "with-password";

pub(in crate::app) async fn with_password(
    mut incoming: Incoming,
    path: Path<Entity>,
) -> Result<HttpResponse, ApiError> {
    // An old token must not stand in the way of a new one.
    incoming.papers = Papers::None;
    let sent = incoming.json().await?;
    let fail = |refusal| incoming.fail(refusal);
    let mut form = SignInForm::new(&sent).map_err(fail)?;
    let (identity, given) = (form.required("identity"), form.required("password"));
    let (field, mfa) = (form.optional("identityField"), form.optional("mfaId"));
    if path.entity == SUPERUSERS {
        form.finish().map_err(fail)?;
        return superuser::with_password(&incoming, &identity, given).await;
    }
    let accounts = Accounts::find(&incoming, &path.entity, VERB).await?;
    let options = accounts.options().map_err(fail)?;
    if !options.password_auth.enabled {
        return Err(fail(not_allowed("password")));
    }
    let mut fields = options.password_auth.identity_fields;
    if let Some(field) = field {
        if !fields.contains(&field) {
            form.wrong("identityField", Wrong::IdentityField);
        }
        fields = vec![field];
    }
    form.finish().map_err(fail)?;
    incoming.rate_auth(&accounts.rate_key(&identity))?;
    let found = accounts.by(&incoming, &fields, &identity).await.map_err(fail)?;
    // An unknown identity costs as much time as a wrong password, so that it cannot be told apart.
    let stored = found.as_ref().map(|row| text(row, "password")).filter(|hash| !hash.is_empty());
    let phc = stored.unwrap_or(password::DECOY).to_owned();
    let right = verify(&incoming.state, given, phc).await.map_err(fail)?;
    let Some(row) = found.filter(|_| right) else { return Err(guess(&incoming, failed())) };
    finish(&incoming, &accounts, row, &Proof { verb: VERB, method: "password", otp: None, mfa }).await
}

/// Counts a wrong guess by address: guessing at many accounts is guessing too.
pub(super) fn guess(incoming: &Incoming, refusal: Refusal) -> ApiError {
    let counted = incoming.state.rates.take(Class::Strangers, &incoming.client);
    incoming.fail(counted.err().unwrap_or(refusal))
}

/// What was proved about a record, before the collection's own conditions.
pub(super) struct Proof {
    pub(super) verb: &'static str,
    /// Name of the factor: two of them must differ.
    pub(super) method: &'static str,
    /// The one-time password that is used up with it.
    pub(super) otp: Option<String>,
    /// Ticket of a first factor.
    pub(super) mfa: Option<String>,
}

/// `authRule`, the second factor, then the entry and the token.
pub(super) async fn finish(
    incoming: &Incoming,
    accounts: &Accounts,
    row: Row,
    proof: &Proof,
) -> Result<HttpResponse, ApiError> {
    let fail = |refusal| incoming.fail(refusal);
    let id = text(&row, "id").to_owned();
    may_sign_in(incoming, accounts, &row, proof.method).await.map_err(fail)?;
    let mut first = None;
    if needs_second(incoming, accounts, &row, proof.method).await.map_err(fail)? {
        match &proof.mfa {
            None => return first_factor(incoming, accounts, &row, proof).await,
            Some(ticket) => {
                let checked = check_first(incoming, accounts, &row, proof, ticket).await;
                first = Some(checked.map_err(|refusal| guess(incoming, refusal))?);
            }
        }
    }
    let action = accounts.action(&id, proof.verb).map_err(fail)?;
    let sentence = format!("Signed in by {}", proof.method);
    if let Some(ticket) = &proof.otp {
        let used = use_ticket(incoming, accounts, action, TicketKind::Otp, ticket, sentence).await?;
        if !used {
            return Err(guess(incoming, Refusal::new(Code::SignInFailed, "Invalid or expired OTP.")));
        }
    } else {
        incoming
            .perform(action, sentence, |store, admitted, sentence| async move {
                store.open_account(&admitted.record, &sentence).await
            })
            .await?;
    }
    if let Some(ticket) = first {
        let action = accounts.action(&id, "second-factor").map_err(fail)?;
        let sentence = format!("Signed in with {} as the second factor", proof.method);
        if !use_ticket(incoming, accounts, action, TicketKind::Mfa, &ticket, sentence).await? {
            return Err(guess(incoming, no_first_factor()));
        }
    }
    let token = answer::token(incoming, accounts, &row, true, 0).await.map_err(fail)?;
    answer::signed_in(incoming, accounts, row, token).await
}

async fn use_ticket(
    incoming: &Incoming,
    accounts: &Accounts,
    action: Action,
    kind: TicketKind,
    ticket: &str,
    sentence: String,
) -> Result<bool, ApiError> {
    let input = (accounts.clone(), ticket.to_owned(), sentence);
    incoming
        .perform_as_new(action, input, move |store, admitted, input| async move {
            let (accounts, ticket, sentence) = &*input;
            store.use_ticket(&admitted.record, &accounts.app, kind, ticket, sentence).await
        })
        .await
}

/// What `@request` is in the rules of signing in: the call, its form, and nobody signed in. `context` is PocketBase's word
/// for the way (`password`, `otp`).
fn asked(incoming: &Incoming, context: &str) -> AuthFacts {
    let call = incoming.call(Action::DescribeApp, Value::Null);
    let body = serde_json::from_slice(&incoming.body).unwrap_or_default();
    let facts = RequestFacts { context: context.to_owned(), body, ..(*call.request).clone() };
    AuthFacts::nobody().asking(Arc::new(facts))
}

/// Refuses whom the collection's `authRule` keeps out.
pub(super) async fn may_sign_in(
    incoming: &Incoming,
    accounts: &Accounts,
    row: &Row,
    context: &str,
) -> Result<(), Refusal> {
    let now = incoming.state.gateway.clock().now();
    let rule = access::sign_in_rule(&accounts.app, accounts.collection()?, &asked(incoming, context), now)?;
    let fits = match rule {
        None => false,
        Some(rule) => accounts.fits(incoming, row, rule).await?,
    };
    if fits {
        return Ok(());
    }
    Err(Refusal::new(Code::Forbidden, "The request doesn't satisfy the collection requirements to authenticate.")
        .leg("user")
        .fix("the app's author, or whoever the app says can admit you"))
}

async fn needs_second(incoming: &Incoming, accounts: &Accounts, row: &Row, context: &str) -> Result<bool, Refusal> {
    if !accounts.options()?.mfa.enabled {
        return Ok(false);
    }
    let now = incoming.state.gateway.clock().now();
    let rule = access::second_factor_rule(&accounts.app, accounts.collection()?, &asked(incoming, context), now)?;
    Ok(accounts.fits(incoming, row, rule).await?)
}

/// Keeps the first factor and asks for another one: 401 with its ticket, as PocketBase does.
async fn first_factor(
    incoming: &Incoming,
    accounts: &Accounts,
    row: &Row,
    proof: &Proof,
) -> Result<HttpResponse, ApiError> {
    let fail = |refusal| incoming.fail(refusal);
    let ticket = NewTicket {
        id: record_id(&rand::random::<[u8; 32]>()),
        kind: TicketKind::Mfa,
        collection: accounts.collection().map_err(fail)?.name.clone(),
        record: text(row, "id").to_owned(),
        token_key: token_key_digest(row),
        proof: proof.method.as_bytes().to_vec(),
        seconds: accounts.options().map_err(fail)?.mfa.duration,
    };
    let (id, action) = (ticket.id.clone(), accounts.action(&ticket.record, "first-factor").map_err(fail)?);
    if let Some(otp) = &proof.otp {
        // A code is used once, as a first factor too.
        let used = accounts.action(&ticket.record, proof.verb).map_err(fail)?;
        let sentence = "Proved to read the account's mail".to_owned();
        if !use_ticket(incoming, accounts, used, TicketKind::Otp, otp, sentence).await? {
            return Err(guess(incoming, Refusal::new(Code::SignInFailed, "Invalid or expired OTP.")));
        }
    }
    incoming
        .perform(action, (accounts.clone(), ticket), |store, admitted, input| async move {
            let (accounts, ticket) = &*input;
            store.open_ticket(&admitted.record, &accounts.app, ticket).await
        })
        .await?;
    Ok(respond::answer(incoming.id, StatusCode::UNAUTHORIZED, &json!({ "mfaId": id })))
}

async fn check_first(
    incoming: &Incoming,
    accounts: &Accounts,
    row: &Row,
    proof: &Proof,
    ticket: &str,
) -> Result<String, Refusal> {
    let name = &accounts.collection()?.name;
    let found = incoming.state.store.try_ticket(&accounts.app, TicketKind::Mfa, name, ticket).await?;
    let found = found.filter(|found| {
        found.record == text(row, "id")
            && found.token_key == token_key_digest(row)
            && found.proof != proof.method.as_bytes()
    });
    found.map(|_| ticket.to_owned()).ok_or_else(no_first_factor)
}

fn no_first_factor() -> Refusal {
    Refusal::new(Code::SignInFailed, "Invalid or expired MFA session.")
}

/// A random code of digits; `length` is at least 6.
pub(super) fn digits(length: u32) -> String {
    (0..length).map(|_| char::from(b'0' + rand::random_range(0..10_u8))).collect()
}

/// What nobody can guess, for tokens that are found by their digest.
pub(super) fn unguessable() -> String {
    opaque::opaque_token(rand::random(), "jti").0
}

//! `POST …/request-…`: a mail with a token goes to an account. The answer is the same whoever was named.

use actix_web::HttpResponse;
use actix_web::web::Path;
use inn_grants::app_token::{self, Claims, Kind};
use inn_ports::NewMail;
use inn_protocol::auth_options::{AuthOptions, MailTemplate};
use inn_protocol::call::Papers;
use inn_protocol::{Code, Refusal};
use inn_rules::values::{SignInForm, Wrong};

use super::TOKEN_KEY;
use super::accounts::{Accounts, Row, text, verified};
use super::letter::{self, Facts};
use super::own::{own_id, own_row};
use super::post::{Posting, address, post, turn};
use crate::app::records::Entity;
use crate::error::ApiError;
use crate::incoming::Incoming;
use crate::respond;

/// Seconds between two mails of one purpose to one account.
const PAUSE: u32 = 120;

/// `POST …/request-password-reset`
pub(in crate::app) async fn password_reset(incoming: Incoming, path: Path<Entity>) -> Result<HttpResponse, ApiError> {
    by_address(incoming, &path.entity, "request-password-reset", Kind::PasswordReset).await
}

/// `POST …/request-verification`
pub(in crate::app) async fn verification(incoming: Incoming, path: Path<Entity>) -> Result<HttpResponse, ApiError> {
    by_address(incoming, &path.entity, "request-verification", Kind::Verification).await
}

async fn by_address(
    mut incoming: Incoming,
    entity: &str,
    verb: &'static str,
    kind: Kind,
) -> Result<HttpResponse, ApiError> {
    // Whoever asks, it is the address that is asked for.
    incoming.papers = Papers::None;
    let sent = incoming.json().await?;
    let accounts = Accounts::find(&incoming, entity, verb).await?;
    let fail = |refusal| incoming.fail(refusal);
    if kind == Kind::PasswordReset && !accounts.options().map_err(fail)?.password_auth.enabled {
        let what = "The collection is not configured to allow password authentication.";
        return Err(fail(Refusal::new(Code::InvalidParameter, what)));
    }
    let mut form = SignInForm::new(&sent).map_err(fail)?;
    let email = form.email("email");
    form.finish().map_err(fail)?;
    incoming.rate_auth(&accounts.rate_key(&email))?;
    let turn = turn(&incoming).map_err(fail)?;
    let answer = respond::no_content(incoming.id);
    post(incoming, accounts, turn, async move |incoming, accounts| {
        let found = accounts.by_email(incoming, &email).await?;
        let wanted = |row: &Row| address(row).is_some() && !(kind == Kind::Verification && verified(row));
        let Some(row) = found.filter(wanted) else { return Ok(None) };
        let to = text(&row, "email").to_owned();
        posting(incoming, accounts, &row, verb, kind, &to, None).await.map(Some)
    });
    Ok(answer)
}

/// `POST …/request-email-change`, by whoever is signed in; the mail goes to the new address.
pub(in crate::app) async fn email_change(incoming: Incoming, path: Path<Entity>) -> Result<HttpResponse, ApiError> {
    const VERB: &str = "request-email-change";
    let fail = |refusal| incoming.fail(refusal);
    let accounts = Accounts::find(&incoming, &path.entity, VERB).await?;
    let sent = incoming.json().await?;
    let action = accounts.action(&own_id(&incoming), VERB).map_err(fail)?;
    incoming.rate_auth(&accounts.rate_key(&own_id(&incoming)))?;
    let admitted = incoming.state.gateway.glance(incoming.call(action.clone(), serde_json::Value::Null)).await;
    let admitted = admitted.map_err(fail)?;
    let row = own_row(&incoming, &accounts, &admitted.caller).await;
    drop(admitted);
    let checked = match row {
        Ok(row) => new_address(&incoming, &accounts, &row, &sent).await.map(|email| (row, email)),
        Err(refusal) => Err(refusal),
    };
    let ready = match checked {
        Ok(checked) => turn(&incoming).map(|turn| (checked, turn)),
        Err(refusal) => Err(refusal),
    };
    let ((row, email), turn) = match ready {
        Ok(ready) => ready,
        Err(refusal) => return Err(incoming.refuse(action, refusal).await),
    };
    let answer = respond::no_content(incoming.id);
    post(incoming, accounts, turn, async move |incoming, accounts| {
        posting(incoming, accounts, &row, VERB, Kind::EmailChange, &email, Some(&email)).await.map(Some)
    });
    Ok(answer)
}

async fn new_address(
    incoming: &Incoming,
    accounts: &Accounts,
    row: &Row,
    sent: &serde_json::Value,
) -> Result<String, Refusal> {
    let mut form = SignInForm::new(sent)?;
    let email = form.email("newEmail");
    if form.is_fine() && email == text(row, "email") {
        form.wrong("newEmail", Wrong::SameEmail);
    }
    if form.is_fine() && accounts.by_email(incoming, &email).await?.is_some() {
        form.wrong("newEmail", Wrong::TakenEmail);
    }
    form.finish()?;
    Ok(email)
}

async fn posting(
    incoming: &Incoming,
    accounts: &Accounts,
    row: &Row,
    verb: &'static str,
    kind: Kind,
    to: &str,
    new_email: Option<&str>,
) -> Result<Posting, Refusal> {
    let (collection, options) = (accounts.collection()?, accounts.options()?);
    let (template, seconds, sentence) = template(&options, kind);
    let secret = incoming.state.store.make_app_secret(&accounts.app).await?;
    let claims = Claims {
        collection_id: collection.id.clone(),
        exp: incoming.state.gateway.clock().now().timestamp().saturating_add(i64::from(seconds)),
        id: text(row, "id").to_owned(),
        refreshable: None,
        kind,
        email: Some(text(row, "email").to_owned()),
        new_email: new_email.map(str::to_owned),
        jti: None,
    };
    let token = app_token::mint(&claims, &secret, text(row, TOKEN_KEY));
    let facts = Facts {
        app_name: &accounts.app.definition.name,
        app_url: &incoming.state.config.app_origin(&accounts.app.slug),
        collection,
        row,
        token: &token,
        otp: "",
        otp_id: "",
    };
    let (subject, html) = letter::write(&template, &facts);
    let mail = NewMail {
        record: text(row, "id").to_owned(),
        purpose: verb.to_owned(),
        pause: PAUSE,
        sentence: sentence.to_owned(),
    };
    Ok(Posting { verb, mail, ticket: None, subject, html, to: to.to_owned() })
}

/// The app's words or ours, the token's lifetime, and what the receipt says.
fn template(options: &AuthOptions, kind: Kind) -> (MailTemplate, u32, &'static str) {
    match kind {
        Kind::PasswordReset => (
            options.reset_password_template.clone().unwrap_or_else(letter::password_reset),
            options.password_reset_token.duration,
            "A mail went out with which a new password can be chosen",
        ),
        Kind::EmailChange => (
            options.confirm_email_change_template.clone().unwrap_or_else(letter::email_change),
            options.email_change_token.duration,
            "A mail went to the new address to confirm it",
        ),
        Kind::Verification | Kind::Auth | Kind::File => (
            options.verification_template.clone().unwrap_or_else(letter::verification),
            options.verification_token.duration,
            "A mail went out to confirm the address",
        ),
    }
}

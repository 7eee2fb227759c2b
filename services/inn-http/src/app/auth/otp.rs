//! One-time passwords: a code by mail, good once and for minutes.

use actix_web::HttpResponse;
use actix_web::web::Path;
use inn_ports::{NewMail, NewTicket, TicketKind};
use inn_protocol::call::Papers;
use inn_protocol::{Code, Refusal};
use inn_rules::values::{SignInForm, record_id};
use serde_json::{Map, Value, json};

use super::accounts::{Accounts, Row, text, token_key_digest, verified};
use super::letter::{self, Facts};
use super::password::{Proof, digits, finish, guess};
use super::post::{Posting, address, post, turn};
use super::{confirm, not_allowed};
use crate::app::records::Entity;
use crate::error::ApiError;
use crate::incoming::Incoming;
use crate::respond;

/// Seconds between two codes for one account.
const PAUSE: u32 = 15;
const PURPOSE: &str = "otp";

/// `POST …/request-otp`: answers an id whether or not somebody has this address.
pub(in crate::app) async fn request(mut incoming: Incoming, path: Path<Entity>) -> Result<HttpResponse, ApiError> {
    const VERB: &str = "request-otp";
    incoming.papers = Papers::None;
    let sent = incoming.json().await?;
    let accounts = Accounts::find(&incoming, &path.entity, VERB).await?;
    let fail = |refusal| incoming.fail(refusal);
    if !accounts.options().map_err(fail)?.otp.enabled {
        return Err(fail(not_allowed("OTP")));
    }
    let mut form = SignInForm::new(&sent).map_err(fail)?;
    let email = form.email("email");
    form.finish().map_err(fail)?;
    incoming.rate_auth(&accounts.rate_key(&email))?;
    let turn = turn(&incoming).map_err(fail)?;
    let id = record_id(&rand::random::<[u8; 32]>());
    let answer = respond::ok(incoming.id, &json!({ "otpId": id }));
    post(incoming, accounts, turn, async move |incoming, accounts| {
        let found = accounts.by_email(incoming, &email).await?;
        let Some(row) = found.filter(|row| address(row).is_some()) else { return Ok(None) };
        posting(incoming, accounts, &row, id, VERB).await.map(Some)
    });
    Ok(answer)
}

async fn posting(
    incoming: &Incoming,
    accounts: &Accounts,
    row: &Row,
    id: String,
    verb: &'static str,
) -> Result<Posting, Refusal> {
    let (collection, options) = (accounts.collection()?, accounts.options()?);
    let secret = incoming.state.store.make_app_secret(&accounts.app).await?;
    let code = digits(options.otp.length);
    let facts = Facts {
        app_name: &accounts.app.definition.name,
        app_url: &incoming.state.config.app_origin(&accounts.app.slug),
        collection,
        row,
        token: "",
        otp: &code,
        otp_id: &id,
    };
    let template = options.otp.email_template.clone().unwrap_or_else(letter::one_time_password);
    let (subject, html) = letter::write(&template, &facts);
    let record = text(row, "id").to_owned();
    let ticket = NewTicket {
        kind: TicketKind::Otp,
        collection: collection.name.clone(),
        record: record.clone(),
        token_key: token_key_digest(row),
        proof: secret.digest(PURPOSE, &format!("{id} {code}")).to_vec(),
        seconds: options.otp.duration,
        id,
    };
    let mail = NewMail {
        record,
        purpose: verb.to_owned(),
        pause: PAUSE,
        sentence: "A mail went out with a code to sign in".to_owned(),
    };
    Ok(Posting { verb, mail, ticket: Some(ticket), subject, html, to: text(row, "email").to_owned() })
}

/// `POST …/auth-with-otp`
pub(in crate::app) async fn with_otp(mut incoming: Incoming, path: Path<Entity>) -> Result<HttpResponse, ApiError> {
    const VERB: &str = "with-otp";
    incoming.papers = Papers::None;
    let sent = incoming.json().await?;
    let accounts = Accounts::find(&incoming, &path.entity, VERB).await?;
    let fail = |refusal| incoming.fail(refusal);
    if !accounts.options().map_err(fail)?.otp.enabled {
        return Err(fail(not_allowed("OTP")));
    }
    let mut form = SignInForm::new(&sent).map_err(fail)?;
    let (id, code, mfa) = (form.required("otpId"), form.required("password"), form.optional("mfaId"));
    form.finish().map_err(fail)?;
    incoming.rate_auth(&accounts.rate_key(&id))?;
    let row = proved(&incoming, &accounts, &id, &code).await.map_err(|refusal| guess(&incoming, refusal))?;
    let proof = Proof { verb: VERB, method: "otp", otp: Some(id), mfa };
    let newly = (!verified(&row)).then(|| row.clone());
    let answer = finish(&incoming, &accounts, row, &proof).await?;
    if let Some(row) = newly {
        // The code was read at the address.
        let fields = Map::from_iter([("verified".to_owned(), Value::Bool(true))]);
        confirm::change(&incoming, &accounts, &row, "confirm-verification", fields, "The address was confirmed")
            .await?;
    }
    Ok(answer)
}

/// The record whose code this is.
async fn proved(incoming: &Incoming, accounts: &Accounts, id: &str, code: &str) -> Result<Row, Refusal> {
    let wrong = || Refusal::new(Code::SignInFailed, "Invalid or expired OTP.");
    let (store, name) = (&incoming.state.store, &accounts.collection()?.name);
    let ticket = store.try_ticket(&accounts.app, TicketKind::Otp, name, id).await?.ok_or_else(wrong)?;
    let secret = store.app_secret(&accounts.app).await?.ok_or_else(wrong)?;
    // Compared as keyed digests: how far they agree tells nothing about the code.
    if ticket.proof != secret.digest(PURPOSE, &format!("{id} {code}")) {
        return Err(wrong());
    }
    let row = accounts.by_id(incoming, &ticket.record).await?;
    row.filter(|row| ticket.token_key == token_key_digest(row)).ok_or_else(wrong)
}

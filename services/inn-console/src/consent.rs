//! Consent: an agent asks, a person says yes to all or part of it, or no.

mod choice;
mod lines;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Path;
use askama::Template;
use inn_http::api::{decide_grant, decline_grant, person};
use inn_http::error::ApiError;
use inn_protocol::app::{AppSnapshot, AuthMode};
use inn_protocol::call::Action;
use inn_protocol::grant::{GrantRequest, GrantRequestStatus};
use inn_protocol::scope::Scope;
use inn_protocol::{Code, GrantRequestId, Refusal};

use crate::frame::{Frame, Here};
use crate::page;
use crate::stamp::Stamp;
use crate::visit::{Answer, Visit};
use choice::{Choice, Decision};
use lines::{Group, groups};

#[derive(Template)]
#[template(path = "consent.html")]
pub(crate) struct ConsentPage {
    pub(crate) frame: Frame,
    pub(crate) request: GrantRequest,
    pub(crate) app_name: String,
    pub(crate) created: Stamp,
    pub(crate) expires: Stamp,
    pub(crate) state: State,
    pub(crate) problem: Option<String>,
}

/// What can still be done about the request.
pub(crate) enum State {
    Open(Box<Questions>),
    Approved,
    Refused,
    Expired,
    /// The app has been removed since.
    NoApp,
}

/// The form.
pub(crate) struct Questions {
    pub(crate) groups: Vec<Group>,
    /// The request has scopes of the queue, so whose requests is a question.
    pub(crate) asks_queue: bool,
    pub(crate) others: bool,
    pub(crate) plain: bool,
    /// The app has users of its own, and the agent may act as one of them.
    pub(crate) own_users: bool,
    pub(crate) app_record: String,
    /// Less safe tokens, other people's requests, and a no for everybody are an owner's to decide.
    pub(crate) owner: bool,
    /// The password was given within the last minutes, so it may be left out.
    pub(crate) fresh: bool,
}

/// What the call behind the page found.
struct Found {
    frame: Frame,
    fresh: bool,
    request: GrantRequest,
    app: Option<Arc<AppSnapshot>>,
}

pub(crate) async fn show(visit: Visit, id: Path<String>) -> HttpResponse {
    let answer = try_show(&visit, &id, StatusCode::OK, None, None).await;
    visit.answer(answer)
}

pub(crate) async fn decide(mut visit: Visit, id: Path<String>) -> HttpResponse {
    let answer = try_decide(&mut visit, &id).await;
    visit.answer(answer)
}

async fn try_show(
    visit: &Visit,
    id: &str,
    status: StatusCode,
    problem: Option<String>,
    choice: Option<&Choice>,
) -> Answer {
    let found = look(visit, parse(visit, id)?).await?;
    Ok(page::html(visit.incoming.id, status, &ConsentPage::of(found, problem, choice)))
}

fn parse(visit: &Visit, id: &str) -> Result<GrantRequestId, ApiError> {
    id.parse().map_err(|_| visit.incoming.fail(Refusal::not_found()))
}

async fn look(visit: &Visit, id: GrantRequestId) -> Result<Found, ApiError> {
    let incoming = &visit.incoming;
    let (store, gateway) = (&incoming.state.store, &incoming.state.gateway);
    incoming
        .read(Action::ViewGrantRequest { request: id }, |admitted| async move {
            let person = person(&admitted.caller)?;
            let request = store.grant_request(id).await?.filter(|request| request.tenant == person.tenant);
            let request = request.ok_or_else(nothing_asked)?;
            let app = gateway.app(&request.app_slug).await?.filter(|app| app.id == request.app);
            let frame = Frame::of(&**store, person, Here::Grants).await?;
            Ok(Found { frame, fresh: person.fresh, request, app })
        })
        .await
}

fn nothing_asked() -> Refusal {
    let message = "There is no grant request of that id in this tenant. Check the link your agent printed.";
    Refusal::new(Code::NotFound, message)
}

async fn try_decide(visit: &mut Visit, id: &str) -> Answer {
    let request = parse(visit, id)?;
    let form = visit.form()?;
    let decision = Decision::parse(&form).map_err(|refusal| visit.incoming.fail(refusal))?;
    let (done, choice) = match decision {
        Decision::Refuse { password } => {
            let done = decline_grant(&visit.incoming, request, password.as_deref()).await;
            (done.map(|_| format!("/consent/{request}")), None)
        }
        Decision::Grant(choice) => (grant(visit, request, &choice).await, Some(choice)),
    };
    match done {
        Ok(to) => Ok(page::see_other(visit.incoming.id, &to)),
        // Something the person can put right on this very page: show it again with what they had chosen.
        Err(error) if is_correctable(error.refusal.code) => {
            visit.next_call();
            let status = StatusCode::from_u16(error.refusal.code.status()).unwrap_or(StatusCode::BAD_REQUEST);
            let mut response =
                try_show(visit, id, status, Some(error.refusal.message.clone()), choice.as_ref()).await?;
            crate::error::copy_hints(&error, &mut response);
            Ok(response)
        }
        Err(error) => Err(error),
    }
}

async fn grant(visit: &Visit, request: GrantRequestId, choice: &Choice) -> Result<String, ApiError> {
    let approve = choice.approve().map_err(|refusal| visit.incoming.fail(refusal))?;
    let grant = decide_grant(&visit.incoming, request, approve).await?;
    Ok(format!("/grants/{}", grant.id))
}

const fn is_correctable(code: Code) -> bool {
    matches!(
        code,
        // An old session whose password is asked for again; an ended one ends at the sign-in form when the page is made.
        Code::Unauthenticated
            | Code::WrongCredentials
            | Code::InvalidParameter
            | Code::InvalidValue
            | Code::MissingRequired
            | Code::Conflict
            | Code::RateLimited
    )
}

impl ConsentPage {
    fn of(found: Found, problem: Option<String>, choice: Option<&Choice>) -> Self {
        let Found { frame, fresh, request, app } = found;
        let app_name = app.as_ref().map_or_else(|| request.app_slug.clone(), |app| app.definition.name.clone());
        let state = match (request.status, &app) {
            (GrantRequestStatus::Approved, _) => State::Approved,
            (GrantRequestStatus::Refused, _) => State::Refused,
            (GrantRequestStatus::Expired, _) => State::Expired,
            (GrantRequestStatus::Pending, None) => State::NoApp,
            (GrantRequestStatus::Pending, Some(app)) => {
                State::Open(Box::new(Questions::of(&request, app, &frame, fresh, choice)))
            }
        };
        let (created, expires) = (Stamp(request.created_at), Stamp(request.expires_at));
        Self { frame, request, app_name, created, expires, state, problem }
    }
}

impl Questions {
    fn of(request: &GrantRequest, app: &AppSnapshot, frame: &Frame, fresh: bool, choice: Option<&Choice>) -> Self {
        Self {
            groups: groups(&request.scopes, &app.definition, choice.map(|choice| choice.scopes.as_slice())),
            asks_queue: request.scopes.iter().any(|scope| matches!(scope, Scope::Queue(_))),
            others: choice.is_some_and(|choice| choice.others),
            plain: choice.is_some_and(|choice| choice.plain),
            own_users: app.definition.auth_mode == AuthMode::MultiUser,
            app_record: choice.and_then(|choice| choice.app_record.clone()).unwrap_or_default(),
            owner: frame.is_owner(),
            fresh,
        }
    }
}

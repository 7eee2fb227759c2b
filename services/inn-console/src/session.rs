//! Signing in and out.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template;
use inn_grants::opaque;
use inn_http::api::{end_session, no_session_cookie, open_session};
use inn_http::app::session_cookie;
use inn_http::error::ApiError;
use inn_http::incoming::{Incoming, SESSION_PREFIX};
use inn_protocol::call::{Action, Papers};
use inn_protocol::{AppId, Code, Refusal, SessionId};

use crate::page;
use crate::visit::{Answer, Visit, safe_next};

#[derive(Template)]
#[template(path = "sign-in.html")]
pub(crate) struct SignInPage {
    pub(crate) problem: Option<String>,
    pub(crate) next: String,
    pub(crate) email: String,
}

/// Shown between a sign-in and an app: the policy lets a form end on this origin only, so the last step is a link.
#[derive(Template)]
#[template(path = "continue.html")]
pub(crate) struct ContinuePage {
    pub(crate) to: String,
}

/// The front page has both forms.
pub(crate) async fn form_page(visit: Visit) -> HttpResponse {
    page::see_other(visit.incoming.id, "/")
}

pub(crate) async fn sign_in(mut visit: Visit) -> HttpResponse {
    // A browser still shows the cookie of a session that has ended: signing in does not depend on it.
    visit.incoming.papers = Papers::None;
    let answer = try_sign_in(&visit).await;
    visit.answer(answer)
}

async fn try_sign_in(visit: &Visit) -> Answer {
    let incoming = &visit.incoming;
    let fail = |refusal| incoming.fail(refusal);
    let form = visit.form()?;
    form.only(&["email", "password", "next"]).map_err(fail)?;
    let field = |name| form.one(name).map_err(fail).map(Option::unwrap_or_default);
    let (email, password) = (field("email")?, field("password")?);
    let next = safe_next(field("next")?);
    let opened = match (email, password) {
        ("", _) | (_, "") => {
            Err(fail(Refusal::new(Code::MissingRequired, "Both the email and the password are needed.")))
        }
        (email, password) => open_session(incoming, email.trim(), password.to_owned(), None).await,
    };
    match opened {
        Ok((_, token)) => Ok(signed_in(incoming, token, next)),
        Err(error) if may_try_again(&error) => {
            let page = SignInPage { problem: Some(error.refusal.message.clone()), next, email: email.to_owned() };
            let status = StatusCode::from_u16(error.refusal.code.status()).unwrap_or(StatusCode::BAD_REQUEST);
            let mut response = page::html(incoming.id, status, &page);
            crate::error::copy_hints(&error, &mut response);
            Ok(response)
        }
        Err(error) => Err(error),
    }
}

fn may_try_again(error: &ApiError) -> bool {
    matches!(error.refusal.code, Code::WrongCredentials | Code::MissingRequired | Code::Forbidden | Code::RateLimited)
}

fn signed_in(incoming: &Incoming, token: String, next: String) -> HttpResponse {
    let mut response = if next.starts_with("/open/") {
        page::html(incoming.id, StatusCode::OK, &ContinuePage { to: next })
    } else {
        page::see_other(incoming.id, &next)
    };
    let secure = incoming.state.config.platform_url.scheme() == "https";
    set_cookie(&mut response, &session_cookie(secure, token));
    response
}

fn set_cookie(response: &mut HttpResponse, cookie: &actix_web::cookie::Cookie<'_>) {
    if let Err(error) = response.add_cookie(cookie) {
        tracing::error!(%error, "the session cookie could not be set");
    }
}

pub(crate) async fn sign_out(visit: Visit) -> HttpResponse {
    let incoming = &visit.incoming;
    let ended = end_session(incoming, false).await;
    match ended {
        Err(error) if error.refusal.code != Code::Unauthenticated => return visit.answer(Err(error)),
        // Ended now, or earlier: either way this browser is out.
        _ => {}
    }
    let mut response = page::see_other(incoming.id, "/");
    set_cookie(&mut response, &no_session_cookie(&incoming.state));
    response
}

/// A person arrives by the one-time link the platform printed at its start.
pub(crate) async fn enter(mut visit: Visit) -> HttpResponse {
    visit.incoming.papers = Papers::None;
    let answer = try_enter(&visit).await;
    visit.answer(answer)
}

async fn try_enter(visit: &Visit) -> Answer {
    let incoming = &visit.incoming;
    incoming.rate_auth("")?;
    let code = opaque::opaque_digest(incoming.param("code").unwrap_or_default());
    let (token, digest) = opaque::opaque_token(rand::random(), SESSION_PREFIX.trim_end_matches('_'));
    // No app: the platform's own origin.
    let platform = AppId::from_uuid(uuid::Uuid::nil());
    let entered = incoming
        .perform(Action::SignIn, code, move |store, admitted, code| async move {
            let opened = store.take_handoff(&admitted.record, *code, platform, SessionId::new(), digest).await?;
            let message = "This sign-in link was used already or has run out. Sign in with your email and password.";
            opened.ok_or_else(|| Refusal::new(Code::WrongCredentials, message).into())
        })
        .await;
    match entered {
        Ok(_) => Ok(signed_in(incoming, token, "/".to_owned())),
        Err(error) if error.refusal.code == Code::WrongCredentials => {
            let problem = Some(error.refusal.message.clone());
            let page = SignInPage { problem, next: "/".to_owned(), email: String::new() };
            Ok(page::html(incoming.id, StatusCode::UNAUTHORIZED, &page))
        }
        Err(error) => Err(error),
    }
}

//! A person arrives on an app's own origin with a one-time code from the platform (DESIGN section 5, People).

use actix_web::HttpResponse;
use actix_web::cookie::{Cookie, SameSite};
use actix_web::http::header::LOCATION;
use inn_grants::opaque;
use inn_protocol::call::{Action, Papers};
use inn_protocol::{Code, Refusal, SessionId};
use serde_json::Value;

use crate::error::ApiError;
use crate::incoming::{COOKIE, HOST_COOKIE, Incoming, SESSION_PREFIX};

pub(super) async fn enter(mut incoming: Incoming) -> Result<HttpResponse, ApiError> {
    // A browser still shows the cookie of a session that has ended: coming in anew does not depend on it.
    incoming.papers = Papers::None;
    let fail = |refusal| incoming.fail(refusal);
    incoming.rate_auth("")?;
    let code = incoming.param("code").unwrap_or_default();
    let digest = opaque::opaque_digest(code);
    let (token, token_digest) = opaque::opaque_token(rand::random(), SESSION_PREFIX.trim_end_matches('_'));
    let session = SessionId::new();
    let store = incoming.state.store.clone();
    let call = incoming.call(Action::SignIn, Value::Null);
    let entered = incoming.state.gateway.perform(call, move |admitted| {
        let store = store.clone();
        async move {
            let app = admitted.app()?.id;
            let session = store.take_handoff(&admitted.record, digest, app, session, token_digest).await?;
            let used = || {
                Refusal::new(
                    Code::WrongCredentials,
                    "This link was used already or is older than a minute. Open the app from the console again.",
                )
            };
            session.ok_or_else(|| used().into())
        }
    });
    entered.await.map_err(fail)?;
    let mut response = HttpResponse::SeeOther();
    response.insert_header((LOCATION, "/")).insert_header(("Cache-Control", "no-store"));
    response.insert_header(("Referrer-Policy", "no-referrer"));
    response.cookie(session_cookie(incoming.state.config.platform_url.scheme() == "https", token));
    Ok(response.finish())
}

/// The session cookie of one origin: not for scripts, not for other sites.
pub fn session_cookie(secure: bool, token: String) -> Cookie<'static> {
    Cookie::build(if secure { HOST_COOKIE } else { COOKIE }, token)
        .path("/")
        .http_only(true)
        .secure(secure)
        // Lax: a link to the app opens it signed in; writes need the exact Origin anyway.
        .same_site(SameSite::Lax)
        .finish()
}

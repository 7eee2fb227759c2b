//! One HTTP request of a browser.

use actix_web::dev::Payload;
use actix_web::http::header::CONTENT_TYPE;
use actix_web::http::{Method, StatusCode};
use actix_web::{FromRequest, HttpRequest, HttpResponse};
use futures_util::future::LocalBoxFuture;
use inn_http::api::no_session_cookie;
use inn_http::error::ApiError;
use inn_http::incoming::Incoming;
use inn_protocol::call::Papers;
use inn_protocol::{CallId, Code};

use crate::error::{self, PageError};
use crate::form::Form;
use crate::page;
use crate::session::SignInPage;

/// What a page's handler comes to; [`Visit::answer`] makes a page of either.
pub(crate) type Answer = Result<HttpResponse, ApiError>;

pub(crate) struct Visit {
    pub(crate) incoming: Incoming,
    /// Where to come back to after signing in.
    back: String,
    content_type: Option<String>,
}

impl Visit {
    /// What the form sent.
    pub(crate) fn form(&self) -> Result<Form, ApiError> {
        Form::parse(self.content_type.as_deref(), &self.incoming.body).map_err(|refusal| self.incoming.fail(refusal))
    }

    /// The next call of the same HTTP request is another call, with its own id and entry.
    pub(crate) fn next_call(&mut self) {
        self.incoming.id = CallId::new();
    }

    /// The page, or the refusal as one. Whoever is not signed in gets the sign-in form in place of the page.
    pub(crate) fn answer(&self, answer: Answer) -> HttpResponse {
        match answer {
            Ok(response) => response,
            Err(error) if error.refusal.code == Code::Unauthenticated => self.sign_in_first(&error),
            Err(error) => error::show(&error),
        }
    }

    fn sign_in_first(&self, refused: &ApiError) -> HttpResponse {
        let had_session = matches!(self.incoming.papers, Papers::Session { .. });
        let problem = had_session.then(|| refused.refusal.message.clone());
        let page = SignInPage { problem, next: self.back.clone(), email: String::new() };
        // The front page is for everybody, so a form there is no refusal.
        let status = if self.back == "/" { StatusCode::OK } else { StatusCode::UNAUTHORIZED };
        let mut response = page::html(refused.call, status, &page);
        if status == StatusCode::UNAUTHORIZED {
            error::copy_hints(refused, &mut response);
        }
        if had_session && let Err(error) = response.add_cookie(&no_session_cookie(&self.incoming.state)) {
            tracing::error!(%error, "the session cookie could not be taken back");
        }
        response
    }
}

impl FromRequest for Visit {
    type Error = PageError;
    type Future = LocalBoxFuture<'static, Result<Self, PageError>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let incoming = Incoming::from_request(request, payload);
        let back = back_to(request.method(), request.uri().path_and_query().map_or("/", |target| target.as_str()));
        let content_type = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).map(str::to_owned);
        Box::pin(async move { Ok(Self { incoming: incoming.await.map_err(PageError)?, back, content_type }) })
    }
}

/// A page can be asked for again; what a form did cannot, except where its page has the same address.
fn back_to(method: &Method, target: &str) -> String {
    let again = *method == Method::GET || target.starts_with("/consent/");
    if again { safe_next(target) } else { "/".to_owned() }
}

/// Where to go on after signing in: a page of ours or the front page, never another origin.
pub(crate) fn safe_next(next: &str) -> String {
    let plain = next.len() <= 1000 && next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    // `//host` is another origin, and `/enter` takes codes that count once.
    let ours = next.starts_with('/') && !next.starts_with("//") && !next.starts_with("/enter");
    if plain && ours { next.to_owned() } else { "/".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signing_in_never_leads_to_another_origin() {
        for next in ["/", "/open/kanban", "/consent/grq_0?x=1", "/audit?outcome=refused&app=a"] {
            assert_eq!(safe_next(next), next);
        }
        let long = format!("/{}", "a".repeat(1000));
        let hostile =
            ["", "//evil.example", "/\\evil.example", "\\\\evil", "https://evil.example", "javascript:alert(1)"];
        let odd = ["/\t/evil.example", "/a b", "/\u{202e}", "/enter?code=x", long.as_str()];
        for next in hostile.into_iter().chain(odd) {
            assert_eq!(safe_next(next), "/", "{next:?}");
        }
    }

    #[test]
    fn a_form_that_met_an_ended_session_is_not_asked_for_again_by_get() {
        assert_eq!(back_to(&Method::POST, "/grants/grt_0/revoke"), "/");
        assert_eq!(back_to(&Method::POST, "/consent/grq_0"), "/consent/grq_0");
        assert_eq!(back_to(&Method::GET, "/grants"), "/grants");
    }
}

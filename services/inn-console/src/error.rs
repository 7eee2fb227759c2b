//! A refusal as a page: what is wrong, whether anything happened, what to do, and where the code is explained.

use std::fmt;

use actix_web::http::StatusCode;
use actix_web::http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use actix_web::{HttpResponse, ResponseError};
use askama::Template;
use inn_http::error::ApiError;
use inn_protocol::{Outcome, Retry, Violation};

use crate::page;

#[derive(Template)]
#[template(path = "error.html")]
pub(crate) struct ErrorPage {
    title: &'static str,
    message: String,
    violations: Vec<Violation>,
    advice: Vec<String>,
    code: &'static str,
    help: String,
    call: String,
}

impl ErrorPage {
    pub(crate) fn of(error: &ApiError) -> Self {
        let refusal = &*error.refusal;
        Self {
            title: title(refusal.code.status()),
            message: refusal.message.clone(),
            violations: refusal.violations.clone(),
            advice: advice(error),
            code: refusal.code.as_str(),
            help: format!("{}{}", error.help, refusal.code.as_str()),
            call: error.call.to_string(),
        }
    }
}

const fn title(status: u16) -> &'static str {
    match status {
        401 => "Sign in first",
        403 => "That is not allowed",
        404 => "There is nothing here",
        409 => "Too late for that",
        429 => "A little slower, please",
        500.. => "That did not work",
        _ => "That was not understood",
    }
}

fn advice(error: &ApiError) -> Vec<String> {
    let refusal = &*error.refusal;
    let mut lines = Vec::new();
    lines.push(match refusal.outcome {
        Outcome::None => "Nothing was changed.".to_owned(),
        Outcome::Unknown => "It may have happened: look before you do it again.".to_owned(),
    });
    if let Some(who) = &refusal.who_can_fix {
        lines.push(format!("Who can change this: {who}."));
    }
    if refusal.retry == Retry::After {
        lines.push(format!("Try again in {} s.", refusal.retry_after_seconds.unwrap_or(1)));
    }
    lines
}

/// An HTTP request that could not even be read, told to a person.
#[derive(Debug)]
pub(crate) struct PageError(pub(crate) ApiError);

impl fmt::Display for PageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl ResponseError for PageError {
    fn status_code(&self) -> StatusCode {
        self.0.status_code()
    }

    fn error_response(&self) -> HttpResponse {
        show(&self.0)
    }
}

pub(crate) fn show(error: &ApiError) -> HttpResponse {
    let mut response = page::html(error.call, error.status_code(), &ErrorPage::of(error));
    copy_hints(error, &mut response);
    response
}

/// The headers a program would look for say the same as to the API's callers.
pub(crate) fn copy_hints(error: &ApiError, response: &mut HttpResponse) {
    let plain = error.error_response();
    for name in [RETRY_AFTER, WWW_AUTHENTICATE] {
        if let Some(value) = plain.headers().get(&name) {
            response.headers_mut().insert(name, value.clone());
        }
    }
}

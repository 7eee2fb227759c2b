//! Refusals and help for people who meet them in a browser: the same words as for programs, as a page.
//!
//! Programs get what they always get. A browser that navigates asks for HTML first, which no client of the API does.

use std::fmt::Write as _;

use actix_web::body::{BoxBody, MessageBody, to_bytes};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::http::header::{ACCEPT, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderValue, VARY};
use actix_web::middleware::Next;
use actix_web::web::Data;
use serde_json::Value;

use crate::state::{HttpConfig, HttpState};

const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");

/// Is it a browser that wants to show a page?
pub fn wants_page(headers: &HeaderMap) -> bool {
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    accept.split(',').next().is_some_and(|first| first.trim().starts_with("text/html"))
}

/// Shows a refusal on an app's own origin as a page to browsers. The API below `/api/` is left alone: whoever looks at
/// it wants to see what programs see.
pub async fn refusals(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, actix_web::Error> {
    let looks =
        request.method() == Method::GET && !request.path().starts_with("/api/") && wants_page(request.headers());
    let response = next.call(request).await?.map_into_boxed_body();
    let is_refusal = response.status().is_client_error() || response.status().is_server_error();
    let state = response.request().app_data::<Data<HttpState>>().cloned();
    let (true, true, true, Some(state)) = (looks, is_refusal, is_json(&response), state) else { return Ok(response) };
    let (request, response) = response.into_parts();
    let (response, body) = response.into_parts();
    let bytes = to_bytes(body).await.map_err(actix_web::error::ErrorInternalServerError)?;
    let refusal: Value = serde_json::from_slice(&bytes)?;
    let csp = policy(&state.config);
    let mut response = response.set_body(BoxBody::new(refusal_page(&state.config, &refusal)));
    response.headers_mut().insert(CONTENT_TYPE, HTML);
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, csp);
    response.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
    Ok(ServiceResponse::new(request, response))
}

fn is_json(response: &ServiceResponse<BoxBody>) -> bool {
    response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"))
}

/// Nothing runs on such a page, and only the platform's style sheet is loaded.
pub fn policy(config: &HttpConfig) -> HeaderValue {
    let text = format!(
        "default-src 'none'; style-src {}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        config.platform_origin()
    );
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("default-src 'none'"))
}

fn refusal_page(config: &HttpConfig, refusal: &Value) -> String {
    let text = |name: &str| refusal.get(name).and_then(Value::as_str).map(escaped).unwrap_or_default();
    let message = refusal.get("message").and_then(Value::as_str).map(inline).unwrap_or_default();
    let mut main = format!("<h1>That did not work</h1>\n<p class=\"problem\">{message}</p>\n");
    if refusal.get("help").is_some() {
        let _ = writeln!(
            main,
            "<p>Code: <a href=\"{}\"><code>{}</code></a> <span class=\"soft\">(what it means and what to do)</span></p>",
            text("help"),
            text("code")
        );
    }
    let home = escaped(config.platform_url.as_str());
    let _ = writeln!(
        main,
        "<p class=\"soft\">Call <code>{}</code></p>\n<p><a href=\"{home}\">To the front page</a></p>",
        text("call")
    );
    page(config, "That did not work", &main)
}

/// A help page (Markdown with headings, paragraphs, lists and code in backticks) as HTML.
pub fn help_page(config: &HttpConfig, title: &str, markdown: &str) -> String {
    let mut main = String::new();
    for block in markdown.split("\n\n").map(str::trim).filter(|block| !block.is_empty()) {
        let _ = if let Some(heading) = block.strip_prefix("## ") {
            writeln!(main, "<h1><code>{}</code></h1>", escaped(heading))
        } else if block.starts_with("- ") {
            let items = block.split("\n- ").map(|item| item.trim_start_matches("- "));
            let items: Vec<_> = items.map(|item| format!("<li>{}</li>", inline(item))).collect();
            writeln!(main, "<ul>{}</ul>", items.concat())
        } else {
            writeln!(main, "<p>{}</p>", inline(block))
        };
    }
    page(config, title, &main)
}

fn inline(text: &str) -> String {
    let pieces = text.split('`').enumerate();
    pieces
        .map(|(place, piece)| if place % 2 == 1 { format!("<code>{}</code>", escaped(piece)) } else { escaped(piece) })
        .collect()
}

fn page(config: &HttpConfig, title: &str, main: &str) -> String {
    let home = escaped(config.platform_url.as_str());
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{} · Innkeeper</title>\n\
         <link rel=\"stylesheet\" href=\"{home}console/style.css\">\n</head>\n<body>\n\
         <header class=\"top\"><a class=\"brand\" href=\"{home}\">Innkeeper</a></header>\n\
         <main id=\"main\">\n<section class=\"narrow\">\n{main}</section>\n</main>\n</body>\n</html>\n",
        escaped(title)
    )
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_browsers_that_navigate_are_shown_pages() {
        let accepts = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_static(text));
            wants_page(&headers)
        };
        assert!(accepts("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"));
        assert!(!accepts("*/*") && !accepts("application/json, text/html") && !wants_page(&HeaderMap::new()));
    }

    #[test]
    fn words_of_strangers_stay_words() {
        assert_eq!(inline("a `<b>` & \"c\""), "a <code>&lt;b&gt;</code> &amp; &quot;c&quot;");
    }
}

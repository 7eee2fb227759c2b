//! From the console into an app.

use actix_web::HttpResponse;
use actix_web::http::header::{HeaderValue, REFERRER_POLICY};
use actix_web::web::Path;
use inn_http::api::hand_over;

use crate::page;
use crate::visit::{Answer, Visit};

pub(crate) async fn open(visit: Visit, slug: Path<String>) -> HttpResponse {
    let answer = try_open(&visit, &slug).await;
    visit.answer(answer)
}

/// Makes a code that counts once and for a minute, and sends the browser to the app's own origin with it.
async fn try_open(visit: &Visit, slug: &str) -> Answer {
    let url = hand_over(&visit.incoming, slug).await?;
    let mut response = page::see_other(visit.incoming.id, &url);
    response.headers_mut().insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    Ok(response)
}

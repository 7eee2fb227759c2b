//! The table of contents: which face answers which path.

use actix_web::guard::GuardContext;
use actix_web::http::header::HOST;
use actix_web::web::{self, Data, ServiceConfig};
use inn_protocol::call::Place;

use crate::host;
use crate::incoming::Incoming;
use crate::state::HttpState;
use crate::{api, app};

/// Everything this host answers. `extra` adds routes to the platform's origin (the console).
pub fn configure(
    state: Data<HttpState>,
    extra: impl FnOnce(&mut ServiceConfig) + Clone,
) -> impl FnOnce(&mut ServiceConfig) + Clone {
    move |config: &mut ServiceConfig| {
        let hosts = state.clone();
        config.app_data(state);
        config.service(
            web::scope("")
                .guard(move |context: &GuardContext<'_>| is_app_origin(&hosts, context))
                .wrap(actix_web::middleware::from_fn(crate::people::refusals))
                .configure(app::on_own_origin),
        );
        config.service(web::scope("/apps/{slug}").configure(app::below_platform));
        config.configure(api::routes).configure(extra);
        config.default_service(web::to(nothing_here));
    }
}

fn is_app_origin(state: &HttpState, context: &GuardContext<'_>) -> bool {
    let host = context.head().headers().get(HOST).and_then(|host| host.to_str().ok());
    host.is_some_and(|host| matches!(host::place(&state.config, host), Some(Place::App { .. })))
}

/// JSON 404 for what nobody serves: a probe must be able to tell.
async fn nothing_here(incoming: Incoming) -> Result<actix_web::HttpResponse, crate::error::ApiError> {
    Err(incoming.fail(inn_protocol::Refusal::not_found()))
}

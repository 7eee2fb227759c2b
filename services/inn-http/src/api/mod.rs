//! `/v1`: the platform's own API. [`endpoint::ENDPOINTS`] is its table of contents: routes, OpenAPI and the coverage
//! tests are all made from it.

mod agents;
mod apps;
mod audit;
pub mod endpoint;
mod explain;
mod grant_requests;
mod grants;
mod jobs;
mod limits;
mod members;
mod openapi;
mod platform;
mod queue;
mod receipts;
mod requests;
pub(crate) mod session;
mod tenants;
mod token;
mod views;

use std::collections::BTreeMap;

use actix_web::web::{self, ServiceConfig};

use crate::incoming::{BodyLimit, Incoming};

pub use audit::{cursor as entry_cursor, parse as entry_search};
pub use grant_requests::{Approve, decide as decide_grant, decline as decline_grant};
pub use grants::{may_touch as may_touch_grant, revoke_grant};
pub use openapi::document as openapi_document;
pub use session::{end_session, fresh_session, hand_over, no_session_cookie, open_session, person};

/// Registers every endpoint of the table.
pub fn routes(config: &mut ServiceConfig) {
    let mut by_path: BTreeMap<&str, Vec<&endpoint::Endpoint>> = BTreeMap::new();
    for endpoint in endpoint::ENDPOINTS {
        by_path.entry(endpoint.path).or_default().push(endpoint);
    }
    for (path, endpoints) in by_path {
        let mut resource = web::resource(path);
        for endpoint in endpoints {
            resource = resource.route((endpoint.route)());
            if let Some(limit) = endpoint.body_limit {
                resource = resource.app_data(BodyLimit { method: endpoint.method, most: limit });
            }
        }
        config.service(resource.default_service(web::to(wrong_method)));
    }
}

async fn wrong_method(
    request: actix_web::HttpRequest,
    incoming: Incoming,
) -> Result<actix_web::HttpResponse, crate::error::ApiError> {
    let pattern = request.match_pattern().unwrap_or_default();
    let allowed: Vec<&str> = endpoint::ENDPOINTS
        .iter()
        .filter(|endpoint| endpoint.path == pattern)
        .map(|endpoint| endpoint.method)
        .collect();
    let message = format!("{} is not answered here; use {}.", request.method(), allowed.join(" or "));
    Err(incoming.fail(inn_protocol::Refusal::new(inn_protocol::Code::MethodNotAllowed, message)))
}

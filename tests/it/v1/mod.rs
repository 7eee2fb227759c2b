//! `/v1/…`: one module per resource.

mod agents;
mod apps;
mod audit;
mod bundles;
mod explain;
mod grant_requests;
mod grants;
mod jobs;
mod members;
mod openapi;
mod queue_limits;
mod receipts;
mod requests;
mod session;
mod token;

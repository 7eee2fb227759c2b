//! `/v1/…`: one module per resource.

mod agents;
mod explain;
mod grant_requests;
mod grants;
mod members;
mod receipts;
mod session;
mod token;

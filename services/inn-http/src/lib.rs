//! The HTTP edge: routes, extractors, answers. A handler parses, makes one call, converts; it decides nothing.

pub mod api;
pub mod app;
pub mod deploy;
pub mod error;
mod form;
pub mod help;
pub mod host;
pub mod incoming;
pub mod people;
pub mod rates;
pub mod respond;
pub mod routes;
pub mod state;

pub use app::{Realtime, RealtimeLimits};
pub use routes::configure;
pub use state::{EdgeKeys, HttpConfig, HttpState, Vitals};

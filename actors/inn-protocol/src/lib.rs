//! The words of Innkeeper: ids, calls, plans, receipts, register entries and error codes.
//!
//! Nothing here decides anything, reads a clock or touches the world. Everything that crosses a crate border is
//! made of these types, so this is the first folder to read.

pub mod app;
pub mod auth_options;
pub mod call;
pub mod caller;
pub mod canonical;
pub mod error;
pub mod grant;
pub mod ids;
pub mod job;
pub mod model;
pub mod people;
pub mod plan;
pub mod query;
pub mod queue;
pub mod receipt;
pub mod register;
pub mod request;
pub mod schedule;
pub mod scope;

pub use error::{Code, Outcome, Refusal, Result, Retry, Violation};
pub use ids::*;

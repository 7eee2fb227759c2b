//! The rules of jobs: what a job may become, what whoever carries it out may say, and who may see it.
//!
//! A job waits (`queued`), is worked on by a node under a lease (`running`), goes on at an upstream (`waiting`) and ends
//! once. Every start has a higher epoch, and only the node of the current one may say what came of it. A job of kind
//! `agent` has no life of its own: [`of_request`] says where it stands.

mod machine;
mod sight;
#[cfg(test)]
mod tests;
mod words;

pub use machine::{
    Change, Facts, Given, LEASE_SECONDS, back_off, cancel, expire, give_up, of_request, renew, report, retryable,
    settle, start,
};
pub use sight::{may_see, only_of};
pub use words::{MAX_LINE, MAX_RESULT_BYTES, check_error, check_line};

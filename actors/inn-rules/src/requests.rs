//! The queue's rules: what a request may become, and what a payload or result must look like.
//!
//! A request waits (`submitted`), is held under a lease (`working`) and ends once (`completed`, `failed`,
//! `canceled`). Every claim has a higher epoch, and only the holder of the current epoch may speak for it.

mod machine;
mod schema;
#[cfg(test)]
mod tests;

pub use machine::{Change, Facts, back_off, cancel, claim, expire, fence, hold};
pub use schema::{MAX_INSTANCE_BYTES, MAX_SCHEMA_BYTES, check_is_schema, check_schema};

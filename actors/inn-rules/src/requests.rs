//! The queue's rules: what a request may become, and what a payload or result must look like.
//!
//! A request waits (`submitted`), is held under a lease (`working`, or `input-required` while its holder waits for an
//! answer) and ends once (`completed`, `failed`, `canceled`). Every claim has a higher epoch, and only the holder of the
//! current epoch may speak for it.

pub mod board;
mod machine;
mod rooms;
mod schema;
#[cfg(test)]
mod tests;
mod turns;
mod why;
mod words;

pub use machine::{
    ACKNOWLEDGE_SECONDS, ANSWER_SECONDS, Change, Facts, back_off, cancel, claim, expire, fence, give_up, hold, operate,
    replayable,
};
pub use rooms::{Room, Rooms};
pub use schema::{MAX_INSTANCE_BYTES, MAX_SCHEMA_BYTES, check_is_schema, check_schema};
pub use turns::Turns;
pub use why::{Reason, Surroundings, why};

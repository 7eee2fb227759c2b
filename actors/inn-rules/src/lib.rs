//! Pure decisions: who may do what, what may be written, which rows match, what a request may become.
//!
//! No clock, no randomness, no I/O and no `async` here: time and ids are arguments, effects are values.

pub mod access;
pub mod describe;
pub mod files;
pub mod filter;
pub mod guard;
pub mod jobs;
pub mod operations;
pub mod query;
pub mod realtime;
pub mod requests;
pub mod schedules;
pub mod schema;
pub mod sentence;
pub mod values;
pub mod view;

//! What has to change in the database when a new model takes over, as data. Turning it into DDL is the store's work.

mod diff;
mod index;
mod model;
mod rename;
mod storage;

pub use diff::{Change, Needs, diff};
pub use index::{IndexColumn, IndexMethod, IndexSpec, auto_indexes, indexes, is_unique_alone, parse_index};
pub use model::check_model;
pub use storage::{Storage, storage, zero};

#[cfg(test)]
mod tests;

//! View collections: the SELECT of `SQLite` an app declares, read into a tree, and the fields PocketBase infers from it
//! (`reference` notes, section D).
//!
//! Only what has a meaning here is read: SELECT over the app's own collections with joins, conditions, groups, set
//! operations and a fixed set of functions. Everything else is refused by name when the app is deployed, and nothing of
//! the text reaches the database as it was written.

mod fields;
mod parse;
mod select;
#[cfg(test)]
mod tests;
mod tokens;
mod tree;

pub(crate) use fields::is_computed;
pub use fields::{infer, sources};
pub use parse::parse;
pub use tree::{Call, Column, Expr, Join, Op, Over, Query, Select, Source, Tested, What};

//! The filter language of PocketBase 0.39.7: text → [`Ast`] → [`Expr`] → a yes or no for a record.
//!
//! Grammar and meaning: `reference` notes on PocketBase, sections A.1 to A.11.

mod ast;
mod compile;
mod context;
mod error;
mod eval;
mod expr;
mod functions;
mod like;
mod macros;
mod number;
mod parse;
mod request;
mod resolve;
mod scan;
mod scope;
#[cfg(test)]
mod tests;
mod value;
mod walk;

pub use ast::Ast;
pub(crate) use compile::sort_field;
pub use compile::{check_rule, compile, compile_ast, compile_client, compile_unsaved};
pub use error::FilterError;
pub use eval::matches;
pub use expr::{Comparison, Expr, FieldClass, FieldRef, Moment, Op, Operand};
pub use like::{literal_pattern, literal_text};
pub use number::{column_text, real_text};
pub use parse::parse;
pub use scope::{AuthFacts, Scope};
pub use walk::{Hop, Link, Start, Walk};

/// Longest filter or rule, in bytes.
pub const MAX_FILTER_BYTES: usize = 3500;
/// Most comparisons in one filter or rule.
pub const MAX_COMPARISONS: usize = 200;

/// A client may not use these in a filter or sort, not even inside a string, unless it is the app's owner: 403
/// `Only superusers can filter by @request.` (section A.5).
pub fn client_filter_forbidden(text: &str) -> bool {
    text.contains("@collection.") || text.contains("@request.")
}

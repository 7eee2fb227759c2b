//! Bodies that are forms: `multipart/form-data` piece by piece, `application/x-www-form-urlencoded` at once, and what
//! their fields mean (PocketBase notes, section B).

mod fields;
mod head;
mod parser;
#[cfg(test)]
mod tests;
mod unread;

use inn_protocol::{Code, Refusal};

pub(crate) use fields::{Fields, urlencoded};
pub(crate) use head::{PartHead, boundary};
pub(crate) use parser::{Event, Parser};
pub(crate) use unread::{UnreadForm, is_read_by_handler};

/// Parts of one form at most.
pub(crate) const MOST_PARTS: usize = 1000;

/// The whole form is refused: it cannot be read from here on.
fn broken(what: &str) -> Refusal {
    Refusal::new(Code::InvalidBody, format!("The form cannot be read: {what}. Nothing was kept."))
}

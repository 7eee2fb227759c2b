//! Files of records, as far as they can be decided without touching one: names they are stored under, what they are by
//! their first bytes, limits, what a file field becomes, thumbs, and how they are served.
//!
//! Everything here is PocketBase's (reference notes, sections C and F), except that a file sent for a field that takes
//! none is refused instead of dropped, and that scripts and stylesheets keep their sniffed type: with `nosniff` a
//! browser runs none of them.

mod limits;
mod name;
mod range;
mod serve;
mod sniff;
#[cfg(test)]
mod tests;
mod thumb;
mod value;

pub use limits::{body_limit, most_bytes, most_files};
pub use name::{RANDOM_BYTES, stored_name};
pub use range::{Part, Span, span};
pub use serve::{PAGE_POLICY, inline};
pub use sniff::{MediaType, SNIFFED_BYTES, sniff};
pub use thumb::{Layout, ThumbSpec, is_image};
pub(crate) use value::{Change, misplaced, names};
pub use value::{needs_row, takes};

/// One file of a form, received and kept for an hour under a name no record has yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upload {
    /// The form's key: a file field, or one with a modifier (`docs`, `docs+`, `+docs`).
    pub key: String,
    /// The name a value gives it, see [`stored_name`].
    pub name: String,
    /// The client's name for it, without folders: told in problems only.
    pub sent_as: String,
    /// Bytes that arrived. Of one that is too large no byte was kept.
    pub size: u64,
    /// By content, never what the client said.
    pub media_type: String,
}

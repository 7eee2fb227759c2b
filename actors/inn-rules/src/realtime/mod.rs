//! Realtime: what a client subscribes to, and where in the stream of changes somebody is (`reference` notes on
//! PocketBase, section F; ADR 0016).

mod form;
mod place;
mod snapshot;
#[cfg(test)]
mod tests;
mod topic;

pub use form::{Subscribe, subscribe};
pub use place::Place;
pub use snapshot::Snapshot;
pub use topic::{Target, Topic};

/// Of one record, in one committed write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Create,
    Update,
    Delete,
}

impl Action {
    /// As PocketBase says it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }

    /// The word of the outbox; `None` for any other.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Create, Self::Update, Self::Delete].into_iter().find(|action| action.as_str() == word)
    }
}

/// One event of a stream as it goes over the wire: PocketBase's form, without spaces after the colons. `data` is JSON on
/// one line. What comes from a client (`name` is the topic as it was sent) cannot begin a line of its own.
pub fn event(id: &str, name: &str, data: &str) -> String {
    let one_line = |text: &str| text.replace(['\r', '\n'], " ");
    format!("id:{id}\nevent:{}\ndata:{}\n\n", one_line(name), one_line(data))
}

/// Tells the client how far it is, and nothing else: no listener is called for it.
pub fn marker(id: &str) -> String {
    format!("id:{id}\n\n")
}

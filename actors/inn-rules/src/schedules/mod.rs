//! Schedules: when they fire, what is made up for, and what one firing may become.
//!
//! A [`Timing`] is a cadence in a time zone under policies. Times are named by what the wall clock shows there, so a clock
//! change moves, drops or doubles some of them, and the policies say which. Everything is computed from instants given as
//! arguments; two nodes that compute the same thing get the same answer.

mod cadence;
mod due;
mod fields;
mod machine;
mod occurrences;
mod preview;
#[cfg(test)]
mod tests;
mod timing;
mod zone;

pub use cadence::{Cadence, EVERY_MOST_SECONDS};
pub use due::{Planned, Turn, plan};
pub use machine::{Ahead, AheadKind, Begin, Change, Facts, MAX_WAITING, Settled, begin, expire, settle, withdraw};
pub use occurrences::{Note, Occurrence, Occurrences};
pub use preview::{PREVIEW_MOST, Previewed, preview};
pub use timing::{Timing, check_name};

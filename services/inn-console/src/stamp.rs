//! A moment on a page.

use std::fmt;

use askama::filters::HtmlSafe;
use chrono::{DateTime, SecondsFormat, Utc};

/// Shown as a `<time>` element: exact for machines, short for people. The page cannot know the reader's zone, so it
/// says UTC.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stamp(pub(crate) DateTime<Utc>);

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = self.0.to_rfc3339_opts(SecondsFormat::Millis, true);
        write!(f, "<time datetime=\"{exact}\">{}</time>", self.0.format("%-d %b %Y, %H:%M UTC"))
    }
}

/// Digits, letters and its own tags only.
impl HtmlSafe for Stamp {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_exact_for_machines_and_short_for_people() {
        let at = DateTime::from_timestamp_millis(1_780_000_000_123).unwrap();
        assert_eq!(Stamp(at).to_string(), "<time datetime=\"2026-05-28T20:26:40.123Z\">28 May 2026, 20:26 UTC</time>");
    }
}

//! A moment on a page.

use std::fmt;

use askama::filters::HtmlSafe;
use chrono::{DateTime, SecondsFormat, Utc};

/// Shown as a `<time>` element: exact for machines, short for people. The page cannot know the reader's zone, so it
/// says UTC.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stamp(pub(crate) DateTime<Utc>);

/// The same with seconds, where one thing follows another within a minute.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Second(pub(crate) DateTime<Utc>);

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, self.0, "%-d %b %Y, %H:%M UTC")
    }
}

impl fmt::Display for Second {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, self.0, "%-d %b %Y, %H:%M:%S UTC")
    }
}

fn write(f: &mut fmt::Formatter<'_>, at: DateTime<Utc>, format: &str) -> fmt::Result {
    let exact = at.to_rfc3339_opts(SecondsFormat::Millis, true);
    write!(f, "<time datetime=\"{exact}\">{}</time>", at.format(format))
}

/// Digits, letters and its own tags only.
impl HtmlSafe for Stamp {}
impl HtmlSafe for Second {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_exact_for_machines_and_short_for_people() {
        let at = DateTime::from_timestamp_millis(1_780_000_000_123).unwrap();
        assert_eq!(Stamp(at).to_string(), "<time datetime=\"2026-05-28T20:26:40.123Z\">28 May 2026, 20:26 UTC</time>");
        assert!(Second(at).to_string().ends_with(">28 May 2026, 20:26:40 UTC</time>"));
    }
}

//! How a bundle is refused: one word a program can branch on, the member, and what to do.

use inn_protocol::{Code, Refusal, Violation};
use serde_json::Value;

/// More than this many problems help nobody, and a hostile bundle must not make the answer large.
const MAX_PROBLEMS: usize = 100;
/// Regular expressions compiled for one bundle. Each is small, but a bundle has room for a hundred thousand.
const MAX_PATTERNS: usize = 1000;

/// A refusal of the container: `word` is the short word of AIP-53's packer (`unsafe-path`, `digest-mismatch`, …).
pub(crate) fn refuse(word: &str, member: &str, what: impl AsRef<str>) -> Refusal {
    let what = what.as_ref();
    let shown = shorten(member);
    let violation = Violation::new(Code::InvalidBundle, shown.clone(), what);
    let place = if shown.is_empty() { String::new() } else { format!("{shown}: ") };
    Refusal { violations: vec![violation], ..Refusal::new(Code::InvalidBundle, format!("{word}: {place}{what}")) }
}

/// Text of a stranger, made fit for a message: no control characters, not long.
pub(crate) fn shorten(text: &str) -> String {
    let mut shown: String = text.chars().take(200).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if text.chars().nth(200).is_some() {
        shown.push('…');
    }
    shown
}

/// Everything found wrong with the contents of a bundle, collected so that one answer tells it all.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    found: Vec<Violation>,
    more: usize,
    patterns: usize,
}

impl Problems {
    /// `place` is `member` or `member#field`.
    pub(crate) fn add(&mut self, place: impl AsRef<str>, expected: impl Into<String>) {
        self.push(Violation::new(Code::InvalidBundle, shorten(place.as_ref()), expected));
    }

    pub(crate) fn add_got(&mut self, place: impl AsRef<str>, expected: impl Into<String>, got: &Value) {
        let violation = Violation::new(Code::InvalidBundle, shorten(place.as_ref()), expected);
        self.push(if self.is_full() { violation } else { violation.got(got) });
    }

    fn push(&mut self, violation: Violation) {
        if self.is_full() { self.more += 1 } else { self.found.push(violation) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Whatever is found from here on is only counted.
    pub(crate) fn is_full(&self) -> bool {
        self.found.len() >= MAX_PROBLEMS
    }

    /// True while one more regular expression may be compiled for this bundle.
    pub(crate) fn may_compile(&mut self) -> bool {
        self.patterns += 1;
        self.patterns <= MAX_PATTERNS
    }

    pub(crate) fn len(&self) -> usize {
        self.found.len() + self.more
    }

    /// `Ok` when nothing was found.
    pub(crate) fn into_result(self) -> Result<(), Refusal> {
        let count = self.len();
        let Some(first) = self.found.first() else { return Ok(()) };
        let what = first.expected.as_deref().unwrap_or_default();
        let rest = if count > 1 { format!(" (and {} more)", count - 1) } else { String::new() };
        let message = format!("invalid-app: {}: {what}{rest}", first.field);
        Err(Refusal::violations(message, self.found))
    }
}

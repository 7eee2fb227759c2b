//! Why a filter or rule was not accepted.

use inn_protocol::{Code, Refusal, Violation};

/// A filter that cannot be used. PocketBase tells nobody why; we say what and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilterError {
    /// The text is not a filter. `at` is the byte where reading stopped.
    Invalid {
        at: usize,
        reason: String,
    },
    UnknownField(String),
    /// The field exists but may not be used by this caller. Reads the same as [`Self::UnknownField`] outside.
    Hidden(String),
    /// Legal in PocketBase, not evaluated here yet; names the construct.
    Unsupported(String),
}

impl FilterError {
    pub(crate) fn invalid(at: usize, reason: impl Into<String>) -> Self {
        Self::Invalid { at, reason: reason.into() }
    }

    /// The refusal of a deploy whose collection has this rule: `place` is like `cards.listRule`.
    pub fn into_rule_refusal(self, place: &str) -> Refusal {
        let code = match self {
            Self::Unsupported(_) => Code::UnsupportedRule,
            _ => Code::InvalidFilter,
        };
        let violation = Violation::new(code, place, self.to_string());
        Refusal::violations(format!("The rule {place} cannot be used: {self}"), vec![violation])
    }
}

impl std::fmt::Display for FilterError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Invalid { at, reason } => write!(f, "at byte {at}: {reason}"),
            // One sentence for both, so that the answer does not tell which hidden fields exist.
            Self::UnknownField(name) | Self::Hidden(name) => {
                write!(f, "`{name}` is not a field that can be used here; see describe for the fields")
            }
            Self::Unsupported(what) => write!(f, "{what} is not supported yet"),
        }
    }
}

impl std::error::Error for FilterError {}

impl From<FilterError> for Refusal {
    fn from(error: FilterError) -> Self {
        Self::new(Code::InvalidFilter, format!("The filter cannot be used: {error}."))
    }
}

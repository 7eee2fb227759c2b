//! Values as `SQLite` compares them (section A.11).

use std::borrow::Cow;
use std::cmp::Ordering;

use super::number::{column_text, leading_number, numeric, real_text};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Datum<'a> {
    Null,
    /// A number that prints whole values without a point: of a column, an integer of JSON, a length, a boolean.
    Integer(f64),
    /// A number that prints as a REAL: a literal, a fraction of JSON.
    Real(f64),
    Text(Cow<'a, str>),
}

/// What a column does to the value it is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Affinity {
    Text,
    Numeric,
    None,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cell<'a> {
    pub(super) datum: Datum<'a>,
    pub(super) affinity: Affinity,
}

impl Datum<'_> {
    /// As LIKE, LOWER and text columns see it.
    pub(super) fn text(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Null => None,
            Self::Integer(number) => Some(column_text(*number).into()),
            Self::Real(number) => Some(real_text(*number).into()),
            Self::Text(text) => Some(Cow::Borrowed(text)),
        }
    }

    /// What it is where `SQLite` asks for truth: a number that is not 0, or a text that begins with one.
    pub(super) fn truth(&self) -> Option<bool> {
        match self {
            Self::Null => None,
            Self::Integer(number) | Self::Real(number) => Some(*number != 0.0),
            Self::Text(text) => Some(leading_number(text) != 0.0),
        }
    }

    const fn number(&self) -> Option<f64> {
        match self {
            Self::Integer(number) | Self::Real(number) => Some(*number),
            _ => None,
        }
    }

    fn after(&self, affinity: Affinity) -> Datum<'_> {
        match (affinity, self) {
            (Affinity::Numeric, Datum::Text(text)) => {
                numeric(text).map_or_else(|| Datum::Text(Cow::Borrowed(text)), Datum::Real)
            }
            (Affinity::Text, Datum::Integer(_) | Datum::Real(_)) => self.text().map_or(Datum::Null, Datum::Text),
            _ => self.clone(),
        }
    }
}

impl Cell<'_> {
    pub(super) const fn bare(datum: Datum<'_>) -> Cell<'_> {
        Cell { datum, affinity: Affinity::None }
    }

    /// Order after each side's affinity was applied to the other; `None` when either is NULL.
    pub(super) fn order(&self, other: &Self) -> Option<Ordering> {
        let (for_self, for_other) = match (self.affinity, other.affinity) {
            (Affinity::Numeric, Affinity::Numeric) => (Affinity::None, Affinity::None),
            (Affinity::Numeric, _) | (_, Affinity::Numeric) => (Affinity::Numeric, Affinity::Numeric),
            (Affinity::Text, Affinity::None) => (Affinity::None, Affinity::Text),
            (Affinity::None, Affinity::Text) => (Affinity::Text, Affinity::None),
            _ => (Affinity::None, Affinity::None),
        };
        let (left, right) = (self.datum.after(for_self), other.datum.after(for_other));
        if left == Datum::Null || right == Datum::Null {
            return None;
        }
        match (left.number(), right.number()) {
            (Some(left), Some(right)) => left.partial_cmp(&right),
            (Some(_), None) => Some(Ordering::Less),
            (None, Some(_)) => Some(Ordering::Greater),
            (None, None) => Some(left.text()?.as_bytes().cmp(right.text()?.as_bytes())),
        }
    }
}

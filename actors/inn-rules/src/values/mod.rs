//! What a record body becomes before it is stored, and what a stored row becomes before it is shown.
//!
//! Coercions, limits and codes are PocketBase's (reference notes, section C). They differ where PocketBase would lose
//! what was asked for without a word: dates without seconds, hex and padded numbers (the guard admits all three) are
//! kept, a malformed geo point is refused.

mod auth;
mod body;
mod check;
mod coerce;
pub(crate) mod dates;
mod formats;
mod generate;
mod modifiers;
pub(crate) mod problem;
mod render;
mod shape;
mod sign_in;
mod stored;

use inn_protocol::Refusal;
use inn_protocol::model::{Collection, Model};
use serde_json::{Map, Value};

use crate::files::Upload;
use crate::guard::Mode;

pub use auth::{check_auth_form, wrong_old_password};
pub(crate) use coerce::{list, stored_list, zero};
pub use formats::pattern_problem;
pub use generate::{autogenerate, new_id, record_id};
pub(crate) use modifiers::{Modifier, modifier};
pub use problem::{FieldProblem, Param, PbProblem, Problems, Rule, pb_code, pb_data};
pub use render::render_record;
pub use shape::{Member, MemberValue, RecordShape};
pub use sign_in::{SignInForm, Wrong};
pub use stored::{blank, lost, missing_reference, not_stored, not_unique, read_back_fields, taken_account_id};

/// A body, ready to be stored.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Normalised {
    /// Create: the id the caller chose; `None` = make one with [`record_id`].
    /// Update without the stored row: the id that was sent, see [`Self::check_own_id`].
    pub id: Option<String>,
    /// On create every column (without id, autodates, passwords and `tokenKey`); on update the sent fields.
    pub values: Map<String, Value>,
    /// Number changes relative to the stored value. When the stored row was given, `values` holds the result as well:
    /// apply one of the two, never both.
    pub modifiers: Vec<NumberChange>,
    /// Records that must exist, or the write is refused with [`missing_reference`].
    pub references: Vec<Reference>,
    /// Passwords by field name, and `oldPassword`, in plain text: compare or hash, never store or log.
    pub secrets: Map<String, Value>,
    /// Fields to fill with [`autogenerate`] before storing.
    pub generate: Vec<Generate>,
}

impl Normalised {
    /// An update that names an id must name the record's own. Needed when [`normalise`] was not given the stored row.
    ///
    /// # Errors
    /// A refusal with PocketBase's `validation_pk_change` on `id`.
    pub fn check_own_id(&self, record: &str) -> Result<(), Refusal> {
        match &self.id {
            Some(id) if id != record => {
                let problem = FieldProblem::new("id", &problem::KEY_CHANGE).got(&Value::from(id.as_str()));
                Err(Problems(vec![problem]).into_refusal())
            }
            _ => Ok(()),
        }
    }
}

/// `field+` or `field-` of a number field.
#[derive(Debug, Clone, PartialEq)]
pub struct NumberChange {
    pub field: String,
    pub delta: f64,
}

/// Ids a relation field points to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    pub field: String,
    /// Name of the collection that must hold the ids.
    pub collection: String,
    pub ids: Vec<String>,
}

/// A text the store makes up: prefix and pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generate {
    pub field: String,
    pub prefix: String,
    pub pattern: String,
}

/// Coerces and checks a body that the guard let through. `current` is the stored row of an update, needed by list
/// modifiers (`tags+`) and to see whether an `id` is the record's own.
///
/// # Errors
/// One refusal with every problem of every field; [`pb_data`] gives PocketBase's form of it.
pub fn normalise(
    collection: &Collection,
    model: &Model,
    body: &Map<String, Value>,
    mode: Mode,
    current: Option<&Map<String, Value>>,
) -> Result<Normalised, Refusal> {
    normalise_form(collection, model, body, &[], mode, current)
}

/// [`normalise`] for a form that brought files along: `uploads` have been received and wait to be named by a value.
///
/// # Errors
/// As [`normalise`], and PocketBase's codes for files (reference notes, section C).
pub fn normalise_form(
    collection: &Collection,
    model: &Model,
    body: &Map<String, Value>,
    uploads: &[Upload],
    mode: Mode,
    current: Option<&Map<String, Value>>,
) -> Result<Normalised, Refusal> {
    body::normalise(collection, model, body, uploads, mode, current).map_err(Problems::into_refusal)
}

/// A double as JSON writes it: whole numbers without a fraction, as far as doubles are exact.
pub fn number_value(number: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= EXACT {
        // In range by the comparison above, and without a fraction.
        #[expect(clippy::cast_possible_truncation)]
        return Value::from(number as i64);
    }
    Value::from(number)
}

#[cfg(test)]
mod tests;

//! The small forms around signing in: which texts were sent, and everything wrong with them at once, in PocketBase's
//! words (`reference` notes on PocketBase, section E).

use inn_protocol::model::{Collection, Field, FieldKind};
use inn_protocol::{Refusal, Result};
use serde_json::{Map, Value};

use super::problem::{self, FieldProblem, Problems, Rule};
use super::{auth, blank, coerce, formats};

/// What PocketBase says about a form as a whole.
const MESSAGE: &str = "An error occurred while validating the submitted data.";
/// Nothing in these forms is longer; a token is the longest.
const MOST_BYTES: usize = 8192;

/// What can be wrong with a field beyond being empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    /// A token that was not made here, is of another kind, out of date, or of a record that changed since.
    Token,
    /// A token of a mail that says nothing of an address.
    TokenClaims,
    /// A token for a new address that names none.
    TokenPayload,
    /// `newEmail` is somebody else's.
    TakenEmail,
    /// `identityField` names a field that names no records.
    IdentityField,
    /// `newEmail` is the one that is valid now.
    SameEmail,
    /// The password does not belong to the record.
    Password,
    /// A duration below nothing.
    Negative,
}

impl Wrong {
    const fn rule(self) -> &'static Rule {
        match self {
            Self::Token => &problem::TOKEN,
            Self::TokenClaims => &problem::TOKEN_CLAIMS,
            Self::TokenPayload => &problem::TOKEN_PAYLOAD,
            Self::TakenEmail => &problem::TAKEN_EMAIL,
            Self::IdentityField => &problem::NO_IDENTITY,
            Self::SameEmail => &problem::SAME_EMAIL,
            Self::Password => &problem::WRONG_PASSWORD,
            Self::Negative => &problem::NEGATIVE,
        }
    }
}

/// One form being read.
pub struct SignInForm<'a> {
    body: &'a Map<String, Value>,
    problems: Vec<FieldProblem>,
}

impl<'a> SignInForm<'a> {
    /// # Errors
    /// A body that is no object.
    pub fn new(body: &'a Value) -> Result<Self> {
        static NOTHING: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
        match body {
            Value::Object(body) => Ok(Self { body, problems: Vec::new() }),
            Value::Null => Ok(Self { body: &NOTHING, problems: Vec::new() }),
            _ => Err(Refusal::new(
                inn_protocol::Code::InvalidBody,
                "An error occurred while loading the submitted data. It must be a JSON object.",
            )),
        }
    }

    /// A text that may be left out. Too long a one counts as no text that fits anything.
    pub fn optional(&mut self, name: &str) -> Option<String> {
        let value = self.body.get(name).filter(|value| !blank(value))?;
        let text = coerce::text(value);
        if text.len() > MOST_BYTES || text.contains('\0') {
            self.problems.push(FieldProblem::new(name, &problem::UNREADABLE));
            return None;
        }
        Some(text).filter(|text| !text.is_empty())
    }

    /// A text that must be there; empty when it is not.
    pub fn required(&mut self, name: &str) -> String {
        let before = self.problems.len();
        if let Some(text) = self.optional(name) {
            return text;
        }
        if self.problems.len() == before {
            self.problems.push(FieldProblem::new(name, &problem::REQUIRED));
        }
        String::new()
    }

    pub fn email(&mut self, name: &str) -> String {
        let text = self.required(name);
        if !text.is_empty() && (text.len() > 255 || !formats::is_email(&text)) {
            self.problems.push(FieldProblem::new(name, &problem::EMAIL));
        }
        text
    }

    /// A whole number that may be left out.
    pub fn seconds(&mut self, name: &str) -> i64 {
        let number = self.body.get(name).and_then(|value| coerce::number(value).ok()).unwrap_or_default();
        if number < 0.0 {
            self.wrong(name, Wrong::Negative);
        }
        // Of sane size by the clamp; what a fraction of a second is worth nobody asks.
        #[expect(clippy::cast_possible_truncation)]
        let seconds = number.clamp(0.0, 94_670_856.0) as i64;
        seconds
    }

    /// A new password and its confirmation, by the rules of the collection.
    pub fn new_password(&mut self, collection: &Collection) -> String {
        let password = self.required("password");
        if let Some(field) = collection.field("password").filter(|_| !password.is_empty()) {
            self.problems.extend(password_problem(collection, field, &password));
        }
        let confirm = self.required("passwordConfirm");
        if !confirm.is_empty() && confirm != password {
            self.problems.push(FieldProblem::new("passwordConfirm", &problem::MISMATCH));
        }
        password
    }

    pub fn wrong(&mut self, field: &str, wrong: Wrong) {
        let problem = match wrong {
            Wrong::Negative => FieldProblem::with(field, wrong.rule(), &0),
            _ => FieldProblem::new(field, wrong.rule()),
        };
        self.problems.push(problem);
    }

    /// Nothing wrong so far.
    pub fn is_fine(&self) -> bool {
        self.problems.is_empty()
    }

    /// # Errors
    /// One refusal with everything wrong.
    pub fn finish(self) -> Result<()> {
        if self.problems.is_empty() {
            return Ok(());
        }
        let mut refusal = Problems(self.problems).into_refusal();
        MESSAGE.clone_into(&mut refusal.message);
        Err(refusal)
    }
}

fn password_problem(collection: &Collection, field: &Field, password: &str) -> Option<FieldProblem> {
    let FieldKind::Password { min, max, pattern, .. } = &field.kind else { return None };
    auth::password_problem(collection, field, password, (*min, *max), pattern)
}

#[cfg(test)]
mod tests;

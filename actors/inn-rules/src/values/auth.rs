//! Passwords, and the fields of auth records that only owners of the app may set.

use inn_protocol::model::{Collection, Field, FieldKind};
use inn_protocol::{Refusal, Result};
use serde_json::{Map, Value};

use super::problem::{self, FieldProblem, Problems};
use super::{Normalised, blank, check, coerce};
use crate::guard::Mode;

const DEFAULT_MIN_PASSWORD: u32 = 8;
/// What bcrypt, and with it every exported PocketBase hash, can tell apart.
const MAX_PASSWORD: u32 = 71;

/// Takes a password out of the body: checked, and never into `values`.
pub(super) fn secret(
    collection: &Collection,
    field: &Field,
    body: &Map<String, Value>,
    mode: Mode,
    out: &mut Normalised,
) -> Vec<FieldProblem> {
    let FieldKind::Password { min, max, pattern, .. } = &field.kind else { return Vec::new() };
    let sent = |name: &str| body.get(name).filter(|value| !blank(value)).map(coerce::text);
    let mut problems = Vec::new();
    let password = sent(&field.name);
    match &password {
        Some(password) => {
            problems.extend(password_problem(collection, field, password, (*min, *max), pattern));
            out.secrets.insert(field.name.clone(), Value::String(password.clone()));
        }
        None if mode == Mode::Create && field.required => {
            problems.push(FieldProblem::new(&field.name, &problem::REQUIRED));
        }
        None => {}
    }
    if collection.is_auth() && field.name == "password" {
        let old = sent("oldPassword").filter(|_| mode == Mode::Update);
        match (sent("passwordConfirm"), &password) {
            (None, Some(_)) => problems.push(FieldProblem::new("passwordConfirm", &problem::REQUIRED)),
            (confirm @ Some(_), password) if confirm != *password => {
                problems.push(FieldProblem::new("passwordConfirm", &problem::MISMATCH));
            }
            _ => {}
        }
        if let Some(old) = old {
            out.secrets.insert("oldPassword".to_owned(), Value::String(old));
        }
    }
    problems
}

/// What is wrong with a new password by the rules of its field: least and greatest length (0 is the default), pattern.
pub(super) fn password_problem(
    collection: &Collection,
    field: &Field,
    password: &str,
    (min, max): (u32, u32),
    pattern: &str,
) -> Option<FieldProblem> {
    let min = if min == 0 && collection.is_auth() { DEFAULT_MIN_PASSWORD } else { min };
    let max = if max == 0 { MAX_PASSWORD } else { max.min(MAX_PASSWORD) };
    let wrong = if password.contains('\0') {
        Some(FieldProblem::new(&field.name, &problem::NUL))
    } else {
        check::text_problem(field, password, min, max, pattern)
    };
    // A password is never told back.
    wrong.map(|problem| FieldProblem { got: None, rule: of_passwords(problem.rule), ..problem })
}

/// PocketBase says the same of passwords in other words.
fn of_passwords(rule: &'static problem::Rule) -> &'static problem::Rule {
    if *rule == problem::MIN_TEXT {
        &problem::MIN_PASSWORD
    } else if *rule == problem::MAX_TEXT {
        &problem::MAX_PASSWORD
    } else {
        rule
    }
}

/// The `oldPassword` that was sent is not the one that is valid.
pub fn wrong_old_password() -> Refusal {
    Problems(vec![FieldProblem::new("oldPassword", &problem::OLD_PASSWORD)]).into_refusal()
}

/// What a caller who does not manage the app may not do to an auth record: call it verified, change its email, or set
/// a password without naming the old one (which the caller of this function compares). Reference notes, section E.
///
/// # Errors
/// A refusal with one violation for each such field.
pub fn check_auth_form(
    collection: &Collection,
    normalised: &Normalised,
    mode: Mode,
    current: Option<&Map<String, Value>>,
) -> Result<(), Refusal> {
    if !collection.is_auth() {
        return Ok(());
    }
    let stored = |name: &str| current.and_then(|row| row.get(name));
    let changed = |name: &str| normalised.values.get(name).is_some_and(|value| stored(name) != Some(value));
    let mut problems = Vec::new();
    let verified = match mode {
        Mode::Create => normalised.values.get("verified") == Some(&Value::Bool(true)),
        Mode::Update => changed("verified"),
    };
    if verified {
        problems.push(FieldProblem::new("verified", &problem::NOT_YOURS));
    }
    if mode == Mode::Update {
        if changed("email") {
            problems.push(FieldProblem::new("email", &problem::NOT_YOURS));
        }
        if normalised.secrets.contains_key("password") && !normalised.secrets.contains_key("oldPassword") {
            problems.push(FieldProblem::new("oldPassword", &problem::REQUIRED));
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(Problems(problems).into_refusal()) }
}

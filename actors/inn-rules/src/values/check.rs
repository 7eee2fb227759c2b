//! Does a coerced value keep the rules of its field? One problem per field, as PocketBase answers.

use inn_protocol::model::{Field, FieldKind};
use serde_json::Value;

use super::problem::{self, FieldProblem, Rule};
use super::{coerce, dates, formats};

const DEFAULT_MAX_TEXT: u32 = 5000;
const DEFAULT_MAX_EDITOR: u64 = 5 << 20;
const DEFAULT_MAX_JSON: u64 = 1 << 20;

/// The problem of a value that has its field's type already. Unset values only break `required`.
pub(super) fn check(field: &Field, value: &Value) -> Option<FieldProblem> {
    let plain = |rule: &'static Rule| Some(FieldProblem::new(&field.name, rule).got(value));
    if is_unset(field, value) {
        return field.required.then(|| FieldProblem::new(&field.name, &problem::REQUIRED).got(value));
    }
    let text = value.as_str().unwrap_or_default();
    if text.contains('\0') && !matches!(field.kind, FieldKind::Json { .. }) {
        return plain(&problem::NUL);
    }
    match &field.kind {
        FieldKind::Text { min, max, pattern, .. } => {
            text_problem(field, text, *min, if *max == 0 { DEFAULT_MAX_TEXT } else { *max }, pattern)
        }
        FieldKind::Editor { max_size } => {
            size(field, text.len(), *max_size, DEFAULT_MAX_EDITOR, &problem::CONTENT_SIZE)
        }
        FieldKind::Number { min, max, only_int } => number(field, value, *min, *max, *only_int),
        FieldKind::Email { only_domains, except_domains } => {
            if !formats::is_email(text) {
                return plain(&problem::EMAIL);
            }
            let allowed = domain_allowed(formats::email_domain(text), only_domains, except_domains);
            if allowed { None } else { plain(&problem::EMAIL_DOMAIN) }
        }
        FieldKind::Url { only_domains, except_domains } => {
            if !formats::is_url(text) {
                return plain(&problem::URL);
            }
            let allowed = domain_allowed(formats::url_host(text), only_domains, except_domains);
            if allowed { None } else { plain(&problem::URL_DOMAIN) }
        }
        FieldKind::Date { min, max } => {
            // The stored layout sorts as text.
            let bound = |bound: &str| dates::stored_any(bound);
            if let Some(min) = bound(min).filter(|min| text < min.as_str()) {
                return Some(FieldProblem::with(&field.name, &problem::MIN_DATE, &min).got(value));
            }
            let max = bound(max).filter(|max| text > max.as_str())?;
            Some(FieldProblem::with(&field.name, &problem::MAX_DATE, &max).got(value))
        }
        FieldKind::Select { values, max_select } => {
            let chosen = coerce::stored_list(value);
            if let Some(problem) = count(field, chosen.len(), 0, *max_select) {
                return Some(problem.got(value));
            }
            let wrong = chosen.into_iter().find(|choice| !values.contains(choice))?;
            let problem = FieldProblem::with(&field.name, &problem::NOT_AN_OPTION, &values.join(", "));
            Some(problem.got(&Value::String(wrong)))
        }
        FieldKind::Relation { min_select, max_select, .. } => {
            let ids = coerce::stored_list(value);
            if ids.iter().any(|id| id.contains('\0')) {
                return plain(&problem::NUL);
            }
            count(field, ids.len(), *min_select, *max_select).map(|problem| problem.got(value))
        }
        FieldKind::Json { max_size } => {
            let bytes = inn_protocol::canonical::to_string(value).len();
            size(field, bytes, *max_size, DEFAULT_MAX_JSON, &problem::JSON_SIZE)
        }
        FieldKind::GeoPoint {} => {
            let outside =
                |name: &str, limit: f64| value.get(name).and_then(Value::as_f64).is_none_or(|v| v.abs() > limit);
            if outside("lat", 90.0) {
                return plain(&problem::LATITUDE);
            }
            if outside("lon", 180.0) { plain(&problem::LONGITUDE) } else { None }
        }
        FieldKind::Bool {} | FieldKind::Autodate { .. } | FieldKind::File { .. } | FieldKind::Password { .. } => None,
    }
}

/// What PocketBase counts as blank for this type.
fn is_unset(field: &Field, value: &Value) -> bool {
    match &field.kind {
        FieldKind::Json { .. } => match value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Object(members) => members.is_empty(),
            Value::Bool(_) | Value::Number(_) => false,
        },
        FieldKind::Number { .. } => value.as_f64() == Some(0.0),
        _ => *value == coerce::zero(field),
    }
}

/// Length in code points, then the pattern.
pub(super) fn text_problem(field: &Field, text: &str, min: u32, max: u32, pattern: &str) -> Option<FieldProblem> {
    let got = Value::String(text.to_owned());
    let length = text.chars().count();
    let over = |bound: u32| length > usize::try_from(bound).unwrap_or(usize::MAX);
    if min > 0 && !over(min - 1) {
        return Some(FieldProblem::with(&field.name, &problem::MIN_TEXT, &min).got(&got));
    }
    if over(max) {
        return Some(FieldProblem::with(&field.name, &problem::MAX_TEXT, &max).got(&got));
    }
    let wrong = !pattern.is_empty() && !formats::fits(pattern, text);
    wrong.then(|| FieldProblem::new(&field.name, &problem::FORMAT).got(&got))
}

fn number(field: &Field, value: &Value, min: Option<f64>, max: Option<f64>, only_int: bool) -> Option<FieldProblem> {
    let number = value.as_f64()?;
    // What an integer of 64 bits cannot hold is no whole number for PocketBase.
    let found = if only_int && (number.fract() != 0.0 || number.abs() >= 9_223_372_036_854_775_808.0) {
        FieldProblem::new(&field.name, &problem::ONLY_INT)
    } else if let Some(min) = min.filter(|min| number < *min) {
        FieldProblem::with(&field.name, &problem::MIN_NUMBER, &min)
    } else {
        FieldProblem::with(&field.name, &problem::MAX_NUMBER, &max.filter(|max| number > *max)?)
    };
    Some(found.got(value))
}

fn size(field: &Field, bytes: usize, max: u64, default: u64, rule: &'static Rule) -> Option<FieldProblem> {
    let max = if max == 0 { default } else { max };
    (u64::try_from(bytes).unwrap_or(u64::MAX) > max).then(|| FieldProblem::with(&field.name, rule, &max))
}

fn count(field: &Field, values: usize, min: u32, max: u32) -> Option<FieldProblem> {
    let values = u32::try_from(values).unwrap_or(u32::MAX);
    if values < min {
        return Some(FieldProblem::with(&field.name, &problem::NOT_ENOUGH, &min));
    }
    let max = max.max(1);
    (values > max).then(|| FieldProblem::with(&field.name, &problem::TOO_MANY, &max))
}

fn domain_allowed(domain: &str, only: &[String], except: &[String]) -> bool {
    let listed = |list: &[String]| list.iter().any(|entry| entry == domain);
    (only.is_empty() || listed(only)) && !listed(except)
}

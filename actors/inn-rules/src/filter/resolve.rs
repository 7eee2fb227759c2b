//! What an identifier means (sections A.5 and A.6). Relation paths, back relations, `@collection` and the other
//! `@request` forms grow here.

use inn_protocol::model::{Collection, Field, FieldKind};

use super::auth::auth_value;
use super::error::FilterError;
use super::expr::{FieldClass, FieldRef, Operand};
use super::macros::{MacroValue, value as macro_value};
use super::scope::Scope;

/// An operand with what the compiler must still know about it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Resolved {
    pub(super) operand: Operand,
    /// A number that is an INTEGER to `SQLite`: as text it has no `.0`.
    pub(super) integer: bool,
    /// Came from `@request`: a bound value, so that `true` is the text `true` on the right of `~`.
    pub(super) bound: bool,
    /// `:each` on a single value: the value itself, but no longer of a text column.
    pub(super) loose: bool,
}

impl Resolved {
    pub(super) const fn plain(operand: Operand) -> Self {
        Self { operand, integer: false, bound: false, loose: false }
    }
}

pub(super) fn identifier(name: &str, at: usize, scope: &Scope<'_>) -> Result<Resolved, FilterError> {
    match macro_value(name, scope.now) {
        Some(MacroValue::Text(text)) => return Ok(Resolved::plain(Operand::Text(text))),
        Some(MacroValue::Integer(number)) => {
            return Ok(Resolved { integer: true, ..Resolved::plain(Operand::Number(f64::from(number))) });
        }
        None => {}
    }
    if let Some(path) = name.strip_prefix("@request.auth.") {
        return auth_value(path, at, scope);
    }
    if name.starts_with("@request.") || name.starts_with("@collection.") {
        return Err(request_form(name, at));
    }
    match field_of(name, at, scope) {
        Err(FilterError::UnknownField(_)) if name.eq_ignore_ascii_case("null") => Ok(Resolved::plain(Operand::Null)),
        Err(FilterError::UnknownField(_)) if name.eq_ignore_ascii_case("true") => {
            Ok(Resolved::plain(Operand::Bool(true)))
        }
        Err(FilterError::UnknownField(_)) if name.eq_ignore_ascii_case("false") => {
            Ok(Resolved::plain(Operand::Bool(false)))
        }
        found => found.map(|field| Resolved {
            loose: field.class == FieldClass::Text
                && !field.each
                && name.ends_with(":each")
                && holds_values(&field.name, scope),
            ..Resolved::plain(Operand::Field(field))
        }),
    }
}

/// The forms PocketBase has beyond `@request.auth`: refused by name. Others are errors there too.
fn request_form(name: &str, at: usize) -> FilterError {
    let known = ["@request.query.", "@request.headers.", "@request.body.", "@collection."];
    let exact = ["@request.context", "@request.method"];
    if known.iter().any(|form| name.starts_with(form)) || exact.contains(&name) {
        FilterError::Unsupported(format!("`{name}`"))
    } else {
        FilterError::invalid(at, format!("`{name}` means nothing"))
    }
}

/// The modifiers of section A.6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Modifier {
    Lower,
    Length,
    Each,
    Isset,
    Changed,
}

/// Cuts the modifier off the last part of a path.
pub(super) fn split_modifier(path: &str, at: usize) -> Result<(&str, Option<Modifier>), FilterError> {
    let last_part = path.rfind('.').map_or(0, |dot| dot + 1);
    let Some((name, modifier)) = path.get(last_part..).and_then(|last| last.split_once(':')) else {
        return Ok((path, None));
    };
    let modifier = match modifier {
        "lower" => Modifier::Lower,
        "length" => Modifier::Length,
        "each" => Modifier::Each,
        "isset" => Modifier::Isset,
        "changed" => Modifier::Changed,
        other => return Err(FilterError::invalid(at, format!("`:{other}` is not a modifier"))),
    };
    Ok((path.get(..last_part + name.len()).unwrap_or(path), Some(modifier)))
}

/// A path that starts at a field of the collection. Modifiers on a kind of field they do not apply to are ignored,
/// as PocketBase does.
pub(crate) fn field_of(full: &str, at: usize, scope: &Scope<'_>) -> Result<FieldRef, FilterError> {
    let unknown = || FilterError::UnknownField(full.to_owned());
    let head = full.split('.').next().unwrap_or(full);
    if let Some(field) = scope.collection.field(head)
        && matches!(field.kind, FieldKind::Json { .. } | FieldKind::GeoPoint {})
        && head.len() < full.len()
    {
        return below_json(field, full, scope);
    }
    let (path, modifier) = split_modifier(full, at)?;
    let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
    if name.contains("_via_") {
        return Err(FilterError::Unsupported(format!("the back relation `{path}`")));
    }
    let field = scope.collection.field(name).ok_or_else(unknown)?;
    usable(field, full, scope)?;
    let class = class_of(field);
    let holds_values = holds_values(&field.name, scope);
    let found = FieldRef {
        name: field.name.clone(),
        class,
        path: Vec::new(),
        lower: modifier == Some(Modifier::Lower),
        length: modifier == Some(Modifier::Length) && holds_values,
        each: modifier == Some(Modifier::Each) && class == FieldClass::List,
    };
    match (&field.kind, rest) {
        (_, None) => Ok(found),
        // The id of a single related record is the stored value itself: a dangling id still compares. With a modifier
        // it is a path through the related record again.
        (FieldKind::Relation { .. }, Some("id")) if class == FieldClass::Text && modifier.is_none() => Ok(found),
        (FieldKind::Relation { .. }, Some(_)) => Err(FilterError::Unsupported(format!("the relation path `{path}`"))),
        _ => Err(unknown()),
    }
}

/// A path below a json or geoPoint field. Modifiers do not exist there: `:lower` would be part of the key.
fn below_json(field: &Field, full: &str, scope: &Scope<'_>) -> Result<FieldRef, FilterError> {
    usable(field, full, scope)?;
    let path: Vec<String> = full.split('.').skip(1).map(str::to_owned).collect();
    if path.iter().any(String::is_empty) {
        return Err(FilterError::UnknownField(full.to_owned()));
    }
    let (name, class) = (field.name.clone(), class_of(field));
    Ok(FieldRef { name, class, path, lower: false, length: false, each: false })
}

fn usable(field: &Field, full: &str, scope: &Scope<'_>) -> Result<(), FilterError> {
    if is_secret(field, scope.collection) || (field.hidden && !scope.see_hidden) {
        return Err(FilterError::Hidden(full.to_owned()));
    }
    Ok(())
}

/// Never comparable by anybody: a comparison would be an oracle for the secret.
pub(super) fn is_secret(field: &Field, collection: &Collection) -> bool {
    matches!(field.kind, FieldKind::Password { .. }) || (collection.is_auth() && field.name == "tokenKey")
}

/// A field whose values `:length` counts and `:each` walks.
fn holds_values(name: &str, scope: &Scope<'_>) -> bool {
    let field = scope.collection.field(name);
    field.is_some_and(|field| {
        matches!(field.kind, FieldKind::Select { .. } | FieldKind::Relation { .. } | FieldKind::File { .. })
    })
}

fn class_of(field: &Field) -> FieldClass {
    match field.kind {
        _ if field.is_multiple() => FieldClass::List,
        FieldKind::Number { .. } => FieldClass::Number,
        FieldKind::Bool {} => FieldClass::Bool,
        FieldKind::Json { .. } => FieldClass::Json,
        FieldKind::GeoPoint {} => FieldClass::Geo,
        _ => FieldClass::Text,
    }
}

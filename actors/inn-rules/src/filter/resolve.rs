//! What an identifier means (sections A.5 and A.6).

use inn_protocol::model::{Collection, CollectionKind, Field, FieldKind};

use super::context::Context;
use super::error::FilterError;
use super::expr::{FieldClass, FieldRef, Operand};
use super::macros::{MacroValue, value as macro_value};
use super::request::request;
use super::walk::{Hop, Link, Start, Walk};
use crate::schema::is_unique_alone;
use crate::view::is_computed;

/// Most relations one path may follow.
const MAX_HOPS: usize = 6;

/// An operand with what the compiler must still know about it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Resolved {
    pub(super) operand: Operand,
    /// A number that is an INTEGER to `SQLite`: as text it has no `.0`.
    pub(super) integer: bool,
    /// Came from `@request`: a bound value, so that `true` is the text `true` on the right of `~`.
    pub(super) bound: bool,
    /// `@request.body.FIELD:changed`: the comparison this stands for.
    pub(super) stands_for: Option<Box<super::expr::Expr>>,
    /// An account's email that only those who made it public can be found by: the flag beside it.
    pub(super) if_public: Option<FieldRef>,
}

impl Resolved {
    pub(super) const fn plain(operand: Operand) -> Self {
        Self { operand, integer: false, bound: false, stands_for: None, if_public: None }
    }

    pub(super) fn bound(operand: Operand) -> Self {
        Self { bound: true, ..Self::plain(operand) }
    }
}

pub(super) fn identifier(name: &str, at: usize, context: &mut Context<'_>) -> Result<Resolved, FilterError> {
    match macro_value(name, context.scope.now) {
        Some(MacroValue::Text(text)) => return Ok(Resolved::plain(Operand::Text(text))),
        Some(MacroValue::Integer(number)) => {
            return Ok(Resolved { integer: true, ..Resolved::plain(Operand::Number(f64::from(number))) });
        }
        None => {}
    }
    let found = path_or_request(name, at, context);
    match found {
        Err(FilterError::UnknownField(_)) if name.eq_ignore_ascii_case("null") => Ok(Resolved::plain(Operand::Null)),
        Err(FilterError::UnknownField(_)) if name.eq_ignore_ascii_case("true") => {
            Ok(Resolved::plain(Operand::Bool(true)))
        }
        Err(FilterError::UnknownField(_)) if name.eq_ignore_ascii_case("false") => {
            Ok(Resolved::plain(Operand::Bool(false)))
        }
        found => found,
    }
}

fn path_or_request(name: &str, at: usize, context: &mut Context<'_>) -> Result<Resolved, FilterError> {
    if let Some(path) = name.strip_prefix("@request.") {
        return request(path, at, context);
    }
    if let Some(path) = name.strip_prefix("@collection.") {
        let (entity, rest) = path.split_once('.').ok_or_else(|| FilterError::UnknownField(name.to_owned()))?;
        let (entity, alias) = match entity.split_once(':') {
            // Of an alias PocketBase knows one colon with a word after it.
            Some((_, alias)) if alias.is_empty() || alias.contains(':') => {
                return Err(FilterError::UnknownField(name.to_owned()));
            }
            Some((entity, alias)) => (entity, Some(alias)),
            None => (entity, None),
        };
        let Some(collection) = context.scope.model.collection(entity) else {
            return Err(FilterError::UnknownField(name.to_owned()));
        };
        let alias = alias.map_or_else(|| collection.name.clone(), |alias| format!(":{alias}"));
        let start = Start::Collection { name: collection.name.clone(), alias, private: context.private };
        let walk = Walk { start, many: true, ..Walk::default() };
        context.join(&walk, collection, name)?;
        return Path { full: name, at, lenient: false }.follow(rest, walk, collection, context);
    }
    let (base, collection) = (context.base.clone(), context.scope.collection);
    Path { full: name, at, lenient: false }.follow(name, base, collection, context)
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
    if modifier.contains(':') {
        // To PocketBase that is one strange name, which nothing has.
        return Ok((path, None));
    }
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

/// A path of fields and relations, as it is followed.
pub(super) struct Path<'p> {
    /// As written, for refusals.
    pub(super) full: &'p str,
    pub(super) at: usize,
    /// What is not there is NULL: below `@request`.
    pub(super) lenient: bool,
}

impl Path<'_> {
    /// From the rows of `walk`, which are of this collection.
    pub(super) fn follow<'a>(
        &self,
        path: &str,
        mut walk: Walk,
        mut collection: &'a Collection,
        context: &mut Context<'a>,
    ) -> Result<Resolved, FilterError> {
        let parts: Vec<&str> = path.split('.').collect();
        let Some((last, steps)) = parts.split_last() else { return self.missing() };
        for (place, part) in steps.iter().enumerate() {
            let field = collection.field(part);
            if let Some(field) = field {
                self.usable(field, collection, context)?;
                if matches!(field.kind, FieldKind::Json { .. } | FieldKind::GeoPoint {}) {
                    let below = parts.iter().skip(place + 1).map(|key| (*key).to_owned()).collect();
                    return self.below_json(field, below, walk);
                }
            }
            if place >= MAX_HOPS {
                return Err(FilterError::invalid(self.at, format!("`{}` follows too many relations", self.full)));
            }
            let Some((hop, target, many)) = (match field {
                Some(field) => {
                    // The id of a single related record is the stored value itself: a dangling id still compares.
                    if let FieldKind::Relation { .. } = field.kind
                        && !field.is_multiple()
                        && place + 1 == steps.len()
                        && *last == "id"
                    {
                        return self.end(part, walk, collection, context);
                    }
                    self.forward(field, part, context)?
                }
                None => self.back(part, collection, context)?,
            }) else {
                return self.missing();
            };
            walk.hops.push(hop);
            walk.many |= many;
            context.join(&walk, target, self.full)?;
            collection = target;
        }
        self.end(last, walk, collection, context)
    }

    fn forward<'a>(
        &self,
        field: &Field,
        part: &str,
        context: &Context<'a>,
    ) -> Result<Option<(Hop, &'a Collection, bool)>, FilterError> {
        let unknown = || FilterError::UnknownField(self.full.to_owned());
        let FieldKind::Relation { collection_id, .. } = &field.kind else { return Err(unknown()) };
        let target = context.scope.model.collection(collection_id).ok_or_else(unknown)?;
        let many = field.is_multiple();
        Ok(Some((hop(if many { Link::List } else { Link::One }, field, target, part, context), target, many)))
    }

    /// `COLL_via_FIELD`: the records of COLL that refer to this one.
    fn back<'a>(
        &self,
        part: &str,
        collection: &Collection,
        context: &Context<'a>,
    ) -> Result<Option<(Hop, &'a Collection, bool)>, FilterError> {
        let missing = || if self.lenient { Ok(None) } else { Err(FilterError::UnknownField(self.full.to_owned())) };
        let Some((name, field)) = part.rsplit_once("_via_") else { return missing() };
        let Some(target) = context.scope.model.collection(name) else { return missing() };
        let Some(field) = target.field(field) else { return missing() };
        let FieldKind::Relation { collection_id, .. } = &field.kind else { return missing() };
        if context.scope.model.collection(collection_id).is_none_or(|other| other.id != collection.id) {
            return missing();
        }
        self.usable(field, target, context)?;
        let listed = field.is_multiple();
        let many = listed || !is_unique_alone(target, &field.name);
        Ok(Some((hop(if listed { Link::BackList } else { Link::BackOne }, field, target, part, context), target, many)))
    }

    /// The last part of a path.
    fn end(
        &self,
        part: &str,
        mut walk: Walk,
        collection: &Collection,
        context: &Context<'_>,
    ) -> Result<Resolved, FilterError> {
        let (name, modifier) = split_modifier(part, self.at)?;
        let Some(field) = collection.field(name) else { return self.missing() };
        self.usable(field, collection, context)?;
        let class = class_of(field);
        let several = holds_values(field);
        let each = modifier == Some(Modifier::Each) && several;
        let length = modifier == Some(Modifier::Length) && several;
        let if_public = (name == "email" && collection.is_auth() && !context.scope.see_hidden && !each && !length)
            .then(|| FieldRef::new(walk.clone(), "emailVisibility", FieldClass::Bool));
        walk.many |= each && class == FieldClass::List;
        let lower = modifier == Some(Modifier::Lower);
        let bare = context.unsaved && walk.is_here() || is_computed(collection, &field.name, context.scope.model);
        let nullable = collection.kind == CollectionKind::View;
        let field = FieldRef { lower, length, each, bare, nullable, ..FieldRef::new(walk, field.name.clone(), class) };
        Ok(Resolved { if_public, ..Resolved::plain(Operand::Field(field)) })
    }

    /// A path below a json or geoPoint field. Modifiers do not exist there: `:lower` would be part of the key.
    fn below_json(&self, field: &Field, path: Vec<String>, walk: Walk) -> Result<Resolved, FilterError> {
        if path.iter().any(String::is_empty) {
            return Err(FilterError::UnknownField(self.full.to_owned()));
        }
        // PocketBase drops the sign of a modifier from a key.
        let path = path.into_iter().map(|key| key.replace(':', "")).collect();
        let field = FieldRef { path, ..FieldRef::new(walk, field.name.clone(), class_of(field)) };
        Ok(Resolved::plain(Operand::Field(field)))
    }

    fn missing(&self) -> Result<Resolved, FilterError> {
        if self.lenient {
            Ok(Resolved::plain(Operand::Null))
        } else {
            Err(FilterError::UnknownField(self.full.to_owned()))
        }
    }

    fn usable(&self, field: &Field, collection: &Collection, context: &Context<'_>) -> Result<(), FilterError> {
        if is_secret(field, collection) || (field.hidden && !context.scope.see_hidden) {
            return Err(FilterError::Hidden(self.full.to_owned()));
        }
        Ok(())
    }
}

fn hop(link: Link, field: &Field, target: &Collection, spelling: &str, context: &Context<'_>) -> Hop {
    Hop {
        link,
        field: field.name.clone(),
        collection: target.name.clone(),
        spelling: spelling.to_owned(),
        private: context.private,
    }
}

/// Never comparable by anybody: a comparison would be an oracle for the secret.
pub(super) fn is_secret(field: &Field, collection: &Collection) -> bool {
    matches!(field.kind, FieldKind::Password { .. }) || (collection.is_auth() && field.name == "tokenKey")
}

/// A field whose values `:length` counts and `:each` walks.
pub(super) fn holds_values(field: &Field) -> bool {
    matches!(field.kind, FieldKind::Select { .. } | FieldKind::Relation { .. } | FieldKind::File { .. })
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

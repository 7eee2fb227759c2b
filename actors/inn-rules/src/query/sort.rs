//! The `sort` parameter.

use inn_protocol::model::CollectionKind;
use inn_protocol::{Code, Refusal, Violation};

use crate::filter::{FieldRef, FilterError, Scope, sort_field};

const MAX_ITEMS: usize = 8;
const MAX_ITEM_BYTES: usize = 255;

/// One sort key. NULLs come first ascending and last descending.
#[derive(Debug, Clone, PartialEq)]
pub struct SortKey {
    pub by: SortBy,
    pub descending: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum SortBy {
    Field(FieldRef),
    /// `@random`
    Random,
    /// `@rowid`: insertion order.
    RowId,
}

/// The names of the fields in a sort, for what they join.
pub(super) fn names(spec: &str) -> Vec<&str> {
    let items = spec.split(',').map(|item| item.trim_matches([' ', '\t', '\n', '\r']));
    items
        .map(|item| item.strip_prefix(['-', '+']).unwrap_or(item))
        .filter(|name| !name.is_empty() && !name.starts_with('@'))
        .collect()
}

/// Reads `-created,title:lower,@random`. Refused (`invalid_parameter` on `sort`) for more than 8 items, items over
/// 255 bytes, empty items, and anything that is not a field this caller may use.
pub fn sort(spec: &str, scope: &Scope<'_>) -> Result<Vec<SortKey>, Refusal> {
    super::guard_client_text(spec, scope)?;
    let items: Vec<&str> = spec.split(',').map(|item| item.trim_matches([' ', '\t', '\n', '\r'])).collect();
    if items.len() > MAX_ITEMS {
        return Err(refused(format!("at most {MAX_ITEMS} keys")));
    }
    items.into_iter().map(|item| key(item, scope)).collect()
}

fn key(item: &str, scope: &Scope<'_>) -> Result<SortKey, Refusal> {
    if item.len() > MAX_ITEM_BYTES {
        return Err(refused(format!("keys of at most {MAX_ITEM_BYTES} bytes")));
    }
    let (descending, name) = match item.strip_prefix('-') {
        Some(name) => (true, name),
        None => (false, item.strip_prefix('+').unwrap_or(item)),
    };
    let by = match name {
        "" => return Err(refused("a field between the commas".to_owned())),
        "@random" => SortBy::Random,
        "@rowid" if scope.collection.kind == CollectionKind::View => {
            return Err(refused("a field: the rows of a view have no number".to_owned()));
        }
        "@rowid" => SortBy::RowId,
        name => SortBy::Field(sort_field(name, scope).map_err(|error| refused(reason(&error)))?),
    };
    Ok(SortKey { by, descending })
}

fn reason(error: &FilterError) -> String {
    format!("fields of the collection; {error}")
}

fn refused(expected: String) -> Refusal {
    let violation = Violation::new(Code::InvalidParameter, "sort", expected);
    let message = format!("The sort cannot be used: expected {}.", violation.expected.as_deref().unwrap_or_default());
    Refusal::violations(message, vec![violation])
}

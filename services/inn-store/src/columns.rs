//! App tables: how a collection's fields are kept in PostgreSQL, how values get in and rows come out.
//!
//! PocketBase's "no nulls" rules (reference notes on PocketBase, sections A.12 and C): every column has a zero value,
//! only `json` may be null. Text compares bytewise. Besides `id` every table has `_row`, which counts inserts.

#[cfg(test)]
pub(crate) mod fixture;
mod value;

#[cfg(test)]
mod tests;

use std::fmt::Write as _;

use inn_protocol::model::{Collection, Field};
use inn_protocol::{AppId, Digest};
use inn_rules::schema::{Storage, storage};

pub(crate) use value::{SqlValue, param};

/// The insert-order column, quoted. No field can have this name: [`ident`] moves it away.
pub(crate) const ROW: &str = "\"_row\"";

/// PostgreSQL cuts longer names silently, and two cut names could be the same.
const LONGEST_NAME: usize = 63;
/// Names a column cannot have, because PostgreSQL or we use them.
const TAKEN: [&str; 7] = ["_row", "tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"];

/// The quoted identifier of a field or collection name. The only place where a name becomes part of SQL text.
///
/// Names of collections and fields are word characters, so a `~` in the result cannot meet another name.
pub(crate) fn ident(name: &str) -> String {
    format!("\"{}\"", stored_name(name).replace('"', "\"\""))
}

/// The name as the catalogue spells it, unquoted.
pub(crate) fn stored_name(name: &str) -> String {
    // PostgreSQL refuses NUL in a name; no valid name has one.
    let name = name.replace('\0', "~");
    if TAKEN.contains(&name.as_str()) {
        return format!("{name}~");
    }
    if name.len() <= LONGEST_NAME {
        return name;
    }
    let start: String = name
        .chars()
        .scan(0, |used, c| {
            *used += c.len_utf8();
            (*used <= 46).then_some(c)
        })
        .collect();
    format!("{start}~{}", fingerprint(&[&name]))
}

/// 16 hex digits that name the parts: for catalogue names that must be short and cannot be chosen by an app.
pub(crate) fn fingerprint(parts: &[&str]) -> String {
    let mut text = String::new();
    for part in parts {
        // The length keeps ("a", "bc") and ("ab", "c") apart.
        let _ = write!(text, "{}:{part},", part.len());
    }
    Digest::of(text.as_bytes()).to_string().chars().take(16).collect()
}

/// The schema of an app: `app_` and 32 hex digits.
pub(crate) fn schema_name(app: AppId) -> String {
    app.to_string()
}

/// The quoted `schema.table` of a collection.
pub(crate) fn table(app: AppId, collection: &Collection) -> String {
    table_named(app, &collection.name)
}

pub(crate) fn table_named(app: AppId, collection: &str) -> String {
    format!("{}.{}", ident(&schema_name(app)), ident(collection))
}

/// Every field that is a column besides `id`, in the order of the model.
pub(crate) fn stored_fields(collection: &Collection) -> impl Iterator<Item = &Field> {
    collection.fields.iter().filter(|field| field.name != "id")
}

/// The bare type of a field's column, as a cast can name it.
pub(crate) fn column_type(field: &Field) -> &'static str {
    match storage(field) {
        Storage::Text => "text",
        Storage::Number => "double precision",
        Storage::Bool => "boolean",
        Storage::List => "text[]",
        Storage::Json | Storage::Geo => "json",
    }
}

/// What follows the name in a column definition: type, collation, NOT NULL, default.
pub(crate) fn column_definition(field: &Field) -> &'static str {
    match storage(field) {
        Storage::Text => "text COLLATE \"C\" NOT NULL DEFAULT ''",
        Storage::Number => "double precision NOT NULL DEFAULT 0",
        Storage::Bool => "boolean NOT NULL DEFAULT false",
        Storage::List => "text[] COLLATE \"C\" NOT NULL DEFAULT '{}'",
        // `jsonb` would reorder keys and change numbers, which `~` and `=` on sub-objects can see.
        Storage::Json => "json NULL",
        Storage::Geo => "json NOT NULL DEFAULT '{\"lon\":0,\"lat\":0}'",
    }
}

/// An SQL expression (type `text`) for the JSON of one row: `id` first, then every field in the order of the model.
/// `alias` is the table alias the row is known by. A model is refused at deploy when a field's name is longer than an
/// output column's can be.
pub(crate) fn row_json(collection: &Collection, alias: &str) -> String {
    let names = std::iter::once("id").chain(stored_fields(collection).map(|field| field.name.as_str()));
    let columns: Vec<String> =
        names.map(|name| format!("{alias}.{} AS \"{}\"", ident(name), name.replace('"', "\"\""))).collect();
    format!("(SELECT row_to_json(_r)::text FROM (SELECT {}) AS _r)", columns.join(", "))
}

/// A quoted text constant, for names in catalogue statements that take no parameters. Never for values of a call.
pub(crate) fn literal(text: &str) -> String {
    let quoted = text.replace('\0', "").replace('\'', "''");
    if quoted.contains('\\') { format!("E'{}'", quoted.replace('\\', "\\\\")) } else { format!("'{quoted}'") }
}

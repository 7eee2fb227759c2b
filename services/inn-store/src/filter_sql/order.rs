//! Sort keys as SQL (reference notes on PocketBase, sections A.12 and B).

use inn_protocol::AppId;
use inn_protocol::query::Paging;
use inn_rules::filter::FieldRef;
use inn_rules::query::{SortBy, SortKey};

use super::SqlParams;
use super::joins::{Joins, Names};
use super::side::{Kind, Side};
use super::tables::Tables;
use crate::columns::{ROW, ident};

/// The `ORDER BY` list, without the words. Ends in a key no two rows share, so that pages never overlap; without any
/// key rows come in the order they were inserted.
pub(crate) fn order_by(keys: &[SortKey], app: AppId, alias: &str, params: &mut SqlParams) -> String {
    let mut parts = Vec::new();
    let mut decided = false;
    for key in keys {
        match &key.by {
            SortBy::Random => {
                parts.push("random()".to_owned());
                decided = true;
            }
            SortBy::RowId => {
                parts.push(directed(&format!("{alias}.{ROW}"), key.descending, false));
                decided = true;
            }
            SortBy::Field(field) if field.is_here() && field.is_element() => {
                // The first of several values decides; an empty list is NULL.
                let first = format!("{alias}.{}[1]", ident(&field.name));
                let first = if field.lower { format!("lower({first} COLLATE \"C\")") } else { first };
                parts.push(directed(&first, key.descending, true));
            }
            SortBy::Field(field) if field.is_here() => {
                let side = Side::field(field, alias, params);
                decided |= field.name == "id" && side.kind == Kind::TextColumn;
                for (sql, nullable) in sort_values(&side, params) {
                    parts.push(directed(&sql, key.descending, nullable));
                }
            }
            SortBy::Field(field) => {
                for sql in joined_values(field, app, alias, params) {
                    parts.push(directed(&sql, key.descending, true));
                }
            }
        }
        if decided {
            break;
        }
    }
    if !decided {
        parts.push(format!("{alias}.{ROW}"));
    }
    parts.join(", ")
}

/// Of a joined row: the first one decides, in the order of the list it is named in, else in the order of insertion.
fn joined_values(field: &FieldRef, app: AppId, alias: &str, params: &mut SqlParams) -> Vec<String> {
    let (mut joins, mut names) = (Joins::new(Tables::of(app), alias), Names::default());
    let side = if field.is_element() {
        let element = joins.element(field, &mut names, params);
        Side::element(&format!("{element}.v"), field.lower)
    } else {
        let row = joins.row(&field.walk, &mut names, params);
        Side::field(field, &row, params)
    };
    let order = joins.order();
    let order = if order.is_empty() { String::new() } else { format!(" ORDER BY {}", order.join(", ")) };
    let values = sort_values(&side, params).into_iter();
    let first = |(sql, _)| format!("(SELECT {sql} FROM (SELECT 1) AS _one{}{order} LIMIT 1)", joins.text);
    values.map(first).collect()
}

/// `LIMIT` and `OFFSET`, as constants: with parameters the planner guesses a tenth of the table and plans for that.
pub(crate) fn window(paging: Paging) -> String {
    let limit = u64::from(paging.per_page.clamp(1, 1000));
    let offset = paging.page.saturating_sub(1).saturating_mul(limit).min(i64::MAX.unsigned_abs());
    if offset == 0 { format!("LIMIT {limit}") } else { format!("LIMIT {limit} OFFSET {offset}") }
}

fn sort_values(side: &Side, params: &mut SqlParams) -> Vec<(String, bool)> {
    let value = side.value(params);
    match side.kind {
        // NULL, numbers, text: only the first part of the key can be NULL.
        Kind::Json => vec![
            (format!("inn.json_rank({value})"), true),
            (format!("inn.json_number({value})"), false),
            (format!("inn.json_string({value}) COLLATE \"C\""), false),
        ],
        Kind::Text => vec![(format!("{value} COLLATE \"C\""), side.nullable)],
        // The column itself, where an index on it can give the order.
        Kind::NumberColumn => vec![(side.flag.clone().unwrap_or(value), false)],
        Kind::TextColumn | Kind::Number | Kind::Null => vec![(value, false)],
    }
}

/// NULL is smaller than everything, PostgreSQL's default is the opposite. Not said where NULL cannot be: an index then
/// serves the order.
fn directed(sql: &str, descending: bool, nullable: bool) -> String {
    let direction = match (descending, nullable) {
        (false, false) => "",
        (false, true) => " NULLS FIRST",
        (true, false) => " DESC",
        (true, true) => " DESC NULLS LAST",
    };
    format!("{sql}{direction}")
}

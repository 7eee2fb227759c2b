//! A compiled filter as SQL. Everything that comes from a request is a parameter; the text is made of the model's
//! field names and of fixed pieces only.
//!
//! Meaning: reference notes on PocketBase, sections A.7 (several values), A.8 (equality), A.9 (LIKE), A.11 (mixed
//! kinds) and A.12 (PostgreSQL). The functions in schema `inn` it uses are in `migrations/V0006__values.sql`.

mod compare;
mod joins;
mod moment;
mod order;
mod rows;
mod side;
mod tables;

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod observed;
#[cfg(test)]
mod tests;

use inn_protocol::AppId;
use inn_rules::filter::Expr;
use tokio_postgres::types::{ToSql, Type};

use crate::columns::SqlValue;
use rows::Renderer;

pub(crate) use order::{order_by, window};
pub(crate) use tables::Tables;

/// The parameters of one statement, numbered from a given place on.
#[derive(Debug, Clone)]
pub(crate) struct SqlParams {
    next: usize,
    values: Vec<SqlValue>,
}

impl SqlParams {
    /// The first parameter will be `$first`.
    pub(crate) const fn starting_at(first: usize) -> Self {
        Self { next: first, values: Vec::new() }
    }

    /// Adds a value and answers its placeholder with its type (`$3::text`), so that a statement means the same
    /// whether the server is told the types or infers them.
    pub(crate) fn push(&mut self, value: SqlValue) -> String {
        let place = placeholder(self.next, &value);
        self.next += 1;
        self.values.push(value);
        place
    }

    pub(crate) fn values(&self) -> &[SqlValue] {
        &self.values
    }

    pub(crate) fn refs(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.values.iter().map(|value| value as &(dyn ToSql + Sync)).collect()
    }

    pub(crate) fn typed(&self) -> Vec<(&(dyn ToSql + Sync), Type)> {
        self.values.iter().map(|value| (value as &(dyn ToSql + Sync), value.pg_type())).collect()
    }
}

/// A boolean SQL expression that holds for exactly the rows the condition lets through. `alias` is the table alias
/// of the row, `app` whose tables the relations lead to.
pub(crate) fn render(expr: &Expr, app: AppId, alias: &str, params: &mut SqlParams) -> String {
    render_in(expr, Tables::of(app), alias, params)
}

/// [`render`] with other records than those of the tables alone.
pub(crate) fn render_in(expr: &Expr, tables: Tables, alias: &str, params: &mut SqlParams) -> String {
    let first = params.next;
    let mut text = Renderer::new(tables, alias, params).closed(expr);
    // A parameter of a value that turned out not to matter: one that nothing refers to has no type.
    for (value, place) in params.values.iter().rev().zip((first..params.next).rev()) {
        let name = placeholder(place, value);
        if !text.contains(&name) {
            text = format!("({text} AND ({name} IS NULL OR true))");
        }
    }
    text
}

fn placeholder(place: usize, value: &SqlValue) -> String {
    let kind = match value {
        SqlValue::Text(_) => "text",
        SqlValue::Number(_) => "float8",
        SqlValue::Bool(_) => "bool",
        SqlValue::List(_) => "text[]",
        SqlValue::Json(_) => "json",
    };
    format!("${place}::{kind}")
}

//! A compiled filter as SQL. Everything that comes from a request is a parameter; the text is made of the model's
//! field names and of fixed pieces only.
//!
//! Meaning: reference notes on PocketBase, sections A.7 (several values), A.8 (equality), A.9 (LIKE), A.11 (mixed
//! kinds) and A.12 (PostgreSQL). The functions in schema `inn` it uses are in `migrations/V0006__values.sql`.

mod compare;
mod order;
mod side;

#[cfg(test)]
mod observed;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use inn_rules::filter::{Comparison, Expr, FieldClass, Operand};
use tokio_postgres::types::{ToSql, Type};

use crate::columns::{SqlValue, ident};
use compare::Folding;
use side::Side;

pub(crate) use order::{order_by, window};

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
        let place = format!(
            "${}::{}",
            self.next,
            match value {
                SqlValue::Text(_) => "text",
                SqlValue::Number(_) => "float8",
                SqlValue::Bool(_) => "bool",
                SqlValue::List(_) => "text[]",
                SqlValue::Json(_) => "json",
            }
        );
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
/// of the row.
pub(crate) fn render(expr: &Expr, alias: &str, params: &mut SqlParams) -> String {
    let mut uses = BTreeMap::new();
    count_lists(expr, &mut uses);
    let mut renderer = Renderer { alias, params, uses };
    // Conditions that look at no single list element stay outside of the EXISTS, where an index can serve them.
    let mut plain = Vec::new();
    let mut listed = Vec::new();
    for part in conjuncts(expr) {
        if renderer.joins(part) { listed.push(part) } else { plain.push(part) }
    }
    let mut conditions: Vec<String> = plain.into_iter().map(|part| renderer.expr(part)).collect();
    if !listed.is_empty() {
        let inner: Vec<String> = listed.into_iter().map(|part| renderer.expr(part)).collect();
        let mut from = "(SELECT 1) AS _one".to_owned();
        for (place, name) in renderer.uses.keys().enumerate() {
            let element = outer_alias(place);
            // A list that only `contains` asks about is joined for nothing here, and changes nothing.
            let _ = write!(from, " LEFT JOIN LATERAL unnest({alias}.{}) AS {element}(v) ON true", ident(name));
        }
        conditions.push(format!("EXISTS (SELECT 1 FROM {from} WHERE {})", both(&inner)));
    }
    if conditions.is_empty() { "true".to_owned() } else { both(&conditions) }
}

struct Renderer<'a> {
    alias: &'a str,
    params: &'a mut SqlParams,
    /// Lists looked at element by element, and by how many operands. One join per list, shared by the whole condition
    /// (section A.7, rule 1).
    uses: BTreeMap<String, usize>,
}

impl Renderer<'_> {
    fn joins(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Always | Expr::Never => false,
            Expr::All(parts) | Expr::Any(parts) => parts.iter().any(|part| self.joins(part)),
            Expr::Compare(comparison) => !self.contains(comparison) && lists(comparison).next().is_some(),
        }
    }

    fn expr(&mut self, expr: &Expr) -> String {
        match expr {
            Expr::Always => "true".to_owned(),
            Expr::Never => "false".to_owned(),
            Expr::All(parts) => {
                let parts: Vec<String> = parts.iter().map(|part| self.expr(part)).collect();
                if parts.is_empty() { "true".to_owned() } else { both(&parts) }
            }
            Expr::Any(parts) => {
                let mut parts: Vec<String> = parts.iter().map(|part| self.expr(part)).collect();
                match parts.len() {
                    0 => "false".to_owned(),
                    1 => parts.remove(0),
                    _ => format!("({})", parts.join(" OR ")),
                }
            }
            Expr::Compare(comparison) => self.comparison(comparison),
        }
    }

    /// `tags:each ?= 'x'`, with no other condition on the elements of `tags`: "contains", which a GIN index serves.
    fn contains(&self, comparison: &Comparison) -> bool {
        self.contained(comparison).is_some()
    }

    fn contained<'c>(&self, comparison: &'c Comparison) -> Option<(&'c str, &'c str)> {
        let (list, text) = match (&comparison.left, &comparison.right) {
            (list @ Operand::Field(_), Operand::Text(text)) | (Operand::Text(text), list @ Operand::Field(_)) => {
                (list_name(list)?, text)
            }
            _ => return None,
        };
        let alone = self.uses.get(list).is_some_and(|uses| *uses == 1);
        let equal = comparison.any && comparison.op == inn_rules::filter::Op::Eq;
        (alone && equal && !text.is_empty()).then_some((list, text.as_str()))
    }

    fn comparison(&mut self, comparison: &Comparison) -> String {
        if let Some((list, text)) = self.contained(comparison) {
            let text = self.params.push(SqlValue::List(vec![text.to_owned()]));
            return format!("{}.{} @> {text}", self.alias, ident(list));
        }
        let left = self.side(&comparison.left);
        let right = self.side(&comparison.right);
        let (left_list, right_list) = (list_name(&comparison.left), list_name(&comparison.right));
        if left_list.is_none() && right_list.is_none() {
            return compare::render(comparison.op, &left, &right, Folding::Respect, self.params);
        }
        let outer = |side: &Side, list: Option<&str>| match list.and_then(|name| self.place(name)) {
            Some(place) => side.element(&format!("{}.v", outer_alias(place))),
            None => side.clone(),
        };
        let (outer_left, outer_right) = (outer(&left, left_list), outer(&right, right_list));
        let found = compare::render(comparison.op, &outer_left, &outer_right, Folding::Respect, self.params);
        if comparison.any {
            return found;
        }
        // Match-all (section A.7, rules 2 and 4): no pair of a fresh walk over the lists fails. An empty list is one
        // NULL row, and NULL is no failure. A json operand folds here (rule 5).
        let mut from = "(SELECT 1) AS _all".to_owned();
        let mut fresh = |side: &Side, list: Option<&str>, name: &str| match list {
            Some(list) => {
                let _ = write!(from, " LEFT JOIN LATERAL unnest({}.{}) AS {name}(v) ON true", self.alias, ident(list));
                side.element(&format!("{name}.v"))
            }
            None => side.clone(),
        };
        let (left, right) = (fresh(&left, left_list, "_l"), fresh(&right, right_list, "_r"));
        let holds = compare::render(comparison.op, &left, &right, Folding::FoldAll, self.params);
        format!("({found} AND NOT EXISTS (SELECT 1 FROM {from} WHERE NOT ({holds})))")
    }

    fn side(&mut self, operand: &Operand) -> Side {
        Side::new(operand, self.alias, self.params)
    }

    fn place(&self, list: &str) -> Option<usize> {
        self.uses.keys().position(|name| name == list)
    }
}

fn outer_alias(place: usize) -> String {
    format!("_e{place}")
}

fn both(parts: &[String]) -> String {
    match parts {
        [one] => one.clone(),
        _ => format!("({})", parts.join(" AND ")),
    }
}

fn conjuncts(expr: &Expr) -> Vec<&Expr> {
    match expr {
        Expr::All(parts) => parts.iter().flat_map(conjuncts).collect(),
        other => vec![other],
    }
}

/// The list whose elements the operand stands for one by one.
fn list_name(operand: &Operand) -> Option<&str> {
    match operand {
        Operand::Field(field) if field.each && field.class == FieldClass::List && !field.length => Some(&field.name),
        _ => None,
    }
}

fn lists(comparison: &Comparison) -> impl Iterator<Item = &str> {
    [&comparison.left, &comparison.right].into_iter().filter_map(list_name)
}

fn count_lists(expr: &Expr, uses: &mut BTreeMap<String, usize>) {
    match expr {
        Expr::Always | Expr::Never => {}
        Expr::All(parts) | Expr::Any(parts) => parts.iter().for_each(|part| count_lists(part, uses)),
        Expr::Compare(comparison) => {
            for list in lists(comparison) {
                *uses.entry(list.to_owned()).or_default() += 1;
            }
        }
    }
}

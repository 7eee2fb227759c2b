//! Evaluates a compiled filter on one record in memory (sections A.7 to A.11): create rules, and the oracle that the
//! SQL renderer is tested against.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::expr::{Comparison, Expr, FieldClass, FieldRef, Op, Operand};
use super::like::{column_pattern, is_like, literal_pattern, literal_text};
use super::value::{Affinity, Cell, Datum};

/// Combinations of list values looked at for one record. Beyond it the answer is no: a rule then refuses.
const MAX_ROWS: usize = 100_000;

/// Does the record match? A missing field counts as its zero value (`''`, 0, false, `[]`, null). What needs other rows
/// ([`Expr::is_local`] says so) is not decided here: the answer is no.
pub fn matches(expr: &Expr, record: &Map<String, Value>) -> bool {
    if !expr.is_local() {
        return false;
    }
    let residue = reduce(expr, record);
    let mut lists: Vec<List<'_>> = Vec::new();
    residue.collect(record, &mut lists);
    let rows = lists.iter().try_fold(1_usize, |rows, list| rows.checked_mul(list.rows.len()));
    if rows.is_none_or(|rows| rows > MAX_ROWS) {
        return false;
    }
    let mut chosen = vec![0; lists.len()];
    loop {
        if residue.holds(&Row { record, lists: &lists, chosen: &chosen }) {
            return true;
        }
        if !advance(&mut chosen, &lists) {
            return false;
        }
    }
}

/// The answer of a comparison without fields, `None` when it has one.
pub(super) fn constant(comparison: &Comparison) -> Option<bool> {
    (comparison.left.is_constant() && comparison.right.is_constant()).then(|| {
        let record = Map::new();
        let row = Row { record: &record, lists: &[], chosen: &[] };
        holds(comparison, &row.cell(&comparison.left), &row.cell(&comparison.right), true) == Some(true)
    })
}

/// A value below a JSON value. A number is a place in an array and nothing else, as in `SQLite`'s JSON paths.
pub(super) fn json_at<'a>(value: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, key| match value {
        Value::Object(members) => members.get(key),
        Value::Array(items) => items.get(key.parse::<usize>().ok()?),
        _ => None,
    })
}

/// The values of one list field; an empty list is one NULL row.
struct List<'a> {
    field: &'a str,
    rows: Vec<Option<Cow<'a, str>>>,
}

/// What is left of a filter when everything that does not depend on the joined row has been decided.
enum Residue<'a> {
    Known(bool),
    All(Vec<Self>),
    Any(Vec<Self>),
    Compare(&'a Comparison),
}

fn reduce<'a>(expr: &'a Expr, record: &Map<String, Value>) -> Residue<'a> {
    match expr {
        Expr::Always => Residue::Known(true),
        Expr::Never => Residue::Known(false),
        Expr::All(parts) => {
            let parts: Vec<_> = parts.iter().map(|part| reduce(part, record)).collect();
            match parts.iter().find(|part| matches!(part, Residue::Known(false))) {
                Some(_) => Residue::Known(false),
                None => Residue::All(parts),
            }
        }
        Expr::Any(parts) => {
            let parts: Vec<_> = parts.iter().map(|part| reduce(part, record)).collect();
            match parts.iter().find(|part| matches!(part, Residue::Known(true))) {
                Some(_) => Residue::Known(true),
                None => Residue::Any(parts),
            }
        }
        Expr::Compare(comparison) => {
            if each_field(&comparison.left).is_none() && each_field(&comparison.right).is_none() {
                let row = Row { record, lists: &[], chosen: &[] };
                let (left, right) = (row.cell(&comparison.left), row.cell(&comparison.right));
                return Residue::Known(holds(comparison, &left, &right, true) == Some(true));
            }
            if !comparison.any && has_failing_value(comparison, record) {
                return Residue::Known(false);
            }
            Residue::Compare(comparison)
        }
    }
}

/// Match-all (section A.7, rule 2): does any value, or any pair of values, say no? NULL does not.
fn has_failing_value(comparison: &Comparison, record: &Map<String, Value>) -> bool {
    let row = Row { record, lists: &[], chosen: &[] };
    let cells = |operand| match each_field(operand) {
        Some(field) => list_rows(field, record).into_iter().map(|value| list_cell(value, field)).collect(),
        None => vec![row.cell(operand)],
    };
    let (lefts, rights): (Vec<_>, Vec<_>) = (cells(&comparison.left), cells(&comparison.right));
    lefts.iter().any(|left| rights.iter().any(|right| holds(comparison, left, right, false) == Some(false)))
}

impl<'a> Residue<'a> {
    fn collect(&self, record: &'a Map<String, Value>, lists: &mut Vec<List<'a>>) {
        match self {
            Self::Known(_) => {}
            Self::All(parts) | Self::Any(parts) => parts.iter().for_each(|part| part.collect(record, lists)),
            Self::Compare(comparison) => {
                for field in [each_field(&comparison.left), each_field(&comparison.right)].into_iter().flatten() {
                    if !lists.iter().any(|list| list.field == field.name) {
                        lists.push(List { field: &field.name, rows: list_rows(field, record) });
                    }
                }
            }
        }
    }

    fn holds(&self, row: &Row<'_>) -> bool {
        match self {
            Self::Known(answer) => *answer,
            Self::All(parts) => parts.iter().all(|part| part.holds(row)),
            Self::Any(parts) => parts.iter().any(|part| part.holds(row)),
            Self::Compare(comparison) => {
                holds(comparison, &row.cell(&comparison.left), &row.cell(&comparison.right), true) == Some(true)
            }
        }
    }
}

/// Moves to the next combination of rows; `false` after the last.
fn advance(chosen: &mut [usize], lists: &[List<'_>]) -> bool {
    for (place, list) in chosen.iter_mut().zip(lists) {
        *place += 1;
        if *place < list.rows.len() {
            return true;
        }
        *place = 0;
    }
    false
}

fn each_field(operand: &Operand) -> Option<&FieldRef> {
    match operand {
        Operand::Field(field) if field.is_element() => Some(field),
        _ => None,
    }
}

fn list_rows<'a>(field: &FieldRef, record: &'a Map<String, Value>) -> Vec<Option<Cow<'a, str>>> {
    let rows: Vec<_> = match record.get(&field.name) {
        Some(Value::Array(values)) => values.iter().map(|value| Some(text_of(value))).collect(),
        _ => Vec::new(),
    };
    if rows.is_empty() { vec![None] } else { rows }
}

fn list_cell<'a>(value: Option<Cow<'a, str>>, field: &FieldRef) -> Cell<'a> {
    lowered(Cell::bare(value.map_or(Datum::Null, Datum::Text)), field.lower)
}

fn lowered(cell: Cell<'_>, lower: bool) -> Cell<'_> {
    if !lower {
        return cell;
    }
    let text = cell.datum.text().map(|text| text.to_ascii_lowercase());
    Cell::bare(text.map_or(Datum::Null, |text| Datum::Text(text.into())))
}

fn text_of(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Null => Cow::Borrowed(""),
        other => Cow::Owned(other.to_string()),
    }
}

/// One joined row: the record, and one value of every list that is looked at by `:each`.
struct Row<'a> {
    record: &'a Map<String, Value>,
    lists: &'a [List<'a>],
    chosen: &'a [usize],
}

impl<'a> Row<'a> {
    fn cell(&self, operand: &'a Operand) -> Cell<'a> {
        match operand {
            Operand::Text(text) => Cell::bare(Datum::Text(Cow::Borrowed(text))),
            Operand::Number(number) => Cell::bare(Datum::Real(*number)),
            Operand::Bool(value) | Operand::Truth(value) => Cell::bare(Datum::Integer(f64::from(u8::from(*value)))),
            // Distances and moments are decided by the database only.
            Operand::Null | Operand::Distance(_) | Operand::Moment(_) => Cell::bare(Datum::Null),
            Operand::Known(known) => {
                let (field, value) = known.as_ref();
                lowered(stored(field, Some(value)), field.lower)
            }
            Operand::Field(field) if field.is_element() => {
                let place = self.lists.iter().position(|list| list.field == field.name);
                let value = place.and_then(|place| {
                    let list = self.lists.get(place)?;
                    list.rows.get(*self.chosen.get(place)?)?.as_deref()
                });
                list_cell(value.map(Cow::Borrowed), field)
            }
            Operand::Field(field) => lowered(stored(field, self.record.get(&field.name)), field.lower),
        }
    }
}

fn stored<'a>(field: &FieldRef, value: Option<&'a Value>) -> Cell<'a> {
    if field.length {
        let count = match value {
            Some(Value::Array(values)) => values.len(),
            Some(Value::String(text)) => usize::from(!text.is_empty()),
            _ => 0,
        };
        return Cell::bare(Datum::Integer(f64::from(u32::try_from(count).unwrap_or(u32::MAX))));
    }
    match field.class {
        FieldClass::Text => {
            let affinity = if field.each || field.bare { Affinity::None } else { Affinity::Text };
            Cell { datum: Datum::Text(value.map_or(Cow::Borrowed(""), text_of)), affinity }
        }
        FieldClass::Number | FieldClass::Bool => {
            let number = match value {
                Some(Value::Bool(value)) => f64::from(u8::from(*value)),
                Some(Value::Number(number)) => number.as_f64().unwrap_or_default(),
                _ => 0.0,
            };
            let affinity = if field.bare { Affinity::None } else { Affinity::Numeric };
            Cell { datum: Datum::Integer(number), affinity }
        }
        FieldClass::List => {
            let text = match value {
                Some(Value::Array(_)) => value.map(Value::to_string),
                _ => None,
            };
            Cell::bare(Datum::Text(text.map_or(Cow::Borrowed("[]"), Cow::Owned)))
        }
        FieldClass::Geo if field.path.is_empty() => {
            let part = |name| value.and_then(|point| point.get(name)).and_then(Value::as_f64).unwrap_or_default();
            let text = format!(r#"{{"lon":{},"lat":{}}}"#, literal_text(part("lon")), literal_text(part("lat")));
            Cell::bare(Datum::Text(text.into()))
        }
        FieldClass::Json | FieldClass::Geo => {
            Cell::bare(value.and_then(|value| json_at(value, &field.path)).map_or(Datum::Null, json_datum))
        }
    }
}

fn json_datum(value: &Value) -> Datum<'_> {
    match value {
        Value::Null => Datum::Null,
        Value::Bool(value) => Datum::Integer(f64::from(u8::from(*value))),
        Value::Number(number) => {
            let float = number.as_f64().unwrap_or_default();
            if number.is_f64() { Datum::Real(float) } else { Datum::Integer(float) }
        }
        Value::String(text) => Datum::Text(Cow::Borrowed(text)),
        structure => Datum::Text(Cow::Owned(structure.to_string())),
    }
}

/// One comparison of two values: yes, no, or NULL. `outer` is false inside match-all, where the side that is not the
/// list loses its place in the first row of section A.8 (A.7, rule 5).
fn holds(comparison: &Comparison, left: &Cell<'_>, right: &Cell<'_>, outer: bool) -> Option<bool> {
    match comparison.op {
        Op::Eq => equal(comparison, left, right, outer),
        // IS NOT: never NULL.
        Op::Ne => Some(!equal(comparison, left, right, outer).unwrap_or(false)),
        Op::Gt => left.order(right).map(Ordering::is_gt),
        Op::Ge => left.order(right).map(Ordering::is_ge),
        Op::Lt => left.order(right).map(Ordering::is_lt),
        Op::Le => left.order(right).map(Ordering::is_le),
        Op::Like => like(left, &comparison.right, right),
        Op::NotLike => like(left, &comparison.right, right).map(|found| !found),
    }
}

/// Section A.8, decided in its order.
fn equal(comparison: &Comparison, left: &Cell<'_>, right: &Cell<'_>, outer: bool) -> Option<bool> {
    let (a, b) = (&comparison.left, &comparison.right);
    if let Operand::Truth(wanted) = b
        && (comparison.op == Op::Ne || outer && is_json(a))
    {
        // What is empty is `''` there, which is false.
        return Some(if is_empty(a) { !wanted } else { left.datum.truth() == Some(*wanted) });
    }
    if outer && (is_json(a) || is_json(b)) {
        let both_null = left.datum == Datum::Null && right.datum == Datum::Null;
        return Some(both_null || left.order(right) == Some(Ordering::Equal));
    }
    let empty = Cell::bare(Datum::Text(Cow::Borrowed("")));
    match (is_empty(a), is_empty(b)) {
        (true, true) => Some(true),
        _ if is_value(a) || is_value(b) => {
            let left = if is_empty(a) { &empty } else { left };
            let right = if is_empty(b) { &empty } else { right };
            left.order(right).map(Ordering::is_eq)
        }
        (true, false) => Some(is_blank(right, &empty)),
        (false, true) => Some(is_blank(left, &empty)),
        (false, false) => Some(coalesced(left).order(&coalesced(right)) == Some(Ordering::Equal)),
    }
}

fn is_json(operand: &Operand) -> bool {
    match operand {
        Operand::Field(field) => field.is_json(),
        Operand::Known(known) => known.0.is_json(),
        Operand::Distance(_) => true,
        _ => false,
    }
}

fn is_empty(operand: &Operand) -> bool {
    matches!(operand, Operand::Null) || matches!(operand, Operand::Text(text) if text.is_empty())
}

/// A literal that is not empty.
fn is_value(operand: &Operand) -> bool {
    matches!(operand, Operand::Text(_) | Operand::Number(_) | Operand::Bool(_) | Operand::Truth(_))
        && !is_empty(operand)
}

fn is_blank(cell: &Cell<'_>, empty: &Cell<'_>) -> bool {
    cell.datum == Datum::Null || cell.order(empty) == Some(Ordering::Equal)
}

/// COALESCE(x, ''): NULL folds, and the column's affinity is gone.
fn coalesced<'a>(cell: &Cell<'a>) -> Cell<'a> {
    Cell::bare(match &cell.datum {
        Datum::Null => Datum::Text(Cow::Borrowed("")),
        datum => datum.clone(),
    })
}

fn like(left: &Cell<'_>, pattern: &Operand, right: &Cell<'_>) -> Option<bool> {
    let text = left.datum.text()?;
    let pattern = match pattern {
        Operand::Text(literal) => literal_pattern(literal),
        Operand::Number(number) => literal_pattern(&literal_text(*number)),
        _ => Some(column_pattern(&right.datum.text()?)),
    };
    Some(pattern.is_some_and(|pattern| is_like(&text, &pattern)))
}

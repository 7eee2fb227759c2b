//! One operand of a comparison as SQL.

use inn_rules::filter::{FieldClass, FieldRef, Operand, literal_text, real_text};
use serde_json::Value;

use super::SqlParams;
use crate::columns::{SqlValue, ident};

/// The static kinds of reference section A.11.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// **T**: a text column.
    TextColumn,
    /// **N**: a number or bool column.
    NumberColumn,
    /// **J**: a json field or path, any kind at run time.
    Json,
    /// **t**: text without affinity.
    Text,
    /// **n**: a number without affinity.
    Number,
    Null,
}

/// Where the value comes from. Literals become parameters only where they are used: a parameter nothing refers to has
/// no type.
#[derive(Debug, Clone)]
enum Source {
    /// The value and its text. The value is `text` for T and t, `float8` for N and n, `json` for J.
    Sql {
        value: String,
        text: String,
    },
    Text(String),
    Number(f64),
    Bool(bool),
    Null,
}

#[derive(Debug, Clone)]
pub(super) struct Side {
    pub(super) kind: Kind,
    source: Source,
    /// A bool column itself, where it can be compared as one.
    pub(super) flag: Option<String>,
    pub(super) nullable: bool,
    /// NULL and `''` are not the same here (section A.8, first row).
    pub(super) unfolded: bool,
    /// Compared as a literal that is not empty: PocketBase takes the sent list for one (section A.8).
    pub(super) sent: bool,
    /// `TRUE` or `FALSE` as a word.
    pub(super) word: bool,
    /// On the right of `~` the whole pattern, and not what is searched for.
    pub(super) pattern: bool,
    /// Counts as [`Self::sent`] where the other side has several values.
    bound: bool,
}

impl Side {
    /// What is the same for every row; fields are made by [`Self::field`].
    pub(super) fn literal(operand: &Operand) -> Self {
        match operand {
            Operand::Text(text) => Self::of(Kind::Text, Source::Text(text.clone())),
            Operand::Number(number) => Self::of(Kind::Number, Source::Number(*number)),
            Operand::Bool(flag) => Self::of(Kind::Number, Source::Bool(*flag)),
            Operand::Truth(flag) => Self { word: true, ..Self::of(Kind::Number, Source::Bool(*flag)) },
            _ => Self { nullable: true, ..Self::of(Kind::Null, Source::Null) },
        }
    }

    const fn of(kind: Kind, source: Source) -> Self {
        let (flag, nullable, unfolded, sent) = (None, false, false, false);
        Self { kind, source, flag, nullable, unfolded, sent, word: false, pattern: false, bound: false }
    }

    fn text_sql(sql: &str, nullable: bool) -> Self {
        Self { nullable, ..Self::of(Kind::Text, Source::Sql { value: sql.to_owned(), text: sql.to_owned() }) }
    }

    fn count_sql(sql: &str) -> Self {
        Self::of(Kind::Number, Source::Sql { value: format!("{sql}::float8"), text: format!("{sql}::text") })
    }

    /// One element of a list: NULL when the list is empty.
    pub(super) fn element(sql: &str, lower: bool) -> Self {
        if lower { Self::text_sql(&format!("lower({sql} COLLATE \"C\")"), true) } else { Self::text_sql(sql, true) }
    }

    /// The great-circle distance of two points in km; NULL when a part is no number (section A.10).
    pub(super) fn distance([lon_a, lat_a, lon_b, lat_b]: &[String; 4]) -> Self {
        // Beyond these bounds PostgreSQL raises an error instead of answering NULL.
        let angle = |degrees: &str| format!("radians(CASE WHEN abs({degrees}) <= 1e300 THEN {degrees} END)");
        let (lon_a, lat_a, lon_b, lat_b) = (angle(lon_a), angle(lat_a), angle(lon_b), angle(lat_b));
        let value = format!(
            "(SELECT CASE WHEN abs(_c.v) <= 1 THEN 6371 * acos(_c.v) END FROM (SELECT cos(_a.y1) * cos(_a.y2) * cos(_a.x2 - _a.x1) + sin(_a.y1) * sin(_a.y2) AS v FROM (SELECT {lon_a} AS x1, {lat_a} AS y1, {lon_b} AS x2, {lat_b} AS y2) AS _a) AS _c)"
        );
        let text = format!("inn.real_text({value})");
        Self { nullable: true, unfolded: true, ..Self::of(Kind::Number, Source::Sql { value, text }) }
    }

    /// A text that SQL makes of a moment: whether the values it is made with are `bound`, and none of them empty.
    pub(super) fn moment(sql: &str, bound: bool) -> Self {
        Self { pattern: true, bound, ..Self::text_sql(sql, true) }
    }

    /// A field of the row `alias`.
    pub(super) fn field(field: &FieldRef, alias: &str, params: &mut SqlParams) -> Self {
        Self::column(field, format!("{alias}.{}", ident(&field.name)), params)
    }

    /// A value that is known beforehand, in place of the column it comes from.
    pub(super) fn known(field: &FieldRef, known: &Value, params: &mut SqlParams) -> Self {
        let text = |params: &mut SqlParams| {
            format!("({} COLLATE \"C\")", bind_text(known.as_str().unwrap_or_default(), params))
        };
        let column = match field.class {
            FieldClass::Text => text(params),
            FieldClass::Number => params.push(SqlValue::Number(known.as_f64().unwrap_or_default())),
            FieldClass::Bool => params.push(SqlValue::Bool(known.as_bool().unwrap_or_default())),
            FieldClass::List => {
                let values = known.as_array().into_iter().flatten();
                let values = values.filter_map(Value::as_str).map(|value| value.replace('\0', "\u{1}"));
                params.push(SqlValue::List(values.collect()))
            }
            FieldClass::Json | FieldClass::Geo => params.push(SqlValue::Json(Some(known.to_string()))),
        };
        Self::column(field, column, params)
    }

    fn column(field: &FieldRef, column: String, params: &mut SqlParams) -> Self {
        // A joined row may be missing.
        let nullable = !field.is_here() || field.nullable;
        // What a view computes has the collation of the database.
        let computed = field.nullable && field.class == FieldClass::Text;
        let column = if computed { format!("({column} COLLATE \"C\")") } else { column };
        let number = if field.bare { Kind::Number } else { Kind::NumberColumn };
        let side = match field.class {
            FieldClass::Text if field.length => {
                Self::count_sql(&format!("(CASE WHEN coalesce({column}, '') = '' THEN 0 ELSE 1 END)"))
            }
            // One value at a time, of a single value: the value, without the column's affinity.
            FieldClass::Text if field.each || field.bare => Self::text_sql(&column, nullable),
            FieldClass::Text => Self { kind: Kind::TextColumn, ..Self::text_sql(&column, nullable) },
            FieldClass::Number => {
                let text = format!("inn.number_text({column})");
                Self { nullable, ..Self::of(number, Source::Sql { value: column, text }) }
            }
            FieldClass::Bool => {
                let (value, text) = (format!("{column}::int::float8"), format!("{column}::int::text"));
                Self { flag: Some(column), nullable, ..Self::of(number, Source::Sql { value, text }) }
            }
            FieldClass::List if field.length => Self::count_sql(&format!("coalesce(cardinality({column}), 0)")),
            FieldClass::List => Self::text_sql(&format!("array_to_json({column})::text"), nullable),
            FieldClass::Geo if field.path.is_empty() => Self::text_sql(&format!("{column}::text"), nullable),
            FieldClass::Json | FieldClass::Geo => {
                let value = json_path(&column, &field.path, params);
                let text = format!("inn.json_text({value})");
                Self { nullable: true, unfolded: true, ..Self::of(Kind::Json, Source::Sql { value, text }) }
            }
        };
        match &side.source {
            Source::Sql { text, .. } if field.lower => Self {
                unfolded: side.unfolded,
                ..Self::text_sql(&format!("lower({text} COLLATE \"C\")"), side.nullable)
            },
            _ => side,
        }
    }

    /// A value of a list in the body.
    pub(super) fn of_the_body(self) -> Self {
        Self { sent: true, ..self }
    }

    /// One value of a fresh walk, of which nothing is known beforehand.
    pub(super) fn walked(self) -> Self {
        Self { sent: false, pattern: false, ..self }
    }

    /// The same operand, with NULL and `''` alike.
    pub(super) fn folding(self) -> Self {
        Self { unfolded: false, sent: self.sent || self.bound, ..self }
    }

    /// As the time of a moment: a number and a text, of which at most one is not NULL.
    pub(super) fn time(&self, params: &mut SqlParams) -> (String, String) {
        let value = self.value(params);
        match self.kind {
            Kind::NumberColumn | Kind::Number => (value, "NULL::text".to_owned()),
            Kind::Json => {
                let of = |rank, read| format!("(CASE inn.json_rank({value}) WHEN {rank} THEN {read}({value}) END)");
                (of(1, "inn.json_number"), of(2, "inn.json_string"))
            }
            Kind::TextColumn | Kind::Text | Kind::Null => ("NULL::float8".to_owned(), value),
        }
    }

    /// True in the sense of `IS TRUE`.
    pub(super) fn truth(&self, params: &mut SqlParams) -> String {
        let value = self.value(params);
        match self.kind {
            Kind::NumberColumn | Kind::Number => format!("({value} <> 0)"),
            Kind::Json => format!(
                "(CASE inn.json_rank({value}) WHEN 1 THEN inn.json_number({value}) <> 0 WHEN 2 THEN inn.is_true(inn.json_string({value})) END)"
            ),
            Kind::TextColumn | Kind::Text => format!("inn.is_true({value})"),
            Kind::Null => "NULL::bool".to_owned(),
        }
    }

    /// As a number of degrees: NULL for what is none.
    pub(super) fn number(&self, params: &mut SqlParams) -> String {
        let value = self.value(params);
        match self.kind {
            Kind::NumberColumn | Kind::Number => value,
            Kind::Json => format!("inn.json_numeric({value})"),
            Kind::TextColumn | Kind::Text => format!("inn.numeric_value({value})"),
            Kind::Null => "NULL::float8".to_owned(),
        }
    }

    pub(super) const fn is_literal(&self) -> bool {
        !matches!(self.source, Source::Sql { .. })
    }

    /// A literal that is `''` or NULL (section A.8).
    pub(super) fn is_empty(&self) -> bool {
        match &self.source {
            Source::Text(text) => text.is_empty(),
            Source::Null => true,
            _ => false,
        }
    }

    pub(super) const fn bool_literal(&self) -> Option<bool> {
        match self.source {
            Source::Bool(flag) => Some(flag),
            _ => None,
        }
    }

    /// The value, in the type of its kind.
    pub(super) fn value(&self, params: &mut SqlParams) -> String {
        match &self.source {
            Source::Sql { value, .. } => value.clone(),
            Source::Text(text) => bind_text(text, params),
            Source::Number(number) => params.push(SqlValue::Number(*number)),
            Source::Bool(flag) => if *flag { "1::float8" } else { "0::float8" }.to_owned(),
            Source::Null => "NULL::text".to_owned(),
        }
    }

    /// The value as text, for LIKE and where it meets a text column.
    pub(super) fn text(&self, params: &mut SqlParams) -> String {
        match &self.source {
            Source::Sql { text, .. } => text.clone(),
            Source::Text(text) => bind_text(text, params),
            Source::Number(number) => bind_text(&real_text(*number), params),
            Source::Bool(flag) => if *flag { "'1'::text" } else { "'0'::text" }.to_owned(),
            Source::Null => "NULL::text".to_owned(),
        }
    }

    /// What a literal on the right of `~` is searched as; `None` for everything whose own wildcards count.
    pub(super) fn searched(&self) -> Option<String> {
        match &self.source {
            Source::Text(text) => Some(text.clone()),
            Source::Number(number) => Some(literal_text(*number)),
            _ => None,
        }
    }
}

/// PostgreSQL knows no text with U+0000. The neighbour stands for it: it sorts in the same place.
pub(super) fn bind_text(text: &str, params: &mut SqlParams) -> String {
    params.push(SqlValue::Text(text.replace('\0', "\u{1}")))
}

/// The value below a json column. A numeric step is an index of a list and nothing else; other steps are members of
/// an object and nothing else: exactly what `->` does with an integer and a text.
fn json_path(column: &str, path: &[String], params: &mut SqlParams) -> String {
    let mut sql = column.to_owned();
    for step in path {
        if step.bytes().all(|b| b.is_ascii_digit()) {
            match step.parse::<i32>() {
                Ok(index) => sql = format!("{sql} -> {index}"),
                // No list is that long.
                Err(_) => return "NULL::json".to_owned(),
            }
        } else {
            let name = bind_text(step, params);
            sql = format!("{sql} -> {name}");
        }
    }
    if path.is_empty() { sql } else { format!("({sql})") }
}

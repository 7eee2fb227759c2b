//! One comparison as SQL, with the rules of `SQLite` for values of different kinds.

use inn_rules::filter::{Op, literal_pattern};

use super::SqlParams;
use super::side::{Kind, Side, bind_text};

/// How two values are compared. `Is` and `IsNot` treat NULL as a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    Eq,
    Is,
    IsNot,
    Gt,
    Ge,
    Lt,
    Le,
}

/// A value after the column's affinity has been applied to it.
enum Value {
    Null,
    Text {
        sql: String,
        nullable: bool,
        column: bool,
    },
    Number {
        sql: String,
        nullable: bool,
    },
    /// Known at run time only: sorts by rank (1 number, 2 text), then number, then text; the others are blank.
    Key {
        rank: String,
        number: String,
        text: String,
    },
}

/// The comparison as an SQL expression that is NULL where it is NULL in `SQLite`.
pub(super) fn render(op: Op, left: &Side, right: &Side, params: &mut SqlParams) -> String {
    match op {
        Op::Eq | Op::Ne => equality(op == Op::Eq, left, right, params),
        Op::Gt => direct(Relation::Gt, left, right, params),
        Op::Ge => direct(Relation::Ge, left, right, params),
        Op::Lt => direct(Relation::Lt, left, right, params),
        Op::Le => direct(Relation::Le, left, right, params),
        Op::Like => like(true, left, right, params),
        Op::NotLike => like(false, left, right, params),
    }
}

/// Section A.8, in its order.
fn equality(equal: bool, left: &Side, right: &Side, params: &mut SqlParams) -> String {
    let null_safe = if equal { Relation::Is } else { Relation::IsNot };
    // `IS TRUE` and `IS NOT FALSE` are questions of their own in both languages.
    if right.word && (!equal || left.unfolded) {
        let wanted = if right.bool_literal() == Some(true) { "TRUE" } else { "FALSE" };
        return format!("{} IS {}{wanted}", left.truth(params), if equal { "" } else { "NOT " });
    }
    if left.unfolded || right.unfolded {
        return direct(null_safe, left, right, params);
    }
    let (left_empty, right_empty) = (left.is_empty(), right.is_empty());
    if left_empty && right_empty {
        return constant(equal);
    }
    let relation = if equal { Relation::Eq } else { Relation::IsNot };
    if left.sent || right.sent || left.is_literal() && !left_empty || right.is_literal() && !right_empty {
        if let Some(flag) = flag(equal, left, right).or_else(|| flag(equal, right, left)) {
            return flag;
        }
        let (a, b) = (blank_or(left, right, params), blank_or(right, left, params));
        return with(relation, &a, &b);
    }
    if left_empty || right_empty {
        let (side, other) = if left_empty { (right, left) } else { (left, right) };
        let found = value(side, other.kind, true, params);
        let null = null_test(&found);
        let blank = with(relation, &found, &blank());
        return match (null, equal) {
            (None, _) => blank,
            (Some(null), true) => format!("({blank} OR ({null}) IS NULL)"),
            (Some(null), false) => format!("({blank} AND ({null}) IS NOT NULL)"),
        };
    }
    // Field against field: NULL is `''`, and no affinity at all.
    let (a, b) = (folded(left, params), folded(right, params));
    with(null_safe, &a, &b)
}

/// A bool column against `true` or `false`, as a condition that indexes and the planner understand.
fn flag(equal: bool, side: &Side, other: &Side) -> Option<String> {
    let column = side.flag.as_ref()?;
    let wanted = other.bool_literal()?;
    let (is, is_not) = (column.clone(), format!("NOT {column}"));
    Some(match (equal, wanted) {
        // `!=` is never NULL.
        (false, true) if side.nullable => format!("{column} IS NOT TRUE"),
        (false, false) if side.nullable => format!("{column} IS NOT FALSE"),
        (true, true) | (false, false) => is,
        (true, false) | (false, true) => is_not,
    })
}

/// An empty literal counts as `''` next to a literal that is not.
fn blank_or(side: &Side, other: &Side, params: &mut SqlParams) -> Value {
    if side.is_empty() { blank() } else { value(side, other.kind, true, params) }
}

fn blank() -> Value {
    Value::Text { sql: "''::text".to_owned(), nullable: false, column: false }
}

fn folded(side: &Side, params: &mut SqlParams) -> Value {
    match value(side, side.kind, false, params) {
        Value::Text { sql, nullable: true, column } => {
            Value::Text { sql: format!("coalesce({sql}, '')"), nullable: false, column }
        }
        Value::Number { sql, nullable: true } => Value::Key {
            rank: format!("CASE WHEN {sql} IS NULL THEN 2 ELSE 1 END"),
            number: format!("coalesce({sql}, 0)"),
            text: "''::text".to_owned(),
        },
        Value::Key { rank, number, text } => {
            let (number, text) = (format!("coalesce({number}, 0)"), format!("coalesce({text}, '')"));
            Value::Key { rank: format!("coalesce({rank}, 2)"), number, text }
        }
        other => other,
    }
}

fn direct(relation: Relation, left: &Side, right: &Side, params: &mut SqlParams) -> String {
    let (a, b) = (value(left, right.kind, true, params), value(right, left.kind, true, params));
    with(relation, &a, &b)
}

/// The value of `side` when it meets a side of the kind `other` (section A.11).
fn value(side: &Side, other: Kind, affinity: bool, params: &mut SqlParams) -> Value {
    let meets = |kind| affinity && other == kind;
    let text = |sql: String| Value::Text { sql, nullable: side.nullable, column: side.kind == Kind::TextColumn };
    match side.kind {
        Kind::Null => Value::Null,
        Kind::TextColumn | Kind::Text if meets(Kind::NumberColumn) => {
            let sql = side.value(params);
            Value::Key {
                rank: format!(
                    "CASE WHEN {sql} IS NULL THEN NULL WHEN inn.numeric_value({sql}) IS NULL THEN 2 ELSE 1 END"
                ),
                number: format!("coalesce(inn.numeric_value({sql}), 0)"),
                text: format!("CASE WHEN inn.numeric_value({sql}) IS NULL THEN coalesce({sql}, '') ELSE '' END"),
            }
        }
        Kind::TextColumn | Kind::Text => text(side.value(params)),
        Kind::Number | Kind::Json if meets(Kind::TextColumn) => text(side.text(params)),
        Kind::NumberColumn | Kind::Number => Value::Number { sql: side.value(params), nullable: side.nullable },
        Kind::Json if meets(Kind::NumberColumn) => {
            let sql = side.value(params);
            Value::Key {
                rank: format!("CASE WHEN inn.json_numeric({sql}) IS NULL THEN inn.json_rank({sql}) ELSE 1 END"),
                number: format!("coalesce(inn.json_numeric({sql}), 0)"),
                text: format!("CASE WHEN inn.json_numeric({sql}) IS NULL THEN inn.json_string({sql}) ELSE '' END"),
            }
        }
        Kind::Json => {
            let sql = side.value(params);
            Value::Key {
                rank: format!("inn.json_rank({sql})"),
                number: format!("inn.json_number({sql})"),
                text: format!("inn.json_string({sql})"),
            }
        }
    }
}

fn with(relation: Relation, left: &Value, right: &Value) -> String {
    match (left, right) {
        (Value::Null, Value::Null) => match relation {
            Relation::Is => constant(true),
            Relation::IsNot => constant(false),
            _ => unknown(),
        },
        (Value::Null, other) | (other, Value::Null) => against_null(relation, other),
        (
            Value::Text { sql: a, nullable: a_null, column: a_column },
            Value::Text { sql: b, nullable: b_null, column: b_column },
        ) => {
            // A column brings its own collation; two computed texts would compare by the database's.
            let collate = if *a_column || *b_column { "" } else { " COLLATE \"C\"" };
            format!("{a}{collate} {} {b}", operator(relation, *a_null || *b_null))
        }
        (Value::Number { sql: a, nullable: a_null }, Value::Number { sql: b, nullable: b_null }) => {
            format!("{a} {} {b}", operator(relation, *a_null || *b_null))
        }
        // A number is less than any text.
        (Value::Number { .. }, Value::Text { .. }) => {
            fixed(relation, matches!(relation, Relation::Lt | Relation::Le | Relation::IsNot), left, right)
        }
        (Value::Text { .. }, Value::Number { .. }) => {
            fixed(relation, matches!(relation, Relation::Gt | Relation::Ge | Relation::IsNot), left, right)
        }
        (Value::Key { .. }, _) | (_, Value::Key { .. }) => {
            let compared = format!("{} {} {}", key(left, true), operator(relation, true), key(right, false));
            // A row with a NULL in it is still not equal to one that differs elsewhere; a NULL is.
            let nulls: Vec<String> =
                [left, right].into_iter().filter_map(null_test).map(|test| format!("({test}) IS NULL")).collect();
            if relation == Relation::Eq && !nulls.is_empty() {
                format!("(CASE WHEN {} THEN NULL ELSE {compared} END)", nulls.join(" OR "))
            } else {
                compared
            }
        }
    }
}

/// Always the same answer, unless a side is NULL and the relation speaks about it.
fn fixed(relation: Relation, holds: bool, left: &Value, right: &Value) -> String {
    let sides: Vec<&str> = [left, right].into_iter().filter_map(text_of).collect();
    let known: Vec<String> = sides.iter().map(|sql| format!("({sql}) IS NOT NULL")).collect();
    let unknown: Vec<String> = sides.iter().map(|sql| format!("({sql}) IS NULL")).collect();
    // What is written anyway is written so that it refers to every parameter: one that nothing refers to has no type.
    if sides.is_empty() {
        return constant(holds);
    }
    let (known, unknown) = (known.join(" AND "), unknown.join(" AND "));
    match (relation, sides.len()) {
        // Two NULLs are the same.
        (Relation::Is, 2) => format!("({unknown})"),
        (Relation::IsNot, 2) => format!("NOT ({unknown})"),
        (Relation::Is, _) => format!("({known} AND false)"),
        (Relation::IsNot, _) => format!("({known} OR true)"),
        _ if holds => format!("(({known}) OR NULL::bool)"),
        _ => format!("(NOT ({known}) AND NULL::bool)"),
    }
}

/// The SQL of a value that can be NULL or refers to a parameter.
fn text_of(value: &Value) -> Option<&str> {
    match value {
        Value::Text { sql, nullable, .. } | Value::Number { sql, nullable } => {
            (*nullable || sql.contains('$')).then_some(sql)
        }
        Value::Null | Value::Key { .. } => None,
    }
}

fn against_null(relation: Relation, other: &Value) -> String {
    match (relation, null_test(other)) {
        (Relation::Is, Some(test)) => format!("({test}) IS NULL"),
        (Relation::IsNot, Some(test)) => format!("({test}) IS NOT NULL"),
        (Relation::Is, None) => constant(false),
        (Relation::IsNot, None) => constant(true),
        _ => unknown(),
    }
}

/// What is NULL exactly when the value is; `None` for values that never are.
fn null_test(value: &Value) -> Option<&str> {
    match value {
        Value::Null | Value::Number { nullable: false, .. } | Value::Text { nullable: false, .. } => None,
        Value::Text { sql, .. } | Value::Number { sql, .. } => Some(sql),
        Value::Key { rank, .. } => Some(rank),
    }
}

fn key(value: &Value, collate: bool) -> String {
    let collate = if collate { " COLLATE \"C\"" } else { "" };
    match value {
        Value::Null => format!("ROW(NULL::int, 0::float8, ''::text{collate})"),
        Value::Number { sql, nullable: false } => format!("ROW(1, {sql}, ''::text{collate})"),
        Value::Number { sql, .. } => {
            format!("ROW(CASE WHEN {sql} IS NULL THEN NULL ELSE 1 END, coalesce({sql}, 0), ''::text{collate})")
        }
        Value::Text { sql, nullable: false, .. } => format!("ROW(2, 0::float8, ({sql}){collate})"),
        Value::Text { sql, .. } => {
            format!("ROW(CASE WHEN {sql} IS NULL THEN NULL ELSE 2 END, 0::float8, coalesce({sql}, ''){collate})")
        }
        Value::Key { rank, number, text } => format!("ROW({rank}, {number}, ({text}){collate})"),
    }
}

const fn operator(relation: Relation, nullable: bool) -> &'static str {
    match (relation, nullable) {
        (Relation::Eq, _) | (Relation::Is, false) => "=",
        (Relation::Is, true) => "IS NOT DISTINCT FROM",
        (Relation::IsNot, true) => "IS DISTINCT FROM",
        (Relation::IsNot, false) => "<>",
        (Relation::Gt, _) => ">",
        (Relation::Ge, _) => ">=",
        (Relation::Lt, _) => "<",
        (Relation::Le, _) => "<=",
    }
}

/// Section A.9.
fn like(matching: bool, left: &Side, right: &Side, params: &mut SqlParams) -> String {
    if left.kind == Kind::Null || right.kind == Kind::Null {
        return unknown();
    }
    let text = left.text(params);
    let pattern = match right.searched().map(|searched| literal_pattern(&searched)) {
        Some(Some(pattern)) => bind_text(&pattern, params),
        // Ends in a lone backslash, where PostgreSQL would raise an error: nothing matches.
        Some(None) if matching => return format!("(({text}) IS NULL AND NULL::bool)"),
        Some(None) => return format!("(({text}) IS NOT NULL OR NULL::bool)"),
        None if right.pattern => right.text(params),
        None => format!("('%' || {} || '%')", right.text(params)),
    };
    let collate = if left.kind == Kind::TextColumn { "" } else { " COLLATE \"C\"" };
    format!("{text}{collate} {} {pattern}", if matching { "ILIKE" } else { "NOT ILIKE" })
}

fn constant(holds: bool) -> String {
    if holds { "true" } else { "false" }.to_owned()
}

fn unknown() -> String {
    "NULL::bool".to_owned()
}

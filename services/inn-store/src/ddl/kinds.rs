//! Expressions of a view, with the kinds PostgreSQL wants to know and `SQLite` does not: where `SQLite` would turn one into
//! another by itself this says so, and what has no meaning in PostgreSQL is refused by name.

use std::fmt::Write as _;

use inn_rules::view::{Call, Expr, Op, Tested};

use super::views::{Names, Translator, directed, text};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    /// `real` never is an integer in `SQLite`, so it divides with a fraction.
    Number {
        real: bool,
    },
    /// A boolean column; in `SQLite` 1 or 0.
    Flag,
    /// The outcome of a comparison; in `SQLite` 1, 0 or NULL.
    Condition,
    List,
    Json,
    Null,
}

#[derive(Debug, Clone)]
pub(super) struct Value {
    pub(super) sql: String,
    pub(super) kind: Kind,
}

const WHOLE: Kind = Kind::Number { real: false };
const REAL: Kind = Kind::Number { real: true };

impl Value {
    fn new(kind: Kind, sql: impl Into<String>) -> Self {
        Self { sql: sql.into(), kind }
    }

    pub(super) fn text(&self) -> Self {
        let sql = &self.sql;
        Self::new(
            Kind::Text,
            match self.kind {
                Kind::Text => sql.clone(),
                Kind::Number { .. } => format!("inn.number_text({sql})"),
                Kind::Flag | Kind::Condition => format!("(({sql})::int)::text"),
                Kind::List => format!("array_to_json({sql})::text"),
                Kind::Json => format!("inn.json_text({sql})"),
                Kind::Null => "NULL::text".to_owned(),
            },
        )
    }

    /// As `SQLite`'s CAST reads a number off the start of a text.
    pub(super) fn number(&self) -> Result<Self, String> {
        let sql = &self.sql;
        let sql = match self.kind {
            Kind::Number { .. } => return Ok(self.clone()),
            Kind::Flag | Kind::Condition => format!("(({sql})::int)::double precision"),
            Kind::Text => leading_number(sql, "[+-]?(?:\\d+\\.?\\d*|\\.\\d+)(?:[eE][+-]?\\d+)?"),
            Kind::Null => "NULL::double precision".to_owned(),
            // What is no number in it counts as 0, as in a CAST.
            Kind::Json => format!("(CASE WHEN json_typeof({sql}) <> 'null' THEN inn.json_number({sql}) END)"),
            Kind::List => return Err("a list is no number".to_owned()),
        };
        Ok(Self::new(WHOLE, sql))
    }

    pub(super) fn condition(&self) -> Result<String, String> {
        let sql = &self.sql;
        match self.kind {
            Kind::Flag | Kind::Condition => Ok(format!("({sql})")),
            Kind::Number { .. } => Ok(format!("(({sql}) <> 0)")),
            Kind::Text | Kind::Json => Ok(format!("(({}) <> 0)", self.number()?.sql)),
            Kind::Null => Ok("NULL::boolean".to_owned()),
            Kind::List => Err("a list is no condition".to_owned()),
        }
    }

    /// For a field of type json. PocketBase reads a text that is a number or a constant as that.
    pub(super) fn json(&self) -> String {
        let sql = &self.sql;
        match self.kind {
            Kind::Text => format!(
                "(CASE WHEN {sql} ~ '^(-?(0|[1-9][0-9]{{0,14}})([.][0-9]{{1,15}})?|true|false|null)$' THEN {sql}::json ELSE to_json({sql}) END)"
            ),
            Kind::Number { .. } | Kind::List => format!("to_json({sql})"),
            Kind::Flag | Kind::Condition => format!("to_json(({sql})::int)"),
            Kind::Json => sql.clone(),
            Kind::Null => "NULL::json".to_owned(),
        }
    }
}

/// Functions over many rows.
const AGGREGATES: [&str; 7] = ["count", "sum", "total", "avg", "min", "max", "group_concat"];

pub(super) fn is_aggregate(expr: &Expr) -> bool {
    let own = matches!(expr, Expr::Call(call) if call.over.is_none() && call.args.len() <= 1 && AGGREGATES.contains(&call.name.as_str()));
    own || expr.parts().into_iter().any(is_aggregate)
}

impl Translator<'_> {
    pub(super) fn value(&self, expr: &Expr, names: &Names<'_>) -> Result<Value, String> {
        let condition = |sql: String| Ok(Value::new(Kind::Condition, sql));
        match expr {
            Expr::Null => Ok(Value::new(Kind::Null, "NULL")),
            Expr::Text(constant) => Ok(Value::new(Kind::Text, text(constant))),
            Expr::Number(digits) => {
                let number: f64 = digits.parse().map_err(|_| format!("`{digits}` is no number"))?;
                Ok(Value::new(Kind::Number { real: digits.contains('.') }, format!("'{number}'::double precision")))
            }
            Expr::Truth(flag) => {
                Ok(Value::new(WHOLE, if *flag { "1::double precision" } else { "0::double precision" }))
            }
            Expr::Column { source, name } => Self::column(source.as_deref(), name, names),
            Expr::Not(inner) => condition(format!("(NOT {})", self.value(inner, names)?.condition()?)),
            Expr::Minus(inner) => {
                let inner = self.value(inner, names)?.number()?;
                Ok(Value::new(inner.kind, format!("(- {})", inner.sql)))
            }
            Expr::Binary(op, left, right) => binary(*op, &self.value(left, names)?, &self.value(right, names)?),
            Expr::Test { value, negated, tested } => {
                let sql = self.test(&self.value(value, names)?, tested, names)?;
                condition(if *negated { format!("(NOT {sql})") } else { sql })
            }
            Expr::Case { of, when, otherwise } => self.case(of.as_deref(), when, otherwise.as_deref(), names),
            Expr::Cast(inner, kind) => cast(&self.value(inner, names)?, kind),
            Expr::Call(call) => self.call(call, names),
            Expr::Scalar(query) => {
                let made = self.query(query, names.scopes, false)?;
                let [column] = made.columns.as_slice() else {
                    return Err("a query in an expression has one column".to_owned());
                };
                let limit = if query.limit.is_some() { "" } else { " LIMIT 1" };
                Ok(Value::new(column.kind, format!("({}{limit})", made.sql)))
            }
            Expr::Exists(query) => condition(format!("EXISTS ({})", self.query(query, names.scopes, false)?.sql)),
        }
    }

    fn test(&self, value: &Value, tested: &Tested, names: &Names<'_>) -> Result<String, String> {
        let compare = |op, other: &Expr| Ok::<_, String>(binary(op, value, &self.value(other, names)?)?.sql);
        match tested {
            Tested::Null => Ok(format!("({} IS NULL)", value.sql)),
            Tested::Like(pattern) => {
                let (value, pattern) = (value.text().sql, self.value(pattern, names)?.text().sql);
                // The case of ASCII letters does not count, and nothing escapes a wildcard.
                Ok(format!("({value} COLLATE \"C\" ILIKE {pattern} ESCAPE '')"))
            }
            Tested::In(values) => {
                let each: Result<Vec<_>, String> = values.iter().map(|other| compare(Op::Eq, other)).collect();
                Ok(format!("({})", each?.join(" OR ")))
            }
            Tested::InQuery(query) => {
                let made = self.query(query, names.scopes, false)?;
                let kinds: Vec<Kind> = made.columns.iter().map(|column| column.kind).collect();
                if kinds != [value.kind]
                    && !matches!((kinds.as_slice(), value.kind), ([Kind::Number { .. }], Kind::Number { .. }))
                {
                    return Err("IN needs a query with one column of the same kind".to_owned());
                }
                Ok(format!("({} IN ({}))", value.sql, made.sql))
            }
            Tested::Between(low, high) => Ok(format!("({} AND {})", compare(Op::Ge, low)?, compare(Op::Le, high)?)),
        }
    }

    fn case(
        &self,
        of: Option<&Expr>,
        when: &[(Expr, Expr)],
        otherwise: Option<&Expr>,
        names: &Names<'_>,
    ) -> Result<Value, String> {
        let of = of.map(|of| self.value(of, names)).transpose()?;
        let mut conditions = Vec::new();
        let mut values = Vec::new();
        for (condition, value) in when {
            let condition = self.value(condition, names)?;
            conditions.push(match &of {
                Some(of) => binary(Op::Eq, of, &condition)?.sql,
                None => condition.condition()?,
            });
            values.push(self.value(value, names)?);
        }
        values.push(otherwise.map_or(Ok(Value::new(Kind::Null, "NULL")), |value| self.value(value, names))?);
        let (kind, values) = alike(values)?;
        let mut sql = "(CASE".to_owned();
        for (condition, value) in conditions.iter().zip(&values) {
            let _ = write!(sql, " WHEN {condition} THEN {value}");
        }
        let _ = write!(sql, " ELSE {} END)", values.last().map_or("NULL", String::as_str));
        Ok(Value::new(kind, sql))
    }

    fn call(&self, call: &Call, names: &Names<'_>) -> Result<Value, String> {
        let args: Vec<Value> = call.args.iter().map(|arg| self.value(arg, names)).collect::<Result<_, _>>()?;
        let name = call.name.as_str();
        let made = match (name, args.as_slice()) {
            ("row_number", []) if call.over.is_some() => {
                Value::new(WHOLE, format!("(row_number(){})::double precision", self.over(call, names, true)?))
            }
            _ if call.over.is_some() => {
                return Err(format!("{name}() OVER is not supported in a view; ROW_NUMBER() is"));
            }
            ("count", []) => Value::new(WHOLE, "count(*)::double precision"),
            _ if call.star => return Err(format!("{name}(*) has no meaning")),
            (name, [arg]) if AGGREGATES.contains(&name) => aggregate(name, arg, call.distinct)?,
            ("group_concat", [arg, by]) => {
                Value::new(Kind::Text, format!("string_agg({}, {})", arg.text().sql, by.text().sql))
            }
            _ if call.distinct => return Err(format!("{name}(DISTINCT …) has no meaning")),
            _ => scalar(name, &args)?,
        };
        Ok(made)
    }

    fn over(&self, call: &Call, names: &Names<'_>, by_rows: bool) -> Result<String, String> {
        let Some(over) = &call.over else { return Ok(String::new()) };
        let mut parts = Vec::new();
        let keys: Vec<String> =
            over.partition.iter().map(|key| Ok(self.value(key, names)?.sql)).collect::<Result<_, String>>()?;
        if !keys.is_empty() {
            parts.push(format!("PARTITION BY {}", keys.join(", ")));
        }
        let order: Vec<String> = over
            .order
            .iter()
            .map(|(key, descending)| Ok(directed(&self.value(key, names)?.sql, *descending)))
            .collect::<Result<_, String>>()?;
        if !order.is_empty() {
            parts.push(format!("ORDER BY {}", order.join(", ")));
        } else if let Some(rows) = Self::first_order(names).filter(|_| by_rows) {
            parts.push(format!("ORDER BY {rows}"));
        }
        Ok(format!(" OVER ({})", parts.join(" ")))
    }
}

fn aggregate(name: &str, arg: &Value, distinct: bool) -> Result<Value, String> {
    let distinct = if distinct { "DISTINCT " } else { "" };
    let number = || Ok::<_, String>(format!("{distinct}{}", arg.number()?.sql));
    Ok(match name {
        "count" => Value::new(WHOLE, format!("count({distinct}{})::double precision", arg.sql)),
        "sum" => Value::new(arg.number()?.kind, format!("sum({})", number()?)),
        "total" => Value::new(REAL, format!("coalesce(sum({}), 0)", number()?)),
        "avg" => Value::new(REAL, format!("avg({})", number()?)),
        "min" | "max" => match arg.kind {
            Kind::Text => Value::new(Kind::Text, format!("{name}({})", arg.sql)),
            _ => Value::new(arg.number()?.kind, format!("{name}({})", arg.number()?.sql)),
        },
        _ => Value::new(Kind::Text, format!("string_agg({distinct}{}, ',')", arg.text().sql)),
    })
}

fn scalar(name: &str, args: &[Value]) -> Result<Value, String> {
    let texts = || args.iter().map(|arg| arg.text().sql).collect::<Vec<_>>();
    let numbers = || args.iter().map(|arg| Ok(arg.number()?.sql)).collect::<Result<Vec<_>, String>>();
    let text = |sql: String| Ok(Value::new(Kind::Text, sql));
    let whole = |sql: String| Ok(Value::new(WHOLE, sql));
    match (name, args) {
        ("lower" | "upper", [_]) => text(format!("{name}({} COLLATE \"C\")", texts().join(", "))),
        ("length", [_]) => whole(format!("char_length({})::double precision", texts().join(", "))),
        ("trim" | "ltrim" | "rtrim", [_] | [_, _]) => {
            let name = if name == "trim" { "btrim" } else { name };
            text(format!("{name}({})", texts().join(", ")))
        }
        ("replace", [_, _, _]) => text(format!("replace({})", texts().join(", "))),
        ("instr", [_, _]) => whole(format!("strpos({})::double precision", texts().join(", "))),
        ("substr" | "substring", [value, places @ ..]) if (1..=2).contains(&places.len()) => {
            let places: Result<Vec<_>, String> =
                places.iter().map(|place| Ok(format!("greatest({}, 0)::int", place.number()?.sql))).collect();
            text(format!("substr({}, {})", value.text().sql, places?.join(", ")))
        }
        ("abs", [value]) => {
            let value = value.number()?;
            Ok(Value::new(value.kind, format!("abs({})", value.sql)))
        }
        ("round", [_]) => {
            Ok(Value::new(REAL, format!("round(({})::numeric)::double precision", numbers()?.join(", "))))
        }
        ("round", [value, places]) => {
            let (value, places) = (value.number()?.sql, places.number()?.sql);
            Ok(Value::new(REAL, format!("round(({value})::numeric, ({places})::int)::double precision")))
        }
        ("coalesce", [_, _, ..]) | ("ifnull", [_, _]) => {
            let (kind, values) = alike(args.to_vec())?;
            Ok(Value::new(kind, format!("coalesce({})", values.join(", "))))
        }
        ("nullif", [left, right]) => {
            let equal = binary(Op::Eq, left, right)?.sql;
            Ok(Value::new(left.kind, format!("(CASE WHEN {equal} THEN NULL ELSE {} END)", left.sql)))
        }
        ("iif", [condition, yes, no]) => {
            let (kind, values) = alike(vec![yes.clone(), no.clone()])?;
            let condition = condition.condition()?;
            let [yes, no] = values.as_slice() else { return Err("iif() takes three values".to_owned()) };
            Ok(Value::new(kind, format!("(CASE WHEN {condition} THEN {yes} ELSE {no} END)")))
        }
        ("min" | "max", [_, _, ..]) => {
            let (kind, values) = alike(args.to_vec())?;
            let unset: Vec<String> = values.iter().map(|value| format!("{value} IS NULL")).collect();
            let function = if name == "min" { "least" } else { "greatest" };
            let sql =
                format!("(CASE WHEN {} THEN NULL ELSE {function}({}) END)", unset.join(" OR "), values.join(", "));
            Ok(Value::new(kind, sql))
        }
        _ => Err(format!("{name}() with {} values is not supported in a view", args.len())),
    }
}

/// What a text begins with, read as a number of that form; 0 when it begins otherwise.
fn leading_number(text: &str, form: &str) -> String {
    format!(
        "(CASE WHEN {text} IS NOT NULL THEN inn.numeric_value(coalesce(substring({text} FROM '^\\s*({form})'), '0')) END)"
    )
}

fn cast(value: &Value, kind: &str) -> Result<Value, String> {
    match kind {
        "text" => Ok(value.text()),
        // Of a text only the digits it begins with count: `1e1` is 1.
        "integer" | "int" | "bigint" if value.kind == Kind::Text => {
            Ok(Value::new(WHOLE, leading_number(&value.sql, "[+-]?\\d+")))
        }
        "integer" | "int" | "bigint" => Ok(Value::new(WHOLE, format!("trunc({})", value.number()?.sql))),
        "real" | "float" | "double" => Ok(Value::new(REAL, value.number()?.sql)),
        "decimal" | "numeric" | "boolean" | "bool" => value.number(),
        other => Err(format!("CAST AS {other} is not supported in a view")),
    }
}

/// Values of one expression that must be of one kind; NULL is of every kind.
fn alike(values: Vec<Value>) -> Result<(Kind, Vec<String>), String> {
    let is_number = |kind: Kind| matches!(kind, Kind::Number { .. } | Kind::Flag | Kind::Condition);
    let kinds: Vec<Kind> = values.iter().map(|value| value.kind).filter(|kind| *kind != Kind::Null).collect();
    let Some(first) = kinds.first().copied() else {
        return Ok((Kind::Null, values.into_iter().map(|v| v.sql).collect()));
    };
    if kinds.iter().all(|kind| *kind == first) {
        return Ok((first, values.into_iter().map(|value| value.sql).collect()));
    }
    if kinds.iter().all(|kind| is_number(*kind)) {
        let real = kinds.iter().all(|kind| *kind == REAL);
        let numbers: Result<Vec<_>, String> = values.iter().map(|value| Ok(value.number()?.sql)).collect();
        return Ok((Kind::Number { real }, numbers?));
    }
    Err("texts and numbers stand where one kind must be (CAST makes them alike)".to_owned())
}

fn binary(op: Op, left: &Value, right: &Value) -> Result<Value, String> {
    let condition = |sql: String| Ok(Value::new(Kind::Condition, sql));
    match op {
        Op::And => condition(format!("({} AND {})", left.condition()?, right.condition()?)),
        Op::Or => condition(format!("({} OR {})", left.condition()?, right.condition()?)),
        Op::Concat => Ok(Value::new(Kind::Text, format!("({} || {})", left.text().sql, right.text().sql))),
        Op::Add | Op::Sub | Op::Mul => {
            let (left, right) = (left.number()?, right.number()?);
            let sign = match op {
                Op::Add => "+",
                Op::Sub => "-",
                _ => "*",
            };
            let real = left.kind == REAL || right.kind == REAL;
            Ok(Value::new(Kind::Number { real }, format!("({} {sign} {})", left.sql, right.sql)))
        }
        Op::Div => Ok(divide(&left.number()?, &right.number()?)),
        Op::Eq | Op::Ne | Op::Is | Op::IsNot | Op::Lt | Op::Le | Op::Gt | Op::Ge => {
            let sign = match op {
                Op::Eq => "=",
                Op::Ne => "<>",
                Op::Is => "IS NOT DISTINCT FROM",
                Op::IsNot => "IS DISTINCT FROM",
                Op::Lt => "<",
                Op::Le => "<=",
                Op::Gt => ">",
                _ => ">=",
            };
            let (left, right) = comparable(left, right)?;
            condition(format!("({left} {sign} {right})"))
        }
    }
}

/// Two integers divide without a fraction in `SQLite`, and whole numbers of a column are integers there. By 0 it is NULL.
fn divide(left: &Value, right: &Value) -> Value {
    let (l, r) = (&left.sql, &right.sql);
    if left.kind == REAL || right.kind == REAL {
        return Value::new(REAL, format!("({l} / nullif({r}, 0))"));
    }
    let whole = format!("{l} = trunc({l}) AND {r} = trunc({r})");
    let sql = format!("(CASE WHEN {whole} THEN trunc({l} / nullif({r}, 0)) ELSE {l} / nullif({r}, 0) END)");
    Value::new(WHOLE, sql)
}

fn comparable(left: &Value, right: &Value) -> Result<(String, String), String> {
    match (left.kind, right.kind) {
        (Kind::Flag | Kind::Condition, Kind::Flag | Kind::Condition) => Ok((left.sql.clone(), right.sql.clone())),
        (Kind::Text | Kind::List | Kind::Json, Kind::Text | Kind::List | Kind::Json | Kind::Null)
        | (Kind::Null, Kind::Text | Kind::List | Kind::Json) => Ok((left.text().sql, right.text().sql)),
        (Kind::Text, _) | (_, Kind::Text) => Err("a text is compared with a number (CAST makes them alike)".to_owned()),
        _ => Ok((left.number()?.sql, right.number()?.sql)),
    }
}

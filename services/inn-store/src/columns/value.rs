//! Values of records as parameters of a statement.

use bytes::BytesMut;
use inn_protocol::model::Field;
use inn_protocol::{Code, Violation, canonical};
use inn_rules::schema::{Storage, storage};
use serde::Serialize as _;
use serde_json::Value;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

/// A value on its way into a statement, with the one PostgreSQL type it can be.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SqlValue {
    Text(String),
    Number(f64),
    Bool(bool),
    List(Vec<String>),
    /// JSON text as it will be kept; `None` is SQL NULL.
    Json(Option<String>),
}

impl SqlValue {
    pub(crate) const fn pg_type(&self) -> Type {
        match self {
            Self::Text(_) => Type::TEXT,
            Self::Number(_) => Type::FLOAT8,
            Self::Bool(_) => Type::BOOL,
            Self::List(_) => Type::TEXT_ARRAY,
            Self::Json(_) => Type::JSON,
        }
    }
}

impl ToSql for SqlValue {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        if *ty != self.pg_type() {
            return Err(format!("a {} value cannot be sent as {ty}", self.pg_type()).into());
        }
        match self {
            Self::Text(text) => text.to_sql(ty, out),
            Self::Number(number) => number.to_sql(ty, out),
            Self::Bool(flag) => flag.to_sql(ty, out),
            Self::List(items) => items.to_sql(ty, out),
            Self::Json(None) => Ok(IsNull::Yes),
            // The wire form of `json` is its text.
            Self::Json(Some(text)) => {
                out.extend_from_slice(text.as_bytes());
                Ok(IsNull::No)
            }
        }
    }

    fn accepts(ty: &Type) -> bool {
        [Type::TEXT, Type::FLOAT8, Type::BOOL, Type::TEXT_ARRAY, Type::JSON].contains(ty)
    }

    to_sql_checked!();
}

/// The parameter that stores `value` in the field's column. The value has been normalised by the rules; JSON null
/// means the field's zero value.
///
/// # Errors
/// A violation when the value is not of the field's kind, or holds U+0000, which PostgreSQL cannot keep.
pub(crate) fn param(field: &Field, value: &Value) -> Result<SqlValue, Violation> {
    let wrong = |code, expected: &str| Err(Violation::new(code, &field.name, expected).got(value));
    match (storage(field), value) {
        (Storage::Text, Value::Null) => Ok(SqlValue::Text(String::new())),
        (Storage::Text, Value::String(text)) => {
            if text.contains('\0') {
                return wrong(Code::InvalidString, NO_NUL);
            }
            Ok(SqlValue::Text(text.clone()))
        }
        (Storage::Text, _) => wrong(Code::InvalidString, "string"),
        (Storage::Number, Value::Null) => Ok(SqlValue::Number(0.0)),
        (Storage::Number, Value::Number(number)) => match number.as_f64() {
            // Adding 0 turns -0 into 0, as PocketBase reads it back.
            Some(number) if number.is_finite() => Ok(SqlValue::Number(number + 0.0)),
            _ => wrong(Code::InvalidNumber, "number"),
        },
        (Storage::Number, _) => wrong(Code::InvalidNumber, "number"),
        (Storage::Bool, Value::Null) => Ok(SqlValue::Bool(false)),
        (Storage::Bool, Value::Bool(flag)) => Ok(SqlValue::Bool(*flag)),
        (Storage::Bool, _) => wrong(Code::InvalidBoolean, "boolean"),
        (Storage::List, Value::Null) => Ok(SqlValue::List(Vec::new())),
        (Storage::List, Value::Array(items)) => {
            let texts: Option<Vec<String>> = items.iter().map(|item| item.as_str().map(str::to_owned)).collect();
            match texts {
                Some(texts) if texts.iter().any(|text| text.contains('\0')) => wrong(Code::InvalidString, NO_NUL),
                Some(texts) => Ok(SqlValue::List(texts)),
                None => wrong(Code::InvalidValue, "list of strings"),
            }
        }
        (Storage::List, _) => wrong(Code::InvalidValue, "list of strings"),
        (Storage::Json, Value::Null) => Ok(SqlValue::Json(None)),
        (Storage::Json, value) => {
            if holds_nul(value) {
                return wrong(Code::InvalidString, NO_NUL);
            }
            Ok(SqlValue::Json(Some(json_text(value))))
        }
        (Storage::Geo, Value::Null) => Ok(SqlValue::Json(Some(geo_text(&Value::Null)))),
        (Storage::Geo, Value::Object(_)) => Ok(SqlValue::Json(Some(geo_text(value)))),
        (Storage::Geo, _) => wrong(Code::InvalidValue, "object with the numbers lon and lat"),
    }
}

const NO_NUL: &str = "text without the character U+0000";

/// The text that is kept, with numbers as PocketBase spells them (`100000000000000000000`, `1e+21`, `1e-7`): `~` sees it.
fn json_text(value: &Value) -> String {
    struct Spelled;
    impl serde_json::ser::Formatter for Spelled {
        fn write_f64<W: ?Sized + std::io::Write>(&mut self, out: &mut W, number: f64) -> std::io::Result<()> {
            out.write_all(canonical::to_string(&Value::from(number)).as_bytes())
        }
    }
    let mut text = Vec::new();
    let written = value.serialize(&mut serde_json::Serializer::with_formatter(&mut text, Spelled));
    // Writing a value to memory cannot fail, and gives UTF-8; should it ever, the plain spelling is as true.
    written.ok().and_then(|()| String::from_utf8(text).ok()).unwrap_or_else(|| value.to_string())
}

/// `lon` first, nothing else: comparisons see the text of the whole point.
fn geo_text(value: &Value) -> String {
    let part = |name| value.get(name).filter(|part| part.is_number()).cloned().unwrap_or_else(|| Value::from(0));
    format!("{{\"lon\":{},\"lat\":{}}}", part("lon"), part("lat"))
}

/// PostgreSQL keeps `\u0000` inside `json` but fails when it is read as text, so one such row would break every
/// filter on the field.
fn holds_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(holds_nul),
        Value::Object(members) => members.iter().any(|(key, member)| key.contains('\0') || holds_nul(member)),
        _ => false,
    }
}

//! Prepared statements by their text, on a connection or inside a transaction, and the words of receipts.

use deadpool_postgres::GenericClient;
use inn_ports::{StoreError, StoreResult};
use inn_protocol::{Code, Refusal, Violation};
use serde_json::{Map, Value};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, ToSql};

use crate::error::broken;

pub(crate) type Parameters<'p> = [&'p (dyn ToSql + Sync)];

pub(crate) async fn all<C: GenericClient + Sync>(
    client: &C,
    what: &'static str,
    text: &str,
    parameters: &Parameters<'_>,
) -> StoreResult<Vec<Row>> {
    let statement = client.prepare_cached(text).await.map_err(broken(what))?;
    client.query(&statement, parameters).await.map_err(broken(what))
}

pub(crate) async fn maybe<C: GenericClient + Sync>(
    client: &C,
    what: &'static str,
    text: &str,
    parameters: &Parameters<'_>,
) -> StoreResult<Option<Row>> {
    let statement = client.prepare_cached(text).await.map_err(broken(what))?;
    client.query_opt(&statement, parameters).await.map_err(broken(what))
}

pub(crate) async fn one<C: GenericClient + Sync>(
    client: &C,
    what: &'static str,
    text: &str,
    parameters: &Parameters<'_>,
) -> StoreResult<Row> {
    let statement = client.prepare_cached(text).await.map_err(broken(what))?;
    client.query_one(&statement, parameters).await.map_err(broken(what))
}

/// Answers how many rows were touched.
pub(crate) async fn run<C: GenericClient + Sync>(
    client: &C,
    what: &'static str,
    text: &str,
    parameters: &Parameters<'_>,
) -> StoreResult<u64> {
    let statement = client.prepare_cached(text).await.map_err(broken(what))?;
    client.execute(&statement, parameters).await.map_err(broken(what))
}

/// A column by name. A row that does not have it is a bug of ours: logged, never a panic.
pub(crate) fn column<'r, T: FromSql<'r>>(row: &'r Row, name: &str) -> StoreResult<T> {
    row.try_get(name).map_err(broken("column"))
}

/// A stored word that no release of ours writes.
pub(crate) fn unreadable(what: &'static str, value: &str) -> StoreError {
    tracing::error!(what, value, "the database holds a value that cannot be read");
    StoreError::Broken
}

/// The facts of a receipt, from an object literal.
pub(crate) fn facts(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(facts) => facts,
        other => Map::from_iter([("value".to_owned(), other)]),
    }
}

/// One wrong parameter.
pub(crate) fn invalid(field: &str, expected: impl Into<String>, message: impl Into<String>) -> Refusal {
    Refusal::violations(message, vec![Violation::new(Code::InvalidParameter, field, expected)])
}

/// A text people will read: at most `max` characters, no control characters but those of a paragraph.
pub(crate) fn readable(field: &str, text: &str, max: usize) -> Result<(), Refusal> {
    let control = |c: char| c.is_control() && !matches!(c, '\n' | '\t' | '\r');
    if text.chars().count() > max || text.chars().any(control) {
        let expected = format!("at most {max} characters without control characters");
        return Err(invalid(field, expected, format!("\"{field}\" is too long or holds control characters.")));
    }
    Ok(())
}

/// A lifetime as PostgreSQL's `make_interval(secs => …)` takes it.
pub(crate) fn seconds(lifetime: chrono::Duration) -> f64 {
    lifetime.as_seconds_f64()
}

/// A text as a text column takes it: without NUL, which PostgreSQL cannot store.
pub(crate) fn storable(text: &str) -> std::borrow::Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', "\u{fffd}").into() } else { text.into() }
}

/// What this transaction has just written and must find again.
pub(crate) fn must<T>(found: Option<T>) -> StoreResult<T> {
    found.ok_or_else(|| {
        tracing::error!("a row written in this transaction is not there");
        StoreError::Broken
    })
}

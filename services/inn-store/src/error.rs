//! What PostgreSQL says, in the words of the ports.

use deadpool_postgres::PoolError;
use inn_ports::StoreError;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

/// Why the store could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    #[error("the database address cannot be read: {0}")]
    InvalidUrl(String),
    #[error("the database does not answer: {0}")]
    Unreachable(String),
    #[error("the database schema could not be brought up to date: {0}")]
    Migration(String),
}

/// SQLSTATE of `inn.stop`: a statement that ended itself, with a JSON verdict as detail.
pub(crate) const STOPPED: &str = "INN01";

/// An error with all its causes, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

/// Logs the cause once and says what it means for the caller. Only for statements that have not begun to commit:
/// a lost connection means here that nothing happened.
pub(crate) fn broken(context: &'static str) -> impl Fn(Error) -> StoreError {
    move |error| classify(context, &error, StoreError::Unavailable)
}

/// The same for a statement that commits by itself, or for `COMMIT`: a lost connection leaves the outcome open.
pub(crate) fn committing(context: &'static str) -> impl Fn(Error) -> StoreError {
    move |error| classify(context, &error, StoreError::Unknown)
}

pub(crate) fn classify(context: &'static str, error: &Error, lost: StoreError) -> StoreError {
    let Some(state) = error.code() else {
        // No SQLSTATE: the connection is gone, or a value did not fit its parameter before anything was sent.
        let sent = error.is_closed()
            || std::error::Error::source(error).is_some_and(<dyn std::error::Error>::is::<std::io::Error>);
        tracing::error!(context, error = %chain(error), "database call failed");
        return if sent { lost } else { StoreError::Broken };
    };
    let meaning = meaning(state, lost);
    if matches!(meaning, StoreError::Stale) {
        tracing::debug!(context, error = %chain(error), "database call gave way to another");
    } else {
        tracing::error!(context, code = state.code(), error = %chain(error), "database call failed");
    }
    meaning
}

fn meaning(state: &SqlState, lost: StoreError) -> StoreError {
    match state.code() {
        // Deadlock or serialisation failure: the other one won, nothing of ours is left.
        "40P01" | "40001" => StoreError::Stale,
        // Ended by the administrator or by a crash of another backend. If it was committing, that may have happened.
        "57P01" | "57P02" | "57P04" => lost,
        // Starting up, shutting down, no connection left, statement or lock timeout, read-only, disk full.
        "57P03" | "53300" | "53100" | "53200" | "53400" | "57014" | "55P03" | "25006" => StoreError::Unavailable,
        code if code.starts_with("08") => lost,
        _ => StoreError::Broken,
    }
}

pub(crate) fn no_connection(error: &PoolError) -> StoreError {
    tracing::error!(error = %chain(error), "no database connection");
    StoreError::Unavailable
}

/// The name of the violated unique constraint or index.
pub(crate) fn violated(error: &Error) -> Option<String> {
    let cause = error.as_db_error().filter(|cause| *cause.code() == SqlState::UNIQUE_VIOLATION)?;
    cause.constraint().map(str::to_owned)
}

/// The verdict with which a statement ended itself through `inn.stop`.
pub(crate) fn verdict(error: &Error) -> Option<serde_json::Value> {
    let cause = error.as_db_error().filter(|cause| cause.code().code() == STOPPED)?;
    serde_json::from_str(cause.detail()?).ok()
}

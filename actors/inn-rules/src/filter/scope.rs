//! What a filter is compiled against.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use inn_protocol::call::RequestFacts;
use inn_protocol::model::{Collection, Model};
use serde_json::{Map, Value};

/// Everything names in a filter can mean.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    pub collection: &'a Collection,
    pub model: &'a Model,
    /// What `@now` and the other date macros are computed from.
    pub now: DateTime<Utc>,
    pub auth: &'a AuthFacts,
    /// Fields marked hidden may be used: for rules, and for the app's owners.
    pub see_hidden: bool,
}

/// What `@request.*` means: the record of the app's own auth collection the caller is signed in as (`@request.auth`),
/// and the call itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AuthFacts {
    /// `None`: nobody is signed in, and every `@request.auth` path is NULL.
    pub record: Option<Map<String, Value>>,
    /// Only `id` is known of the record. A rule that asks for more is then refused instead of seeing NULL, because
    /// `@request.auth.role != 'blocked'` would let everybody through.
    pub partial: bool,
    /// What `@request.body`, `.query`, `.headers`, `.method` and `.context` mean.
    pub request: Arc<RequestFacts>,
}

impl AuthFacts {
    pub fn nobody() -> Self {
        Self::default()
    }

    pub fn of_record(record: Map<String, Value>) -> Self {
        Self { record: Some(record), ..Self::default() }
    }

    /// The same caller, in this call.
    #[must_use]
    pub fn asking(self, request: Arc<RequestFacts>) -> Self {
        Self { request, ..self }
    }

    /// Only the id of the record is known.
    pub fn of_id(id: &str) -> Self {
        let record = Map::from_iter([("id".to_owned(), Value::String(id.to_owned()))]);
        Self { record: Some(record), partial: true, ..Self::default() }
    }
}

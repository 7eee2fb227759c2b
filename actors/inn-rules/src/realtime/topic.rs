//! One subscription: `COLLECTION/*`, `COLLECTION/ID`, the old bare `COLLECTION`, or any other text, which never fires.

use std::collections::BTreeMap;
use std::sync::Arc;

use inn_protocol::Digest;
use inn_protocol::call::{Action, RequestFacts};
use inn_protocol::model::Collection;
use serde_json::{Map, Value};

use crate::query::ListParams;

/// What of a collection it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Every record: the list rule decides.
    Every,
    /// One record: the view rule decides.
    One(String),
}

/// A subscription as it was sent, and what it means.
#[derive(Debug, Clone, PartialEq)]
pub struct Topic {
    /// The name of its events: the whole text, options included.
    pub text: String,
    /// Name or id of the collection.
    pub collection: String,
    pub target: Target,
    /// `filter`, `expand` and `fields` of the options.
    pub params: ListParams,
    /// What rules see: the options' query and headers, `realtime`, GET.
    pub facts: Arc<RequestFacts>,
    /// Events of one change go out in this order; see [`super::Place::topic`].
    pub order: u64,
}

/// 56 bits of the text's digest: the same order on every node.
fn order(text: &str) -> u64 {
    Digest::of(text.as_bytes()).0.iter().take(7).fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

impl Topic {
    /// `None` for an empty text, which PocketBase passes over.
    pub fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return None;
        }
        let (path, query) = text.split_once('?').unwrap_or((text, ""));
        let (collection, target) = match path.split_once('/') {
            None | Some((_, "*")) => (path.split('/').next().unwrap_or(path), Target::Every),
            Some((collection, id)) => (collection, Target::One(id.to_owned())),
        };
        let options = options(query);
        let query = texts(options.get("query"), str::to_owned);
        let headers = texts(options.get("headers"), |name| name.to_ascii_lowercase().replace('-', "_"));
        let option = |name: &str| query.get(name).filter(|value| !value.is_empty()).cloned();
        let params = ListParams {
            filter: option("filter"),
            expand: option("expand"),
            fields: option("fields"),
            ..ListParams::default()
        };
        let facts =
            RequestFacts { context: "realtime".to_owned(), method: "GET".to_owned(), query, headers, body: Map::new() };
        Some(Self {
            text: text.to_owned(),
            collection: collection.to_owned(),
            target,
            params,
            facts: Arc::new(facts),
            order: order(text),
        })
    }

    /// Does it speak of this collection? By name or id, in exactly this spelling.
    pub fn is_about(&self, collection: &Collection, record: &str) -> bool {
        let named = self.collection == collection.name || self.collection == collection.id;
        named && self.reaches(record)
    }

    /// Of a record of its collection.
    pub fn reaches(&self, record: &str) -> bool {
        match &self.target {
            Target::Every => true,
            Target::One(id) => id == record,
        }
    }

    /// What its events are decided as.
    pub fn action(&self, collection: &Collection, record: &str) -> Action {
        let entity = collection.name.clone();
        match self.target {
            Target::Every => Action::ListRecords { entity },
            Target::One(_) => Action::ViewRecord { entity, id: record.to_owned() },
        }
    }

    /// Needs work of its own: other subscribers of the same principal without options share one.
    pub fn has_options(&self) -> bool {
        !self.facts.query.is_empty() || !self.facts.headers.is_empty()
    }
}

/// `?options=` is URL-encoded JSON. What cannot be read counts for nothing, as in PocketBase.
fn options(query: &str) -> Map<String, Value> {
    let value = query.split('&').find_map(|pair| pair.strip_prefix("options="));
    let read = |value: &str| serde_json::from_slice(&decoded(value)).ok();
    value.and_then(read).unwrap_or_default()
}

/// Percent-decoding of one query value; a stray `%` stands for itself.
fn decoded(text: &str) -> Vec<u8> {
    let hex = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match (byte, hex(bytes.get(at + 1)), hex(bytes.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                out.push(u8::try_from(high * 16 + low).unwrap_or(b'%'));
                at += 3;
                continue;
            }
            (b'+', ..) => out.push(b' '),
            _ => out.push(*byte),
        }
        at += 1;
    }
    out
}

/// Values as texts, the way PocketBase casts them.
fn texts(members: Option<&Value>, name: impl Fn(&str) -> String) -> BTreeMap<String, String> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null | Value::Array(_) | Value::Object(_) => String::new(),
        other => other.to_string(),
    };
    let members = members.and_then(Value::as_object);
    members.into_iter().flatten().map(|(key, value)| (name(key), text(value))).collect()
}

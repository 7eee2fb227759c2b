//! What a caller sees of a collection's rows, when that is the same for every row.

use std::collections::BTreeMap;

use inn_protocol::model::{Collection, CollectionKind};
use serde_json::Value;

use super::render::shown_always;
use crate::schema::{Storage, storage};

/// The members of a rendered record, in the order they are written.
///
/// A store that knows them can write a row's JSON straight from its columns. The text is what
/// [`render_record`](super::render_record) would have made of the row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordShape {
    pub members: Vec<Member>,
}

/// One member of a rendered record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The name as a JSON string, with the colon behind it.
    pub key: String,
    pub value: MemberValue,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberValue {
    /// JSON text that is the same in every row.
    Constant(String),
    /// The field of that name.
    Column { name: String, storage: Storage },
}

impl RecordShape {
    /// `None` when what is shown depends on the row (the email of an auth record, unless the caller sees every email), and
    /// for view collections, whose columns are what their query makes of them.
    pub fn of(collection: &Collection, see_hidden: bool, see_email: bool) -> Option<Self> {
        if collection.kind == CollectionKind::View || collection.is_auth() && !see_email {
            return None;
        }
        let fields = collection.fields.iter().filter(|field| shown_always(collection, field, see_hidden));
        let column = |name: &str, storage| MemberValue::Column { name: name.to_owned(), storage };
        let fields = fields.map(|field| (field.name.as_str(), column(&field.name, storage(field))));
        let about = [("collectionId", &collection.id), ("collectionName", &collection.name)];
        let about = about.map(|(name, text)| (name, MemberValue::Constant(Value::from(text.as_str()).to_string())));
        let sorted: BTreeMap<_, _> = fields.chain(about).collect();
        let key = |name| format!("{}:", Value::from(name));
        Some(Self { members: sorted.into_iter().map(|(name, value)| Member { key: key(name), value }).collect() })
    }
}

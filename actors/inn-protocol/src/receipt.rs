//! Receipts: the committed answer to a call. The sentence comes from the stored row, never from whoever asked.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ids::{AppId, CallId};

/// What was done to a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    Create,
    Update,
    Delete,
}

impl Verb {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }
}

/// Which fields the sentence is made of. Stored with the receipt, so that it reads the same after a schema change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SentenceShape {
    pub verb: Verb,
    pub entity: String,
    /// Field people identify the record by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Single relation fields with the entity they point to and that entity's label field.
    #[serde(default)]
    pub refs: Vec<RefShape>,
    /// Date and day-key fields.
    #[serde(default)]
    pub dates: Vec<String>,
    /// On update: the fields that were asked to change.
    #[serde(default)]
    pub changed: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefShape {
    pub field: String,
    pub entity: String,
    pub label: String,
}

/// The receipt of one write. `GET /v1/receipts/{call}` answers the same bytes for ever.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// The call, which is also the id of the register entry.
    pub id: CallId,
    pub app: Option<AppId>,
    pub at: DateTime<Utc>,
    pub action: String,
    /// For people: `Added "Eat chicken" to To Do, due Fri 31 Jul`.
    pub sentence: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entity: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
    /// The stored row for record writes; the committed facts for everything else (a grant, a deploy).
    pub stored: Map<String, Value>,
}

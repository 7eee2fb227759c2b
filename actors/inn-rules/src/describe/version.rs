//! Fingerprints of what an app declares.

use inn_protocol::app::AppDefinition;
use inn_protocol::canonical;
use inn_protocol::model::Model;
use serde_json::json;

use super::entities::{listed, type_of};

/// The 1.0 fingerprint: `name(field:type,…);…`, all sorted, hashed with djb2 (xor form, 32 bits) over UTF-16 units.
/// Source and test vectors: reference notes on A2App, B.3. It does not move with options, rules or operations.
pub fn schema_version(model: &Model) -> String {
    let hash = rendered(model).encode_utf16().fold(5381_u32, |hash, unit| hash.wrapping_mul(33) ^ u32::from(unit));
    format!("sv_{hash:x}")
}

pub(super) fn rendered(model: &Model) -> String {
    let entities = listed(model).map(|collection| {
        let mut fields: Vec<_> = collection.fields.iter().map(|f| format!("{}:{}", f.name, type_of(f))).collect();
        fields.sort();
        format!("{}({})", collection.name, fields.join(","))
    });
    let mut entities: Vec<_> = entities.collect();
    entities.sort();
    entities.join(";")
}

/// A fingerprint that moves with everything a caller can rely on: the model with all options and rules, and the
/// operations. SHA-256 of their canonical JSON, as `iv_` and 64 hex digits.
pub fn strong_version(definition: &AppDefinition) -> String {
    let declared = json!({ "model": definition.model, "operations": definition.operations });
    format!("iv_{}", canonical::digest(&declared))
}

//! What an app says about itself: identity, describe and the operation list of A2App 1.0.
//!
//! Source: reference notes on A2App, B.2 to B.4. Everything is made from the active release, so it cannot drift.

mod conventions;
mod entities;
mod version;

use chrono::{DateTime, Utc};
use inn_protocol::app::{AppDefinition, AppSnapshot};
use serde_json::{Value, json};

pub use version::{schema_version, strong_version};

/// The wire contract. Apps of the 0.1 dialect are answered in 1.0 as well: the two share these fields.
pub const PROTOCOL: &str = "1.0";
/// The adapter generation of the 1.0 contract whose behaviour is kept.
pub const ADAPTER_VERSION: &str = "1.6.0";
/// Whose filter dialect is spoken.
pub const PB_VERSION: &str = "0.39.7";

/// `GET /api/_a2app`: which app this is and which contract it speaks. `app.id` is the id the app gives itself; two
/// installs of one bundle differ in `app.install`.
pub fn identity(app: &AppSnapshot, now: DateTime<Utc>) -> Value {
    let definition = &app.definition;
    json!({
        "a2app": true,
        "protocol": PROTOCOL,
        "adapterVersion": ADAPTER_VERSION,
        "app": {
            "id": definition.declared_id,
            "name": definition.name,
            "version": definition.version,
            "pbVersion": PB_VERSION,
            "install": app.id.to_string(),
            "slug": app.slug,
            "release": app.release.to_string(),
        },
        "env": "live",
        "schemaVersion": schema_version(&definition.model),
        "innkeeperVersion": strong_version(definition),
        "serverNow": server_now(now),
        "serverTzOffsetMinutes": 0,
    })
}

/// `GET /api/_a2app/describe`: the entities, the operations as the author wrote them, and how to use both well.
pub fn describe(app: &AppSnapshot, now: DateTime<Utc>) -> Value {
    let definition = &app.definition;
    json!({
        "a2app": true,
        "protocol": PROTOCOL,
        "adapterVersion": ADAPTER_VERSION,
        "schemaVersion": schema_version(&definition.model),
        "innkeeperVersion": strong_version(definition),
        "serverNow": server_now(now),
        "entities": entities::entities(&definition.model),
        "operations": listed_operations(definition),
        "conventions": conventions::conventions(),
    })
}

/// `GET /api/_ops`: `operations.json` as the author wrote it.
pub fn operations(definition: &AppDefinition) -> Value {
    if definition.operations_json.is_object() {
        return definition.operations_json.clone();
    }
    json!({ "opsVersion": 1, "operations": listed_operations(definition) })
}

/// The author's own array; apps without an `operations.json` have what was read from elsewhere.
fn listed_operations(definition: &AppDefinition) -> Value {
    let written = definition.operations_json.get("operations").filter(|list| list.is_array());
    written.cloned().unwrap_or_else(|| serde_json::to_value(&definition.operations).unwrap_or_else(|_| json!([])))
}

/// Time as A2App 1.0 writes it: `2026-07-30 09:15:00Z`.
pub fn server_now(now: DateTime<Utc>) -> String {
    now.format("%Y-%m-%d %H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests;

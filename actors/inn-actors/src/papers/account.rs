//! The papers of an app's own users.

use inn_grants::app_token;
use inn_protocol::app::AuthMode;
use inn_protocol::caller::AppUser;
use inn_protocol::model::{Collection, FieldKind};
use inn_protocol::{Digest, Refusal};
use serde_json::{Map, Value};

use super::Evidence;
use crate::snapshots::Snapshots;

/// A record whose token was shown, and what the token says, when it was made with the record's key.
#[derive(Clone)]
pub(super) struct AppUserEvidence {
    pub(super) user: AppUser,
    /// Seconds since 1970.
    pub(super) expires: i64,
    pub(super) record: Map<String, Value>,
}

/// Which record the token names, and whether it was made with that record's key. Anything that does not fit means that
/// nobody is signed in (PocketBase notes, section E).
pub(super) async fn gather_app_user(
    evidence: &mut Evidence,
    token: &str,
    kind: app_token::Kind,
    snapshots: &Snapshots,
) -> Result<(), Refusal> {
    let Some(app) = evidence.app.clone().filter(|app| app.definition.auth_mode == AuthMode::MultiUser) else {
        return Ok(());
    };
    let Some(claims) = app_token::peek(token) else { return Ok(()) };
    let collections = &app.definition.model.collections;
    let named = collections.iter().find(|collection| collection.is_auth() && collection.id == claims.collection_id);
    let Some(collection) = named else { return Ok(()) };
    let Some(secret) = snapshots.app_secret(&app).await? else { return Ok(()) };
    let Some(row) = snapshots.app_user(&app, collection, &claims.id).await? else { return Ok(()) };
    let token_key = row.get("tokenKey").and_then(Value::as_str).unwrap_or_default();
    // Its time is the judge's business; here it only has to be genuine.
    let Some(claims) = app_token::verify(token, kind, &secret, token_key, i64::MIN) else {
        return Ok(());
    };
    let user = AppUser {
        app: app.id,
        tenant: app.tenant,
        collection: collection.name.clone(),
        record: claims.id,
        token_key: Digest::of(token_key.as_bytes()),
    };
    let record = facts_of(collection, row);
    evidence.app_user = Some(AppUserEvidence { user, expires: claims.exp, record });
    Ok(())
}

/// A record as `@request.auth` is made of: what it is of, and none of its secrets.
pub(crate) fn facts_of(collection: &Collection, mut row: Map<String, Value>) -> Map<String, Value> {
    for field in &collection.fields {
        if field.name == "tokenKey" || matches!(field.kind, FieldKind::Password { .. }) {
            row.remove(&field.name);
        }
    }
    row.insert("collectionId".to_owned(), collection.id.as_str().into());
    row.insert("collectionName".to_owned(), collection.name.as_str().into());
    row
}

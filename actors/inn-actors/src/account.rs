//! What a write of an account needs besides its body: hashed passwords, a fresh `tokenKey`, and whose hand it is.
//!
//! Hashes are made before the plan, off the worker threads, and only for a body that would be stored.

use inn_protocol::app::AppSnapshot;
use inn_protocol::model::{Collection, FieldKind};
use inn_protocol::receipt::Verb;
use inn_protocol::{Refusal, Result};
use inn_rules::files::Upload;
use inn_rules::filter::{Expr, matches};
use inn_rules::guard::{self, Kind, Mode};
use inn_rules::values::{self, Normalised};
use serde_json::{Map, Value};

/// What PocketBase makes `tokenKey` of.
const TOKEN_KEY: &str = "[a-zA-Z0-9]{50}";

/// Made by [`crate::Gateway`] before a write is planned.
#[derive(Clone, Default)]
pub(crate) struct Account {
    /// argon2id PHC strings by field name.
    pub(crate) hashed: Map<String, Value>,
    /// The stored hash that the sent `oldPassword` fits.
    pub(crate) old_fits: Option<String>,
    /// Random, for a record that is new or whose password or email changes.
    pub(crate) token_key: String,
    /// The rule that puts the caller in charge of accounts, for a new one.
    pub(crate) manage: Option<Expr>,
    /// The caller is in charge of the account that is changed.
    pub(crate) manages: bool,
}

impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Account(hidden)")
    }
}

/// Does the collection keep passwords?
pub(crate) fn has_passwords(collection: &Collection) -> bool {
    collection.fields.iter().any(|field| matches!(field.kind, FieldKind::Password { .. }))
}

/// Passwords of a body that everything else lets through, in plain text by field name; empty when the plan refuses it
/// anyway.
pub(crate) fn secrets(
    app: &AppSnapshot,
    collection: &Collection,
    verb: Verb,
    body: &Value,
    form: Option<&[Upload]>,
    see_hidden: bool,
    now: chrono::DateTime<chrono::Utc>,
) -> Map<String, Value> {
    let (Some(body), Verb::Create | Verb::Update) = (body.as_object(), verb) else { return Map::new() };
    if !has_passwords(collection) {
        return Map::new();
    }
    let mode = if verb == Verb::Create { Mode::Create } else { Mode::Update };
    let kind = if form.is_some() { Kind::Multipart } else { Kind::Json };
    if guard::guard(collection, body, mode, kind, see_hidden, now).is_err() {
        return Map::new();
    }
    let model = &app.definition.model;
    let ready = values::normalise_form(collection, model, body, form.unwrap_or_default(), mode, None);
    ready.map(|ready| ready.secrets).unwrap_or_default()
}

/// A fresh `tokenKey`.
pub(crate) fn token_key(random: &[u8; 64]) -> String {
    values::autogenerate(TOKEN_KEY, random).unwrap_or_default()
}

impl Account {
    /// What of a new record only its managers may say, and the hashes and key that belong to it.
    pub(crate) fn create(
        &self,
        collection: &Collection,
        ready: &Normalised,
        superuser: bool,
    ) -> Result<Map<String, Value>> {
        if !superuser && !self.manage.as_ref().is_some_and(|rule| matches(rule, &ready.values)) {
            values::check_auth_form(collection, ready, Mode::Create, None)?;
        }
        let mut extra = self.stored(&ready.secrets)?;
        if collection.is_auth() {
            extra.insert("tokenKey".to_owned(), self.fresh_key()?);
        }
        Ok(extra)
    }

    /// The same for a change of `current`.
    pub(crate) fn update(
        &self,
        collection: &Collection,
        ready: &Normalised,
        current: Option<&Map<String, Value>>,
        superuser: bool,
    ) -> Result<Map<String, Value>> {
        let nothing = Map::new();
        let row = current.unwrap_or(&nothing);
        if !superuser && !self.manages {
            values::check_auth_form(collection, ready, Mode::Update, current)?;
            let stored = row.get("password").and_then(Value::as_str);
            let proved = self.old_fits.as_deref().is_some_and(|fits| stored == Some(fits));
            if collection.is_auth() && ready.secrets.contains_key("password") && !proved {
                return Err(values::wrong_old_password());
            }
        }
        let mut extra = self.stored(&ready.secrets)?;
        let new_email = ready.values.get("email").is_some_and(|email| row.get("email") != Some(email));
        if collection.is_auth() && (new_email || extra.contains_key("password")) {
            extra.insert("tokenKey".to_owned(), self.fresh_key()?);
        }
        Ok(extra)
    }

    /// The hashes of the sent passwords.
    fn stored(&self, secrets: &Map<String, Value>) -> Result<Map<String, Value>> {
        let passwords = secrets.keys().filter(|field| *field != "oldPassword");
        passwords
            .map(|field| {
                // The body that was hashed is the body that is planned; anything else is a bug and stores nothing.
                let hash = self.hashed.get(field).cloned().ok_or_else(Refusal::internal)?;
                Ok((field.clone(), hash))
            })
            .collect()
    }

    fn fresh_key(&self) -> Result<Value> {
        if self.token_key.is_empty() {
            return Err(Refusal::internal());
        }
        Ok(Value::String(self.token_key.clone()))
    }
}

//! Hashing and comparing passwords of an app's accounts, off the worker threads and a few at a time.

use std::sync::Arc;

use inn_grants::password;
use inn_ports::ViewPlan;
use inn_protocol::Refusal;
use inn_protocol::app::AppSnapshot;
use inn_protocol::receipt::Verb;
use inn_rules::access::{self, Permit};
use inn_rules::files::Upload;
use serde_json::{Map, Value};

use super::Gateway;
use crate::account::{Account, secrets, token_key};

/// One write, as far as its passwords are concerned.
pub(super) struct AccountWrite<'a> {
    pub(super) app: &'a Arc<AppSnapshot>,
    pub(super) permit: &'a Permit,
    pub(super) verb: Verb,
    pub(super) entity: &'a str,
    pub(super) body: &'a Value,
    pub(super) form: Option<&'a [Upload]>,
    /// Of an update.
    pub(super) id: Option<&'a str>,
    /// The stored row of an update.
    pub(super) current: Option<&'a Map<String, Value>>,
}

impl Gateway {
    /// What the plan of this write needs; nothing costs anything where no password is sent.
    pub(super) async fn account(&self, write: AccountWrite<'_>) -> Result<Account, Refusal> {
        let mut account = Account { token_key: token_key(&rand::random::<[u8; 64]>()), ..Account::default() };
        let Some(collection) = write.app.definition.model.collection(write.entity) else { return Ok(account) };
        let now = self.shared.clock.now();
        let (app, see_hidden) = (write.app, write.permit.see_hidden);
        if collection.is_auth() && !write.permit.superuser {
            account.manage = access::manage_rule(app, collection, &write.permit.auth, now)?;
            if let (Some(rule), Some(id), Verb::Update) = (&account.manage, write.id, write.verb) {
                let (entity, ids) = (collection.name.clone(), vec![id.to_owned()]);
                let plan = ViewPlan { app: Arc::clone(app), entity, ids, rule: rule.clone() };
                account.manages = !self.shared.store.view(&plan).await?.is_empty();
            }
        }
        for (field, secret) in secrets(app, collection, write.verb, write.body, write.form, see_hidden, now) {
            let Value::String(secret) = secret else { continue };
            if field == "oldPassword" {
                let stored = write.current.and_then(|row| row.get("password")).and_then(Value::as_str);
                let phc = stored.unwrap_or(password::DECOY).to_owned();
                let tried = phc.clone();
                let fits = self.hashing(move || password::verify(&secret, &tried)).await?;
                account.old_fits = fits.then_some(phc);
            } else {
                let hash = self.hashing(move || password::hash_of_app(&secret, rand::random())).await??;
                account.hashed.insert(field, Value::String(hash));
            }
        }
        Ok(account)
    }

    async fn hashing<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refusal> {
        let _turn = self.shared.hashing.acquire().await.map_err(|_| Refusal::internal())?;
        self.shared.io.spawn_blocking(work).await.map_err(|_| Refusal::internal())
    }
}

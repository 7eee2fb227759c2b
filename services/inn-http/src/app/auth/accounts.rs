//! Where an app keeps its accounts, and one of them.

use std::sync::Arc;

use inn_ports::StoreResult;
use inn_protocol::app::AppSnapshot;
use inn_protocol::auth_options::AuthOptions;
use inn_protocol::call::Action;
use inn_protocol::model::Collection;
use inn_protocol::{Digest, Refusal};
use inn_rules::filter::Expr;
use serde_json::{Map, Value};

use super::TOKEN_KEY;
use crate::error::ApiError;
use crate::incoming::Incoming;

/// An auth collection of an app. The app's snapshot is what everything of one call is made from.
#[derive(Clone)]
pub(super) struct Accounts {
    pub(super) app: Arc<AppSnapshot>,
    /// Place in the model.
    index: usize,
}

/// A stored record with all its secrets.
pub(super) type Row = Map<String, Value>;

impl Accounts {
    /// The collection of this path, when the caller may try this there. A refusal is registered as every other.
    pub(super) async fn find(incoming: &Incoming, entity: &str, verb: &'static str) -> Result<Self, ApiError> {
        let action = Action::AppAuth { collection: entity.to_owned(), record: String::new(), verb };
        let glanced = incoming.state.gateway.glance(incoming.call(action.clone(), Value::Null)).await;
        match glanced.and_then(|admitted| Self::of(admitted.app()?, entity)) {
            Ok(accounts) => Ok(accounts),
            Err(refusal) => Err(incoming.refuse(action, refusal).await),
        }
    }

    pub(super) fn of(app: &Arc<AppSnapshot>, entity: &str) -> Result<Self, Refusal> {
        let collections = &app.definition.model.collections;
        let found = app.definition.model.collection(entity).filter(|collection| collection.is_auth());
        let index = found.and_then(|found| collections.iter().position(|collection| collection.id == found.id));
        let index = index.ok_or_else(Refusal::not_found)?;
        Ok(Self { app: Arc::clone(app), index })
    }

    pub(super) fn collection(&self) -> Result<&Collection, Refusal> {
        self.app.definition.model.collections.get(self.index).ok_or_else(Refusal::internal)
    }

    pub(super) fn options(&self) -> Result<AuthOptions, Refusal> {
        Ok(self.collection()?.auth_options())
    }

    /// The call this is, about this record.
    pub(super) fn action(&self, record: &str, verb: &'static str) -> Result<Action, Refusal> {
        Ok(Action::AppAuth { collection: self.collection()?.name.clone(), record: record.to_owned(), verb })
    }

    pub(super) async fn by_email(&self, incoming: &Incoming, email: &str) -> Result<Option<Row>, Refusal> {
        self.by(incoming, &["email".to_owned()], email).await
    }

    pub(super) async fn by(&self, incoming: &Incoming, fields: &[String], text: &str) -> Result<Option<Row>, Refusal> {
        Ok(incoming.state.store.app_user_by(&self.app, self.collection()?, fields, text).await?)
    }

    pub(super) async fn by_id(&self, incoming: &Incoming, id: &str) -> Result<Option<Row>, Refusal> {
        Ok(incoming.state.store.app_user(&self.app, self.collection()?, id).await?)
    }

    /// Does this stored record fit the rule now?
    pub(super) async fn fits(&self, incoming: &Incoming, row: &Row, rule: Expr) -> StoreResult<bool> {
        let entity = self.collection()?.name.clone();
        let plan =
            inn_ports::ViewPlan { app: Arc::clone(&self.app), entity, ids: vec![text(row, "id").to_owned()], rule };
        Ok(!incoming.state.store.view(&plan).await?.is_empty())
    }

    /// Secrets of different apps, and of the same address in two collections, are guessed at separately.
    pub(super) fn rate_key(&self, identity: &str) -> String {
        format!("{} {} {identity}", self.app.id, self.index)
    }
}

/// A text of a row; empty when it has none.
pub(super) fn text<'r>(row: &'r Row, field: &str) -> &'r str {
    row.get(field).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn verified(row: &Row) -> bool {
    row.get("verified") == Some(&Value::Bool(true))
}

/// What ties a ticket to the record as it is now.
pub(super) fn token_key_digest(row: &Row) -> [u8; 32] {
    Digest::of(text(row, TOKEN_KEY).as_bytes()).0
}

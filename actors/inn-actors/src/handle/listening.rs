//! A caller that goes on listening: decided anew for every event, from what holds then.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use inn_ports::{Core, Live, StoreResult};
use inn_protocol::app::AppSnapshot;
use inn_protocol::call::{Action, LiveCheck, RequestFacts};
use inn_protocol::caller::Caller;
use inn_protocol::register::CallRecord;
use inn_protocol::{Refusal, Result};
use inn_rules::access::{self, Host};
use inn_rules::filter::AuthFacts;
use serde_json::Value;

use super::Admitted;
use crate::admission::Slot;
use crate::papers::{Proof, facts_of};

/// Who listens, as it was let in, and kept up with what changes.
#[derive(Clone)]
pub struct Listener {
    caller: Caller,
    record: CallRecord,
    auth: AuthFacts,
    host: Host,
    proof: Proof,
}

impl Admitted {
    /// The caller, to be asked about again after the call.
    pub fn listener(&self) -> Listener {
        Listener {
            caller: self.caller.clone(),
            record: self.record.clone(),
            auth: self.permit.auth.clone(),
            host: self.host,
            proof: self.proof.clone(),
        }
    }
}

impl Listener {
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Callers with the same text hear the same: every decision about them comes out alike.
    pub fn key(&self) -> String {
        let scope = self.caller.idempotency_scope();
        match &self.caller {
            Caller::Person(person) => format!("person {scope} {}", person.session),
            Caller::Agent(agent) => {
                let helper = agent.helper.as_ref().map(ToString::to_string).unwrap_or_default();
                let token = self.proof.token.as_ref().map(|token| token.digest.to_string()).unwrap_or_default();
                format!("agent {scope} {:?} {helper} {token}", agent.via)
            }
            Caller::AppUser(user) => format!("user {scope} {}", user.token_key),
            _ => scope,
        }
    }

    /// Whose stream it is, whatever token or session it was opened with: who may go on where it stopped.
    pub fn scope(&self) -> String {
        format!("{} {}", self.caller.kind(), self.caller.idempotency_scope())
    }

    /// Nobody in particular: may become somebody on the same stream.
    pub const fn is_guest(&self) -> bool {
        matches!(self.caller, Caller::Stranger | Caller::Visitor)
    }

    /// When its papers run out, on the database's clock.
    pub const fn ends(&self) -> Option<DateTime<Utc>> {
        self.proof.ends
    }

    /// What has to hold still.
    pub const fn live(&self) -> &LiveCheck {
        &self.record.live
    }

    /// Collection and id of the record rules are evaluated as.
    pub fn stands_for(&self) -> Option<(&str, &str)> {
        let record = self.auth.record.as_ref()?;
        let text = |name: &str| record.get(name).and_then(Value::as_str);
        Some((text("collectionName").unwrap_or_default(), text("id")?))
    }

    /// Decides about one event, with the app's rules as they are now.
    pub fn decide(
        &self,
        app: &Arc<AppSnapshot>,
        action: &Action,
        facts: &Arc<RequestFacts>,
        now: DateTime<Utc>,
    ) -> Result<Admitted> {
        if self.ends().is_some_and(|ends| ends <= now) {
            return Err(Refusal::new(inn_protocol::Code::TokenExpired, "The papers have run out."));
        }
        let mut caller = self.caller.clone();
        if let (Caller::Agent(agent), Some(token)) = (&mut caller, &self.proof.token) {
            agent.scopes = token.scopes_at(token.claims.app, now)?;
        }
        let auth = self.auth.clone().asking(Arc::clone(facts));
        let permit = access::decide_as(&caller, action, Some(app), &auth, self.host, now)?;
        Ok(Admitted {
            caller,
            app: Some(Arc::clone(app)),
            record: self.record.clone(),
            permit,
            now,
            host: self.host,
            proof: self.proof.clone(),
            _slot: Slot::spent(),
        })
    }

    /// The same listener as things stand now: role of the person, the record rules are evaluated
    /// as. `None` when it may listen no longer.
    pub async fn renewed(
        &self,
        store: &dyn Core,
        app: &Arc<AppSnapshot>,
        live: Live,
        now: DateTime<Utc>,
    ) -> StoreResult<Option<Self>> {
        if !(live.grant && live.session && live.app_user) || self.ends().is_some_and(|ends| ends <= now) {
            return Ok(None);
        }
        let mut renewed = self.clone();
        if let Some((of, _)) = &mut renewed.record.live.app {
            renewed.record.live.app = Some((*of, app.epoch));
        }
        if let Some((tenant, user, _)) = self.record.live.member {
            let Some(member) = store.member(tenant, user).await? else { return Ok(None) };
            renewed.record.live.member = Some((tenant, user, member.epoch));
            match &mut renewed.caller {
                Caller::Person(person) => (person.role, person.member_epoch) = (member.role, member.epoch),
                Caller::Agent(agent) => (agent.role, agent.member_epoch) = (member.role, member.epoch),
                _ => {}
            }
        }
        renewed.read_record(store, app).await?;
        Ok(Some(renewed))
    }

    async fn read_record(&mut self, store: &dyn Core, app: &AppSnapshot) -> StoreResult<()> {
        let record = match &self.caller {
            Caller::AppUser(user) => match app.definition.model.collection(&user.collection) {
                Some(collection) => {
                    let row = store.app_user(app, collection, &user.record).await?;
                    row.map(|row| facts_of(collection, row))
                }
                None => None,
            },
            Caller::Agent(agent) => match &agent.app_record {
                Some(record) => store.app_record(app, record).await?,
                None => return Ok(()),
            },
            _ => return Ok(()),
        };
        self.auth = match record {
            Some(record) => AuthFacts::of_record(record),
            // As the gateway has it for a linked record that is gone.
            None => access::known_auth(&self.caller, Some(app)),
        };
        Ok(())
    }
}

//! The one decision (DESIGN invariants 1, 4 and 5): may this caller do this, here and now?
//!
//! Three legs must all agree. *user*: the person (role in the tenant, and the collection's rule evaluated as that
//! person). *grant*: the scopes the person gave the agent. *app*: what the release declares and the owner consented
//! to. [`decide`] and [`explain`] read the same legs, so what is explained is what is decided; [`visible_scopes`]
//! asks [`decide`], so what is shown is what can be called.

mod account;
mod app;
mod carried;
mod grant;
mod legs;
mod rules;
mod sentence;
mod standing;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use inn_protocol::Code;
use inn_protocol::Refusal;
use inn_protocol::app::{AppSnapshot, AuthMode};
use inn_protocol::call::Action;
use inn_protocol::caller::Caller;
use inn_protocol::scope::Scope;
use serde::Serialize;

use crate::filter::AuthFacts;
use legs::{Ask, Legs};

pub use account::{is_own_record, manage_rule, second_factor_rule, sign_in_rule};
pub use carried::carried;
pub use rules::RowRule;
pub use sentence::scope_sentence;

/// Where the call arrived, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Host {
    /// Bound to loopback, and no forwarding headers on the call.
    pub loopback: bool,
}

/// A yes, and what still binds it.
#[derive(Debug, Clone, PartialEq)]
pub struct Permit {
    /// The collection's rule, to be held against rows.
    pub rule: RowRule,
    /// Hidden fields are shown and may be filtered by: owners in person, never agents.
    pub see_hidden: bool,
    /// Rules do not apply: owners in person, never agents.
    pub superuser: bool,
    /// What `@request.auth` is, for the client's own filter.
    pub auth: AuthFacts,
}

/// Decides one call. `app` is the app it is about, when there is one. Of the linked record of a multi-user app only
/// the id is known here; use [`decide_as`] when the record has been read.
///
/// Refusals carry the leg, the missing scope and who can change it. What depends on rows is not decided here: whose
/// receipts, sessions, grant requests and claims are touched is a condition of the query that reads them.
pub fn decide(
    caller: &Caller,
    action: &Action,
    app: Option<&AppSnapshot>,
    host: Host,
    now: DateTime<Utc>,
) -> Result<Permit, Refusal> {
    decide_as(caller, action, app, &known_auth(caller, app), host, now)
}

/// [`decide`] with the record `@request.auth` stands for.
pub fn decide_as(
    caller: &Caller,
    action: &Action,
    app: Option<&AppSnapshot>,
    auth: &AuthFacts,
    host: Host,
    now: DateTime<Utc>,
) -> Result<Permit, Refusal> {
    Legs::of(&Ask { caller, action, app, auth, host, now }).verdict()
}

/// What `@request.auth` is without reading anything: the linked record's id in a multi-user app, else nobody.
pub fn known_auth(caller: &Caller, app: Option<&AppSnapshot>) -> AuthFacts {
    match (caller, app) {
        (Caller::Agent(agent), Some(app)) if app.definition.auth_mode == AuthMode::MultiUser && agent.app == app.id => {
            let id = |name: &str| AuthFacts::of_id(app.definition.model.account(name).1);
            agent.app_record.as_deref().map_or_else(AuthFacts::nobody, id)
        }
        (Caller::AppUser(user), Some(app)) if user.app == app.id => AuthFacts::of_id(&user.record),
        _ => AuthFacts::nobody(),
    }
}

/// The answer of `POST /v1/explain`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    pub allowed: bool,
    /// `user`, `grant`, `app`, in this order.
    pub legs: Vec<LegResult>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LegResult {
    pub leg: &'static str,
    pub ok: bool,
    pub reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// The missing scope.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub who_can_fix: Option<String>,
}

/// Says which leg would refuse, and who can change that. Nothing is done.
pub fn explain(
    caller: &Caller,
    action: &Action,
    app: Option<&AppSnapshot>,
    host: Host,
    now: DateTime<Utc>,
) -> Explanation {
    Legs::of(&Ask { caller, action, app, auth: &known_auth(caller, app), host, now }).explanation(caller)
}

/// The scopes of the app this caller can use now. A destructive operation that only waits for an approval counts; a
/// write scope counts when at least one of creating, changing and deleting is possible.
pub fn visible_scopes(caller: &Caller, app: &AppSnapshot, host: Host, now: DateTime<Utc>) -> BTreeSet<Scope> {
    let usable = |action: Action| match decide(caller, &action, Some(app), host, now) {
        Ok(_) => true,
        Err(refusal) => refusal.code == Code::ApprovalRequired,
    };
    let visible = |scope: &Scope| match scope {
        Scope::Read(entity) => {
            usable(Action::ListRecords { entity: entity.clone() })
                || usable(Action::ViewRecord { entity: entity.clone(), id: String::new() })
        }
        Scope::Write(entity) => {
            let (entity, id) = (entity.clone(), String::new());
            usable(Action::CreateRecord { entity: entity.clone() })
                || usable(Action::UpdateRecord { entity: entity.clone(), id: id.clone() })
                || usable(Action::DeleteRecord { entity, id })
        }
        Scope::Operation(operation) => usable(Action::RunOperation { operation: operation.clone() }),
        Scope::Queue(capability) => match caller {
            // Claiming is not an action on the app: the scope itself, on a capability the owner consented to, is it.
            Caller::Agent(agent) => {
                agent.app == app.id
                    && agent.tenant == app.tenant
                    && agent.scopes.contains(scope)
                    && app.consented.contains(capability)
                    && usable(Action::DescribeApp)
            }
            _ => usable(Action::Ask { capability: capability.clone() }),
        },
    };
    app.definition.scopes().into_iter().filter(visible).collect()
}

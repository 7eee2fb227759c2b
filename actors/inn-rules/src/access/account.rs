//! Accounts of an app's own users: who counts as one, who as a guest, and the rules of an auth collection that are not
//! about rows of a list (`reference` notes on PocketBase, section E).

use chrono::{DateTime, Utc};
use inn_protocol::app::{AppSnapshot, AuthMode, Executor};
use inn_protocol::call::Action;
use inn_protocol::caller::{AppUser, Caller};
use inn_protocol::model::Collection;
use inn_protocol::{Code, Refusal};
use serde_json::{Map, Value};

use super::legs::Ask;
use super::standing::{PLAIN, SUPERUSER, Standing, in_tenant_of, people_only, refuse, unknown_app};
use crate::filter::{AuthFacts, Expr, Scope, compile};

/// The name owners of the app's tenant sign in under, as PocketBase's superusers do. No collection of the app.
const SUPERUSERS: &str = "_superusers";

/// Signed in to this very app.
pub(super) fn at_home(ask: &Ask<'_>, user: &AppUser) -> Result<Standing, Refusal> {
    match ask.app {
        Some(app) if app.id == user.app => Ok(PLAIN),
        _ => Err(unknown_app()),
    }
}

/// In an app with accounts of its own the collections' rules say what somebody may do who is not signed in. Work asked
/// of agents, and operations that are code, need somebody.
pub(super) fn is_guest(ask: &Ask<'_>) -> bool {
    let Some(app) = ask.app.filter(|app| app.definition.auth_mode == AuthMode::MultiUser) else { return false };
    match ask.action {
        Action::ListRecords { .. }
        | Action::ViewRecord { .. }
        | Action::CreateRecord { .. }
        | Action::UpdateRecord { .. }
        | Action::DeleteRecord { .. }
        // A protected one falls under the view rule, and what that does not let through is not there (PocketBase notes, F).
        | Action::ReadFile { .. } => true,
        Action::RunOperation { operation } => app
            .definition
            .operation(operation)
            .is_some_and(|operation| matches!(operation.executor, Executor::Crud { .. }) && !operation.destructive),
        _ => false,
    }
}

/// For what somebody does with the own account.
pub(super) fn holder(ask: &Ask<'_>) -> Result<Standing, Refusal> {
    let Action::AppAuth { collection, .. } = ask.action else { return Err(people_only(ask)) };
    match ask.caller {
        Caller::AppUser(user) => {
            at_home(ask, user)?;
            let wanted = ask.app.and_then(|app| app.definition.model.collection(collection));
            if wanted.is_some_and(|wanted| wanted.name == user.collection) {
                Ok(PLAIN)
            } else {
                Err(other_collection(&user.collection))
            }
        }
        Caller::Person(_) if !in_tenant_of(ask.caller, ask.app).superuser => Err(nobody()),
        Caller::Person(_) if collection == SUPERUSERS => Ok(SUPERUSER),
        Caller::Person(_) => Err(other_collection(SUPERUSERS)),
        Caller::Stranger | Caller::Visitor => Err(nobody()),
        _ => Err(people_only(ask)),
    }
}

pub(super) fn app_owner(ask: &Ask<'_>) -> Result<Standing, Refusal> {
    match ask.caller {
        Caller::Person(_) if in_tenant_of(ask.caller, ask.app).superuser => Ok(SUPERUSER),
        Caller::Person(_) | Caller::AppUser(_) => Err(refuse(
            Code::Forbidden,
            "The authorized record is not allowed to perform this action.",
            "an owner of the app's tenant, in person",
        )),
        Caller::Stranger | Caller::Visitor => Err(nobody()),
        _ => Err(people_only(ask)),
    }
}

fn nobody() -> Refusal {
    refuse(
        Code::Unauthenticated,
        "The request requires valid record authorization token.",
        "you, by signing in to the app",
    )
}

fn other_collection(signed_in_to: &str) -> Refusal {
    refuse(
        Code::Forbidden,
        format!("The request requires auth record from {signed_in_to} collection."),
        "you, by signing in to this collection",
    )
}

/// The app leg of signing in: the app has accounts, and this is where it keeps them.
pub(super) fn has_accounts(app: &AppSnapshot, collection: &str) -> Result<(), Refusal> {
    if collection == SUPERUSERS {
        return Ok(());
    }
    if !app.definition.model.collection(collection).is_some_and(Collection::is_auth) {
        return Err(Refusal::new(Code::NotFound, "Missing or invalid collection context.")
            .leg("app")
            .fix("the app's author, with an auth collection of that name"));
    }
    if app.definition.auth_mode != AuthMode::MultiUser {
        return Err(Refusal::new(
            Code::Forbidden,
            "This app has no accounts of its own: members of its tenant use it.",
        )
        .leg("app")
        .fix("the app's author, with authMode multi-user in the manifest"));
    }
    Ok(())
}

/// Is the row the very record the caller is signed in as (or, for an agent, acts as)? It then sees its own email.
pub fn is_own_record(auth: &AuthFacts, collection: &Collection, row: &Map<String, Value>) -> bool {
    let Some(record) = &auth.record else { return false };
    let same = |name: &str, other: Option<&str>| other.is_some() && record.get(name).and_then(Value::as_str) == other;
    collection.is_auth()
        && same("collectionId", Some(&collection.id))
        && same("id", row.get("id").and_then(Value::as_str))
}

/// Who may sign in (`authRule`), for the record that wants to; `None` is nobody. `asked` has what is known of the call:
/// nobody is signed in yet.
///
/// # Errors
/// A rule that cannot be evaluated lets nobody in, and says so.
pub fn sign_in_rule(
    app: &AppSnapshot,
    collection: &Collection,
    asked: &AuthFacts,
    now: DateTime<Utc>,
) -> Result<Option<Expr>, Refusal> {
    let options = collection.auth_options();
    options.auth_rule.map(|rule| compiled(&rule, "authRule", app, collection, asked, now)).transpose()
}

/// Of whom a second factor is asked (`mfa.rule`), where MFA is on.
///
/// # Errors
/// As [`sign_in_rule`].
pub fn second_factor_rule(
    app: &AppSnapshot,
    collection: &Collection,
    asked: &AuthFacts,
    now: DateTime<Utc>,
) -> Result<Expr, Refusal> {
    compiled(&collection.auth_options().mfa.rule, "mfa.rule", app, collection, asked, now)
}

/// Which accounts the caller is in charge of (`manageRule`): it may set their email, password and `verified`. `None` is
/// none, as for everybody who is not signed in.
///
/// # Errors
/// As [`sign_in_rule`].
pub fn manage_rule(
    app: &AppSnapshot,
    collection: &Collection,
    auth: &AuthFacts,
    now: DateTime<Utc>,
) -> Result<Option<Expr>, Refusal> {
    let options = collection.auth_options();
    match options.manage_rule.as_deref().filter(|rule| !rule.is_empty()) {
        Some(rule) if collection.is_auth() && auth.record.is_some() => {
            compiled(rule, "manageRule", app, collection, auth, now).map(Some)
        }
        _ => Ok(None),
    }
}

fn compiled(
    rule: &str,
    name: &str,
    app: &AppSnapshot,
    collection: &Collection,
    auth: &AuthFacts,
    now: DateTime<Utc>,
) -> Result<Expr, Refusal> {
    if rule.is_empty() {
        return Ok(Expr::Always);
    }
    let scope = Scope { collection, model: &app.definition.model, now, auth, see_hidden: true };
    compile(rule, &scope).map_err(|error| error.into_rule_refusal(&format!("{}.{name}", collection.name)))
}

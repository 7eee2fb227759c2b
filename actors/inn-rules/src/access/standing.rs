//! The user leg, first half: who may do which kind of thing, by role.

use inn_protocol::app::{AppSnapshot, AuthMode};
use inn_protocol::call::Action;
use inn_protocol::caller::{Caller, Person, Via};
use inn_protocol::people::Role;
use inn_protocol::{Code, Refusal, TenantId};

use super::account;
use super::legs::Ask;

/// What a caller is, once let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Standing {
    /// Collection rules do not apply, hidden fields are seen.
    pub(super) superuser: bool,
}

pub(super) const PLAIN: Standing = Standing { superuser: false };
pub(super) const SUPERUSER: Standing = Standing { superuser: true };

/// Who an action is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Audience {
    Everybody,
    /// Of the app's tenant, with at least this role.
    AppMember(Role),
    /// Everybody in an app with accounts of its own, else its members: a file that is not protected.
    AppPublic,
    /// Whoever holds papers of its own on the app; a visitor needs no token to show instead of them.
    AppHolder,
    /// Whoever is signed in to this collection of the app: it is about that account.
    Account,
    /// An owner of the app's tenant, in person.
    AppOwner,
    /// Of any tenant, with at least this role there.
    Member(Role),
    /// Agents that prove their own key.
    KeyHolder,
    /// The agent that proves its key, or a member with this role.
    KeyHolderOrMember(Role),
    /// People without papers yet, or with.
    SigningIn,
    /// A person's own session, whatever the role.
    Session,
    /// A session opened by password just now, of a member with at least this role.
    Fresh(Role),
}

fn audience(action: &Action) -> Audience {
    match action {
        Action::Unreadable | Action::DescribeApp | Action::Batch | Action::Realtime { .. } => Audience::Everybody,
        Action::AppAuth { verb: "refresh" | "request-email-change" | "sign-out", .. } => Audience::Account,
        Action::AppAuth { verb: "impersonate", .. } => Audience::AppOwner,
        // Whoever knows the name of a file that is not protected may have it (PocketBase notes, section F).
        Action::ReadFile { protected: false, .. } => Audience::AppPublic,
        Action::TakeFileToken => Audience::AppHolder,
        Action::ReadFile { .. }
        | Action::ListRecords { .. }
        | Action::ViewRecord { .. }
        | Action::ViewRequest { .. }
        | Action::ListRequests
        | Action::ViewJob { .. }
        | Action::ListJobs => Audience::AppMember(Role::Viewer),
        Action::CreateRecord { .. }
        | Action::UpdateRecord { .. }
        | Action::DeleteRecord { .. }
        | Action::RunOperation { .. }
        | Action::Ask { .. }
        | Action::CancelRequest { .. }
        | Action::OperateRequest { .. }
        | Action::CancelRequests
        | Action::CancelJob { .. }
        | Action::RetryJob { .. } => Audience::AppMember(Role::Editor),
        Action::RegisterAgent
        | Action::RequestGrant { .. }
        | Action::TakeToken { .. }
        | Action::Claim
        | Action::Hold { .. }
        | Action::HoldMany => Audience::KeyHolder,
        Action::ViewGrantRequest { .. } => Audience::KeyHolderOrMember(Role::Viewer),
        Action::SignIn | Action::AppAuth { .. } => Audience::SigningIn,
        Action::OwnSession { .. } | Action::CreateTenant { .. } => Audience::Session,
        // Of grants a member sees and revokes the own ones, an owner all: the query says which.
        Action::ListMembers
        | Action::ListQueueLimits
        | Action::ListApps
        | Action::Explain
        | Action::ReadReceipt { .. }
        | Action::ListGrants
        | Action::RevokeGrant { .. } => Audience::Member(Role::Viewer),
        Action::ManageMembers { .. }
        | Action::SetQueueLimit { .. }
        | Action::Deploy { .. }
        | Action::ManageApp { .. }
        | Action::ReadRegister { .. } => Audience::Member(Role::Owner),
        // A person grants for themselves, so any member may: the agent never exceeds its person. Saying no for
        // everybody is an owner's.
        Action::DecideGrant { verb: "approve", .. } => Audience::Fresh(Role::Viewer),
        Action::DecideGrant { .. } => Audience::Fresh(Role::Owner),
    }
}

pub(super) fn of(ask: &Ask<'_>) -> Result<Standing, Refusal> {
    match audience(ask.action) {
        Audience::Everybody => Ok(in_tenant_of(ask.caller, ask.app)),
        Audience::AppMember(needed) => app_member(ask, needed),
        Audience::AppPublic => match (ask.app, ask.caller) {
            (Some(app), Caller::Stranger | Caller::Visitor) if app.definition.auth_mode == AuthMode::MultiUser => {
                Ok(PLAIN)
            }
            _ => app_member(ask, Role::Viewer),
        },
        Audience::AppHolder => match ask.caller {
            Caller::Visitor => Err(signed_out()),
            _ => app_member(ask, Role::Viewer),
        },
        Audience::Account => account::holder(ask),
        Audience::AppOwner => account::app_owner(ask),
        Audience::Member(needed) => member(ask, needed),
        Audience::KeyHolder => key_holder(ask),
        Audience::KeyHolderOrMember(needed) => match ask.caller {
            Caller::Key(_) | Caller::Agent(_) => key_holder(ask),
            _ => member(ask, needed),
        },
        Audience::SigningIn => match ask.caller {
            Caller::Stranger | Caller::Visitor | Caller::Person(_) | Caller::AppUser(_) => Ok(PLAIN),
            Caller::Agent(_) | Caller::Key(_) | Caller::Platform => Err(people_only(ask)),
        },
        Audience::Session => match ask.caller {
            Caller::Person(_) => Ok(PLAIN),
            Caller::Platform if matches!(ask.action, Action::CreateTenant { .. }) => Ok(PLAIN),
            _ => Err(people_only(ask)),
        },
        Audience::Fresh(needed) => match ask.caller {
            Caller::Person(person) => fresh(ask, person, needed),
            _ => Err(people_only(ask)),
        },
    }
}

/// What is public is open to all; owners still see more of it.
pub(super) fn in_tenant_of(caller: &Caller, app: Option<&AppSnapshot>) -> Standing {
    let owns = |person: &Person| person.role == Role::Owner && app.is_some_and(|app| app.tenant == person.tenant);
    match caller {
        Caller::Person(person) if owns(person) => SUPERUSER,
        Caller::Platform => SUPERUSER,
        _ => PLAIN,
    }
}

fn app_member(ask: &Ask<'_>, needed: Role) -> Result<Standing, Refusal> {
    match ask.caller {
        Caller::AppUser(user) => account::at_home(ask, user),
        Caller::Stranger | Caller::Visitor if account::is_guest(ask) => Ok(PLAIN),
        // On a loopback host a program's papers are the agent token file (A2App notes, B.6).
        Caller::Stranger if ask.host.loopback && ask.app.is_some() => Err(token_file()),
        Caller::Stranger => Err(signed_out()),
        Caller::Visitor => match ask.app {
            _ if !ask.host.loopback => Err(signed_out()),
            Some(app) if app.definition.auth_mode != AuthMode::None => Err(signed_out()),
            _ if needed > Role::Editor => Err(too_low(needed)),
            _ => Ok(PLAIN),
        },
        Caller::Key(_) => Err(key_alone()),
        Caller::Person(person) => {
            has_role(ask, person.tenant, person.role, needed)?;
            Ok(in_tenant_of(ask.caller, ask.app))
        }
        // For an agent the rules count even when its person is an owner: it is never a superuser.
        Caller::Agent(agent) => has_role(ask, agent.tenant, agent.role, needed).map(|()| PLAIN),
        Caller::Platform => Ok(SUPERUSER),
    }
}

fn member(ask: &Ask<'_>, needed: Role) -> Result<Standing, Refusal> {
    match ask.caller {
        Caller::Stranger | Caller::Visitor => Err(signed_out()),
        Caller::AppUser(_) => Err(people_only(ask)),
        Caller::Key(_) => Err(key_alone()),
        Caller::Person(person) => {
            has_role(ask, person.tenant, person.role, needed)?;
            Ok(in_tenant_of(ask.caller, ask.app))
        }
        Caller::Agent(agent) => has_role(ask, agent.tenant, agent.role, needed).map(|()| PLAIN),
        Caller::Platform => Ok(SUPERUSER),
    }
}

fn has_role(ask: &Ask<'_>, tenant: TenantId, role: Role, needed: Role) -> Result<(), Refusal> {
    if ask.app.is_some_and(|app| app.tenant != tenant) {
        return Err(match ask.action {
            Action::Deploy { .. } => refuse(
                Code::SlugTaken,
                "This slug belongs to another tenant; choose another one.",
                "you, with another slug",
            ),
            _ => unknown_app(),
        });
    }
    if role < needed { Err(too_low(needed)) } else { Ok(()) }
}

fn fresh(ask: &Ask<'_>, person: &Person, needed: Role) -> Result<Standing, Refusal> {
    has_role(ask, person.tenant, person.role, needed)?;
    if !person.fresh {
        return Err(refuse(
            Code::Unauthenticated,
            "Deciding what an agent may do needs your password again: sign in once more and repeat this.",
            "you, by giving your password again",
        ));
    }
    Ok(PLAIN)
}

fn key_holder(ask: &Ask<'_>) -> Result<Standing, Refusal> {
    match ask.caller {
        Caller::Key(_) => Ok(PLAIN),
        // A helper holds a narrowed token and must not turn it into one of its parent's.
        Caller::Agent(agent) if agent.helper.is_some() => Err(refuse(
            Code::Forbidden,
            "Only the agent's own key may do this, not a helper it delegated a token to.",
            "the agent, by signing with its own key",
        )),
        Caller::Agent(agent) if agent.via == Via::Signed => Ok(PLAIN),
        Caller::Person(_) | Caller::AppUser(_) | Caller::Platform => Err(refuse(
            Code::Forbidden,
            "Agents do this with their own key; a session cannot.",
            "the agent, by signing the call (RFC 9421) with its key",
        )),
        Caller::Stranger | Caller::Visitor | Caller::Agent(_) => Err(refuse(
            Code::SignatureRequired,
            "This call must be signed (RFC 9421, tag \"innkeeper\") with the agent's key.",
            "the agent, by signing the call with its key",
        )),
    }
}

pub(super) fn people_only(ask: &Ask<'_>) -> Refusal {
    match ask.caller {
        Caller::Stranger | Caller::Visitor => signed_out(),
        _ => refuse(
            Code::Forbidden,
            "Only a person's own session may do this, never an agent.",
            "the person, signed in with their own password",
        ),
    }
}

fn signed_out() -> Refusal {
    refuse(
        Code::Unauthenticated,
        "Nobody is signed in. Sign in as a member of the app's tenant, or call as an agent with a grant and a signature.",
        "you, by signing in; or an owner of the tenant, who can make you a member or approve a grant",
    )
}

fn token_file() -> Refusal {
    refuse(
        Code::AgentTokenRequired,
        "Programs on this machine show the app's agent token (X-A2App-Token); others sign in, or sign the call and show a token.",
        "you, with the token from the app's token file; or an owner of the tenant, by approving a grant",
    )
}

fn key_alone() -> Refusal {
    refuse(
        Code::Unauthenticated,
        "A key alone acts for nobody. Ask for a grant, take a token at /v1/token and send it along.",
        "the agent, by sending a token of an approved grant",
    )
}

fn too_low(needed: Role) -> Refusal {
    let role = needed.as_str();
    let article = if needed == Role::Viewer { "a" } else { "an" };
    refuse(
        Code::Forbidden,
        format!("This needs the role {role} in the tenant."),
        format!("an owner of the tenant, by making the person {article} {role}"),
    )
}

pub(super) fn refuse(code: Code, message: impl Into<String>, fix: impl Into<String>) -> Refusal {
    Refusal::new(code, message).leg("user").fix(fix)
}

/// The same words for an app that is not there and one of a tenant the caller is no member of.
pub(super) fn unknown_app() -> Refusal {
    Refusal::new(Code::UnknownApp, "There is no such app, or you are not a member of its tenant.")
        .leg("app")
        .fix("whoever gave you this address; an owner of the app's tenant can make you a member")
}

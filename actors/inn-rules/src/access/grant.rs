//! The grant leg: what the person gave the agent. Callers that act for nobody else pass.

use inn_protocol::call::Action;
use inn_protocol::caller::{Agent, Caller, Via};
use inn_protocol::scope::Scope;
use inn_protocol::{Code, Refusal};

use super::legs::Ask;
use super::standing::unknown_app;

/// What a grant must hold for an action.
enum Needs {
    /// Nothing: public, about the agent itself, or refused by another leg for every agent.
    Nothing,
    Scope(Scope),
    /// No scope reaches it.
    Beyond,
}

fn needs(action: &Action) -> Needs {
    match action {
        Action::Unreadable
        | Action::DescribeApp
        // Each of its writes needs its own scope.
        | Action::Batch
        // Each of its events needs the scope to read.
        | Action::Realtime { .. }
        // Opens no more than the scopes do that the agent holds by then.
        | Action::TakeFileToken
        | Action::RegisterAgent
        | Action::RequestGrant { .. }
        | Action::ViewGrantRequest { .. }
        | Action::TakeToken { .. }
        | Action::Claim
        | Action::Hold { .. }
        | Action::HoldMany
        | Action::Explain
        | Action::ReadReceipt { .. }
        // Only of operations it has the scope for: whose jobs are seen is a condition of each look.
        | Action::ViewJob { .. }
        | Action::ListJobs
        | Action::CancelJob { .. }
        // Never an agent's, whatever its grant: the app leg says so.
        | Action::Ask { .. }
        | Action::CancelRequest { .. }
        | Action::OperateRequest { .. }
        | Action::CancelRequests
        | Action::RetryJob { .. }
        | Action::ViewRequest { .. }
        | Action::ListRequests => Needs::Nothing,
        Action::ListRecords { entity } | Action::ViewRecord { entity, .. } | Action::ReadFile { entity, .. } => {
            Needs::Scope(Scope::Read(entity.clone()))
        }
        Action::CreateRecord { entity }
        | Action::UpdateRecord { entity, .. }
        | Action::DeleteRecord { entity, .. } => Needs::Scope(Scope::Write(entity.clone())),
        Action::RunOperation { operation } => Needs::Scope(Scope::Operation(operation.clone())),
        Action::SignIn
        | Action::AppAuth { .. }
        | Action::OwnSession { .. }
        | Action::CreateTenant { .. }
        | Action::ListQueueLimits
        | Action::SetQueueLimit { .. }
        | Action::ListMembers
        | Action::ManageMembers { .. }
        | Action::ListApps
        | Action::Deploy { .. }
        | Action::ManageApp { .. }
        | Action::ListGrants
        | Action::DecideGrant { .. }
        | Action::RevokeGrant { .. }
        | Action::ReadRegister { .. } => Needs::Beyond,
    }
}

pub(super) fn leg(ask: &Ask<'_>) -> Result<(), Refusal> {
    let Caller::Agent(agent) = ask.caller else { return Ok(()) };
    if agent.via == Via::LoopbackToken && !ask.host.loopback {
        return Err(Refusal::new(Code::InvalidToken, "The app's agent token file only counts on a loopback host.")
            .leg("grant")
            .fix("the agent, by signing its calls and taking a token at /v1/token"));
    }
    if agent.via == Via::FileToken && !matches!(ask.action, Action::ReadFile { .. }) {
        return Err(Refusal::new(Code::InvalidToken, "A token for files opens files and nothing else.")
            .leg("grant")
            .fix("the agent, by signing the call and showing its own token"));
    }
    match needs(ask.action) {
        Needs::Nothing => Ok(()),
        Needs::Beyond => {
            Err(Refusal::new(Code::Forbidden, "A grant covers one app and never the platform: agents cannot do this.")
                .leg("grant")
                .fix("the person, signed in with their own password"))
        }
        Needs::Scope(scope) => holds(ask, agent, &spelled(ask, scope)),
    }
}

/// Entities are found ignoring case; the scope names them as the model does.
fn spelled(ask: &Ask<'_>, scope: Scope) -> Scope {
    let spelling = |entity: &String| {
        let found = ask.app.and_then(|app| app.definition.model.collection(entity));
        found.map_or_else(|| entity.clone(), |collection| collection.name.clone())
    };
    match scope {
        Scope::Read(entity) => Scope::Read(spelling(&entity)),
        Scope::Write(entity) => Scope::Write(spelling(&entity)),
        other => other,
    }
}

fn holds(ask: &Ask<'_>, agent: &Agent, scope: &Scope) -> Result<(), Refusal> {
    let Some(app) = ask.app else { return Err(unknown_app()) };
    let message = if agent.app != app.id {
        "This token is for another app."
    } else if agent.scopes.contains(scope) {
        return Ok(());
    } else {
        "The grant does not cover this."
    };
    Err(Refusal::new(Code::InsufficientScope, format!("{message} It needs the scope {scope} on {}.", app.slug))
        .leg("grant")
        .scope(scope)
        .fix("the person the agent acts for, by approving a grant request that names this scope"))
}

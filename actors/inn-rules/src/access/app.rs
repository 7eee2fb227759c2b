//! The app leg: what the release declares and the owner consented to.

use inn_protocol::app::{AppSnapshot, CrudAction, Executor, Operation};
use inn_protocol::call::Action;
use inn_protocol::caller::Caller;
use inn_protocol::model::{Collection, CollectionKind};
use inn_protocol::{Code, Refusal};

use super::account;
use super::legs::Ask;
use super::standing::unknown_app;

pub(super) fn leg(ask: &Ask<'_>) -> Result<(), Refusal> {
    match ask.action {
        Action::ListRecords { entity } | Action::ViewRecord { entity, .. } | Action::ReadFile { entity, .. } => {
            declared(app(ask)?, entity).map(|_| ())
        }
        Action::CreateRecord { entity } | Action::UpdateRecord { entity, .. } | Action::DeleteRecord { entity, .. } => {
            writable(declared(app(ask)?, entity)?)
        }
        Action::RunOperation { operation } => runnable(ask, app(ask)?, operation),
        Action::Ask { capability } => askable(ask, app(ask)?, capability),
        Action::CancelRequest { .. }
        | Action::OperateRequest { .. }
        | Action::CancelRequests
        | Action::ViewRequest { .. }
        | Action::ListRequests => {
            app(ask)?;
            not_for_agents(ask, "Agents meet requests by claiming them at /v1/requests/claim.")
        }
        Action::RetryJob { .. } => {
            app(ask)?;
            not_for_agents(ask, "Agents run the operation again, instead of a job that somebody started.")
        }
        Action::ViewJob { .. } | Action::ListJobs | Action::CancelJob { .. } => app(ask).map(|_| ()),
        Action::AppAuth { collection, .. } => account::has_accounts(app(ask)?, collection),
        Action::DescribeApp | Action::Batch | Action::Realtime { .. } | Action::TakeFileToken => app(ask).map(|_| ()),
        _ => Ok(()),
    }
}

/// An entity callers may name: not one of the platform's own, which start with `_`.
pub(super) fn entity<'a>(app: &'a AppSnapshot, name: &str) -> Option<&'a Collection> {
    app.definition.model.collection(name).filter(|collection| !collection.name.starts_with('_'))
}

fn app<'a>(ask: &Ask<'a>) -> Result<&'a AppSnapshot, Refusal> {
    ask.app.ok_or_else(unknown_app)
}

fn declared<'a>(app: &'a AppSnapshot, name: &str) -> Result<&'a Collection, Refusal> {
    entity(app, name).ok_or_else(|| {
        refuse(Code::UnknownEntity, format!("The app has no entity {name:?}; see its describe."), "the app's author")
    })
}

fn writable(collection: &Collection) -> Result<(), Refusal> {
    if collection.kind == CollectionKind::View {
        return Err(refuse(
            Code::InvalidBody,
            format!("Unsupported collection type. {:?} is a view and can only be read.", collection.name),
            "you, by writing to the collections the view reads",
        ));
    }
    Ok(())
}

fn runnable(ask: &Ask<'_>, app: &AppSnapshot, name: &str) -> Result<(), Refusal> {
    let Some(operation) = app.definition.operation(name) else {
        return Err(refuse(
            Code::UnknownOperation,
            format!("The app has no operation {name:?}; see /api/_ops."),
            "the app's author",
        ));
    };
    match &operation.executor {
        Executor::Crud { collection, action, .. } => {
            let collection = declared(app, collection)?;
            if *action != CrudAction::List {
                writable(collection)?;
            }
        }
        // An agent with the scope for the operation may run it like any other: what it asks for is the author's choice.
        Executor::Agent { capability } => consented(app, capability)?,
        Executor::Http { .. } | Executor::Job { .. } => {}
    }
    needs_no_approval(ask, operation)
}

fn needs_no_approval(ask: &Ask<'_>, operation: &Operation) -> Result<(), Refusal> {
    if operation.destructive && matches!(ask.caller, Caller::Agent(_)) {
        let message =
            format!("{:?} is destructive: a person has to approve this call. Nothing was run.", operation.name);
        return Err(refuse(
            Code::ApprovalRequired,
            message,
            "the person the agent acts for, who may run it themselves",
        ));
    }
    Ok(())
}

fn askable(ask: &Ask<'_>, app: &AppSnapshot, name: &str) -> Result<(), Refusal> {
    not_for_agents(ask, "Agents cannot ask other agents for work.")?;
    consented(app, name)
}

fn consented(app: &AppSnapshot, name: &str) -> Result<(), Refusal> {
    if app.definition.capability(name).is_none() {
        let message = format!("The app does not declare the capability {name:?}, so it cannot ask for it.");
        return Err(refuse(Code::NotDeclared, message, "the app's author, in the manifest"));
    }
    if !app.consented.iter().any(|consented| consented == name) {
        let message = format!("The owner has not consented to the capability {name:?}.");
        return Err(refuse(Code::NotConsented, message, "an owner of the app's tenant"));
    }
    Ok(())
}

fn not_for_agents(ask: &Ask<'_>, message: &str) -> Result<(), Refusal> {
    match ask.caller {
        Caller::Agent(_) => Err(refuse(Code::Forbidden, message, "the person, in the app itself")),
        _ => Ok(()),
    }
}

fn refuse(code: Code, message: impl Into<String>, fix: &str) -> Refusal {
    Refusal::new(code, message).leg("app").fix(fix)
}

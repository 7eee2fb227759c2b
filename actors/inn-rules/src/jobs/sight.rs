//! Who may see a job: its caller, and members who may edit.

use inn_protocol::UserId;
use inn_protocol::caller::Caller;
use inn_protocol::job::Job;
use inn_protocol::people::Role;
use inn_protocol::scope::Scope;

/// Members who may edit see all jobs of their apps; others what they started themselves. An agent sees what was started
/// by it or its person, as long as it may run the operation. On a loopback host whoever sits at the machine sees all.
pub fn may_see(caller: &Caller, job: &Job) -> bool {
    match caller {
        Caller::Person(person) => {
            person.tenant == job.tenant && (person.role >= Role::Editor || job.requester == Some(person.user))
        }
        Caller::Visitor => true,
        Caller::Agent(agent) => {
            agent.app == job.app
                && job.requester == Some(agent.user)
                && agent.scopes.contains(&Scope::Operation(job.operation.clone()))
        }
        // The app's own users are no people of the platform: they are known by their name in the app.
        Caller::AppUser(user) => {
            user.app == job.app && job.requester.is_none() && job.agent.is_none() && job.requester_label == user.name()
        }
        Caller::Stranger | Caller::Key(_) | Caller::Platform => false,
    }
}

/// Whose jobs to look for: a limit must count those that [`may_see`] lets through.
pub fn only_of(caller: &Caller) -> Option<UserId> {
    match caller {
        Caller::Person(person) => (person.role < Role::Editor).then_some(person.user),
        Caller::Agent(agent) => Some(agent.user),
        _ => None,
    }
}

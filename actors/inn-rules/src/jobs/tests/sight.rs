use std::collections::BTreeSet;
use std::sync::Arc;

use inn_protocol::caller::{Agent, AppUser, Caller, Person, Via};
use inn_protocol::job::{Job, JobKind, JobState};
use inn_protocol::people::Role;
use inn_protocol::scope::Scope;
use inn_protocol::{AgentId, AppId, Digest, GrantId, JobId, SessionId, TenantId, UserId};
use serde_json::Value;

use super::at;
use crate::jobs::may_see;

fn job(tenant: TenantId, app: AppId, requester: Option<UserId>, label: &str) -> Job {
    Job {
        id: JobId::new(),
        tenant,
        app,
        app_slug: "board".to_owned(),
        operation: "sum-up".to_owned(),
        kind: JobKind::Agent,
        state: JobState::Queued,
        params: Value::Null,
        requester,
        requester_label: label.to_owned(),
        agent: None,
        request: None,
        attempt: 0,
        attempts: 3,
        epoch: 0,
        node: None,
        lease_until: None,
        next_at: None,
        deadline: None,
        cancel_requested: false,
        progress: None,
        question: None,
        result: None,
        error: None,
        past_attempts: Vec::new(),
        retry_of: None,
        lines: 0,
        created_at: at(0),
        updated_at: at(0),
    }
}

fn person(tenant: TenantId, user: UserId, role: Role) -> Caller {
    Caller::Person(Person {
        user,
        email: Arc::from("p@example.org"),
        session: SessionId::new(),
        tenant,
        role,
        member_epoch: 1,
        fresh: false,
    })
}

fn agent(tenant: TenantId, app: AppId, user: UserId, operation: &str) -> Caller {
    Caller::Agent(Agent {
        agent: AgentId::parse(&"a".repeat(43)).unwrap(),
        helper: None,
        grant: GrantId::new(),
        grant_epoch: 1,
        app,
        user,
        tenant,
        role: Role::Owner,
        member_epoch: 1,
        scopes: Arc::new(BTreeSet::from([Scope::Operation(operation.to_owned())])),
        app_record: None,
        via: Via::Signed,
    })
}

#[test]
fn a_job_is_for_its_caller_and_for_editors() {
    let (tenant, app, user) = (TenantId::new(), AppId::new(), UserId::new());
    let own = job(tenant, app, Some(user), "p@example.org");
    let others = job(tenant, app, Some(UserId::new()), "q@example.org");
    let foreign = job(TenantId::new(), AppId::new(), Some(user), "p@example.org");
    let viewer = person(tenant, user, Role::Viewer);
    assert_eq!([&own, &others, &foreign].map(|job| may_see(&viewer, job)), [true, false, false]);
    let editor = person(tenant, user, Role::Editor);
    assert_eq!([&own, &others, &foreign].map(|job| may_see(&editor, job)), [true, true, false]);
    let holds = agent(tenant, app, user, "sum-up");
    assert_eq!([&own, &others, &foreign].map(|job| may_see(&holds, job)), [true, false, false]);
    let other_scope = agent(tenant, app, user, "cards.add");
    assert!(!may_see(&other_scope, &own), "an agent sees no job of an operation it may not run");
    let record = |app| {
        let (collection, record) = ("users".to_owned(), "abc".to_owned());
        Caller::AppUser(AppUser { app, tenant, collection, record, token_key: Digest::of(b"k") })
    };
    let asked = job(tenant, app, None, "users/abc");
    assert!(may_see(&record(app), &asked));
    assert!(!may_see(&record(AppId::new()), &asked), "of another app");
    assert!(!may_see(&record(app), &job(tenant, app, None, "users/xyz")));
    for nobody in [Caller::Stranger, Caller::Key(AgentId::parse(&"a".repeat(43)).unwrap())] {
        assert!(!may_see(&nobody, &own));
    }
}

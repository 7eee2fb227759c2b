//! Scopes that are shown, and how.

use chrono::DateTime;
use inn_protocol::app::AuthMode;
use inn_protocol::caller::{Agent, Caller};
use inn_protocol::people::Role;

use super::fixture::{PUBLIC, agent, app, full_agent, other_tenant, person};
use crate::access::{scope_sentence, visible_scopes};

fn visible(caller: &Caller) -> Vec<String> {
    let scopes = visible_scopes(caller, &app(AuthMode::None), PUBLIC, DateTime::UNIX_EPOCH);
    scopes.iter().map(ToString::to_string).collect()
}

#[test]
fn what_is_shown_is_what_can_be_called() {
    let scopes = ["data:cards:read", "data:locked:read", "data:nope:read", "queue:summarise-board", "queue:translate"];
    let caller = Caller::Agent(agent(Role::Editor, &scopes));
    assert_eq!(visible(&caller), ["data:cards:read", "queue:summarise-board"]);
    let viewer = Caller::Agent(full_agent(Role::Viewer));
    assert_eq!(visible(&viewer), ["data:cards:read", "data:mine:read", "data:stats:read", "queue:summarise-board"]);
    let owner = visible(&Caller::Person(person(Role::Owner)));
    assert!(owner.contains(&"data:locked:write".to_owned()) && !owner.contains(&"data:stats:write".to_owned()));
    assert!(visible(&Caller::Stranger).is_empty());
    assert!(visible(&Caller::Agent(Agent { tenant: other_tenant(), ..full_agent(Role::Owner) })).is_empty());
}

#[test]
fn an_operation_that_waits_for_an_approval_is_shown() {
    let caller = Caller::Agent(agent(Role::Editor, &["op:cards.clear-archived"]));
    assert_eq!(visible(&caller), ["op:cards.clear-archived"]);
}

#[test]
fn a_scope_is_a_sentence_of_what_the_app_declares() {
    let app = app(AuthMode::None);
    let cases = [
        ("data:cards:read", "Read cards"),
        ("data:cards:write", "Add, change and delete cards"),
        ("op:report", "Run: report — Does report."),
        (
            "op:cards.clear-archived",
            "Run: cards clear archived — Does cards.clear-archived. (destructive: each run needs your approval)",
        ),
        ("queue:summarise-board", "Answer requests: Summarise one board"),
        ("data:nope:read", "data:nope:read (the app does not declare this)"),
        ("op:nope", "op:nope (the app does not declare this)"),
    ];
    for (scope, sentence) in cases {
        assert_eq!(scope_sentence(&scope.parse().unwrap(), &app.definition), sentence);
    }
}

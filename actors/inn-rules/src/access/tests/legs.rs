//! Borders of each leg, and that explaining and deciding agree.

use chrono::DateTime;
use inn_protocol::app::AuthMode;
use inn_protocol::call::Action;
use inn_protocol::caller::{Agent, Caller, Person, Via};
use inn_protocol::people::Role;
use inn_protocol::{AppId, Code};

use super::fixture::{LOOPBACK, PUBLIC, actions, agent, app, asked, full_agent, id, key, other_tenant, person};
use crate::access::{Host, RowRule, explain};

fn list() -> Action {
    Action::ListRecords { entity: "cards".to_owned() }
}

fn code(caller: &Caller, action: &Action, host: Host) -> Code {
    asked(caller, action, Some(&app(AuthMode::None)), host).unwrap_err().code
}

#[test]
fn an_app_of_another_tenant_looks_like_one_that_is_not_there() {
    let app = app(AuthMode::None);
    let stranger = Caller::Person(Person { tenant: other_tenant(), ..person(Role::Owner) });
    let agent = Caller::Agent(Agent { tenant: other_tenant(), ..full_agent(Role::Owner) });
    for caller in [stranger, agent] {
        for action in [list(), Action::CreateRecord { entity: "nope".to_owned() }] {
            let there = asked(&caller, &action, Some(&app), PUBLIC).unwrap_err();
            let not_there = asked(&caller, &action, None, PUBLIC).unwrap_err();
            assert_eq!(there, not_there, "{caller:?}");
            assert_eq!(there.code, Code::UnknownApp);
        }
    }
}

#[test]
fn a_slug_of_another_tenant_is_taken() {
    let caller = Caller::Person(Person { tenant: other_tenant(), ..person(Role::Owner) });
    let deploy = Action::Deploy { slug: "board".to_owned() };
    assert_eq!(code(&caller, &deploy, PUBLIC), Code::SlugTaken);
    assert!(asked(&caller, &deploy, None, PUBLIC).is_ok());
    let manage = Action::ManageApp { slug: "board".to_owned(), verb: "rm" };
    assert_eq!(code(&caller, &manage, PUBLIC), Code::UnknownApp);
}

#[test]
fn a_visitor_counts_on_loopback_and_without_sign_in_only() {
    let create = Action::CreateRecord { entity: "cards".to_owned() };
    assert!(asked(&Caller::Visitor, &create, Some(&app(AuthMode::None)), LOOPBACK).is_ok());
    assert_eq!(code(&Caller::Visitor, &create, PUBLIC), Code::Unauthenticated);
    // In an app with accounts of its own a visitor is a guest like every other.
    let ask = Action::Ask { capability: "summarise-board".to_owned() };
    let multi = asked(&Caller::Visitor, &ask, Some(&app(AuthMode::MultiUser)), LOOPBACK);
    assert_eq!(multi.unwrap_err().code, Code::Unauthenticated);
}

#[test]
fn a_scope_is_for_one_thing_of_one_app() {
    let app = app(AuthMode::None);
    let reader = Caller::Agent(agent(Role::Owner, &["data:cards:read", "data:mine:write", "op:report"]));
    let allowed = [list(), Action::CreateRecord { entity: "mine".to_owned() }];
    for action in allowed.iter().chain(&[Action::RunOperation { operation: "report".to_owned() }]) {
        assert!(asked(&reader, action, Some(&app), PUBLIC).is_ok(), "{action:?}");
    }
    let refused = [
        (Action::CreateRecord { entity: "cards".to_owned() }, "data:cards:write"),
        (Action::ListRecords { entity: "mine".to_owned() }, "data:mine:read"),
        (Action::RunOperation { operation: "cards.add".to_owned() }, "op:cards.add"),
    ];
    for (action, scope) in refused {
        let refusal = asked(&reader, &action, Some(&app), PUBLIC).unwrap_err();
        assert_eq!((refusal.code, refusal.leg), (Code::InsufficientScope, Some("grant")), "{action:?}");
        assert_eq!(refusal.scope.as_deref(), Some(scope));
    }
    let elsewhere = Agent { app: id(AppId::PREFIX, 11), ..full_agent(Role::Owner) };
    let refusal = asked(&Caller::Agent(elsewhere), &list(), Some(&app), PUBLIC).unwrap_err();
    assert_eq!((refusal.code, refusal.leg), (Code::InsufficientScope, Some("grant")));
}

#[test]
fn an_entity_is_one_whatever_its_case_and_id() {
    let reader = Caller::Agent(agent(Role::Owner, &["data:cards:read"]));
    for entity in ["cards", "Cards", "c1"] {
        let action = Action::ListRecords { entity: entity.to_owned() };
        assert!(asked(&reader, &action, Some(&app(AuthMode::None)), PUBLIC).is_ok(), "{entity}");
    }
}

#[test]
fn a_destructive_operation_waits_for_a_person_and_a_missing_scope_comes_first() {
    let clear = Action::RunOperation { operation: "cards.clear-archived".to_owned() };
    let granted = Caller::Agent(agent(Role::Owner, &["op:cards.clear-archived"]));
    assert_eq!(code(&granted, &clear, PUBLIC), Code::ApprovalRequired);
    assert_eq!(code(&Caller::Agent(agent(Role::Owner, &[])), &clear, PUBLIC), Code::InsufficientScope);
    assert_eq!(code(&Caller::Agent(full_agent(Role::Viewer)), &clear, PUBLIC), Code::Forbidden);
    assert!(asked(&Caller::Person(person(Role::Editor)), &clear, Some(&app(AuthMode::None)), PUBLIC).is_ok());
}

#[test]
fn a_capability_must_be_declared_and_consented() {
    let editor = Caller::Person(person(Role::Editor));
    let ask = |name: &str| Action::Ask { capability: name.to_owned() };
    assert!(asked(&editor, &ask("summarise-board"), Some(&app(AuthMode::None)), PUBLIC).is_ok());
    assert_eq!(code(&editor, &ask("translate"), PUBLIC), Code::NotConsented);
    assert_eq!(code(&editor, &ask("nope"), PUBLIC), Code::NotDeclared);
}

#[test]
fn deciding_a_grant_needs_the_persons_own_fresh_session() {
    let decide = Action::DecideGrant { about: String::new(), verb: "approve" };
    let stale = Caller::Person(Person { fresh: false, ..person(Role::Owner) });
    assert_eq!(code(&stale, &decide, PUBLIC), Code::Unauthenticated);
    for caller in [Caller::Agent(full_agent(Role::Owner)), Caller::Key(key()), Caller::Platform] {
        assert_eq!(code(&caller, &decide, LOOPBACK), Code::Forbidden, "{caller:?}");
    }
    let revoke = Action::RevokeGrant { grant: full_agent(Role::Owner).grant };
    assert!(asked(&stale, &revoke, Some(&app(AuthMode::None)), PUBLIC).is_ok(), "stopping never waits");
}

#[test]
fn the_token_file_counts_on_loopback_only() {
    let caller = Caller::Agent(Agent { via: Via::LoopbackToken, ..full_agent(Role::Owner) });
    assert!(asked(&caller, &list(), Some(&app(AuthMode::None)), LOOPBACK).is_ok());
    assert_eq!(code(&caller, &list(), PUBLIC), Code::InvalidToken);
}

#[test]
fn what_an_agent_does_for_itself_needs_its_own_signature() {
    let take = Action::TakeToken { grant: full_agent(Role::Owner).grant };
    let bearer = Caller::Agent(Agent { via: Via::PlainToken, ..full_agent(Role::Owner) });
    assert_eq!(code(&bearer, &take, PUBLIC), Code::SignatureRequired);
    let helper = Caller::Agent(Agent { helper: Some(key()), ..full_agent(Role::Owner) });
    assert_eq!(code(&helper, &take, PUBLIC), Code::Forbidden, "a narrowed token must not become a whole one");
    assert!(asked(&helper, &list(), Some(&app(AuthMode::None)), PUBLIC).is_ok());
}

#[test]
fn explaining_and_deciding_agree_and_name_the_leg() {
    let app = app(AuthMode::None);
    let callers = [
        Caller::Stranger,
        Caller::Person(person(Role::Editor)),
        Caller::Agent(agent(Role::Editor, &["data:cards:read"])),
        Caller::Agent(full_agent(Role::Viewer)),
        Caller::Key(key()),
    ];
    for caller in &callers {
        for action in actions() {
            let decision = asked(caller, &action, Some(&app), PUBLIC);
            let explanation = explain(caller, &action, Some(&app), PUBLIC, DateTime::UNIX_EPOCH);
            assert_eq!(explanation.allowed, decision.is_ok());
            assert_eq!(explanation.allowed, explanation.legs.iter().all(|leg| leg.ok));
            assert_eq!(explanation.legs.iter().map(|leg| leg.leg).collect::<Vec<_>>(), ["user", "grant", "app"]);
            if let Err(refusal) = decision {
                let told = explanation.legs.iter().find(|leg| leg.reason == refusal.message).unwrap();
                assert_eq!((told.ok, told.code, &told.scope), (false, Some(refusal.code), &refusal.scope));
            }
        }
    }
    let update = Action::UpdateRecord { entity: "cards".to_owned(), id: "r1".to_owned() };
    let explanation = explain(&callers[2], &update, Some(&app), PUBLIC, DateTime::UNIX_EPOCH);
    assert_eq!(explanation.legs.iter().map(|leg| leg.ok).collect::<Vec<_>>(), [true, false, true]);
    let json = serde_json::to_value(&explanation).unwrap();
    assert_eq!(json["legs"][1]["scope"], "data:cards:write");
    assert_eq!(json["legs"][1]["code"], "insufficient_scope");
    assert!(json["legs"][1]["whoCanFix"].is_string());
}

#[test]
fn a_file_token_opens_files_and_nothing_else() {
    let app = app(AuthMode::None);
    let caller = Caller::Agent(Agent { via: Via::FileToken, ..full_agent(Role::Owner) });
    let file =
        |protected| Action::ReadFile { entity: "cards".into(), id: "r1".into(), name: "a.png".into(), protected };
    for protected in [true, false] {
        assert!(asked(&caller, &file(protected), Some(&app), PUBLIC).is_ok());
    }
    for action in [list(), Action::TakeFileToken, Action::DescribeApp] {
        assert_eq!(asked(&caller, &action, Some(&app), PUBLIC).unwrap_err().code, Code::InvalidToken, "{action:?}");
    }
}

#[test]
fn a_protected_file_falls_under_the_view_rule_and_another_one_does_not() {
    let file =
        |protected| Action::ReadFile { entity: "cards".into(), id: "r1".into(), name: "a.png".into(), protected };
    let viewer = Caller::Person(person(Role::Viewer));
    let members_only = app(AuthMode::None);
    let view = Action::ViewRecord { entity: "cards".to_owned(), id: "r1".to_owned() };
    let rule = |action: &Action| asked(&viewer, action, Some(&members_only), PUBLIC).unwrap().rule;
    assert_eq!(rule(&file(true)), rule(&view));
    assert_eq!(rule(&file(false)), RowRule::Any);
    // Public means the app's public: everybody where people sign in to the app itself, else its members.
    let own_accounts = app(AuthMode::MultiUser);
    assert!(asked(&Caller::Stranger, &file(false), Some(&own_accounts), PUBLIC).is_ok());
    let guest = asked(&Caller::Stranger, &file(true), Some(&own_accounts), PUBLIC).unwrap();
    assert_eq!(guest.rule, asked(&Caller::Stranger, &view, Some(&own_accounts), PUBLIC).unwrap().rule);
    for protected in [false, true] {
        let refused = asked(&Caller::Stranger, &file(protected), Some(&members_only), PUBLIC).unwrap_err();
        assert_eq!(refused.code, Code::Unauthenticated);
    }
}

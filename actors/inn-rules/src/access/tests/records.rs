//! Collection rules: who is a superuser, whose record `@request.auth` is, which rows a permit covers.

use inn_protocol::Code;
use inn_protocol::app::AuthMode;
use inn_protocol::call::Action;
use inn_protocol::caller::{Agent, Caller};
use inn_protocol::people::Role;
use serde_json::{Map, Value, json};

use super::fixture::{LOOPBACK, PUBLIC, agent, app, asked, full_agent, person};
use crate::access::{RowRule, decide_as};
use crate::filter::{AuthFacts, Expr, matches};

fn list(entity: &str) -> Action {
    Action::ListRecords { entity: entity.to_owned() }
}

fn create(entity: &str) -> Action {
    Action::CreateRecord { entity: entity.to_owned() }
}

fn row(owner: &str) -> Map<String, Value> {
    json!({"title": "x", "owner": owner}).as_object().cloned().unwrap()
}

#[test]
fn a_rule_of_none_is_for_owners_in_person_only() {
    let app = app(AuthMode::None);
    let owner = asked(&Caller::Person(person(Role::Owner)), &list("locked"), Some(&app), PUBLIC).unwrap();
    assert_eq!((owner.rule, owner.superuser, owner.see_hidden), (RowRule::Stored(Expr::Always), true, true));
    let others = [
        (Caller::Person(person(Role::Editor)), PUBLIC),
        (Caller::Visitor, LOOPBACK),
        (Caller::Agent(full_agent(Role::Owner)), PUBLIC),
    ];
    for (caller, host) in others {
        for action in [list("locked"), create("locked"), Action::RunOperation { operation: "locked.add".to_owned() }] {
            let refusal = asked(&caller, &action, Some(&app), host).unwrap_err();
            assert_eq!((refusal.code, refusal.leg), (Code::Forbidden, Some("user")), "{caller:?}");
            assert_eq!(refusal.message, "Only superusers can perform this action.");
        }
    }
}

/// Not "only superusers": they cannot do it either.
#[test]
fn nobody_writes_to_a_view_and_all_are_told_the_same() {
    let mut app = app(AuthMode::None);
    for rule in [None, Some(String::new()), Some("title != 'x'".to_owned())] {
        let mut definition = (*app.definition).clone();
        let view = definition.model.collections.iter_mut().find(|collection| collection.name == "stats").unwrap();
        (view.create_rule, view.update_rule, view.delete_rule) = (rule.clone(), rule.clone(), rule.clone());
        app.definition = definition.into();
        for (caller, host) in [
            (Caller::Person(person(Role::Owner)), PUBLIC),
            (Caller::Person(person(Role::Editor)), PUBLIC),
            (Caller::Visitor, LOOPBACK),
        ] {
            let (entity, id) = ("stats".to_owned(), "r1".to_owned());
            for action in [
                create("stats"),
                Action::UpdateRecord { entity: entity.clone(), id: id.clone() },
                Action::DeleteRecord { entity, id },
            ] {
                let refusal = asked(&caller, &action, Some(&app), host).unwrap_err();
                assert_eq!((refusal.code, refusal.leg), (Code::InvalidBody, Some("app")), "{caller:?} {action:?}");
            }
        }
    }
}

#[test]
fn an_agent_of_an_owner_is_no_superuser() {
    let app = app(AuthMode::None);
    let permit = asked(&Caller::Agent(full_agent(Role::Owner)), &list("cards"), Some(&app), PUBLIC).unwrap();
    assert!(!permit.superuser && !permit.see_hidden);
    let mine = asked(&Caller::Agent(full_agent(Role::Owner)), &list("mine"), Some(&app), PUBLIC).unwrap();
    assert_eq!(mine.rule, RowRule::Stored(Expr::Never), "nobody is signed in to the app");
}

#[test]
fn in_a_multi_user_app_rules_are_evaluated_as_the_linked_record() {
    let linked = Agent { app_record: Some("u1".to_owned()), ..full_agent(Role::Owner) };
    let multi = app(AuthMode::MultiUser);
    let permit = asked(&Caller::Agent(linked.clone()), &list("mine"), Some(&multi), PUBLIC).unwrap();
    let rule = permit.rule.stored().unwrap();
    assert!(matches(rule, &row("u1")) && !matches(rule, &row("u2")));
    let permit = asked(&Caller::Agent(linked.clone()), &create("mine"), Some(&multi), PUBLIC).unwrap();
    assert!(permit.rule.lets_create(&row("u1")) && !permit.rule.lets_create(&row("u2")));
    // Without a linked record, and in an app without sign-in, nobody is signed in.
    for (caller, app) in [(full_agent(Role::Owner), &multi), (linked, &app(AuthMode::None))] {
        let permit = asked(&Caller::Agent(caller), &list("mine"), Some(app), PUBLIC).unwrap();
        assert_eq!(permit.rule, RowRule::Stored(Expr::Never));
    }
}

#[test]
fn a_record_that_was_read_is_used_whole() {
    let multi = app(AuthMode::MultiUser);
    let caller = Caller::Agent(full_agent(Role::Editor));
    let facts = AuthFacts::of_record(json!({"id": "u9"}).as_object().cloned().unwrap());
    let permit = decide_as(&caller, &list("mine"), Some(&multi), &facts, PUBLIC, chrono::DateTime::UNIX_EPOCH).unwrap();
    assert!(matches(permit.rule.stored().unwrap(), &row("u9")));
    assert_eq!(permit.auth, facts);
}

#[test]
fn an_open_rule_needs_no_condition() {
    let app = app(AuthMode::None);
    let permit = asked(&Caller::Visitor, &list("cards"), Some(&app), LOOPBACK).unwrap();
    assert_eq!(permit.rule.stored(), None);
    let permit = asked(&Caller::Visitor, &create("cards"), Some(&app), LOOPBACK).unwrap();
    assert_eq!(permit.rule, RowRule::WouldBe(Expr::Always));
    assert_eq!(asked(&Caller::Stranger, &Action::DescribeApp, Some(&app), PUBLIC).unwrap().rule, RowRule::Any);
}

#[test]
fn a_crud_operation_falls_under_the_rule_of_what_it_does() {
    let app = app(AuthMode::None);
    let run = |name: &str| Action::RunOperation { operation: name.to_owned() };
    let permit = asked(&Caller::Person(person(Role::Editor)), &run("cards.add"), Some(&app), PUBLIC).unwrap();
    assert_eq!(permit.rule, RowRule::WouldBe(Expr::Always));
    let permit = asked(&Caller::Person(person(Role::Editor)), &run("report"), Some(&app), PUBLIC).unwrap();
    assert_eq!(permit.rule, RowRule::Any);
}

#[test]
fn a_rule_that_cannot_be_evaluated_lets_nobody_through() {
    let app = app(AuthMode::None);
    let refusal = asked(&Caller::Visitor, &list("later"), Some(&app), LOOPBACK).unwrap_err();
    assert_eq!(refusal.code, Code::InvalidFilter);
    assert!(asked(&Caller::Person(person(Role::Owner)), &list("later"), Some(&app), PUBLIC).is_ok());
}

#[test]
fn what_the_app_does_not_have_is_unknown() {
    let app = app(AuthMode::None);
    let caller = Caller::Agent(agent(Role::Owner, &[]));
    for entity in ["nope", "_inner", "__proto__", ""] {
        let refusal = asked(&caller, &list(entity), Some(&app), PUBLIC).unwrap_err();
        assert_eq!((refusal.code, refusal.leg), (Code::UnknownEntity, Some("app")), "{entity}");
    }
    for (operation, code) in [("nope", Code::UnknownOperation), ("gone.add", Code::UnknownEntity)] {
        let action = Action::RunOperation { operation: operation.to_owned() };
        assert_eq!(asked(&caller, &action, Some(&app), PUBLIC).unwrap_err().code, code, "{operation}");
    }
    let owner = Caller::Person(person(Role::Owner));
    assert_eq!(asked(&owner, &list("_inner"), Some(&app), PUBLIC).unwrap_err().code, Code::UnknownEntity);
}

#[test]
fn a_view_can_only_be_read() {
    let app = app(AuthMode::None);
    let owner = Caller::Person(person(Role::Owner));
    assert!(asked(&owner, &list("stats"), Some(&app), PUBLIC).is_ok());
    let refusal = asked(&owner, &create("stats"), Some(&app), PUBLIC).unwrap_err();
    assert_eq!((refusal.code, refusal.code.status()), (Code::InvalidBody, 400));
}

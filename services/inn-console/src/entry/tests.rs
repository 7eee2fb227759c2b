use std::sync::Arc;

use inn_protocol::people::Role;
use inn_protocol::{SessionId, TenantId, UserId};

use super::*;
use crate::samples;

#[test]
fn a_line_names_the_agent_and_the_person_it_acts_for() {
    let line =
        EntryLine::of(&samples::entry("ada", "agent", "records.create", "refused:forbidden"), &samples::names("ada"));
    assert_eq!((line.agent.as_deref(), line.who.as_str()), (Some("ada"), "ada@example.org"));
    assert_eq!(line.refused.as_deref(), Some("forbidden"));
    assert_eq!(line.app.as_deref(), Some("ada"));
    assert!(line.facts.iter().any(|(name, value)| *name == "outcome" && value == "refused:forbidden"));
}

#[test]
fn who_has_gone_is_still_named_by_id() {
    let line = EntryLine::of(&samples::entry("ada", "agent", "records.create", "done"), &Names::default());
    assert!(line.who.starts_with("usr_"), "{}", line.who);
    assert!(line.app.is_some_and(|app| app.starts_with("app_")));
    assert_eq!(line.agent.map(|key| key.len()), Some(43));
}

#[test]
fn the_front_page_leaves_out_only_what_looking_at_it_caused() {
    let person = |number| Person {
        user: UserId::from_uuid(uuid::Uuid::from_u128(number)),
        email: Arc::from("ada@example.org"),
        session: SessionId::new(),
        tenant: TenantId::from_uuid(uuid::Uuid::from_u128(1)),
        role: Role::Owner,
        member_epoch: 1,
        fresh: false,
    };
    let own = samples::entry("x", "person", "apps.list", "done");
    assert!(EntryLine::is_own_look(&own, &person(3)));
    assert!(!EntryLine::is_own_look(&own, &person(4)), "somebody else looked");
    for (caller, action, outcome) in [
        ("agent", "apps.list", "done"),
        ("person", "apps.list", "refused:forbidden"),
        ("person", "grants.revoke", "done"),
    ] {
        assert!(
            !EntryLine::is_own_look(&samples::entry("x", caller, action, outcome), &person(3)),
            "{caller} {action}"
        );
    }
}

#[test]
fn a_user_of_the_app_is_named_as_the_app_names_them() {
    let mut entry = samples::entry("ada", "app_user", "records.create", "done");
    entry.facts["user"] = Value::Null;
    entry.facts["appUser"] = "users/abc123".into();
    let line = EntryLine::of(&entry, &samples::names("ada"));
    assert_eq!(line.who, "users/abc123");
    assert!(line.facts.iter().any(|(name, value)| *name == "appUser" && value == "users/abc123"));
}

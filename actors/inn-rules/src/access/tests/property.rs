//! Invariant 4: an agent never exceeds its person.

use std::sync::Arc;

use inn_protocol::app::AuthMode;
use inn_protocol::call::Action;
use inn_protocol::caller::{Agent, Caller, Person, Via};
use inn_protocol::people::Role;
use inn_protocol::scope::Scope;
use proptest::prelude::*;

use super::fixture::{actions, app, asked, full_agent, key, other_tenant, person, tenant};
use crate::access::{Host, RowRule, visible_scopes};
use crate::filter::Expr;

fn role() -> impl Strategy<Value = Role> {
    prop_oneof![Just(Role::Viewer), Just(Role::Editor), Just(Role::Owner)]
}

fn name() -> impl Strategy<Value = String> {
    let names = ["cards", "locked", "mine", "stats", "_inner", "later", "nope", "report", "cards.add", "locked.add"];
    let more = ["cards.clear-archived", "gone.add", "summarise-board", "translate"];
    proptest::sample::select([&names[..], &more[..]].concat()).prop_map(str::to_owned)
}

fn scope() -> impl Strategy<Value = Scope> {
    prop_oneof![
        name().prop_map(Scope::Read),
        name().prop_map(Scope::Write),
        name().prop_map(Scope::Operation),
        name().prop_map(Scope::Queue),
    ]
}

/// Every action, with any name where it takes one.
fn action() -> impl Strategy<Value = Action> {
    (proptest::sample::select(actions()), name()).prop_map(|(action, name)| match action {
        Action::ListRecords { .. } => Action::ListRecords { entity: name },
        Action::ViewRecord { id, .. } => Action::ViewRecord { entity: name, id },
        Action::CreateRecord { .. } => Action::CreateRecord { entity: name },
        Action::UpdateRecord { id, .. } => Action::UpdateRecord { entity: name, id },
        Action::DeleteRecord { id, .. } => Action::DeleteRecord { entity: name, id },
        Action::ReadFile { id, name: file, protected, .. } => {
            Action::ReadFile { entity: name, id, name: file, protected }
        }
        Action::RunOperation { .. } => Action::RunOperation { operation: name },
        Action::Ask { .. } => Action::Ask { capability: name },
        other => other,
    })
}

/// What an agent does for itself with its own key is not something its person could do.
fn is_the_agents_own(action: &Action) -> bool {
    matches!(
        action,
        Action::RegisterAgent
            | Action::RequestGrant { .. }
            | Action::ViewGrantRequest { .. }
            | Action::TakeToken { .. }
            | Action::Claim
            | Action::Hold { .. }
            | Action::HoldMany
    )
}

fn condition(rule: &RowRule) -> &Expr {
    match rule {
        RowRule::Any => &Expr::Always,
        RowRule::Stored(expr) | RowRule::WouldBe(expr) => expr,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn an_agent_never_exceeds_its_person(
        role in role(),
        home in any::<bool>(),
        fresh in any::<bool>(),
        multi in any::<bool>(),
        loopback in any::<bool>(),
        via in prop_oneof![Just(Via::Signed), Just(Via::PlainToken), Just(Via::LoopbackToken), Just(Via::FileToken)],
        helper in any::<bool>(),
        scopes in proptest::collection::btree_set(scope(), 0..12),
        action in action(),
        with_app in any::<bool>(),
    ) {
        let app = app(if multi { AuthMode::MultiUser } else { AuthMode::None });
        let tenant = if home { tenant() } else { other_tenant() };
        let host = Host { loopback };
        let agent = Agent {
            tenant,
            via,
            helper: helper.then(key),
            scopes: Arc::new(scopes.clone()),
            ..full_agent(role)
        };
        let person = Caller::Person(Person { tenant, fresh, ..person(role) });
        let app_arg = with_app.then_some(&app);
        let for_agent = asked(&Caller::Agent(agent.clone()), &action, app_arg, host);
        if let (Ok(permit), false) = (&for_agent, is_the_agents_own(&action)) {
            let for_person = asked(&person, &action, app_arg, host);
            prop_assert!(for_person.is_ok(), "{:?}: {:?}", action, for_person);
            let for_person = for_person.unwrap();
            // The rows are the person's own or fewer.
            prop_assert!(
                for_person.superuser || condition(&permit.rule) == condition(&for_person.rule),
                "{:?}", action
            );
            prop_assert!(!permit.superuser && !permit.see_hidden);
        }

        // And fewer scopes never allow more.
        let narrowed = Agent { scopes: Arc::new(scopes.iter().take(scopes.len() / 2).cloned().collect()), ..agent.clone() };
        if asked(&Caller::Agent(narrowed), &action, app_arg, host).is_ok() {
            prop_assert!(for_agent.is_ok(), "{:?}", action);
        }

        // What is shown was granted.
        let now = chrono::DateTime::UNIX_EPOCH;
        let visible = visible_scopes(&Caller::Agent(agent), &app, host, now);
        prop_assert!(visible.is_subset(&scopes));
    }
}

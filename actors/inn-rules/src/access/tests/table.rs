//! Every action for every kind of caller, on an `authMode: none` app.

use inn_protocol::app::AuthMode;
use inn_protocol::caller::Caller;
use inn_protocol::people::Role;

use super::fixture::{LOOPBACK, PUBLIC, actions, agent, app, asked, full_agent, key, person};

/// `+` allowed, else the first letter of the code in [`LETTERS`].
const LETTERS: [(&str, char); 7] = [
    ("agent_token_required", 't'),
    ("unauthenticated", 'u'),
    ("forbidden", 'f'),
    ("signature_required", 's'),
    ("insufficient_scope", 'i'),
    ("unknown_app", 'a'),
    ("not_found", 'n'),
];

fn row(caller: &Caller, host: crate::access::Host) -> Vec<(String, char)> {
    let app = app(AuthMode::None);
    let letter = |action| match asked(caller, &action, Some(&app), host) {
        Ok(_) => '+',
        Err(refusal) => LETTERS.iter().find(|(code, _)| *code == refusal.code.as_str()).map_or('?', |(_, l)| *l),
    };
    actions().into_iter().map(|action| (action.name(), letter(action))).collect()
}

#[test]
fn every_action_for_every_kind_of_caller() {
    let columns = [
        row(&Caller::Stranger, LOOPBACK),
        row(&Caller::Visitor, LOOPBACK),
        row(&Caller::Visitor, PUBLIC),
        row(&Caller::Person(person(Role::Viewer)), PUBLIC),
        row(&Caller::Person(person(Role::Editor)), PUBLIC),
        row(&Caller::Person(person(Role::Owner)), PUBLIC),
        row(&Caller::Agent(agent(Role::Owner, &[])), PUBLIC),
        row(&Caller::Agent(full_agent(Role::Viewer)), PUBLIC),
        row(&Caller::Agent(full_agent(Role::Editor)), PUBLIC),
        row(&Caller::Agent(full_agent(Role::Owner)), PUBLIC),
        row(&Caller::Key(key()), PUBLIC),
        row(&Caller::Platform, PUBLIC),
    ];
    let lines: Vec<String> = columns[0]
        .iter()
        .enumerate()
        .map(|(index, (name, _))| {
            let cells: String = columns.iter().map(|column| column[index].1).collect();
            format!("{name:19} {cells}")
        })
        .collect();
    // Columns: stranger, visitor on and off loopback; viewer, editor, owner; agent without scopes for an owner, with all
    // scopes for a viewer, editor, owner; key; platform.
    let expected = [
        "app.describe        ++++++++++++",
        "records.list        t+u+++i+++u+",
        "records.view        t+u+++i+++u+",
        "records.create      t+uf++if++u+",
        "records.update      t+uf++if++u+",
        "records.delete      t+uf++if++u+",
        "records.batch       ++++++++++++",
        "realtime.connect    ++++++++++++",
        "files.read          t+u+++i+++u+",
        "files.read          t+u+++i+++u+",
        "files.token         tuu+++++++u+",
        "auth.with-password  ++++++ffffff",
        "operations.run      t+uf++if++u+",
        "requests.ask        t+uf++ffffu+",
        "requests.view       t+u+++ffffu+",
        "requests.list       t+u+++ffffu+",
        "requests.cancel     t+uf++ffffu+",
        "requests.answer     t+uf++ffffu+",
        "requests.cancel-many t+uf++ffffu+",
        "jobs.view           t+u+++++++u+",
        "jobs.list           t+u+++++++u+",
        "jobs.cancel         t+uf+++f++u+",
        "jobs.retry          t+uf++ffffu+",
        "agents.register     sssfff+++++f",
        "grants.request      sssfff+++++f",
        "tokens.take         sssfff+++++f",
        "requests.claim      sssfff+++++f",
        "requests.complete   sssfff+++++f",
        "requests.complete-many sssfff+++++f",
        "sessions.sign-in    ++++++ffffff",
        "sessions.show       uuu+++ffffff",
        "tenants.create      uuu+++fffff+",
        "queue.limits        uuu+++ffffu+",
        "queue.set-limit     uuuff+ffffu+",
        "members.list        uuu+++ffffu+",
        "members.add         uuuff+ffffu+",
        "apps.list           uuu+++ffffu+",
        "apps.deploy         uuuff+ffffu+",
        "apps.rollback       uuuff+ffffu+",
        "grants.list         uuu+++ffffu+",
        "grants.view-request uuu+++++++++",
        "grants.approve      uuu+++ffffff",
        "grants.revoke       uuu+++ffffu+",
        "explain             uuu+++++++u+",
        "audit.tail          uuuff+ffffu+",
        "receipts.view       uuu+++++++u+",
    ];
    assert_eq!(lines, expected, "\n{}", lines.join("\n"));
}

#[test]
fn every_refusal_says_which_leg_and_who_can_fix_it() {
    let app = app(AuthMode::None);
    let callers = [
        Caller::Stranger,
        Caller::Visitor,
        Caller::Person(person(Role::Viewer)),
        Caller::Agent(agent(Role::Viewer, &[])),
        Caller::Agent(agent(Role::Owner, &[])),
        Caller::Key(key()),
        Caller::Platform,
    ];
    for caller in &callers {
        for action in actions() {
            for app in [Some(&app), None] {
                let Err(refusal) = asked(caller, &action, app, PUBLIC) else { continue };
                assert!(matches!(refusal.leg, Some("user" | "grant" | "app")), "{caller:?} {action:?}");
                assert!(refusal.who_can_fix.is_some(), "{caller:?} {action:?}");
                assert_eq!(
                    refusal.scope.is_some(),
                    refusal.code.as_str() == "insufficient_scope",
                    "{caller:?} {action:?}"
                );
            }
        }
    }
}

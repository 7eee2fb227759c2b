//! The scopes of a request as lines to tick.

use std::collections::BTreeSet;

use inn_protocol::app::AppDefinition;
use inn_protocol::scope::Scope;
use inn_rules::access::scope_sentence;

/// Lines of one kind, from the harmless to the far-reaching.
pub(crate) struct Group {
    pub(crate) title: &'static str,
    pub(crate) hint: &'static str,
    pub(crate) lines: Vec<Line>,
}

pub(crate) struct Line {
    pub(crate) scope: String,
    pub(crate) sentence: String,
    pub(crate) destructive: bool,
    pub(crate) ticked: bool,
}

/// With `chosen` the lines are as the person left them. Before that only reading is ticked: whatever changes something
/// takes a deliberate tick.
pub(crate) fn groups(scopes: &BTreeSet<Scope>, app: &AppDefinition, chosen: Option<&[String]>) -> Vec<Group> {
    let line = |scope: &Scope| {
        let text = scope.to_string();
        let ticked = match chosen {
            Some(chosen) => chosen.contains(&text),
            None => matches!(scope, Scope::Read(_)),
        };
        Line { sentence: scope_sentence(scope, app), destructive: is_destructive(scope, app), scope: text, ticked }
    };
    let group = |title, hint, of: fn(&Scope) -> bool| {
        let lines = scopes.iter().filter(|scope| of(scope)).map(line).collect();
        Group { title, hint, lines }
    };
    let groups = [
        group("Look", "Changes nothing.", |scope| matches!(scope, Scope::Read(_))),
        group("Answer requests", "Work the app asks agents for; the answer appears in the app.", |scope| {
            matches!(scope, Scope::Queue(_))
        }),
        group("Change", "Includes deleting.", |scope| matches!(scope, Scope::Write(_))),
        group("Run", "What the app's own operations do is told by the app.", |scope| {
            matches!(scope, Scope::Operation(_))
        }),
    ];
    groups.into_iter().filter(|group| !group.lines.is_empty()).collect()
}

fn is_destructive(scope: &Scope, app: &AppDefinition) -> bool {
    match scope {
        // What the app no longer declares is not known to be harmless.
        Scope::Operation(name) => app.operation(name).is_none_or(|operation| operation.destructive),
        _ => false,
    }
}

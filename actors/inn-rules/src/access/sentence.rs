//! Scopes in words, for the person who consents.

use inn_protocol::app::AppDefinition;
use inn_protocol::scope::Scope;

/// One line of a consent page: `Read cards`, `Run: clear archived cards — Deletes archived cards.`. Built from what
/// the app declares now; a scope it does not declare says so.
pub fn scope_sentence(scope: &Scope, app: &AppDefinition) -> String {
    let known = |entity: &str| app.model.collection(entity).is_some();
    match scope {
        Scope::Read(entity) if known(entity) => format!("Read {}", spaced(entity)),
        Scope::Write(entity) if known(entity) => format!("Add, change and delete {}", spaced(entity)),
        Scope::Operation(name) => match app.operation(name) {
            Some(operation) => {
                let destructive =
                    if operation.destructive { " (destructive: each run needs your approval)" } else { "" };
                match operation.description.trim() {
                    "" => format!("Run: {}{destructive}", spaced(name)),
                    description => format!("Run: {} — {description}{destructive}", spaced(name)),
                }
            }
            None => undeclared(scope),
        },
        Scope::Queue(name) => match app.capability(name) {
            Some(capability) => format!("Answer requests: {}", capability.sentence.trim()),
            None => undeclared(scope),
        },
        Scope::Read(_) | Scope::Write(_) => undeclared(scope),
    }
}

fn undeclared(scope: &Scope) -> String {
    format!("{scope} (the app does not declare this)")
}

/// `cards.clear-archived` → `cards clear archived`.
fn spaced(name: &str) -> String {
    name.split(['.', '_', '-']).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

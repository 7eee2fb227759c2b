//! What a grant still covers when the app's release changes (DESIGN section 5): what the person said yes to, and nothing
//! that came to be called the same.

use std::collections::BTreeSet;

use inn_protocol::app::AppDefinition;
use inn_protocol::scope::Scope;

/// The scopes of a grant under `to`, when they were given or last held under `from`.
///
/// A collection keeps its scopes by its id, so they follow a new name. A name that another collection has now, or that
/// an operation or capability has which the release before did not have, is a new thing: its scope goes. Scopes of
/// what is gone stay as long as nothing takes the name.
pub fn carried(from: &AppDefinition, to: &AppDefinition, scopes: &BTreeSet<Scope>) -> BTreeSet<Scope> {
    let entity = |name: &String| {
        let before = from.model.collections.iter().find(|collection| collection.name == *name);
        let after = before.and_then(|before| to.model.collections.iter().find(|after| after.id == before.id));
        match after {
            Some(after) => Some(after.name.clone()),
            None => to.model.collection(name).is_none().then(|| name.clone()),
        }
    };
    let one = |scope: &Scope| match scope {
        Scope::Read(name) => entity(name).map(Scope::Read),
        Scope::Write(name) => entity(name).map(Scope::Write),
        Scope::Operation(name) => {
            let known = to.operation(name).is_none() || from.operation(name).is_some();
            known.then(|| scope.clone())
        }
        Scope::Queue(name) => {
            let known = to.capability(name).is_none() || from.capability(name).is_some();
            known.then(|| scope.clone())
        }
    };
    scopes.iter().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn app(collections: &[(&str, &str)], operations: &[&str]) -> AppDefinition {
        let collections: Vec<_> = collections
            .iter()
            .map(|(id, name)| json!({"id": id, "name": name, "type": "base", "fields": []}))
            .collect();
        let operations: Vec<_> = operations
            .iter()
            .map(|name| {
                json!({"name": name, "description": "", "destructive": false, "params": {},
                    "executor": {"type": "crud", "collection": "cards", "action": "list"}})
            })
            .collect();
        let definition = json!({
            "declaredId": "x", "name": "X", "dialect": "1.0", "authMode": "none", "model": {"collections": collections},
            "operations": [], "operationsJson": {}, "capabilities": [], "limits": {},
        });
        let mut definition: AppDefinition = serde_json::from_value(definition).unwrap();
        definition.operations =
            operations.into_iter().filter_map(|operation| serde_json::from_value(operation).ok()).collect();
        definition
    }

    fn kept(from: &AppDefinition, to: &AppDefinition, scopes: &[&str]) -> Vec<String> {
        let scopes = scopes.iter().map(|scope| scope.parse().unwrap()).collect();
        carried(from, to, &scopes).iter().map(Scope::to_string).collect()
    }

    #[test]
    fn a_scope_follows_its_collection_to_a_new_name() {
        let (from, to) = (app(&[("a", "cards")], &[]), app(&[("a", "tickets")], &[]));
        assert_eq!(
            kept(&from, &to, &["data:cards:read", "data:cards:write"]),
            ["data:tickets:read", "data:tickets:write"]
        );
    }

    #[test]
    fn names_that_change_places_take_no_scope_along() {
        let (from, to) = (app(&[("a", "cards"), ("b", "pay")], &[]), app(&[("a", "pay"), ("b", "cards")], &[]));
        assert_eq!(kept(&from, &to, &["data:cards:read"]), ["data:pay:read"]);
    }

    #[test]
    fn a_name_that_another_collection_takes_is_not_covered() {
        let (from, to) = (app(&[("a", "cards")], &[]), app(&[("b", "cards")], &[]));
        assert_eq!(kept(&from, &to, &["data:cards:read"]), Vec::<String>::new());
        let gone = app(&[], &[]);
        assert_eq!(kept(&from, &gone, &["data:cards:read"]), ["data:cards:read"], "nothing has the name");
        assert_eq!(kept(&gone, &to, &["data:cards:read"]), Vec::<String>::new());
    }

    #[test]
    fn an_operation_that_was_not_there_before_is_not_covered() {
        let (without, with) = (app(&[("a", "cards")], &[]), app(&[("a", "cards")], &["cards.clear"]));
        assert_eq!(with.operations.len(), 1);
        assert_eq!(kept(&with, &with, &["op:cards.clear"]), ["op:cards.clear"]);
        assert_eq!(kept(&with, &without, &["op:cards.clear"]), ["op:cards.clear"]);
        assert_eq!(kept(&without, &with, &["op:cards.clear"]), Vec::<String>::new());
    }
}

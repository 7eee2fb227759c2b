//! `app/operations.json`: the verbs an app declares (A2App, `opsVersion` 1).

use std::collections::{BTreeMap, BTreeSet};

use inn_protocol::app::{Capability, CrudAction, Dialect, Executor, Operation, Param, ParamKind};
use inn_protocol::model::Model;
use serde_json::{Value, json};

use super::json_member;
use crate::bundle::Bundle;
use crate::node::Node;
use crate::problem::Problems;

const OPERATIONS: &str = "app/operations.json";
const MAX_OPERATIONS: usize = 500;
/// Routes of the host. An app's operation there would never be reached, or would hide the host's.
const HOST_ROUTES: [&str; 6] =
    ["/api/_", "/api/collections/", "/api/files/", "/api/realtime", "/api/health", "/api/batch"];

/// `^[a-z][a-z0-9._-]{0,63}$`, the names of operations and capabilities.
pub(super) fn is_verb_name(text: &str) -> bool {
    text.len() <= 64
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte))
}

/// The operations, and the file as the author wrote it.
pub(super) fn load(
    bundle: &Bundle,
    dialect: Dialect,
    model: &Model,
    problems: &mut Problems,
) -> (Vec<Operation>, Value) {
    let Some(value) = json_member(bundle, OPERATIONS, problems) else {
        return (Vec::new(), json!({"opsVersion": 1, "operations": []}));
    };
    let root = Node::root(OPERATIONS, &value);
    let mut operations = Vec::new();
    if root.closed(&["opsVersion", "operations"], problems) {
        if let Some(version) = root.need("opsVersion", problems)
            && *version.value != json!(1)
        {
            version.problem("must be 1", problems);
        }
        let list = root.need("operations", problems).map(|list| list.items(problems)).unwrap_or_default();
        if list.len() > MAX_OPERATIONS {
            problems.add(root.place(), format!("an app may have {MAX_OPERATIONS} operations"));
        }
        let mut names = BTreeSet::new();
        let mut routes = BTreeSet::new();
        for node in list.iter().take(MAX_OPERATIONS) {
            let Some(operation) = one(node, dialect, model, problems) else { continue };
            if !names.insert(operation.name.clone()) {
                node.problem(format!("the operation `{}` is declared twice", operation.name), problems);
            }
            if let Executor::Http { method, path } | Executor::Job { method, path } = &operation.executor
                && !operation.system
                && !routes.insert((method.clone(), path.clone()))
            {
                problems.add(node.place(), format!("another operation is already at {method} {path}"));
            }
            operations.push(operation);
        }
    }
    (operations, value)
}

/// An operation that asks agents asks for what the manifest declares, and so for what the owner is asked to consent to.
pub(super) fn check_capabilities(operations: &[Operation], capabilities: &[Capability], problems: &mut Problems) {
    for operation in operations {
        let Executor::Agent { capability } = &operation.executor else { continue };
        if capabilities.iter().all(|declared| declared.name != *capability) {
            let place = format!("{OPERATIONS}#operations.{}.executor.capability", operation.name);
            problems.add(place, format!("the manifest declares no capability `{capability}` under `innkeeper`"));
        }
    }
}

fn one(node: &Node<'_>, dialect: Dialect, model: &Model, problems: &mut Problems) -> Option<Operation> {
    let mut keys = vec!["name", "description", "system", "destructive", "schedule", "params", "executor"];
    if dialect == Dialect::A2App01 {
        keys.extend(["readOnly", "idempotent", "module", "entity", "appliesWhen"]);
    }
    if !node.closed(&keys, problems) {
        return None;
    }
    let name = node.need("name", problems).and_then(|name| {
        let text = name.text(problems)?;
        if !is_verb_name(text) {
            name.problem("must match ^[a-z][a-z0-9._-]{0,63}$", problems);
        }
        Some(text)
    });
    let description = node.need("description", problems).and_then(|text| text.sized(1, 500, problems));
    let system = node.get("system").is_some_and(|flag| flag.boolean(problems));
    let destructive = node.get("destructive").is_some_and(|flag| flag.boolean(problems));
    let schedule = node.get("schedule").and_then(|schedule| {
        let text = schedule.text(problems)?;
        if !is_schedule(text) {
            schedule.problem(
                "must be `hourly`, `every <n>s|m|h` (n at least 1) or `daily HH:MM` (00:00 to 23:59)",
                problems,
            );
        }
        Some(text.to_owned())
    });
    let mut params = BTreeMap::new();
    if let Some(declared) = node.need("params", problems) {
        for (key, value) in declared.members(problems) {
            if key.is_empty() || key.len() > 64 || key.contains(char::is_control) {
                value.problem("a param's name has 1 to 64 characters", problems);
            }
            if let Some(param) = param(&value, problems) {
                params.insert(key.to_owned(), param);
            }
        }
    }
    let executor = node.need("executor", problems)?;
    let executor = read_executor(&executor, system, &params, model, problems);
    Some(Operation {
        name: name?.to_owned(),
        description: description?.to_owned(),
        system,
        destructive,
        schedule,
        params,
        executor: executor?,
    })
}

fn is_schedule(text: &str) -> bool {
    if text == "hourly" {
        return true;
    }
    if let Some(time) = text.strip_prefix("daily ") {
        let in_range = |digits: &str, below: u32| {
            digits.len() == 2
                && digits.bytes().all(|b| b.is_ascii_digit())
                && digits.parse().is_ok_and(|n: u32| n < below)
        };
        return time.split_once(':').is_some_and(|(hour, minute)| in_range(hour, 24) && in_range(minute, 60));
    }
    let Some(count) = text.strip_prefix("every ").and_then(|rest| rest.strip_suffix(['s', 'm', 'h'])) else {
        return false;
    };
    count.bytes().all(|b| b.is_ascii_digit()) && count.parse::<u32>().is_ok_and(|count| count > 0)
}

fn param(node: &Node<'_>, problems: &mut Problems) -> Option<Param> {
    if !node.closed(&["type", "description", "required", "default", "enum"], problems) {
        return None;
    }
    let kind = node.need("type", problems)?.one_of(&["string", "number", "boolean"], problems)?;
    let kind = match kind {
        "string" => ParamKind::String,
        "number" => ParamKind::Number,
        _ => ParamKind::Boolean,
    };
    let fits = |value: &Value| match kind {
        ParamKind::String => value.is_string(),
        ParamKind::Number => value.is_number(),
        ParamKind::Boolean => value.is_boolean(),
    };
    let allowed = node.get("enum").map(|list| {
        let items = list.items(problems);
        if items.is_empty() || kind == ParamKind::Boolean {
            list.problem("must be a list of at least one text or number", problems);
        }
        for item in items.iter().filter(|item| !fits(item.value)) {
            item.problem("must be of the param's own type", problems);
        }
        items.iter().map(|item| item.value.clone()).collect::<Vec<_>>()
    });
    let default = node.get("default").map(|default| {
        if !fits(default.value) {
            default.problem("must be of the param's own type", problems);
        } else if allowed.as_ref().is_some_and(|allowed| !allowed.contains(default.value)) {
            default.problem("must be one of the param's enum", problems);
        }
        default.value.clone()
    });
    Some(Param {
        kind,
        description: node.get("description").and_then(|text| text.sized(0, 500, problems)).map(str::to_owned),
        required: node.get("required").is_some_and(|flag| flag.boolean(problems)),
        default,
        allowed,
    })
}

fn read_executor(
    node: &Node<'_>,
    system: bool,
    params: &BTreeMap<String, Param>,
    model: &Model,
    problems: &mut Problems,
) -> Option<Executor> {
    match node.need("type", problems)?.one_of(&["http", "crud", "job", "agent"], problems)? {
        "http" => {
            node.closed(&["type", "method", "path"], problems);
            let methods = ["GET", "POST", "PUT", "PATCH", "DELETE"];
            let method = node.need("method", problems).and_then(|method| method.one_of(&methods, problems));
            let path = node.need("path", problems).and_then(|path| route(&path, system, problems));
            Some(Executor::Http { method: method?.to_owned(), path: path? })
        }
        "job" => {
            node.closed(&["type", "method", "path"], problems);
            let method = node.need("method", problems).and_then(|method| method.one_of(&["POST"], problems));
            let path = node.need("path", problems).and_then(|path| route(&path, system, problems));
            Some(Executor::Job { method: method?.to_owned(), path: path? })
        }
        "agent" => {
            node.closed(&["type", "capability"], problems);
            let name = node.need("capability", problems).and_then(|name| name.text(problems));
            Some(Executor::Agent { capability: name?.to_owned() })
        }
        _ => crud(node, params, model, problems),
    }
}

/// `^/api/`, plain, and not one of the host's own (system entries may point at those).
fn route(node: &Node<'_>, system: bool, problems: &mut Problems) -> Option<String> {
    let path = node.sized(6, 300, problems)?;
    let plain = path.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#\\%\"<>`{}|^".contains(&byte));
    let clean = path.split('/').skip(1).all(|segment| !["", ".", ".."].contains(&segment));
    if !path.starts_with("/api/") || !plain || !clean {
        node.problem("must be a plain path under /api/, without query, escapes or empty segments", problems);
        return None;
    }
    if !system && HOST_ROUTES.iter().any(|host| path.starts_with(host)) {
        node.problem("is a route of the host; choose another path, such as /api/ops/…", problems);
        return None;
    }
    Some(path.to_owned())
}

fn crud(node: &Node<'_>, params: &BTreeMap<String, Param>, model: &Model, problems: &mut Problems) -> Option<Executor> {
    node.closed(&["type", "collection", "action", "filter"], problems);
    let action = node.need("action", problems)?.one_of(&["list", "create", "update", "delete"], problems)?;
    let action = match action {
        "list" => CrudAction::List,
        "create" => CrudAction::Create,
        "update" => CrudAction::Update,
        _ => CrudAction::Delete,
    };
    let filter = node.get("filter").and_then(|filter| {
        if action == CrudAction::Create {
            filter.problem("a create has no filter", problems);
        }
        filter.filled(problems).map(str::to_owned)
    });
    let selects = matches!(action, CrudAction::Update | CrudAction::Delete);
    if selects && filter.is_none() && !params.get("id").is_some_and(|id| id.kind == ParamKind::String) {
        node.problem("an update or delete needs a param `id` (a string) or a fixed filter to select records", problems);
    }
    let named = node.need("collection", problems)?;
    let name = named.text(problems)?;
    let Some(collection) = model.collection(name) else {
        named.problem("there is no such collection", problems);
        return None;
    };
    if matches!(action, CrudAction::Create | CrudAction::Update) {
        for key in params.keys().filter(|key| *key != "id") {
            if collection.field(key.trim_matches(['+', '-'])).is_none() {
                let what = format!("the param `{key}` is not a field of `{}`", collection.name);
                problems.add(node.place(), what);
            }
        }
    }
    Some(Executor::Crud { collection: name.to_owned(), action, filter })
}

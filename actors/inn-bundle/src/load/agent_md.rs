//! `AGENT.md` (AIP-42, `agent/v1`): a closed set of keys.

use super::refs::{self, Entry};
use crate::node::Node;
use crate::problem::Problems;

const KEYS: [&str; 25] = [
    "schema",
    "id",
    "description",
    "model",
    "version",
    "extends",
    "identity",
    "persona",
    "runner",
    "governance",
    "policy",
    "tools",
    "skills",
    "workflows",
    "routines",
    "delegates_to",
    "actions",
    "memory",
    "traits",
    "autonomy",
    "boundaries",
    "on",
    "publish",
    "tags",
    "metadata",
];

/// Checks one agent and gives the keys of its `workflows`.
pub(super) fn check(agent: &Entry, problems: &mut Problems) -> Vec<String> {
    let node = Node::root(&agent.path, &agent.data);
    node.closed(&KEYS, problems);
    if let Some(schema) = node.need("schema", problems) {
        schema.one_of(&["agent/v1"], problems);
    }
    if let Some(id) = node.get("id")
        && !id.value.as_str().is_some_and(refs::is_agent_id)
    {
        id.problem("must be 2 to 80 of a-z 0-9 . _ -, with at most one `@owner/` in front and no `..`", problems);
    }
    if let Some(description) = node.need("description", problems) {
        description.sized(1, 2000, problems);
    }
    if let Some(model) = node.need("model", problems) {
        check_model(&model, problems);
    }
    if let Some(version) = node.get("version") {
        refs::semver(&version, problems);
    }
    if let Some(identity) = node.get("identity")
        && !identity.value.is_object()
    {
        identity.filled(problems);
    }
    for key in ["extends", "persona", "runner", "governance", "policy"] {
        if let Some(reference) = node.get(key) {
            refs::key(&reference, problems);
        }
    }
    for key in ["tools", "skills", "routines", "delegates_to"] {
        if let Some(list) = node.get(key) {
            refs::keys(&list, problems);
        }
    }
    if let Some(actions) = node.get("actions")
        && actions.closed(&["granted"], problems)
        && let Some(granted) = actions.get("granted")
    {
        granted.items(problems).iter().for_each(|item| action(item, problems));
    }
    if let Some(memory) = node.get("memory") {
        check_memory(&memory, problems);
    }
    if let Some(traits) = node.get("traits") {
        traits.members(problems).iter().for_each(|(_, value)| value.number(0.0, 10.0, problems));
    }
    if let Some(autonomy) = node.get("autonomy") {
        autonomy.whole(0, 10, problems);
    }
    for key in ["boundaries", "tags"] {
        if let Some(list) = node.get(key) {
            list.texts(problems);
        }
    }
    for (_, handler) in node.get("on").map(|on| on.members(problems)).unwrap_or_default() {
        if handler.value.is_array() {
            handler.items(problems).iter().for_each(|item| action(item, problems));
        } else {
            action(&handler, problems);
        }
    }
    if let Some(publish) = node.get("publish") {
        publish.closed(&["visibility", "registry"], problems);
    }
    if let Some(metadata) = node.get("metadata") {
        metadata.members(problems);
    }
    node.get("workflows").map(|list| refs::keys(&list, problems)).unwrap_or_default()
}

fn check_model(model: &Node<'_>, problems: &mut Problems) {
    if model.value.is_object() {
        for (key, max) in [("temperature", 2.0), ("top_p", 1.0)] {
            if let Some(number) = model.get(key) {
                number.number(0.0, max, problems);
            }
        }
        if let Some(tokens) = model.get("max_tokens") {
            tokens.whole(1, u64::from(u32::MAX), problems);
        }
    } else {
        model.filled(problems);
    }
}

fn check_memory(memory: &Node<'_>, problems: &mut Problems) {
    if !memory.closed(&["scope", "retention_turns", "semantic"], problems) {
        return;
    }
    if let Some(scope) = memory.get("scope") {
        scope.one_of(&["per-conversation", "per-thread", "per-workspace", "none"], problems);
    }
    if let Some(turns) = memory.get("retention_turns") {
        turns.whole(0, u64::from(u32::MAX), problems);
    }
    if let Some(semantic) = memory.get("semantic")
        && semantic.closed(&["enabled", "embedder", "top_k"], problems)
    {
        if let Some(enabled) = semantic.get("enabled") {
            enabled.boolean(problems);
        }
        if let Some(top_k) = semantic.get("top_k") {
            top_k.whole(1, u64::from(u32::MAX), problems);
        }
    }
}

fn action(node: &Node<'_>, problems: &mut Problems) {
    if !node.value.is_object() {
        node.filled(problems);
    }
}

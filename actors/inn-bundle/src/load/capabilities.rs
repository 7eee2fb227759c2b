//! Kinds of work an app may ask of agents.

use inn_protocol::app::Capability;
use serde_json::Value;

use super::operation::is_verb_name;
use super::schema;
use crate::node::Node;
use crate::problem::Problems;

const MAX_CAPABILITIES: usize = 50;
const DEFAULT_LEASE_SECONDS: u64 = 60;
const DEFAULT_ATTEMPTS: u64 = 3;
const DEFAULT_HARD_SECONDS: u64 = 86_400;

pub(super) fn load(list: &Node<'_>, found: &mut Vec<Capability>, problems: &mut Problems) {
    for node in list.items(problems) {
        let Some(capability) = one(&node, problems) else { continue };
        if found.iter().any(|other| other.name == capability.name) {
            node.problem(format!("the capability `{}` is declared twice", capability.name), problems);
        } else if found.len() >= MAX_CAPABILITIES {
            list.problem(format!("an app may have {MAX_CAPABILITIES} capabilities"), problems);
            return;
        } else {
            found.push(capability);
        }
    }
}

fn one(node: &Node<'_>, problems: &mut Problems) -> Option<Capability> {
    if !node.closed(&["name", "sentence", "input", "result", "leaseSeconds", "attempts", "hardSeconds"], problems) {
        return None;
    }
    let name = node.need("name", problems).and_then(|name| {
        let text = name.text(problems)?;
        if !is_verb_name(text) {
            name.problem("must match ^[a-z][a-z0-9._-]{0,63}$", problems);
        }
        Some(text)
    });
    let sentence = node.need("sentence", problems).and_then(|sentence| {
        let text = sentence.sized(1, 200, problems)?;
        if text.trim().is_empty() || text.contains(char::is_control) {
            sentence.problem("must be one readable line: people read it before they consent", problems);
        }
        Some(text)
    });
    let mut schema = |key| {
        let node = node.need(key, problems)?;
        schema::check(&node, problems);
        Some(node.value.clone())
    };
    let (input, result): (Option<Value>, Option<Value>) = (schema("input"), schema("result"));
    let lease = node.get("leaseSeconds").map_or(Some(DEFAULT_LEASE_SECONDS), |n| n.whole(5, 3600, problems));
    let attempts = node.get("attempts").map_or(Some(DEFAULT_ATTEMPTS), |n| n.whole(1, 20, problems));
    // Up to four weeks: work that needs a person may take that long.
    let hard = node.get("hardSeconds").map_or(Some(DEFAULT_HARD_SECONDS), |n| n.whole(5, 2_419_200, problems));
    Some(Capability {
        name: name?.to_owned(),
        sentence: sentence?.to_owned(),
        input: input?,
        result: result?,
        lease_seconds: u32::try_from(lease?).ok()?,
        attempts: u32::try_from(attempts?).ok()?,
        hard_seconds: u32::try_from(hard?).ok()?,
    })
}

//! The attachment invariant (AIP-53): agents and workflows of a bundle refer to each other, in both directions.

use std::collections::{BTreeMap, BTreeSet};

use super::refs::Entry;
use crate::identity::APP_MD;
use crate::problem::{Problems, shorten};

/// `attached` holds the keys of each agent's `workflows`, in the order of `agents`.
pub(super) fn check(agents: &[Entry], workflows: &[Entry], attached: &[Vec<String>], problems: &mut Problems) {
    let known: BTreeSet<&str> = workflows.iter().map(|workflow| workflow.id.as_str()).collect();
    let mut used = BTreeSet::new();
    for (agent, keys) in agents.iter().zip(attached) {
        for key in keys {
            if !known.contains(key.as_str()) {
                let bundled = if known.is_empty() {
                    "none".to_owned()
                } else {
                    known.iter().copied().collect::<Vec<_>>().join(", ")
                };
                let what = format!("refers to the workflow `{}`; bundled are: {bundled}", shorten(key));
                problems.add(format!("{}#workflows", agent.path), what);
            }
            used.insert(key.as_str());
        }
    }
    for workflow in workflows.iter().filter(|workflow| !used.contains(workflow.id.as_str())) {
        problems.add(&workflow.path, format!("no agent lists the workflow `{}`", workflow.id));
    }
    // Two owners' agents of one slug would share a folder, and one would overwrite the other.
    let mut slugs: BTreeMap<&str, &str> = BTreeMap::new();
    for agent in agents {
        let slug = agent.id.rsplit('/').next().unwrap_or(&agent.id);
        if let Some(other) = slugs.insert(slug, &agent.id) {
            problems.add(
                format!("{APP_MD}#agents"),
                format!("`{other}` and `{}` would share the folder `{slug}`", agent.id),
            );
        }
    }
}

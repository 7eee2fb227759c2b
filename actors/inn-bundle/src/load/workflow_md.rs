//! `WORKFLOW.md` (AIP-15): closed at the top, open in its steps, except that every kind of step must be known.

use std::collections::BTreeSet;

use super::refs::{self, Entry};
use crate::node::Node;
use crate::problem::{Problems, shorten};

const KEYS: [&str; 25] = [
    "schema",
    "name",
    "id",
    "description",
    "version",
    "inputs",
    "outputs",
    "steps",
    "result",
    "start",
    "suspendable",
    "triggers",
    "routines",
    "requires",
    "approval",
    "risk_level",
    "timeout_ms",
    "max_steps",
    "retry",
    "cost_class",
    "tags",
    "metadata",
    "inputsFiles",
    "outputsFiles",
    "runtime",
];
/// A manifest with one of these would have code run or imported at load. Nothing of a bundle is.
const CODE_KEYS: [&str; 6] = ["entry", "code", "run", "runner", "secrets", "network"];
const KINDS: [&str; 9] = ["tool", "branch", "parallel", "suspend", "approval", "map", "loop", "subworkflow", "agent"];
const MAX_STEPS: usize = 500;
const MAX_STEP_DEPTH: usize = 16;

pub(super) fn check(workflow: &Entry, agents: &[&str], workflows: &[&str], problems: &mut Problems) {
    let node = Node::root(&workflow.path, &workflow.data);
    for (key, member) in node.members(problems) {
        if CODE_KEYS.contains(&key) {
            problems
                .add(member.place(), format!("`{key}` is not allowed: nothing in a bundle is imported or run at load"));
        } else if !KEYS.contains(&key) {
            problems.add(member.place(), "unknown key of a workflow");
        }
    }
    if let Some(name) = node.need("name", problems) {
        name.sized(1, 80, problems);
    }
    if let Some(id) = node.get("id")
        && !id.value.as_str().is_some_and(|text| refs::is_kebab(text, 2))
    {
        id.problem("must be 2 to 64 of a-z 0-9 -, a letter first and no `-` at the end", problems);
    }
    if let Some(description) = node.need("description", problems) {
        description.sized(1, 2000, problems);
    }
    if let Some(version) = node.need("version", problems) {
        refs::semver(&version, problems);
    }
    for key in ["inputs", "outputs"] {
        if let Some(schema) = node.need(key, problems) {
            super::schema::check(&schema, problems);
        }
    }
    if let Some(triggers) = node.get("triggers") {
        triggers.items(problems).iter().for_each(|trigger| check_trigger(trigger, problems));
    }
    if let Some(routines) = node.get("routines") {
        refs::keys(&routines, problems);
    }
    check_settings(&node, problems);

    let mut walk = Steps { agents, workflows, ids: BTreeSet::new(), targets: Vec::new(), count: 0 };
    if let Some(steps) = node.need("steps", problems) {
        walk.list(&steps, 0, problems);
    }
    for (place, target) in &walk.targets {
        if target != "$end" && !walk.ids.contains(target) {
            problems.add(place, format!("there is no step `{}`", shorten(target)));
        }
    }
    if let Some(start) = node.get("start")
        && !start.text(problems).is_some_and(|text| walk.ids.contains(text))
    {
        start.problem("must be the id of a step", problems);
    }
}

/// A host must honour `manual` and refuse the kinds it does not serve, rather than never fire them.
fn check_trigger(node: &Node<'_>, problems: &mut Problems) {
    let Some(kind) = node.get("kind").or_else(|| node.get("type")) else {
        node.problem("must have a `kind`", problems);
        return;
    };
    if let Some(kind) = kind.one_of(&["schedule", "webhook", "event", "manual"], problems)
        && kind != "manual"
    {
        node.problem(format!("the trigger `{kind}` is not supported yet and would never fire; use `manual`"), problems);
    }
}

fn check_settings(node: &Node<'_>, problems: &mut Problems) {
    let most = u64::from(u32::MAX);
    for (key, min, max) in [("risk_level", 0, 3), ("timeout_ms", 1, most), ("max_steps", 1, most)] {
        if let Some(number) = node.get(key) {
            number.whole(min, max, problems);
        }
    }
    if let Some(flag) = node.get("suspendable") {
        flag.boolean(problems);
    }
    if let Some(approval) = node.get("approval")
        && let Some(text) = approval.text(problems)
        && !["auto", "always", "on-mutate", "per-step"].contains(&text)
        && !text.starts_with("policy:")
    {
        approval.problem("must be auto, always, on-mutate, per-step or policy:<ref>", problems);
    }
    if let Some(class) = node.get("cost_class") {
        class.one_of(&["trivial", "metered", "expensive"], problems);
    }
    if let Some(retry) = node.get("retry") {
        check_retry(&retry, problems);
    }
    if let Some(requires) = node.get("requires")
        && requires.closed(&["network", "fs.read", "fs.write", "env", "secrets", "tools"], problems)
    {
        requires.members(problems).iter().for_each(|(_, list)| {
            list.texts(problems);
        });
    }
    for key in ["inputsFiles", "outputsFiles"] {
        for (_, file) in node.get(key).map(|files| files.members(problems)).unwrap_or_default() {
            file.closed(&["path", "mode", "contentType", "required"], problems);
            if let Some(path) = file.need("path", problems) {
                refs::confined(&path, problems);
            }
        }
    }
    if let Some(tags) = node.get("tags") {
        tags.texts(problems);
    }
}

fn check_retry(node: &Node<'_>, problems: &mut Problems) {
    node.closed(&["max_attempts", "backoff", "initial_ms"], problems);
    if let Some(attempts) = node.get("max_attempts") {
        attempts.whole(1, 20, problems);
    }
    if let Some(backoff) = node.get("backoff") {
        backoff.one_of(&["fixed", "exponential"], problems);
    }
    if let Some(initial) = node.get("initial_ms") {
        initial.whole(0, u64::from(u32::MAX), problems);
    }
}

struct Steps<'a> {
    agents: &'a [&'a str],
    workflows: &'a [&'a str],
    ids: BTreeSet<String>,
    /// Where a step is named, and its id; looked up when all steps are known.
    targets: Vec<(String, String)>,
    count: usize,
}

impl Steps<'_> {
    fn list(&mut self, list: &Node<'_>, depth: usize, problems: &mut Problems) {
        let items = list.items(problems);
        if items.is_empty() {
            list.problem("must have at least one step", problems);
        }
        if depth > MAX_STEP_DEPTH {
            problems.add(list.place(), format!("steps are nested deeper than {MAX_STEP_DEPTH} levels"));
            return;
        }
        for item in &items {
            self.count += 1;
            if self.count > MAX_STEPS {
                problems.add(list.place(), format!("a workflow may have {MAX_STEPS} steps"));
                return;
            }
            self.step(item, depth, problems);
        }
    }

    fn step(&mut self, node: &Node<'_>, depth: usize, problems: &mut Problems) {
        if let Some(id) = node.need("id", problems)
            && let Some(text) = id.text(problems)
        {
            if !refs::is_kebab(text, 1) {
                id.problem("must be 1 to 64 of a-z 0-9 -, a letter first and no `-` at the end", problems);
            }
            if !self.ids.insert(text.to_owned()) {
                id.problem("another step of the workflow has this id", problems);
            }
        }
        for (key, max) in [("name", 80), ("description", 1000)] {
            if let Some(text) = node.get(key) {
                text.sized(0, max, problems);
            }
        }
        if let Some(retry) = node.get("retry") {
            check_retry(&retry, problems);
        }
        for key in ["next", "compensation"] {
            self.target(node, key, problems);
        }
        let Some(kind) = node.need("kind", problems) else { return };
        if kind.value == "gate" {
            kind.problem("a gate runs a command; this host runs none", problems);
            return;
        }
        let Some(kind) = kind.one_of(&KINDS, problems) else { return };
        self.own_fields(kind, node, depth, problems);
    }

    fn own_fields(&mut self, kind: &str, node: &Node<'_>, depth: usize, problems: &mut Problems) {
        match kind {
            "tool" => {
                let (tool, action) = (node.get("tool"), node.get("action"));
                if tool.is_some() == action.is_some() {
                    node.problem("a tool step has exactly one of `tool` and `action`", problems);
                }
                if let Some(tool) = tool {
                    tool.filled(problems);
                }
            }
            "branch" => {
                for arm in self.need_items(node, "branches", 1, problems) {
                    arm.need("when", problems);
                    arm.need("next", problems);
                    self.target(&arm, "next", problems);
                }
                self.target(node, "default", problems);
            }
            "parallel" => {
                for branch in self.need_items(node, "branches", 2, problems) {
                    if let Some(id) = branch.need("id", problems) {
                        id.filled(problems);
                    }
                    self.nested(&branch, depth, problems);
                }
            }
            "map" => {
                node.need("over", problems);
                self.nested(node, depth, problems);
                if let Some(on_error) = node.get("onError") {
                    on_error.one_of(&["throw", "collect"], problems);
                }
            }
            "loop" => {
                node.need("while", problems);
                if let Some(most) = node.need("max_iterations", problems) {
                    most.whole(1, 1000, problems);
                }
                self.nested(node, depth, problems);
            }
            "subworkflow" => {
                if let Some(named) = node.need("workflow", problems)
                    && let Some(id) = named.text(problems)
                    && !self.workflows.contains(&id)
                {
                    named.problem(format!("no such workflow; bundled are: {}", self.workflows.join(", ")), problems);
                }
            }
            "suspend" => {
                if let Some(resume) = node.need("resume", problems) {
                    self.need_items(&resume, "on", 1, problems);
                }
            }
            "approval" => {
                if let Some(prompt) = node.need("prompt", problems) {
                    prompt.filled(problems);
                }
                self.need_items(node, "approvers", 1, problems);
                for key in ["on_approve", "on_reject"] {
                    if let Some(branch) = node.get(key) {
                        self.target(&branch, "next", problems);
                    }
                }
            }
            _ => self.agent(node, problems),
        }
    }

    /// `kind: agent` is AIP-53's own. An agent it names must be one of the bundle's.
    fn agent(&mut self, node: &Node<'_>, problems: &mut Problems) {
        if let Some(prompt) = node.need("prompt", problems) {
            prompt.filled(problems);
        }
        if let Some(session) = node.get("sessionRef") {
            self.target(node, "sessionRef", problems);
            session.text(problems);
        } else if let Some(reference) = node.get("agent").and_then(|agent| agent.need("ref", problems)) {
            let named = reference.text(problems).unwrap_or_default();
            let is_it = |id: &&str| *id == named || id.rsplit('/').next() == Some(named);
            if !self.agents.iter().any(is_it) {
                reference.problem(format!("no such agent; bundled are: {}", self.agents.join(", ")), problems);
            }
        } else if node.get("adapter").is_none() && node.get("agent").is_none() {
            node.problem("an agent step names an agent (`agent.ref`), an `adapter` or a `sessionRef`", problems);
        }
        if let Some(schema) = node.get("outputSchema") {
            super::schema::check(&schema, problems);
        }
    }

    fn nested(&mut self, node: &Node<'_>, depth: usize, problems: &mut Problems) {
        if let Some(steps) = node.need("steps", problems) {
            self.list(&steps, depth + 1, problems);
        }
    }

    fn target(&mut self, node: &Node<'_>, key: &str, problems: &mut Problems) {
        if let Some(target) = node.get(key)
            && let Some(text) = target.text(problems)
        {
            self.targets.push((target.place(), text.to_owned()));
        }
    }

    #[allow(clippy::unused_self)]
    fn need_items<'n>(&self, node: &Node<'n>, key: &str, min: usize, problems: &mut Problems) -> Vec<Node<'n>> {
        let Some(list) = node.need(key, problems) else { return Vec::new() };
        let items = list.items(problems);
        if items.len() < min {
            list.problem(format!("must have at least {min}"), problems);
        }
        items
    }
}

//! `.agentproto/APP.md` (AIP-53, `app/v1`). Unknown keys are kept and passed over; known ones must be right.

use inn_protocol::app::{Aip53Agent, Aip53App, Aip53Workflow};
use serde_json::Value;

use super::refs::{self, Entry};
use super::{agent_md, attachment, tool_md, ui_block, workflow_md, workspace_md};
use crate::bundle::Bundle;
use crate::identity::APP_MD;
use crate::node::Node;
use crate::problem::Problems;

pub(super) struct Aip {
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    pub(super) description: Option<String>,
    /// Defaults to `0.1.0` as soon as there is an id.
    pub(super) version: Option<String>,
    /// Folder and entry document of the UI.
    pub(super) ui: Option<(String, String)>,
    pub(super) app: Aip53App,
}

pub(super) fn load(bundle: &Bundle, data: &Value, problems: &mut Problems) -> Aip {
    let root = Node::root(APP_MD, data);
    if let Some(schema) = root.need("schema", problems) {
        schema.one_of(&["app/v1"], problems);
    }
    let id = root.get("id").and_then(|id| {
        let text = id.filled(problems)?;
        if text.len() > 128 || text.contains(char::is_control) {
            id.problem("must have at most 128 characters, none of them control characters", problems);
        }
        Some(text.to_owned())
    });
    let text = |key: &str, max: usize, problems: &mut Problems| {
        root.get(key).and_then(|node| node.sized(0, max, problems)).map(str::to_owned)
    };
    let name = text("name", 120, problems).filter(|name| !name.trim().is_empty());
    let description = text("description", 4000, problems);
    let version = root.get("version").and_then(|version| {
        version.sized(1, 64, problems)?;
        version.filled(problems).map(str::to_owned)
    });

    let agents = root.need("agents", problems).map(|list| refs::entries(bundle, &list, problems)).unwrap_or_default();
    let workflows =
        root.need("workflows", problems).map(|list| refs::entries(bundle, &list, problems)).unwrap_or_default();
    let ui = root.get("ui").and_then(|node| ui_block::load(bundle, &node, problems));
    if root.get("ui").is_none() && root.value.get("agents").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        problems.add(root.place(), "an app has at least one agent or a `ui` block");
    }

    let agent_ids: Vec<&str> = agents.iter().map(|agent| agent.id.as_str()).collect();
    let workflow_ids: Vec<&str> = workflows.iter().map(|workflow| workflow.id.as_str()).collect();
    let attached: Vec<_> = agents.iter().map(|agent| agent_md::check(agent, problems)).collect();
    for workflow in &workflows {
        workflow_md::check(workflow, &agent_ids, &workflow_ids, problems);
    }
    attachment::check(&agents, &workflows, &attached, problems);
    manifest_rules(bundle, &root, &agent_ids, &workflow_ids, problems);
    tool_md::check_all(bundle, problems);

    let ui_tools = ui.as_ref().map(|ui| ui.tools.clone()).unwrap_or_default();
    let version = version.or_else(|| id.as_ref().map(|_| "0.1.0".to_owned()));
    Aip {
        id,
        name,
        description,
        version,
        ui: ui.map(|ui| (ui.root, ui.entry)),
        app: Aip53App {
            frontmatter: data.clone(),
            agents: agents.into_iter().map(agent).collect(),
            workflows: workflows
                .into_iter()
                .map(|entry| Aip53Workflow { id: entry.id, frontmatter: entry.data })
                .collect(),
            ui_tools,
        },
    }
}

fn agent(entry: Entry) -> Aip53Agent {
    let body = (!entry.body.is_empty()).then_some(entry.body);
    Aip53Agent { id: entry.id, frontmatter: entry.data, body }
}

/// The keys that stand for themselves.
fn manifest_rules(bundle: &Bundle, root: &Node<'_>, agents: &[&str], workflows: &[&str], problems: &mut Problems) {
    if let Some(workspace) = root.get("workspace")
        && let Some(id) = workspace.text(problems).filter(|id| !id.is_empty())
    {
        workspace_md::check(bundle, id, problems);
    }
    if let Some(requires) = root.get("requires") {
        requirements(&requires, problems);
    }
    if let Some(placement) = root.get("placement") {
        placement.one_of(&["local", "box", "any", "split"], problems);
    }
    if let Some(exposes) = root.get("exposes") {
        for (key, known) in [("agents", agents), ("workflows", workflows)] {
            let Some(list) = exposes.get(key) else { continue };
            for id in list.texts(problems) {
                if !known.contains(&id) {
                    problems.add(list.place(), format!("`{id}` is not one of this app's {key}"));
                }
            }
        }
    }
    if let Some(tasks) = root.get("accepts").and_then(|accepts| accepts.get("tasks")) {
        tasks.boolean(problems);
    }
    if let Some(path) = root.get("artifact").and_then(|artifact| artifact.need("path", problems)) {
        exists(bundle, &path, "", problems);
    }
    if let Some(path) = root.get("skill").and_then(|skill| skill.need("path", problems)) {
        exists(bundle, &path, "/SKILL.md", problems);
    }
    for item in root.get("artifacts").map(|list| list.items(problems)).unwrap_or_default() {
        if let Some(kind) = item.need("type", problems) {
            kind.text(problems);
        }
    }
    if let Some(launch) = root.get("dev").and_then(|dev| dev.need("launch", problems))
        && launch.items(problems).is_empty()
    {
        launch.problem("must not be empty", problems);
    }
    if let Some(dir) = root.get("data").and_then(|data| data.get("dir")) {
        refs::confined(&dir, problems);
    }
    if let Some(category) = root.get("category") {
        category.filled(problems);
    }
    if let Some(roots) = root.get("externalReadRoots") {
        roots.texts(problems);
    }
    if let Some(enforce) = root.get("boundaries").and_then(|boundaries| boundaries.get("enforce")) {
        enforce.one_of(&["required", "best-effort"], problems);
    }
    if let Some(package) = root.get("package") {
        for key in ["include", "exclude"] {
            if let Some(list) = package.get(key) {
                list.texts(problems);
            }
        }
        if let Some(strip) = package.get("stripBuild") {
            strip.boolean(problems);
        }
    }
}

/// A file, or a folder with something in it. `below` is a file the folder must hold.
fn exists(bundle: &Bundle, node: &Node<'_>, below: &str, problems: &mut Problems) {
    let Some(path) = refs::confined(node, problems) else { return };
    let wanted = format!("{path}{below}");
    let folder = format!("{path}/");
    let found = bundle.files.contains_key(&wanted)
        || below.is_empty() && bundle.files.keys().any(|member| member.starts_with(&folder));
    if !found {
        problems.add(node.place(), format!("names `{wanted}`, which is not in the bundle"));
    }
}

/// `requires`: the old list of ids, or the object form.
fn requirements(node: &Node<'_>, problems: &mut Problems) {
    if node.value.is_array() {
        node.texts(problems);
        return;
    }
    if !node.value.is_object() {
        node.problem("must be an array of strings, or an object", problems);
        return;
    }
    for key in ["browser", "fs", "gpu"] {
        if let Some(flag) = node.get(key) {
            flag.boolean(problems);
        }
    }
    if let Some(secrets) = node.get("secrets") {
        secrets.texts(problems);
    }
    for app in node.get("apps").map(|apps| apps.items(problems)).unwrap_or_default() {
        if app.value.is_string() {
            app.filled(problems);
        } else if app.closed(&["id", "version", "workflows"], problems) {
            if let Some(id) = app.need("id", problems) {
                id.filled(problems);
            }
            if let Some(version) = app.get("version")
                && !version.text(problems).is_some_and(is_range)
            {
                version.problem("must be 1.2.3, ^1[.2[.3]] or ~1[.2[.3]]", problems);
            }
            if let Some(workflows) = app.get("workflows") {
                workflows.texts(problems);
            }
        }
    }
}

/// The ranges AIP-53 hosts understand: exact, caret, tilde.
fn is_range(text: &str) -> bool {
    let (prefix, numbers) = match text.strip_prefix(['^', '~']) {
        Some(numbers) => (true, numbers),
        None => (false, text),
    };
    let parts: Vec<_> = numbers.split('.').collect();
    let is_number = |part: &&str| !part.is_empty() && part.len() <= 9 && part.bytes().all(|byte| byte.is_ascii_digit());
    parts.iter().all(is_number) && if prefix { (1..=3).contains(&parts.len()) } else { parts.len() == 3 }
}

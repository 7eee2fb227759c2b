//! Tools and drivers bundled under `.agentproto/` (AIP-14, AIP-30). None is run here; a broken one fails the whole load.

use std::collections::BTreeSet;

use super::{document, refs};
use crate::bundle::Bundle;
use crate::node::Node;
use crate::path;
use crate::problem::Problems;

const TOOLS: &str = ".agentproto/tools/";
const DRIVERS: &str = ".agentproto/drivers/";
const TOOL_KEYS: [&str; 20] = [
    "schema",
    "name",
    "id",
    "description",
    "version",
    "inputs",
    "outputs",
    "idempotent",
    "mutates",
    "requires",
    "approval",
    "risk_level",
    "cost_class",
    "timeout_ms",
    "retry",
    "default_implementation",
    "implements",
    "driver_constraints",
    "tags",
    "metadata",
];
const EXAMPLES: &str = "examples";

pub(super) fn check_all(bundle: &Bundle, problems: &mut Problems) {
    let mut ids = BTreeSet::new();
    for folder in folders(bundle, TOOLS) {
        let Some(member) = document_of(bundle, &folder, "TOOL.md", problems) else { continue };
        let Some((data, _)) = document(bundle, &member, problems) else { continue };
        tool(&Node::root(&member, &data), &mut ids, problems);
    }
    let mut ids = BTreeSet::new();
    for folder in folders(bundle, DRIVERS) {
        let Some(member) = document_of(bundle, &folder, "DRIVER.md", problems) else { continue };
        let Some((data, _)) = document(bundle, &member, problems) else { continue };
        driver(&Node::root(&member, &data), &mut ids, problems);
    }
}

fn folders(bundle: &Bundle, prefix: &str) -> BTreeSet<String> {
    let below = bundle.files.keys().filter_map(|path| path.strip_prefix(prefix));
    below.filter_map(|rest| rest.split_once('/')).map(|(name, _)| format!("{prefix}{name}")).collect()
}

fn document_of(bundle: &Bundle, folder: &str, file: &str, problems: &mut Problems) -> Option<String> {
    let member = format!("{folder}/{file}");
    if bundle.files.contains_key(&member) {
        return Some(member);
    }
    problems.add(&member, format!("is missing: the folder `{folder}` is declared by its {file}"));
    None
}

fn common(node: &Node<'_>, ids: &mut BTreeSet<String>, problems: &mut Problems) {
    if let Some(name) = node.need("name", problems) {
        name.sized(1, 80, problems);
    }
    if let Some(description) = node.need("description", problems) {
        description.sized(1, 2000, problems);
    }
    if let Some(version) = node.need("version", problems) {
        refs::semver(&version, problems);
    }
    if let Some(id) = node.need("id", problems)
        && let Some(text) = id.text(problems)
    {
        let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let inner = text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b));
        if !(2..=80).contains(&text.len()) || !text.starts_with(edge) || !text.ends_with(edge) || !inner {
            id.problem("must be 2 to 80 of a-z 0-9 . _ -, with a letter or digit at both ends", problems);
        }
        if !ids.insert(text.to_owned()) {
            id.problem("another one of the bundle has this id", problems);
        }
    }
}

fn tool(node: &Node<'_>, ids: &mut BTreeSet<String>, problems: &mut Problems) {
    for (key, member) in node.members(problems) {
        if !TOOL_KEYS.contains(&key) && key != EXAMPLES {
            problems.add(member.place(), "unknown key of a tool");
        }
    }
    common(node, ids, problems);
    for key in ["inputs", "outputs"] {
        if let Some(schema) = node.need(key, problems) {
            super::schema::check(&schema, problems);
        }
    }
    let mutates = node.get("mutates").map(|list| list.texts(problems)).unwrap_or_default();
    let approval = node.get("approval").and_then(|approval| {
        let text = approval.text(problems)?;
        if !["auto", "always", "on-mutate"].contains(&text) && !text.starts_with("policy:") {
            approval.problem("must be auto, always, on-mutate or policy:<ref>", problems);
        }
        Some(text)
    });
    if approval.unwrap_or("auto") == "auto" && !mutates.is_empty() {
        problems.add(node.place(), "a tool that mutates something cannot have `approval: auto` (the default)");
    }
    if let Some(level) = node.get("risk_level") {
        level.whole(0, 3, problems);
    }
    if let Some(timeout) = node.get("timeout_ms") {
        timeout.whole(1, u64::from(u32::MAX), problems);
    }
}

fn driver(node: &Node<'_>, ids: &mut BTreeSet<String>, problems: &mut Problems) {
    common(node, ids, problems);
    let kind =
        node.need("kind", problems).and_then(|kind| kind.one_of(&["cli", "http", "mcp", "sdk", "builtin"], problems));
    if let Some(list) = node.need("implements", problems) {
        let items = list.items(problems);
        if items.is_empty() {
            list.problem("must name at least one tool", problems);
        }
        for item in &items {
            if let Some(tool) = item.need("tool", problems) {
                tool.filled(problems);
            }
        }
    }
    if kind == Some("cli") {
        let cli = node.get("metadata").and_then(|metadata| metadata.get("cli"));
        match cli.as_ref().and_then(|cli| cli.get("bin")) {
            Some(bin) => {
                bin.filled(problems);
            }
            None => problems.add(node.place(), "a cli driver needs `metadata.cli.bin`"),
        }
        if let Some(folder) = cli.and_then(|cli| cli.get("cwd"))
            && let Some(text) = folder.text(problems)
            && !["", ".", "./"].contains(&text)
            && let Err(why) = path::confine(text)
        {
            folder.problem(format!("leaves the app's folder: {why}"), problems);
        }
    }
}

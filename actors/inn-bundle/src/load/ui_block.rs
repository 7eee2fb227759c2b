//! The `ui` block of APP.md.

use super::refs;
use crate::bundle::Bundle;
use crate::node::Node;
use crate::problem::Problems;

pub(super) struct Ui {
    pub(super) root: String,
    pub(super) entry: String,
    /// The allowlist. Without one the UI may call nothing.
    pub(super) tools: Vec<String>,
}

/// `build` is a shell line: checked for its shape, never run.
pub(super) fn load(bundle: &Bundle, node: &Node<'_>, problems: &mut Problems) -> Option<Ui> {
    if !node.value.is_object() {
        node.problem("must be an object with a `path`", problems);
        return None;
    }
    for key in ["title", "description"] {
        if let Some(text) = node.get(key) {
            text.text(problems);
        }
    }
    let tools: Vec<String> =
        node.get("tools").map(|list| list.texts(problems)).unwrap_or_default().into_iter().map(str::to_owned).collect();
    for key in ["connectDomains", "resourceDomains", "frameDomains"] {
        if let Some(list) = node.get("csp").and_then(|csp| csp.get(key)) {
            list.texts(problems);
        }
    }
    if let Some(build) = node.get("build") {
        if let Some(command) = build.need("command", problems) {
            command.filled(problems);
        }
        if let Some(folder) = build.get("cwd") {
            folder.filled(problems);
        }
        if let Some(sources) = build.get("sources") {
            sources.texts(problems);
        }
    }
    if let Some(renders) = node.get("renders") {
        let names = renders.texts(problems);
        for (index, name) in names.iter().enumerate() {
            if !tools.iter().any(|tool| tool == name) {
                problems.add(renders.place(), format!("`{name}` is not in `ui.tools`"));
            }
            if names.iter().take(index).any(|earlier| earlier == name) {
                problems.add(renders.place(), format!("`{name}` is listed twice"));
            }
        }
    }
    if let Some(extensions) = node.get("extensions")
        && extensions.closed(&["openai"], problems)
        && let Some(openai) = extensions.get("openai")
    {
        check_openai(&openai, &tools, problems);
    }
    let (root, entry) = place(bundle, &node.need("path", problems)?, problems)?;
    Some(Ui { root, entry, tools })
}

/// The folder that is served and the document at its `/`. Everything in that folder becomes public, so it may not be
/// one that holds the app's own source.
fn place(bundle: &Bundle, node: &Node<'_>, problems: &mut Problems) -> Option<(String, String)> {
    let path = refs::member(bundle, node, problems)?;
    if bundle.text(&path).is_none_or(|html| html.trim().is_empty()) {
        problems.add(&path, "the UI's document must be text and not blank");
        return None;
    }
    let (root, entry) = path.rsplit_once('/').unwrap_or(("", &path));
    let below = format!("{root}/");
    let holds_source = root.is_empty() || bundle.files.keys().any(|m| m.starts_with(&below) && is_source(m));
    if holds_source {
        let what = "the UI needs a folder of its own (such as .agentproto/ui/): everything beside it is served";
        node.problem(what, problems);
        return None;
    }
    Some((root.to_owned(), entry.to_owned()))
}

fn is_source(member: &str) -> bool {
    const AGENTPROTO: &str = ".agentproto/";
    let private = ["app/manifest.json", "app/operations.json", "app/pb/pb_schema.json", "WORKSPACE.md"];
    let folders = ["app/pb/pb_hooks/", "app/pb/pb_migrations/"];
    let agentproto = member
        .strip_prefix(AGENTPROTO)
        .is_some_and(|rest| !["ui/", "artifact/"].iter().any(|public| rest.starts_with(public)));
    agentproto || private.contains(&member) || folders.iter().any(|folder| member.starts_with(folder))
}

/// `ui.extensions.openai`, closed at every level.
fn check_openai(node: &Node<'_>, tools: &[String], problems: &mut Problems) {
    if !node.closed(&["entrypoints", "icons", "display", "mentions"], problems) {
        return;
    }
    if let Some(list) = node.get("entrypoints") {
        let items = list.items(problems);
        if !(1..=3).contains(&items.len()) {
            list.problem("must have 1 to 3 entries", problems);
        }
        let mut kinds = Vec::new();
        for item in &items {
            item.closed(&["type", "suffixes"], problems);
            let kind =
                item.need("type", problems).and_then(|kind| kind.one_of(&["global", "thread", "file"], problems));
            if kind.is_some_and(|kind| kinds.contains(&kind)) {
                item.problem("the same type is listed twice", problems);
            }
            kinds.extend(kind);
            if kind == Some("file")
                && let Some(list) = item.need("suffixes", problems)
            {
                suffixes(&list, problems);
            }
        }
    }
    if let Some(list) = node.get("icons") {
        let items = list.items(problems);
        if items.is_empty() {
            list.problem("must have at least one icon", problems);
        }
        for item in &items {
            item.closed(&["src", "mimeType", "sizes", "theme"], problems);
            if let Some(source) = item.need("src", problems)
                && !source
                    .text(problems)
                    .is_some_and(|text| text.starts_with("https://") || text.starts_with("data:image/"))
            {
                source.problem("must be an https or data:image/ address", problems);
            }
        }
    }
    if let Some(display) = node.get("display")
        && display.closed(&["availableModes", "preferredMode"], problems)
    {
        let modes = ["inline", "fullscreen"];
        let available = display.get("availableModes").map(|list| {
            let items = list.items(problems);
            let found: Vec<_> = items.iter().filter_map(|item| item.one_of(&modes, problems)).collect();
            if found.is_empty() || found.iter().enumerate().any(|(i, mode)| found.iter().take(i).any(|m| m == mode)) {
                list.problem("must not be empty and not repeat a mode", problems);
            }
            found
        });
        if let Some(preferred) = display.get("preferredMode")
            && let Some(mode) = preferred.one_of(&modes, problems)
            && available.is_some_and(|available| !available.contains(&mode))
        {
            preferred.problem("must be one of `availableModes`", problems);
        }
    }
    if let Some(mentions) = node.get("mentions")
        && mentions.closed(&["searchTool"], problems)
        && let Some(tool) = mentions.need("searchTool", problems)
        && let Some(name) = tool.text(problems)
        && !tools.iter().any(|known| known == name)
    {
        tool.problem(format!("`{name}` is not in `ui.tools`"), problems);
    }
}

fn suffixes(list: &Node<'_>, problems: &mut Problems) {
    let mut found: Vec<String> = list.texts(problems).into_iter().map(str::to_lowercase).collect();
    let count = found.len();
    let fits = |text: &String| {
        text.strip_prefix('.').is_some_and(|rest| {
            rest.starts_with(|c: char| c.is_ascii_alphanumeric())
                && rest.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
        })
    };
    let all_fit = found.iter().all(fits);
    found.sort();
    found.dedup();
    if !(1..=32).contains(&count) || found.len() != count || !all_fit {
        list.problem("must be 1 to 32 different suffixes such as `.md`", problems);
    }
}

//! `WORKSPACE.md` at the bundle's root (AIP-34, `workspace/v1`): a closed set of keys.

use super::{document, refs};
use crate::bundle::Bundle;
use crate::identity::APP_MD;
use crate::node::Node;
use crate::problem::{Problems, shorten};

const WORKSPACE: &str = "WORKSPACE.md";
const KEYS: [&str; 16] = [
    "schema",
    "id",
    "version",
    "name",
    "owner",
    "storage",
    "description",
    "sandbox",
    "code",
    "identity",
    "policy",
    "defaults",
    "publish",
    "tags",
    "created_at",
    "metadata",
];

/// `declared` is the workspace id of APP.md; the file must carry the same.
pub(super) fn check(bundle: &Bundle, declared: &str, problems: &mut Problems) {
    if !bundle.files.contains_key(WORKSPACE) {
        problems.add(format!("{APP_MD}#workspace"), format!("names a workspace, and {WORKSPACE} is not in the bundle"));
        return;
    }
    let Some((data, _)) = document(bundle, WORKSPACE, problems) else { return };
    let node = Node::root(WORKSPACE, &data);
    node.closed(&KEYS, problems);
    if let Some(schema) = node.need("schema", problems) {
        schema.one_of(&["workspace/v1"], problems);
    }
    let id = node.need("id", problems).and_then(|id| {
        let text = id.text(problems)?;
        let parts = text.strip_prefix('@').and_then(|rest| rest.split_once('/'));
        if !parts.is_some_and(|(owner, slug)| refs::is_kebab(owner, 1) && refs::is_kebab(slug, 1)) {
            id.problem("must be @owner/slug in lower kebab case", problems);
        }
        if text != declared {
            let what = format!("is `{}` here and `{}` in APP.md", shorten(text), shorten(declared));
            problems.add(id.place(), what);
        }
        parts.map(|(owner, _)| owner)
    });
    if let Some(version) = node.need("version", problems) {
        refs::semver(&version, problems);
    }
    if let Some(name) = node.need("name", problems) {
        name.sized(1, 80, problems);
    }
    if let Some(owner) = node.need("owner", problems)
        && owner.closed(&["type", "id", "slug"], problems)
    {
        if let Some(kind) = owner.need("type", problems) {
            kind.one_of(&["guild", "user", "org"], problems);
        }
        if let Some(id) = owner.need("id", problems) {
            id.filled(problems);
        }
        if let Some(slug) = owner.get("slug")
            && slug.text(problems).is_some_and(|slug| id.is_some_and(|owner| owner != slug))
        {
            slug.problem("must be the owner part of the workspace's id", problems);
        }
    }
    if let Some(storage) = node.need("storage", problems) {
        one_of_three(&storage, problems);
    }
    if let Some(code) = node.get("code") {
        one_of_three(&code, problems);
    }
    if let Some(description) = node.get("description") {
        description.sized(0, 2000, problems);
    }
    if let Some(tags) = node.get("tags") {
        tags.texts(problems);
    }
}

/// Exactly one of `inline`, `ref` and `file`.
fn one_of_three(node: &Node<'_>, problems: &mut Problems) {
    if !node.closed(&["inline", "ref", "file"], problems) {
        return;
    }
    let given: Vec<_> = ["inline", "ref", "file"].into_iter().filter(|key| node.get(key).is_some()).collect();
    if given.len() != 1 {
        node.problem("must have exactly one of `inline`, `ref` and `file`", problems);
    }
    if let Some(inline) = node.get("inline") {
        if let Some(provider) = inline.need("provider", problems) {
            provider.filled(problems);
        }
        inline.need("config", problems);
    }
}

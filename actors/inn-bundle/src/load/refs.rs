//! References inside AIP files (AIP-27), ids, and documents they lead to.

use serde_json::Value;

use super::document;
use crate::bundle::Bundle;
use crate::node::Node;
use crate::path;
use crate::problem::{Problems, shorten};

/// The key a reference is matched by: the text itself, else `ref`, else `file`, else the inline value as JSON.
pub(super) fn key(node: &Node<'_>, problems: &mut Problems) -> Option<String> {
    if node.value.is_string() {
        return node.filled(problems).map(str::to_owned);
    }
    if !node.value.is_object() {
        node.problem("must be a text, or an object with `ref`, `file` or `inline`", problems);
        return None;
    }
    node.closed(&["ref", "file", "inline"], problems);
    for name in ["ref", "file"] {
        if let Some(text) = node.get(name) {
            return text.filled(problems).map(str::to_owned);
        }
    }
    let inline = node.need("inline", problems)?;
    if !inline.value.is_object() {
        inline.problem("must be an object", problems);
    }
    Some(inline.value.to_string())
}

pub(super) fn keys(list: &Node<'_>, problems: &mut Problems) -> Vec<String> {
    list.items(problems).iter().filter_map(|item| key(item, problems)).collect()
}

/// `MAJOR.MINOR.PATCH` with an optional pre-release or build part (semantic versioning 2.0).
pub(super) fn is_semver(text: &str) -> bool {
    let core = text.find(['-', '+']).and_then(|at| text.get(..at)).unwrap_or(text);
    let numbers: Vec<_> = core.split('.').collect();
    let is_number = |part: &&str| !part.is_empty() && part.len() <= 9 && part.bytes().all(|byte| byte.is_ascii_digit());
    text.len() <= 64
        && numbers.len() == 3
        && numbers.iter().all(is_number)
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-+".contains(&byte))
}

pub(super) fn semver(node: &Node<'_>, problems: &mut Problems) {
    if !node.value.as_str().is_some_and(is_semver) {
        node.problem("must be a version like 1.2.3 (quoted if it could be read as a number)", problems);
    }
}

/// The ids of workflows and of their steps: a small letter, then small letters, digits and `-`, not `-` at the end.
pub(super) fn is_kebab(text: &str, min: usize) -> bool {
    (min..=64).contains(&text.len())
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && !text.ends_with('-')
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// AIP-42 agent ids, without what the published pattern lets through by accident (`..`, further slashes).
pub(super) fn is_agent_id(text: &str) -> bool {
    let plain = |part: &str| {
        part.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit())
            && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte))
            && !part.split('.').any(str::is_empty)
    };
    (2..=80).contains(&text.len())
        && match text.strip_prefix('@') {
            Some(owned) => owned.split_once('/').is_some_and(|(owner, slug)| plain(owner) && plain(slug)),
            None => plain(text),
        }
}

/// A path written in a document, as the member it names. A path that leaves the bundle, or leads nowhere, is a problem.
pub(super) fn member(bundle: &Bundle, node: &Node<'_>, problems: &mut Problems) -> Option<String> {
    let path = confined(node, problems)?;
    if !bundle.files.contains_key(&path) {
        problems.add(node.place(), format!("names `{}`, which is not in the bundle", shorten(&path)));
        return None;
    }
    Some(path)
}

pub(super) fn confined(node: &Node<'_>, problems: &mut Problems) -> Option<String> {
    let written = node.filled(problems)?;
    path::confine(written).map_err(|why| node.problem(format!("unsafe-path: {why}"), problems)).ok()
}

/// One entry of APP.md's `agents` or `workflows`, followed to its document. `id_of` is the id the document must carry.
pub(super) struct Entry {
    pub(super) id: String,
    pub(super) path: String,
    pub(super) data: Value,
    pub(super) body: String,
}

/// Follows `{id, path}` entries. The id inside the document must be the id of the entry: drift fails, naming both.
pub(super) fn entries(bundle: &Bundle, list: &Node<'_>, problems: &mut Problems) -> Vec<Entry> {
    let mut found: Vec<Entry> = Vec::new();
    for node in list.items(problems) {
        let id = node.need("id", problems).and_then(|id| id.filled(problems));
        let path = node.need("path", problems).and_then(|path| member(bundle, &path, problems));
        let (Some(id), Some(path)) = (id, path) else { continue };
        if found.iter().any(|other| other.id == id) {
            node.problem(format!("the id `{}` is listed twice", shorten(id)), problems);
            continue;
        }
        let Some((data, body)) = document(bundle, &path, problems) else { continue };
        let inside = Node::root(&path, &data).need("id", problems).and_then(|inside| inside.text(problems));
        if let Some(inside) = inside.filter(|inside| *inside != id) {
            let what = format!("is `{}` here and `{}` in APP.md", shorten(inside), shorten(id));
            problems.add(format!("{path}#id"), what);
        }
        found.push(Entry { id: id.to_owned(), path, data, body });
    }
    found
}

//! JSON Schemas of strangers: must compile, must not reach outside, must not cost more than a sane one.

use serde_json::Value;

use crate::node::Node;
use crate::problem::Problems;

const MAX_SCHEMA_BYTES: usize = 64 * 1024;
/// Subschemas after every reference is followed. A few doubling references would otherwise make millions.
const MAX_EXPANDED: usize = 10_000;
const MAX_DEPTH: usize = 64;
/// The largest compiled form of one `pattern`, in bytes.
const MAX_PATTERN_BYTES: usize = 256 * 1024;

/// Checks a schema that payloads of strangers will be validated with.
///
/// References may only point into the same document (`#` or `#/…`) and may not go round in a circle: a validator
/// follows such a circle until its stack or the payload ends.
pub(super) fn check(node: &Node<'_>, problems: &mut Problems) {
    if !node.value.is_object() && !node.value.is_boolean() {
        node.problem("must be a JSON Schema: an object, true or false", problems);
        return;
    }
    if node.value.to_string().len() > MAX_SCHEMA_BYTES {
        problems.add(node.place(), "the schema is larger than 64 KiB");
        return;
    }
    let mut walk = Walk { root: node.value, expanded: 0, patterns: 0, following: Vec::new() };
    if let Err(why) = walk.schema(node.value, 0) {
        problems.add(node.place(), why);
        return;
    }
    if !(0..walk.patterns).all(|_| problems.may_compile()) {
        problems.add(node.place(), "the bundle has more regular expressions than a host compiles");
        return;
    }
    let built = jsonschema::options()
        .offline()
        .with_pattern_options(jsonschema::PatternOptions::regex().size_limit(MAX_PATTERN_BYTES))
        .build(node.value);
    if let Err(error) = built {
        let why: String = error.to_string().chars().take(200).collect();
        problems
            .add(format!("{}{}", node.place(), error.instance_path()), format!("is not a valid JSON Schema: {why}"));
    }
}

struct Walk<'a> {
    root: &'a Value,
    expanded: usize,
    patterns: usize,
    following: Vec<&'a str>,
}

impl<'a> Walk<'a> {
    fn schema(&mut self, schema: &'a Value, depth: usize) -> Result<(), String> {
        self.expanded += 1;
        if self.expanded > MAX_EXPANDED {
            return Err(format!("expands to more than {MAX_EXPANDED} subschemas"));
        }
        if depth > MAX_DEPTH {
            return Err(format!("is nested deeper than {MAX_DEPTH} levels"));
        }
        match schema {
            Value::Object(members) => {
                for (key, value) in members {
                    self.keyword(key, value, depth)?;
                }
                Ok(())
            }
            Value::Array(items) => items.iter().try_for_each(|item| self.schema(item, depth + 1)),
            _ => Ok(()),
        }
    }

    fn keyword(&mut self, key: &'a str, value: &'a Value, depth: usize) -> Result<(), String> {
        match (key, value) {
            ("pattern", Value::String(_)) => {
                self.patterns += 1;
                Ok(())
            }
            ("$ref", Value::String(target)) => self.reference(target, depth),
            ("$dynamicRef" | "$recursiveRef" | "$dynamicAnchor" | "$recursiveAnchor" | "$anchor", _) => {
                Err(format!("`{key}` is not supported; use `$ref` with `#/$defs/…`"))
            }
            ("$id" | "id", Value::String(_)) if depth > 0 => {
                Err("`$id` inside the schema is not supported; it moves what `$ref` points to".to_owned())
            }
            // Data, not schemas: a `$ref` in there is a text. Definitions cost where they are used.
            ("const" | "enum" | "default" | "examples" | "example" | "$defs" | "definitions", _) => Ok(()),
            // Names chosen by the author, not keywords.
            ("properties" | "patternProperties" | "dependentSchemas" | "dependencies", Value::Object(members)) => {
                self.patterns += if key == "patternProperties" { members.len() } else { 0 };
                members.values().try_for_each(|member| self.schema(member, depth + 1))
            }
            (_, nested) => self.schema(nested, depth + 1),
        }
    }

    fn reference(&mut self, target: &'a str, depth: usize) -> Result<(), String> {
        let shown: String = target.chars().take(80).collect();
        let pointer = target.strip_prefix('#').filter(|pointer| pointer.is_empty() || pointer.starts_with('/'));
        let pointer =
            pointer.ok_or_else(|| format!("`$ref` to `{shown}`: only references into the same schema (`#/…`)"))?;
        let found = self.root.pointer(pointer).ok_or_else(|| format!("`$ref` to `{shown}`: there is nothing there"))?;
        // The document itself is being walked from the start, so `#` is a circle without having been followed.
        if pointer.is_empty() || self.following.contains(&pointer) {
            return Err(format!("`$ref` to `{shown}` goes round in a circle"));
        }
        self.following.push(pointer);
        let result = self.schema(found, depth + 1);
        self.following.pop();
        result
    }
}

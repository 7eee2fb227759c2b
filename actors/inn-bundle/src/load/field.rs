//! One field of a collection.

use inn_protocol::model::{Field, FieldKind};
use regex::RegexBuilder;
use serde_json::Value;

use super::model::{checksum, is_name};
use crate::node::Node;
use crate::problem::Problems;

/// Words of the filter language and of record answers; a field of that name could never be reached.
const RESERVED: [&str; 7] = ["null", "true", "false", "_rowid_", "expand", "collectionId", "collectionName"];
const EDITOR_MAX_SIZE: u64 = 5 * 1024 * 1024;
const JSON_MAX_SIZE: u64 = 1024 * 1024;
const FILE_MAX_SIZE: u64 = 5 * 1024 * 1024;
const MAX_SELECT_VALUES: usize = 500;
/// Patterns every export has for its system fields.
const COMMON_PATTERNS: [&str; 3] = ["^[a-z0-9]+$", "[a-z0-9]{15}", "[a-zA-Z0-9]{50}"];
/// The largest compiled form of one pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 512 * 1024;

/// The field with PocketBase's defaults filled in.
pub(super) fn load(node: &Node<'_>, problems: &mut Problems) -> Option<Field> {
    let Some(members) = node.value.as_object() else {
        node.problem("must be an object", problems);
        return None;
    };
    let named = node.need("name", problems)?;
    let name = named.text(problems)?;
    if !is_name(name) || name.to_ascii_lowercase().contains("_via_") {
        named.problem("must be 1 to 63 letters, digits or `_`, and not contain `_via_`", problems);
    }
    if RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(name)) {
        named.problem(format!("is a reserved word; reserved are {}", RESERVED.join(", ")), problems);
    }
    let kind = node.need("type", problems)?.text(problems)?;
    if let Some(id) = node.get("id")
        && !id.value.as_str().is_some_and(is_name)
    {
        id.problem("must be 1 to 63 letters, digits or `_`", problems);
    }
    let default_id = format!("{kind}{}", checksum(name));
    // PocketBase writes null for options that are not set.
    let mut members: serde_json::Map<String, Value> =
        members.iter().filter(|(_, value)| !value.is_null()).map(|(k, v)| (k.clone(), v.clone())).collect();
    members.entry("id").or_insert(Value::String(default_id));
    match serde_json::from_value::<Field>(Value::Object(members)) {
        Ok(mut field) => {
            complete(&mut field, node, problems);
            Some(field)
        }
        Err(error) => {
            let why: String = error.to_string().chars().take(200).collect();
            node.problem(format!("the field `{name}` cannot be read: {why}"), problems);
            None
        }
    }
}

fn complete(field: &mut Field, node: &Node<'_>, problems: &mut Problems) {
    if let FieldKind::Text { pattern, autogenerate_pattern, .. } = &field.kind {
        check_pattern(pattern, node, problems);
        check_pattern(autogenerate_pattern, node, problems);
    } else if let FieldKind::Password { pattern, .. } = &field.kind {
        check_pattern(pattern, node, problems);
    }
    let mut wrong = |what: &str| problems.add(node.place(), format!("the field `{}`: {what}", field.name));
    match &mut field.kind {
        FieldKind::Text { min, max, .. } | FieldKind::Password { min, max, .. } if *max > 0 && *min > *max => {
            wrong("`min` is larger than `max`");
        }
        FieldKind::Number { min: Some(min), max: Some(max), .. } if *min > *max => wrong("`min` is larger than `max`"),
        FieldKind::Editor { max_size } if *max_size == 0 => *max_size = EDITOR_MAX_SIZE,
        FieldKind::Json { max_size } if *max_size == 0 => *max_size = JSON_MAX_SIZE,
        FieldKind::Email { only_domains, except_domains } | FieldKind::Url { only_domains, except_domains }
            if !only_domains.is_empty() && !except_domains.is_empty() =>
        {
            wrong("`onlyDomains` and `exceptDomains` exclude each other");
        }
        FieldKind::Autodate { on_create: false, on_update: false } => {
            wrong("an autodate needs `onCreate` or `onUpdate`");
        }
        FieldKind::Select { values, max_select } => {
            *max_select = (*max_select).max(1);
            let mut sorted: Vec<_> = values.iter().collect();
            sorted.sort();
            sorted.dedup();
            if values.is_empty() || values.len() > MAX_SELECT_VALUES {
                wrong("a select needs 1 to 500 values");
            } else if sorted.len() != values.len() || values.iter().any(String::is_empty) {
                wrong("the values of a select must be different and not empty");
            } else if *max_select as usize > values.len() {
                wrong("`maxSelect` is larger than the number of values");
            }
        }
        FieldKind::Relation { min_select, max_select, .. } => {
            *max_select = (*max_select).max(1);
            if *min_select > *max_select {
                wrong("`minSelect` is larger than `maxSelect`");
            }
        }
        FieldKind::File { max_select, max_size, .. } => {
            *max_select = (*max_select).max(1);
            if *max_size == 0 {
                *max_size = FILE_MAX_SIZE;
            }
        }
        _ => {}
    }
}

/// PocketBase's patterns are RE2, which our engine reads too; both run in linear time.
fn check_pattern(pattern: &str, node: &Node<'_>, problems: &mut Problems) {
    if pattern.is_empty() || COMMON_PATTERNS.contains(&pattern) {
        return;
    }
    if !problems.may_compile() {
        node.problem("the bundle has more regular expressions than a host compiles", problems);
    } else if RegexBuilder::new(pattern).size_limit(MAX_PATTERN_BYTES).build().is_err() {
        node.problem("its pattern is not a regular expression (RE2 syntax), or too large a one", problems);
    }
}

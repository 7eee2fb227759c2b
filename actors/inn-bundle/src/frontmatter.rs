//! The YAML head of a Markdown file, as data and never as code (AIP-53 `APP.md`, AIP-42, AIP-15, AIP-34).

use serde_json::Value;

/// The largest head, in bytes. Real ones have a few thousand.
const MAX_HEAD_BYTES: usize = 256 * 1024;

/// A Markdown file in two parts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Document {
    /// `None` when the file does not start with a line `---`.
    pub(crate) data: Option<Value>,
    /// What follows, trimmed.
    pub(crate) body: String,
}

/// Splits and parses. The error is a sentence without the file's name.
///
/// Stricter than the reference reader where that one is unsafe: only YAML (a language tag such as `---js` made it run
/// code), a closing line that is exactly `---`, no duplicate keys, no foreign tags, aliases within a small budget.
pub(crate) fn parse(bytes: &[u8]) -> Result<Document, String> {
    if bytes.len() > crate::json::MAX_DOCUMENT_BYTES {
        return Err("larger than 4 MiB".to_owned());
    }
    let text = std::str::from_utf8(bytes).map_err(|_| "not UTF-8".to_owned())?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let Some(rest) = text.strip_prefix("---").filter(|rest| !rest.starts_with('-')) else {
        return Ok(Document { data: None, body: text.trim().to_owned() });
    };
    let (tag, rest) = rest.split_once('\n').unwrap_or((rest, ""));
    if !["", "yaml"].contains(&tag.trim()) {
        let tag: String = tag.trim().chars().take(40).collect();
        return Err(format!("the frontmatter is marked `{tag}`; only YAML is read, nothing is ever run"));
    }
    let (head, body) = split(rest).ok_or("the frontmatter has no closing line `---`")?;
    if head.len() > MAX_HEAD_BYTES {
        return Err("the frontmatter is larger than 256 KiB".to_owned());
    }
    let data = match yaml(head)? {
        Value::Null => Value::Object(serde_json::Map::new()),
        object @ Value::Object(_) => object,
        _ => return Err("the frontmatter must be a mapping of keys to values".to_owned()),
    };
    Ok(Document { data: Some(data), body: body.trim().to_owned() })
}

/// The text before and after the first line that is `---`.
fn split(text: &str) -> Option<(&str, &str)> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.starts_with("---") && line.trim_end() == "---" {
            return Some((text.get(..at)?, text.get(at + line.len()..)?));
        }
        at += line.len();
    }
    None
}

fn yaml(text: &str) -> Result<Value, String> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: 40_000,
            max_nodes: 20_000,
            max_aliases: 200,
            max_anchors: 200,
            max_recorded_anchor_events: 20_000,
            max_depth: 32,
            flow_nesting_limit: 32,
            max_documents: 1,
            max_total_scalar_bytes: 512 * 1024,
        },
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options::<Value>(text, options).map_err(|error| {
        let first: String = error.to_string().lines().next().unwrap_or_default().chars().take(300).collect();
        format!("the frontmatter is not valid YAML: {first}")
    })
}

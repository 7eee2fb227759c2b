//! Answers made comparable: what differs from run to run is replaced by a word for it.

use regex::Regex;
use serde_json::Value;

use crate::call::{Door, Reply};

/// Status and body, as a snapshot keeps them.
pub fn of(reply: &Reply, door: &Door) -> String {
    format!("{}\n{}", reply.status, body(&reply.json(), door))
}

/// A JSON document, ids and times replaced.
pub fn body(value: &Value, door: &Door) -> String {
    let text = serde_json::to_string_pretty(value).expect("JSON");
    let mut text = text.replace(&door.authority, "[host]");
    for (pattern, word) in [
        (r"\b(ten|usr|ses|app|grt|grq|call|req)_[0-9a-f]{32}\b", "[$1]"),
        (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?", "[time]"),
        (r"\b[0-9a-f]{64}\b", "[digest]"),
        (r#""[A-Za-z0-9_-]{43}""#, "\"[thumbprint]\""),
        (r#""[A-Za-z0-9_-]{86}""#, "\"[signature]\""),
        (r#""[A-Z2-9]{4}-[A-Z2-9]{4}""#, "\"[code]\""),
        (r#""(epoch|seq)": \d+"#, "\"$1\": \"[number]\""),
        (r#""(id|record|board|list)": "[a-z0-9]{15}""#, "\"$1\": \"[record]\""),
    ] {
        text = Regex::new(pattern).expect("a pattern").replace_all(&text, word).into_owned();
    }
    text
}

//! Words of a sentence: texts made safe to print, dates, lists.

use chrono::{DateTime, Datelike, Utc};
use serde_json::Value;

use crate::values::dates;

/// Characters of a label or value that are told.
const MAX_LABEL: usize = 80;

/// One line of printable text, cut at 80 characters. A label may come from anybody: control characters could rewrite
/// a terminal, and direction marks could turn a sentence around.
pub(super) fn plain(text: &str) -> String {
    // Looks at a bounded prefix only, whatever the text.
    let printable = text.chars().take(MAX_LABEL * 4).map(|c| if c.is_whitespace() { ' ' } else { c });
    let printable: String = printable.filter(|c| !c.is_control() && !is_invisible(*c)).collect();
    let words = printable.split(' ').filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    if words.chars().count() <= MAX_LABEL {
        return words;
    }
    let cut: String = words.chars().take(MAX_LABEL - 1).collect();
    format!("{}…", cut.trim_end())
}

/// Direction marks, joiners that hide, line separators, tags and the byte order mark.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// A text or number in double quotes; quotes inside become single, so that the end of a label cannot be faked.
pub(super) fn quoted(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => plain(text),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    (!text.is_empty()).then(|| format!("\"{}\"", text.replace('"', "'")))
}

/// `Fri 31 Jul` of a stored date or day key; with its year when that is another than the year of `at`.
pub(super) fn date(value: &Value, at: DateTime<Utc>) -> Option<String> {
    let day = dates::stored_day(value.as_str()?)?;
    let form = if day.year() == at.year() { "%a %-d %b" } else { "%a %-d %b %Y" };
    Some(day.format(form).to_string())
}

/// `due_date` is said as `due`, `start_day` as `start`, a bare `date` or `day` as `on`.
pub(super) fn date_word(field: &str) -> String {
    let lower = field.to_ascii_lowercase();
    let stem = ["_date", "_day", "_at"].iter().find_map(|suffix| lower.strip_suffix(suffix)).unwrap_or(&lower);
    if stem == "date" || stem == "day" { "on".to_owned() } else { plain(&stem.replace('_', " ")) }
}

/// `a, b and c`, or `a, b and 3 more`.
pub(super) fn listed(names: &[String], most: usize) -> String {
    let (told, rest) = if names.len() <= most { (names.len(), 0) } else { (most - 1, names.len() - most + 1) };
    let mut parts: Vec<_> = names.iter().take(told).map(|name| plain(name)).collect();
    if rest > 0 {
        parts.push(format!("{rest} more"));
    }
    match parts.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, head)) => format!("{} and {last}", head.join(", ")),
        None => String::new(),
    }
}

//! Standard output for data, standard error for talk.

use std::io::{self, IsTerminal as _, Write as _};

use serde_json::Value;

/// Where a verb speaks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Out {
    json: bool,
}

impl Out {
    pub(crate) const fn new(json: bool) -> Self {
        Self { json }
    }

    pub(crate) const fn is_json(self) -> bool {
        self.json
    }

    /// A JSON document on one line.
    #[allow(clippy::unused_self, reason = "speaking is what it is for, in either mode")]
    pub(crate) fn data(self, value: &Value) {
        put(value.to_string().as_bytes());
    }

    /// A line for people who asked for data.
    #[allow(clippy::unused_self, reason = "speaking is what it is for, in either mode")]
    pub(crate) fn line(self, text: impl AsRef<str>) {
        put(clean(text.as_ref()).as_bytes());
    }

    /// The bytes as they are, without a line break of ours.
    #[allow(clippy::unused_self, reason = "speaking is what it is for, in either mode")]
    pub(crate) fn raw(self, bytes: &[u8]) {
        // A reader that closed its end has what it wanted.
        let mut stdout = io::stdout().lock();
        let _ = stdout.write_all(bytes).and_then(|()| stdout.flush());
    }

    /// After [`Self::raw`]: a terminal's next prompt begins on a line of its own. Files and pipes get the bytes alone.
    #[allow(clippy::unused_self, reason = "speaking is what it is for, in either mode")]
    pub(crate) fn end_line(self, bytes: &[u8]) {
        if !bytes.is_empty() && !bytes.ends_with(b"\n") && io::stdout().is_terminal() {
            put(b"");
        }
    }

    /// Words of strangers on one line, without what could steer a terminal.
    pub(crate) fn one_line(text: &str) -> String {
        clean(text).replace(['\n', '\t'], " ")
    }

    /// Talk: progress, hints, what was done.
    #[allow(clippy::unused_self, reason = "speaking is what it is for, in either mode")]
    pub(crate) fn say(self, text: impl AsRef<str>) {
        let _ = writeln!(io::stderr().lock(), "{}", clean(text.as_ref()));
    }

    /// The document with `--json`, else the words.
    pub(crate) fn answer(self, value: &Value, words: impl FnOnce(&Value) -> String) {
        if self.json { self.data(value) } else { self.line(words(value)) }
    }

    /// The document with `--json`, else a table of its `items` (or of the list it is): a heading and a JSON pointer for
    /// each column.
    pub(crate) fn table(self, value: &Value, columns: &[(&str, &str)], empty: &str) {
        if self.json {
            return self.data(value);
        }
        let rows = items(value);
        if rows.is_empty() {
            return self.say(empty);
        }
        for line in table(rows, columns, io::stdout().is_terminal()) {
            put(line.as_bytes());
        }
    }
}

/// The items of a list answer.
pub(crate) fn items(value: &Value) -> &[Value] {
    let list = value.get("items").or_else(|| value.get("tasks")).unwrap_or(value);
    list.as_array().map_or(&[], Vec::as_slice)
}

/// Text of a value for people: a string without quotes, a list with commas, nothing for null.
pub(crate) fn plain(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(list)) => list.iter().map(|item| plain(Some(item))).collect::<Vec<_>>().join(", "),
        Some(other) => other.to_string(),
    }
}

/// A member as text, empty when there is none.
pub(crate) fn text(value: &Value, pointer: &str) -> String {
    plain(value.pointer(pointer))
}

/// Words of strangers must not move the cursor or ring bells: control characters other than line breaks and tabs go.
pub(crate) fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && !matches!(c, '\n' | '\t') { '\u{fffd}' } else { c }).collect()
}

fn put(bytes: &[u8]) {
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(bytes).and_then(|()| stdout.write_all(b"\n")).and_then(|()| stdout.flush());
}

fn table(rows: &[Value], columns: &[(&str, &str)], heading: bool) -> Vec<String> {
    let cell = |row: &Value, pointer: &str| clean(&text(row, pointer)).replace(['\n', '\t'], " ");
    let mut lines: Vec<Vec<String>> = Vec::new();
    if heading {
        lines.push(columns.iter().map(|(name, _)| name.to_uppercase()).collect());
    }
    lines.extend(rows.iter().map(|row| columns.iter().map(|(_, pointer)| cell(row, pointer)).collect()));
    let width = |column: usize| {
        let lengths = lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count());
        lengths.max().unwrap_or(0).min(60)
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let join = |line: &Vec<String>| {
        let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    lines.iter().map(join).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn words_of_strangers_cannot_steer_the_terminal() {
        assert_eq!(clean("a\u{1b}[31mb\u{7}\nc"), "a\u{fffd}[31mb\u{fffd}\nc");
    }

    #[test]
    fn a_table_lines_up_and_keeps_one_row_on_one_line() {
        let rows = [json!({"a": "x\ny", "b": {"c": 1}}), json!({"a": "longer", "b": {"c": ["p", "q"]}})];
        assert_eq!(table(&rows, &[("a", "/a"), ("n", "/b/c")], true), ["A       N", "x y     1", "longer  p, q"]);
    }
}

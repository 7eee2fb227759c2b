//! What a program says on its standard output.

use serde_json::Value;

/// Longest step of a progress line, in characters, as the platform takes it.
const MAX_STEP: usize = 200;
/// Longest reason for a failure, in characters.
pub(super) const MAX_REASON: usize = 500;

/// How far a program says it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Progress {
    pub(super) percent: u8,
    pub(super) step: String,
}

impl Progress {
    /// Reads `progress: 40 reading cards`.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let rest = line.strip_prefix("progress:")?.trim();
        let (percent, step) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let percent = percent.trim_end_matches('%').parse().ok().filter(|percent| *percent <= 100)?;
        let step = shorten(step, MAX_STEP);
        Some(Self { percent, step: if step.is_empty() { "working".to_owned() } else { step } })
    }
}

/// The result: everything that was no progress line as one JSON document, or else the last line.
pub(super) fn result(text: &str) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Err("the program ended well but wrote no result on its standard output".to_owned());
    }
    let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    serde_json::from_str(text)
        .or_else(|_| serde_json::from_str(last))
        .map_err(|error| format!("the program's result is not JSON ({error}): {}", shorten(last, 80)))
}

/// One line of at most `most` characters.
pub(super) fn shorten(text: &str, most: usize) -> String {
    let text = text.trim();
    let line: String = text.chars().take(most).map(|c| if c.is_control() { ' ' } else { c }).collect();
    line.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn progress_lines_are_told_from_results() {
        let progress = |percent, step: &str| Some(Progress { percent, step: step.to_owned() });
        assert_eq!(Progress::parse("progress: 40 reading cards"), progress(40, "reading cards"));
        assert_eq!(Progress::parse("progress:100% done"), progress(100, "done"));
        assert_eq!(Progress::parse("progress: 5"), progress(5, "working"));
        for line in
            ["progress: 101 x", "progress: -1 x", "progress: many", "progress", "{\"progress\": 4}", " progress: 4"]
        {
            assert_eq!(Progress::parse(line), None, "{line}");
        }
        assert_eq!(Progress::parse(&format!("progress: 1 {}", "x".repeat(900))).unwrap().step.len(), MAX_STEP);
    }

    #[test]
    fn the_result_is_the_whole_text_or_its_last_line() {
        assert_eq!(result("{\"a\": 1}\n"), Ok(json!({"a": 1})));
        assert_eq!(result("{\n  \"a\": 1\n}\n"), Ok(json!({"a": 1})));
        assert_eq!(result("thinking …\n{\"a\": 1}\n\n"), Ok(json!({"a": 1})));
        assert!(result("").unwrap_err().contains("no result"));
        assert!(result("hello\n").unwrap_err().contains("not JSON"));
    }

    proptest! {
        #[test]
        fn no_output_makes_it_panic(text in "\\PC{0,80}(\n\\PC{0,80}){0,3}") {
            let _ = (Progress::parse(&text), result(&text), shorten(&text, 10));
        }
    }
}

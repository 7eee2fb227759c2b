//! What is said about a job: bounds of lines, progress, errors and results.

use inn_protocol::job::JobError;
use inn_protocol::request::Progress;
use inn_protocol::{Code, Refusal, Violation};
use serde_json::Value;

/// Longest line of a log, in characters.
pub const MAX_LINE: usize = 1_000;
/// Largest result, in bytes of JSON.
pub const MAX_RESULT_BYTES: usize = 1024 * 1024;
/// Longest message of an error, in characters; the rest is cut.
const MAX_MESSAGE: usize = 2_000;
const MAX_CODE: usize = 64;
const MAX_STEP: usize = 200;

pub(super) fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

pub(super) fn message(text: &str) -> String {
    cut(text, MAX_MESSAGE)
}

/// # Errors
/// `invalid_parameter` when the line is empty or too long.
pub fn check_line(line: &str) -> Result<(), Refusal> {
    if !line.trim().is_empty() && line.chars().count() <= MAX_LINE {
        return Ok(());
    }
    let violation = Violation::new(Code::InvalidParameter, "line", format!("text of 1 to {MAX_LINE} characters"));
    Err(Refusal::violations("The line is not usable.", vec![violation]))
}

pub(super) fn check_progress(progress: &Progress) -> Result<(), Refusal> {
    let mut violations = Vec::new();
    if progress.step.chars().count() > MAX_STEP {
        violations.push(Violation::new(Code::InvalidParameter, "step", format!("at most {MAX_STEP} characters")));
    }
    if progress.percent > 100 {
        let violation = Violation::new(Code::InvalidParameter, "percent", "a whole number from 0 to 100");
        violations.push(violation.got(&progress.percent.into()));
    }
    if violations.is_empty() { Ok(()) } else { Err(Refusal::violations("The progress is not usable.", violations)) }
}

pub(super) fn check_result(result: &Value) -> Result<(), Refusal> {
    if result.to_string().len() <= MAX_RESULT_BYTES {
        return Ok(());
    }
    Err(Refusal::new(Code::TooLarge, format!("A job's result has at most {MAX_RESULT_BYTES} bytes of JSON.")))
}

/// # Errors
/// `invalid_parameter` when the code is not a short word.
pub fn check_error(error: &JobError) -> Result<(), Refusal> {
    if is_code(&error.code) {
        return Ok(());
    }
    let expected = format!("1 to {MAX_CODE} lower-case letters, digits, `_`, `-` or `.`");
    let violation = Violation::new(Code::InvalidParameter, "code", expected).got(&error.code.clone().into());
    Err(Refusal::violations("The error is not usable.", vec![violation]))
}

fn is_code(text: &str) -> bool {
    (1..=MAX_CODE).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.".contains(&byte))
}

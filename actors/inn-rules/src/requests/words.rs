//! What holders and requesters say to each other: bounds of progress, questions, answers and reasons.

use inn_protocol::request::{Progress, QueueRequest};
use inn_protocol::{Code, Refusal, Violation};
use serde_json::Value;

/// Longest reason kept, in characters; the rest is cut.
const MAX_REASON: usize = 500;
/// Longest progress line, in characters.
const MAX_STEP: usize = 200;
/// Longest question, in characters.
const MAX_QUESTION: usize = 2_000;
/// Largest answer, in bytes of JSON.
const MAX_ANSWER_BYTES: usize = 16 * 1024;

pub(super) fn cut(reason: &str) -> String {
    if reason.chars().count() <= MAX_REASON {
        return reason.to_owned();
    }
    reason.chars().take(MAX_REASON - 1).chain(['…']).collect()
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

/// `asked` is how many questions the request has already.
pub(super) fn check_question(question: &str, asked: usize) -> Result<(), Refusal> {
    if asked >= QueueRequest::MOST_QUESTIONS {
        let message = format!("A request may ask {} questions.", QueueRequest::MOST_QUESTIONS);
        return Err(Refusal::new(Code::Conflict, message));
    }
    if question.trim().is_empty() || question.chars().count() > MAX_QUESTION {
        let expected = format!("text of 1 to {MAX_QUESTION} characters");
        let violation = Violation::new(Code::InvalidParameter, "question", expected);
        return Err(Refusal::violations("The question is not usable.", vec![violation]));
    }
    Ok(())
}

pub(super) fn check_answer(answer: &Value) -> Result<(), Refusal> {
    if answer.is_null() || answer.to_string().len() > MAX_ANSWER_BYTES {
        let expected = format!("JSON other than null, at most {MAX_ANSWER_BYTES} bytes");
        let violation = Violation::new(Code::InvalidParameter, "answer", expected);
        return Err(Refusal::violations("The answer is not usable.", vec![violation]));
    }
    Ok(())
}

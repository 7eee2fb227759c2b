//! The body of `POST /api/realtime`.

use inn_protocol::{Code, Refusal, Violation};
use serde_json::Value;

use super::Topic;
use crate::values::{FieldProblem, problem};

/// PocketBase's own limits: topics of one client, characters of one.
const MOST_TOPICS: usize = 1000;
const LONGEST_TOPIC: usize = 2500;
/// Ours: all of them together, in bytes, and those with options, each of which is looked at by itself.
const MOST_BYTES: usize = 128 << 10;
const MOST_WITH_OPTIONS: usize = 100;
const LONGEST_CLIENT: usize = 255;

/// What a client wants to hear from now on.
#[derive(Debug, Clone, PartialEq)]
pub struct Subscribe {
    pub client: String,
    /// Without repetitions, in [`Topic::order`].
    pub topics: Vec<Topic>,
}

/// Reads the body. Refusals are PocketBase's, field by field; two limits are ours.
pub fn subscribe(body: &Value) -> Result<Subscribe, Refusal> {
    let wrong = || Refusal::new(Code::InvalidBody, "Something went wrong while processing your request.");
    let body = body.as_object().ok_or_else(wrong)?;
    let client = match body.get("clientId") {
        None | Some(Value::Null) => "",
        Some(Value::String(client)) => client,
        Some(_) => return Err(wrong()),
    };
    let topics: Vec<&str> = match body.get("subscriptions") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(topics)) => topics.iter().map(Value::as_str).collect::<Option<_>>().ok_or_else(wrong)?,
        Some(_) => return Err(wrong()),
    };
    let mut violations = Vec::new();
    if client.is_empty() {
        violations.push(FieldProblem::new("clientId", &problem::REQUIRED).violation());
    } else if client.chars().count() > LONGEST_CLIENT {
        violations.push(FieldProblem::with("clientId", &problem::LENGTH, &LONGEST_CLIENT).violation());
    }
    let bytes: usize = topics.iter().map(|topic| topic.len()).sum();
    if topics.len() > MOST_TOPICS {
        violations.push(FieldProblem::with("subscriptions", &problem::TOO_LONG, &MOST_TOPICS).violation());
    } else if topics.iter().any(|topic| topic.chars().count() > LONGEST_TOPIC) {
        let long = topics.iter().enumerate().filter(|(_, topic)| topic.chars().count() > LONGEST_TOPIC);
        let places = long.map(|(place, _)| format!("subscriptions.{place}"));
        violations
            .extend(places.map(|place| FieldProblem::with(&place, &problem::TOO_LONG, &LONGEST_TOPIC).violation()));
    } else if bytes > MOST_BYTES {
        let most = format!("topics of at most {MOST_BYTES} bytes together");
        violations.push(Violation::new(Code::InvalidValue, "subscriptions", most));
    }
    let mut topics: Vec<Topic> = topics.into_iter().filter_map(Topic::parse).collect();
    topics.sort_by(|a, b| (a.order, &a.text).cmp(&(b.order, &b.text)));
    topics.dedup_by(|a, b| a.text == b.text);
    if violations.is_empty() && topics.iter().filter(|topic| topic.has_options()).count() > MOST_WITH_OPTIONS {
        let most = format!("at most {MOST_WITH_OPTIONS} topics with options");
        violations.push(Violation::new(Code::InvalidValue, "subscriptions", most));
    }
    if violations.is_empty() {
        return Ok(Subscribe { client: client.to_owned(), topics });
    }
    Err(Refusal {
        message: "Something went wrong while processing your request.".to_owned(),
        ..Refusal::violations("", violations)
    })
}

//! One question for both sides, and whether the two answers say the same.

use reqwest::Method;
use serde_json::{Map, Value, json};
use url::form_urlencoded;

/// Who asks. On our side the owner of the app's tenant is what a superuser is on the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Superuser,
    /// Signed in to nothing.
    Nobody,
    /// A record of `users`, by its place in [`super::rows::USERS`].
    User(usize),
    /// An agent that acts for that user; on the other side, where there are none, the user.
    AgentOf(usize),
}

#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) who: Who,
    pub(crate) method: Method,
    /// From `/api` on.
    pub(crate) path: String,
    /// Not yet encoded.
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<Vec<u8>>,
}

impl Ask {
    fn new(who: Who, method: Method, path: String, body: Option<Value>) -> Self {
        let mut headers = Vec::new();
        if body.is_some() {
            headers.push(("content-type".to_owned(), "application/json".to_owned()));
        }
        let body = body.map(|body| body.to_string().into_bytes());
        Self { who, method, path, query: Vec::new(), headers, body }
    }

    pub(crate) fn list(who: Who, collection: &str) -> Self {
        Self::new(who, Method::GET, records(collection), None)
    }

    pub(crate) fn view(who: Who, collection: &str, id: &str) -> Self {
        Self::new(who, Method::GET, record(collection, id), None)
    }

    pub(crate) fn create(who: Who, collection: &str, body: Value) -> Self {
        Self::new(who, Method::POST, records(collection), Some(body))
    }

    pub(crate) fn update(who: Who, collection: &str, id: &str, body: Value) -> Self {
        Self::new(who, Method::PATCH, record(collection, id), Some(body))
    }

    pub(crate) fn delete(who: Who, collection: &str, id: &str) -> Self {
        Self::new(who, Method::DELETE, record(collection, id), None)
    }

    pub(crate) fn post(who: Who, path: &str, body: Value) -> Self {
        Self::new(who, Method::POST, path.to_owned(), Some(body))
    }

    /// With these very bytes as body, and of this type.
    pub(crate) fn raw(mut self, content_type: Option<&str>, body: &[u8]) -> Self {
        self.headers.retain(|(name, _)| name != "content-type");
        self.body = Some(body.to_owned());
        content_type.map_or(self.clone(), |content_type| self.header("content-type", content_type))
    }

    pub(crate) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.query.push((name.to_owned(), value.into()));
        self
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With another filter.
    pub(crate) fn filtered(&self, filter: &str) -> Self {
        let mut other = self.clone();
        other.query.retain(|(name, _)| name != "filter");
        other.with("filter", filter)
    }

    /// Path and query as they are sent.
    pub(crate) fn target(&self) -> String {
        if self.query.is_empty() {
            return self.path.clone();
        }
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.query).finish();
        format!("{}?{query}", self.path)
    }

    /// For people to read.
    pub(crate) fn shown(&self) -> String {
        let query: Vec<String> =
            self.query.iter().map(|(name, value)| format!("{name}={}", printable(value))).collect();
        let mut text = format!("{:?} {} {}", self.who, self.method, self.path);
        if !query.is_empty() {
            text = format!("{text} ? {}", query.join(" & "));
        }
        for (name, value) in self.headers.iter().filter(|(_, value)| value != "application/json") {
            text = format!("{text}  {name}: {value}");
        }
        match &self.body {
            Some(body) => format!("{text}  {}", printable(&String::from_utf8_lossy(body))),
            None => text,
        }
    }
}

fn printable(text: &str) -> String {
    text.chars()
        .flat_map(|sign| if sign.is_control() { sign.escape_default().collect::<Vec<_>>() } else { vec![sign] })
        .collect()
}

fn records(collection: &str) -> String {
    format!("/api/collections/{collection}/records")
}

fn record(collection: &str, id: &str) -> String {
    format!("{}/{id}", records(collection))
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl Answer {
    /// Short, for a report.
    pub(crate) fn shown(&self) -> String {
        let text = match self.ids() {
            Some(ids) => ids.iter().map(|id| id.trim_end_matches('0')).collect::<Vec<_>>().join(","),
            None if self.status < 400 => self.body.to_string(),
            None => match (&self.body["data"], &self.body["message"]) {
                (Value::Object(data), message) if data.is_empty() => message.to_string(),
                (data, message) => format!("{data} {message}"),
            },
        };
        let text: String = text.chars().take(600).collect();
        format!("{} {text}", self.status)
    }

    fn ids(&self) -> Option<Vec<&str>> {
        let items = self.body.get("items")?.as_array()?;
        items.iter().map(|item| item.get("id")?.as_str()).collect()
    }
}

/// What is different, if anything is. What may differ by itself (times, and sentences for people) does not count.
pub(crate) fn difference(theirs: &Answer, ours: &Answer) -> Option<String> {
    if theirs.status != ours.status {
        return Some(format!("status {} became {}", theirs.status, ours.status));
    }
    if theirs.status >= 400 {
        let data = |answer: &Answer| answer.body.get("data").cloned().unwrap_or(Value::Null);
        return apart("data", &settled(&data(theirs)), &settled(&data(ours)));
    }
    if let (Some(theirs), Some(ours)) = (theirs.ids(), ours.ids())
        && theirs != ours
    {
        return Some(format!("other records, or in another order: {} became {}", theirs.len(), ours.len()));
    }
    apart("", &settled(&theirs.body), &settled(&ours.body))
}

/// The first place where two values are not the same. Numbers are compared by value.
fn apart(place: &str, theirs: &Value, ours: &Value) -> Option<String> {
    match (theirs, ours) {
        (Value::Object(one), Value::Object(two)) => {
            let keys = one.keys().chain(two.keys().filter(|key| !one.contains_key(*key)));
            for key in keys {
                let place = format!("{place}.{key}");
                match (one.get(key), two.get(key)) {
                    (Some(theirs), Some(ours)) => {
                        if let Some(found) = apart(&place, theirs, ours) {
                            return Some(found);
                        }
                    }
                    (Some(theirs), None) => return Some(format!("{place}: {theirs} is missing")),
                    (None, ours) => return Some(format!("{place}: {} is more", ours.unwrap_or(&Value::Null))),
                }
            }
            None
        }
        (Value::Array(one), Value::Array(two)) if one.len() == two.len() => {
            let mut pairs = one.iter().zip(two).enumerate();
            pairs.find_map(|(index, (theirs, ours))| apart(&format!("{place}[{index}]"), theirs, ours))
        }
        (Value::Number(one), Value::Number(two)) if one.as_f64() == two.as_f64() => None,
        _ if theirs == ours => None,
        _ => Some(format!("{place}: {theirs} became {ours}")),
    }
}

/// Fields that the server sets to the time.
const TIMES: [&str; 4] = ["made", "changed", "created", "updated"];

pub(crate) fn settled(value: &Value) -> Value {
    match value {
        // A refusal within a refusal (of a batch).
        Value::Object(members) if ["status", "message", "data"].iter().all(|key| members.contains_key(*key)) => {
            json!({"status": members["status"], "data": settled(&members["data"])})
        }
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| {
                let token = key == "token" && value.as_str().is_some_and(|text| text.split('.').count() == 3);
                let time = TIMES.contains(&key.as_str()) && value.as_str().is_some_and(|text| text.len() == 24);
                (key.clone(), if time || token { json!("[set by the server]") } else { settled(value) })
            })
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(settled).collect(),
        _ => value.clone(),
    }
}

#[test]
fn a_difference_is_seen_wherever_it_is() {
    let answer = |status, body| Answer { status, body };
    let page = |ids: &[&str]| {
        let items: Vec<Value> = ids.iter().map(|id| json!({"id": id, "made": "2026-11-30 10:00:00.000Z"})).collect();
        answer(200, json!({"items": items, "page": 1}))
    };
    assert_eq!(difference(&page(&["a", "b"]), &page(&["a", "b"])), None);
    for (one, two) in [
        (page(&["a", "b"]), page(&["b", "a"])),
        (page(&["a"]), page(&["a", "b"])),
        (page(&["a"]), answer(400, json!({"data": {}}))),
        (answer(200, json!({"a": [1, {"b": 2}]})), answer(200, json!({"a": [1, {"b": 3}]}))),
        (answer(200, json!({"a": 1})), answer(200, json!({"a": 1, "b": null}))),
        (answer(400, json!({"data": {"a": {"code": "x"}}})), answer(400, json!({"data": {"a": {"code": "y"}}}))),
        (answer(400, json!({"data": {"a": {}}})), answer(400, json!({"data": {}}))),
    ] {
        assert!(difference(&one, &two).is_some(), "{one:?} {two:?}");
    }
    let times = |time: &str| answer(200, json!({"made": time, "n": 1.0}));
    let (one, mut two) = (times("2026-11-30 10:00:00.000Z"), times("2026-11-30 10:00:00.001Z"));
    two.body["n"] = json!(1);
    assert_eq!(difference(&one, &two), None);
    assert!(difference(&one, &times("")).is_some(), "a time that was not set is no time");
}

//! One value inside a document of a bundle, with the place it stands at, so that a check reads as a sentence.

use serde_json::Value;

use crate::problem::Problems;

/// A value and where it is: the member's path and the field inside it.
#[derive(Debug, Clone)]
pub(crate) struct Node<'a> {
    member: &'a str,
    path: String,
    pub(crate) value: &'a Value,
}

impl<'a> Node<'a> {
    pub(crate) fn root(member: &'a str, value: &'a Value) -> Self {
        Self { member, path: String::new(), value }
    }

    /// `member#field`.
    pub(crate) fn place(&self) -> String {
        if self.path.is_empty() { self.member.to_owned() } else { format!("{}#{}", self.member, self.path) }
    }

    fn child(&self, key: &str, value: &'a Value) -> Self {
        let path = if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
        Self { member: self.member, path, value }
    }

    /// A member of an object. `null` counts as absent, as an empty YAML value means.
    pub(crate) fn get(&self, key: &str) -> Option<Self> {
        self.value.get(key).filter(|value| !value.is_null()).map(|value| self.child(key, value))
    }

    /// As [`Node::get`]; absence is a problem.
    pub(crate) fn need(&self, key: &str, problems: &mut Problems) -> Option<Self> {
        let found = self.get(key);
        if found.is_none() {
            problems.add(self.child(key, self.value).place(), "is required");
        }
        found
    }

    /// The members of an object, in order. Anything else is a problem and gives none.
    pub(crate) fn members(&self, problems: &mut Problems) -> Vec<(&'a str, Self)> {
        let Some(members) = self.value.as_object() else {
            self.problem("must be an object", problems);
            return Vec::new();
        };
        members.iter().map(|(key, value)| (key.as_str(), self.child(key, value))).collect()
    }

    /// The items of a list. Anything else is a problem and gives none.
    pub(crate) fn items(&self, problems: &mut Problems) -> Vec<Self> {
        let Some(items) = self.value.as_array() else {
            self.problem("must be a list", problems);
            return Vec::new();
        };
        let at = |index: usize| format!("{}[{index}]", self.path);
        items.iter().enumerate().map(|(i, value)| Self { member: self.member, path: at(i), value }).collect()
    }

    /// True for an object; no key but these may be in it.
    pub(crate) fn closed(&self, keys: &[&str], problems: &mut Problems) -> bool {
        for (key, member) in self.members(problems) {
            if problems.is_full() {
                break;
            }
            if !keys.contains(&key) {
                problems.add(member.place(), format!("unknown key; known are {}", keys.join(", ")));
            }
        }
        self.value.is_object()
    }

    pub(crate) fn text(&self, problems: &mut Problems) -> Option<&'a str> {
        let text = self.value.as_str();
        if text.is_none() {
            self.problem("must be a text (quote it if it looks like a number or a date)", problems);
        }
        text
    }

    /// A text that is more than blanks.
    pub(crate) fn filled(&self, problems: &mut Problems) -> Option<&'a str> {
        let text = self.text(problems)?;
        if text.trim().is_empty() {
            self.problem("must not be blank", problems);
            return None;
        }
        Some(text)
    }

    /// A text of `min` to `max` characters.
    pub(crate) fn sized(&self, min: usize, max: usize, problems: &mut Problems) -> Option<&'a str> {
        let text = self.text(problems)?;
        if !(min..=max).contains(&text.chars().count()) {
            self.problem(format!("must have {min} to {max} characters"), problems);
            return None;
        }
        Some(text)
    }

    pub(crate) fn one_of(&self, allowed: &[&str], problems: &mut Problems) -> Option<&'a str> {
        let found = self.value.as_str().filter(|text| allowed.contains(text));
        if found.is_none() {
            self.problem(format!("must be one of {}", allowed.join(", ")), problems);
        }
        found
    }

    pub(crate) fn boolean(&self, problems: &mut Problems) -> bool {
        self.value.as_bool().unwrap_or_else(|| {
            self.problem("must be true or false", problems);
            false
        })
    }

    pub(crate) fn whole(&self, min: u64, max: u64, problems: &mut Problems) -> Option<u64> {
        let found = self.value.as_u64().filter(|number| (min..=max).contains(number));
        if found.is_none() {
            self.problem(format!("must be a whole number from {min} to {max}"), problems);
        }
        found
    }

    pub(crate) fn number(&self, min: f64, max: f64, problems: &mut Problems) {
        if !self.value.as_f64().is_some_and(|number| (min..=max).contains(&number)) {
            self.problem(format!("must be a number from {min} to {max}"), problems);
        }
    }

    /// A list of texts, none blank.
    pub(crate) fn texts(&self, problems: &mut Problems) -> Vec<&'a str> {
        self.items(problems).iter().filter_map(|item| item.filled(problems)).collect()
    }

    pub(crate) fn problem(&self, expected: impl Into<String>, problems: &mut Problems) {
        problems.add_got(self.place(), expected, self.value);
    }
}

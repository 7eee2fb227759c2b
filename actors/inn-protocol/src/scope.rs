//! Scopes: one allowed thing each, taken from the app's own description (DESIGN section 5).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// `op:<name>`, `data:<entity>:read`, `data:<entity>:write` or `queue:<capability>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    Operation(String),
    Read(String),
    Write(String),
    Queue(String),
}

/// A text that is not a scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected op:<name>, data:<entity>:read, data:<entity>:write or queue:<capability>")]
pub struct InvalidScope;

fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

impl FromStr for Scope {
    type Err = InvalidScope;

    fn from_str(text: &str) -> Result<Self, InvalidScope> {
        let (kind, rest) = text.split_once(':').ok_or(InvalidScope)?;
        let (name, access) = match rest.rsplit_once(':') {
            Some((name, access)) => (name, Some(access)),
            None => (rest, None),
        };
        if !is_name(name) {
            return Err(InvalidScope);
        }
        match (kind, access) {
            ("op", None) => Ok(Self::Operation(name.to_owned())),
            ("queue", None) => Ok(Self::Queue(name.to_owned())),
            ("data", Some("read")) => Ok(Self::Read(name.to_owned())),
            ("data", Some("write")) => Ok(Self::Write(name.to_owned())),
            _ => Err(InvalidScope),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operation(name) => write!(f, "op:{name}"),
            Self::Read(entity) => write!(f, "data:{entity}:read"),
            Self::Write(entity) => write!(f, "data:{entity}:write"),
            Self::Queue(capability) => write!(f, "queue:{capability}"),
        }
    }
}

impl Serialize for Scope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Scope {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_four_forms_read_back_and_nothing_else_parses() {
        for text in ["op:cards.clear-archived", "data:cards:read", "data:cards:write", "queue:summarise-board"] {
            assert_eq!(text.parse::<Scope>().map(|scope| scope.to_string()), Ok(text.to_owned()));
        }
        for text in
            ["", "op", "op:", "op:a b", "data:cards", "data:cards:admin", "*", "data:*:read", "queue:x:y", "op:a:b"]
        {
            assert!(text.parse::<Scope>().is_err(), "{text}");
        }
    }
}

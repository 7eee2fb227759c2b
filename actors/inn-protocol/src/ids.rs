//! Typed ids. On the wire an id is a prefix and 32 hex digits (`app_0192…`), so that two kinds are never mixed up.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

/// A text that is not an id of the expected kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected an id like {prefix}_<32 hex digits>")]
pub struct InvalidId {
    pub prefix: &'static str,
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Uuid);

        impl $name {
            pub const PREFIX: &'static str = $prefix;

            /// A new id, ordered by the time it was made (UUID version 7).
            #[allow(clippy::new_without_default)]
            pub fn new() -> Self {
                Self(Uuid::now_v7())
            }

            pub const fn from_uuid(uuid: Uuid) -> Self {
                Self(uuid)
            }

            pub const fn uuid(self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "_{}"), self.0.simple())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            fn from_str(text: &str) -> Result<Self, InvalidId> {
                let hex = text.strip_prefix(concat!($prefix, "_")).filter(|hex| hex.len() == 32);
                hex.and_then(|hex| Uuid::try_parse(hex).ok())
                    .map(Self)
                    .ok_or(InvalidId { prefix: $prefix })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

id!(/// The owner and isolation unit.
    TenantId, "ten");
id!(/// A person.
    UserId, "usr");
id!(/// A person's signed-in session.
    SessionId, "ses");
id!(/// An installed app. Opaque: two bundles of one name never meet. Also the name of its database schema.
    AppId, "app");
id!(/// Which agent may act for which person on which app.
    GrantId, "grt");
id!(/// A grant somebody asked for and nobody has decided yet.
    GrantRequestId, "grq");
id!(/// One call. Its receipt and its register entry carry the same id.
    CallId, "call");
id!(/// Work an app asks of an agent.
    RequestId, "req");
id!(/// One run of a long operation.
    JobId, "job");
id!(/// Something that recurs.
    ScheduleId, "sch");
id!(/// One stored file of a record: names its bytes in the object store, where its own name says nothing.
    FileId, "fil");

impl TenantId {
    /// The register of calls that belong to no tenant (an agent registers, a person signs in).
    pub const PLATFORM: Self = Self::from_uuid(Uuid::nil());
}

/// RFC 7638 thumbprint of an Ed25519 public key: base64url of SHA-256, 43 characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct AgentId(String);

impl AgentId {
    pub fn parse(text: &str) -> Option<Self> {
        let valid = text.len() == 43 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
        valid.then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for AgentId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("expected a key thumbprint of 43 characters"))
    }
}

/// A SHA-256 digest; lower-case hex on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    pub fn of(bytes: &[u8]) -> Self {
        use sha2::Digest as _;
        Self(sha2::Sha256::digest(bytes).into())
    }

    pub fn from_hex(text: &str) -> Option<Self> {
        let mut bytes = [0_u8; 32];
        hex::decode_to_slice(text, &mut bytes).ok()?;
        Some(Self(bytes))
    }

    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::from_hex(&text).ok_or_else(|| serde::de::Error::custom("expected 64 hex digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_what_it_wrote_and_refuses_other_kinds() {
        let app = AppId::new();
        assert_eq!(app.to_string().parse::<AppId>(), Ok(app));
        assert!(app.to_string().parse::<GrantId>().is_err());
        assert!(format!("app_{}", app.uuid()).parse::<AppId>().is_err(), "the dashed form is not the wire form");
    }

    #[test]
    fn a_thumbprint_is_43_url_safe_characters() {
        assert!(AgentId::parse("kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k").is_some());
        assert!(AgentId::parse("short").is_none());
        assert!(AgentId::parse("kPrK/qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k").is_none());
    }
}

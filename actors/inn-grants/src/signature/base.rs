//! The signature base: the bytes that are signed (RFC 9421 section 2.5).

use std::borrow::Cow;

use inn_protocol::{Refusal, Result};

use super::{SignedParts, invalid};

/// The components this profile knows, in the order our own signer writes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Component {
    Method,
    Authority,
    Path,
    Query,
    ContentType,
    ContentDigest,
    IdempotencyKey,
    TokenDigest,
    Delegation,
    Claim,
}

impl Component {
    pub(super) const ALL: [Self; 10] = [
        Self::Method,
        Self::Authority,
        Self::Path,
        Self::Query,
        Self::ContentType,
        Self::ContentDigest,
        Self::IdempotencyKey,
        Self::TokenDigest,
        Self::Delegation,
        Self::Claim,
    ];
    /// Covered whatever the HTTP request looks like.
    pub(super) const ALWAYS: [Self; 4] = [Self::Method, Self::Authority, Self::Path, Self::Query];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Method => "@method",
            Self::Authority => "@authority",
            Self::Path => "@path",
            Self::Query => "@query",
            Self::ContentType => "content-type",
            Self::ContentDigest => "content-digest",
            Self::IdempotencyKey => "idempotency-key",
            Self::TokenDigest => "innkeeper-token-digest",
            Self::Delegation => "innkeeper-delegation",
            Self::Claim => "innkeeper-claim",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|component| component.name() == name)
    }

    /// `None` when the HTTP request does not have it.
    pub(super) fn value<'a>(self, parts: &SignedParts<'a>) -> Option<&'a str> {
        match self {
            Self::Method => Some(parts.method),
            Self::Authority => Some(parts.authority),
            Self::Path => Some(if parts.path.is_empty() { "/" } else { parts.path }),
            Self::Query => Some(if parts.query.is_empty() { "?" } else { parts.query }),
            Self::ContentType => parts.content_type,
            Self::ContentDigest => parts.content_digest,
            Self::IdempotencyKey => parts.idempotency_key,
            Self::TokenDigest => parts.token_digest,
            Self::Delegation => parts.delegation,
            Self::Claim => parts.claim,
        }
    }
}

/// A list of different components in a fixed place: no allocation on the hot path.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Covered {
    slots: [Option<Component>; Component::ALL.len()],
    length: usize,
    seen: u16,
}

impl Covered {
    /// False when it is in the list already.
    pub(super) fn push(&mut self, component: Component) -> bool {
        let bit = 1_u16 << (component as u8);
        let Some(slot) = self.slots.get_mut(self.length) else { return false };
        if self.seen & bit != 0 {
            return false;
        }
        *slot = Some(component);
        self.length += 1;
        self.seen |= bit;
        true
    }

    pub(super) fn contains(&self, component: Component) -> bool {
        self.seen & (1_u16 << (component as u8)) != 0
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Component> + '_ {
        self.slots.iter().map_while(|slot| *slot)
    }
}

/// Writes the base. `params` is the value of the Signature-Input member, character for character.
pub(super) fn write(parts: &SignedParts<'_>, covered: &Covered, params: &str) -> Result<String> {
    let room = covered.iter().map(|c| c.name().len() + c.value(parts).map_or(0, str::len) + 5).sum::<usize>();
    let mut base = String::with_capacity(room + params.len() + 24);
    for component in covered.iter() {
        let value = component.value(parts).ok_or_else(|| absent(component))?;
        check(component, value)?;
        base.push('"');
        base.push_str(component.name());
        base.push_str("\": ");
        let start = base.len();
        base.push_str(value);
        if component == Component::Authority
            && let Some(authority) = base.get_mut(start..)
        {
            authority.make_ascii_lowercase();
        }
        base.push('\n');
    }
    base.push_str("\"@signature-params\": ");
    base.push_str(params);
    Ok(base)
}

fn absent(component: Component) -> Refusal {
    let name = component.name();
    invalid(format!("The signature covers \"{name}\" but the HTTP request has none. Sign what is sent."))
}

/// A line break in a value could make one base out of two different HTTP requests.
fn check(component: Component, value: &str) -> Result<()> {
    let derived = Component::ALWAYS.contains(&component);
    let allowed = |byte: u8| (0x21..=0x7e).contains(&byte) || (byte == b' ' && !derived);
    let whole = match component {
        Component::Query => value.starts_with('?'),
        Component::Path => value.starts_with('/') || value == "*",
        _ => value.trim_ascii().len() == value.len() && (!derived || !value.is_empty()),
    };
    if whole && value.bytes().all(allowed) {
        return Ok(());
    }
    let name = component.name();
    Err(invalid(format!("The value of \"{name}\" cannot be signed: only visible ASCII without surrounding space.")))
}

/// The authority to sign for a `Host` header: lower case, without the scheme's default port (RFC 9421 section 2.2.3).
pub fn normalized_authority(host: &str, default_port: u16) -> Cow<'_, str> {
    let host = match host.rsplit_once(':') {
        Some((name, port)) if port.parse() == Ok(default_port) && !name.is_empty() => name,
        _ => host,
    };
    if host.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(host.to_ascii_lowercase())
    } else {
        Cow::Borrowed(host)
    }
}

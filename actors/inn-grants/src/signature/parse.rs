//! Reads `Signature-Input` and `Signature`: a small subset of Structured Fields (RFC 9651), and nothing outside it.

use inn_protocol::{AgentId, Result};

use super::base::{Component, Covered};
use super::{MAX_LIFETIME_SECONDS, invalid};
use crate::encoding::array_from_base64;

/// The longest `Signature-Input` this profile can make is about 500 bytes.
const MAX_INPUT: usize = 1024;
/// A label, `=`, and 64 bytes in base64 between colons.
const MAX_SIGNATURE: usize = 160;
const MAX_LABEL: usize = 32;

/// A well-formed signature that nobody has checked yet. Borrows from the header.
#[derive(Debug, Clone)]
pub struct ParsedSignature<'a> {
    /// Everything after `label=`: the last line of the base repeats it character for character.
    pub(super) params: &'a str,
    pub(super) covered: Covered,
    pub(super) signature: [u8; 64],
    nonce: &'a str,
    agent: AgentId,
    created: i64,
    expires: i64,
}

impl<'a> ParsedSignature<'a> {
    /// Who says they signed (`keyid`): the agent whose key to verify with.
    pub fn agent(&self) -> &AgentId {
        &self.agent
    }

    /// 16 to 64 url-safe characters.
    pub fn nonce(&self) -> &'a str {
        self.nonce
    }

    /// Unix seconds.
    pub fn created(&self) -> i64 {
        self.created
    }

    /// Unix seconds.
    pub fn expires(&self) -> i64 {
        self.expires
    }
}

/// Reads the two headers. Refuses with `invalid_signature` whatever is outside the profile, saying which part.
pub fn parse<'a>(signature_input: &'a str, signature: &str) -> Result<ParsedSignature<'a>> {
    if signature_input.len() > MAX_INPUT {
        return Err(invalid(format!("Signature-Input is longer than {MAX_INPUT} bytes.")));
    }
    if signature.len() > MAX_SIGNATURE {
        return Err(invalid("Signature must hold exactly one Ed25519 signature."));
    }
    let (label, params) = member(signature_input, "Signature-Input")?;
    let (signature_label, value) = member(signature, "Signature")?;
    if label != signature_label {
        return Err(invalid("Signature and Signature-Input must use the same label."));
    }
    let encoded = value.strip_prefix(':').and_then(|rest| rest.strip_suffix(':'));
    let signature = encoded
        .and_then(array_from_base64::<64>)
        .ok_or_else(|| invalid("Signature must be 64 bytes as :base64: with padding, and nothing after it."))?;
    let (covered, rest) = components(params)?;
    Parameters::read(rest)?.finish(params, covered, signature)
}

/// `label=value`, the only member of the dictionary.
fn member<'a>(header: &'a str, name: &str) -> Result<(&'a str, &'a str)> {
    let starts = |byte: u8| byte.is_ascii_lowercase() || byte == b'*';
    let follows = |byte: u8| starts(byte) || byte.is_ascii_digit() || b"_-.".contains(&byte);
    header
        .split_once('=')
        .filter(|(label, _)| label.len() <= MAX_LABEL)
        .filter(|(label, _)| label.bytes().next().is_some_and(starts) && label.bytes().all(follows))
        .ok_or_else(|| invalid(format!("{name} must be one member of the form sig1=….")))
}

/// The inner list. Returns what follows it.
fn components(params: &str) -> Result<(Covered, &str)> {
    let malformed =
        || invalid("Signature-Input must list components as (\"@method\" \"@authority\" …), one space apart.");
    let mut covered = Covered::default();
    let mut rest = params.strip_prefix('(').ok_or_else(malformed)?;
    loop {
        let (name, after) = rest.strip_prefix('"').and_then(|quoted| quoted.split_once('"')).ok_or_else(malformed)?;
        let component = Component::from_name(name).ok_or_else(|| unknown_component(name))?;
        if !covered.push(component) {
            return Err(invalid(format!("Signature-Input covers \"{name}\" twice.")));
        }
        if after.starts_with(';') {
            return Err(invalid(format!("Component \"{name}\" must not have parameters.")));
        }
        if let Some(after) = after.strip_prefix(')') {
            rest = after;
            break;
        }
        rest = after.strip_prefix(' ').ok_or_else(malformed)?;
    }
    match Component::ALWAYS.into_iter().find(|component| !covered.contains(*component)) {
        Some(missing) => Err(invalid(format!("The signature must cover \"{}\".", missing.name()))),
        None => Ok((covered, rest)),
    }
}

fn unknown_component(name: &str) -> inn_protocol::Refusal {
    // Component names come from outside: only plain short ones are echoed.
    let plain = name.len() <= 40 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"@-_".contains(&byte));
    let shown = if plain { name } else { "…" };
    invalid(format!("Component \"{shown}\" does not belong to the profile. Cover what it lists and nothing else."))
}

#[derive(Default)]
struct Parameters<'a> {
    created: Option<i64>,
    expires: Option<i64>,
    nonce: Option<&'a str>,
    key: Option<&'a str>,
    tag: Option<&'a str>,
    algorithm: Option<&'a str>,
}

impl<'a> Parameters<'a> {
    fn read(mut rest: &'a str) -> Result<Self> {
        let mut found = Self::default();
        while !rest.is_empty() {
            if rest.starts_with(',') {
                return Err(invalid("Signature-Input must hold exactly one signature."));
            }
            let Some((name, after)) = rest.strip_prefix(';').and_then(|parameter| parameter.split_once('=')) else {
                return Err(invalid("Signature-Input parameters must have the form ;name=value without spaces."));
            };
            rest = match name {
                "created" => integer(after, "created", &mut found.created)?,
                "expires" => integer(after, "expires", &mut found.expires)?,
                "nonce" => string(after, "nonce", &mut found.nonce)?,
                "keyid" => string(after, "keyid", &mut found.key)?,
                "tag" => string(after, "tag", &mut found.tag)?,
                "alg" => string(after, "alg", &mut found.algorithm)?,
                _ => return Err(invalid("Signature-Input may have created, expires, nonce, keyid, tag and alg only.")),
            };
        }
        Ok(found)
    }

    fn finish(self, params: &'a str, covered: Covered, signature: [u8; 64]) -> Result<ParsedSignature<'a>> {
        let missing = |name: &str| invalid(format!("Signature-Input has no parameter {name}."));
        let created = self.created.ok_or_else(|| missing("created"))?;
        let expires = self.expires.ok_or_else(|| missing("expires"))?;
        let nonce = self.nonce.ok_or_else(|| missing("nonce"))?;
        let key = self.key.ok_or_else(|| missing("keyid"))?;
        if self.tag.ok_or_else(|| missing("tag"))? != "innkeeper" {
            return Err(invalid("The parameter tag must be \"innkeeper\"."));
        }
        if self.algorithm.is_some_and(|name| name != "ed25519") {
            return Err(invalid("The parameter alg must be \"ed25519\" or absent."));
        }
        if !(1..=MAX_LIFETIME_SECONDS).contains(&(expires - created)) {
            return Err(invalid(format!("expires must be 1 to {MAX_LIFETIME_SECONDS} seconds after created.")));
        }
        check_nonce(nonce)?;
        let agent = AgentId::parse(key).ok_or_else(|| invalid("keyid must be the key's RFC 7638 thumbprint."))?;
        Ok(ParsedSignature { params, covered, signature, nonce, agent, created, expires })
    }
}

/// Shared with the signer, so that it never makes what this refuses.
pub(super) fn check_nonce(nonce: &str) -> Result<()> {
    let url_safe = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if (16..=64).contains(&nonce.len()) && nonce.bytes().all(url_safe) {
        return Ok(());
    }
    Err(invalid("nonce must be 16 to 64 characters of A-Z a-z 0-9 - _."))
}

/// An sf-integer of at most 15 digits: unix seconds, never negative. Returns what follows it.
fn integer<'a>(text: &'a str, name: &str, slot: &mut Option<i64>) -> Result<&'a str> {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let number = text.split_at_checked(end).filter(|(digits, _)| (1..=15).contains(&digits.len()));
    let parsed = number.and_then(|(digits, rest)| Some((digits.parse().ok()?, rest)));
    let (value, rest) = parsed.ok_or_else(|| invalid(format!("{name} must be an integer of unix seconds.")))?;
    once(slot, value, name)?;
    Ok(rest)
}

/// An sf-string without escapes (nothing in the profile needs one). Returns what follows it.
fn string<'a>(text: &'a str, name: &str, slot: &mut Option<&'a str>) -> Result<&'a str> {
    let quoted = text.strip_prefix('"').and_then(|rest| rest.split_once('"'));
    let (value, rest) = quoted.ok_or_else(|| invalid(format!("{name} must be a quoted string.")))?;
    once(slot, value, name)?;
    Ok(rest)
}

fn once<T>(slot: &mut Option<T>, value: T, name: &str) -> Result<()> {
    match slot.replace(value) {
        Some(_) => Err(invalid(format!("The parameter {name} appears twice."))),
        None => Ok(()),
    }
}

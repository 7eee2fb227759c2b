//! `Innkeeper-Delegation`: a parent agent lets a helper key use one token (DESIGN section 5, "Token").
//!
//! Whoever holds a token can append blocks, so blocks alone prove nothing about a helper. The statement is signed by the
//! parent agent's own key: `base64url(JSON) "." base64url(signature)`, where the signature is over the ASCII text
//! `innkeeper-delegation:v1`, a line feed, and the first half as it stands in the header.

use inn_protocol::{AgentId, Code, Digest, Refusal, Result};
use serde::{Deserialize, Serialize};

use crate::encoding::{array_from_base64url, from_base64url, to_base64url};
use crate::keys::{PublicKey, SigningKey, same_secret};

/// Longest statement accepted, in bytes; ours have about 310.
pub const MAX_DELEGATION: usize = 512;

/// Keeps the parent's signature from being taken for one over anything else it signs.
const CONTEXT: &str = "innkeeper-delegation:v1\n";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Statement {
    /// Hex SHA-256 of the token as the helper will present it.
    token: Digest,
    /// Thumbprint of the helper's key.
    helper: AgentId,
    /// Unix seconds.
    expires: i64,
}

/// The header value. `token` is the digest of the token exactly as the helper will present it
/// ([`crate::token::VerifiedToken::digest`]); `expires` is in unix seconds.
pub fn sign(parent: &SigningKey, token: Digest, helper: &AgentId, expires: i64) -> Result<String> {
    let statement = Statement { token, helper: helper.clone(), expires };
    let mut text = to_base64url(&serde_json::to_vec(&statement).map_err(|_| Refusal::internal())?);
    let signature = parent.sign(signed(&text).as_bytes());
    text.push('.');
    text.push_str(&to_base64url(&signature));
    Ok(text)
}

/// When a statement ends, in unix seconds. Says nothing about whether it holds.
pub fn expires(header: &str) -> Option<i64> {
    let (text, _) = header.split_once('.')?;
    let statement: Statement = serde_json::from_slice(&from_base64url(text)?).ok()?;
    Some(statement.expires)
}

/// Did this parent let this helper use this token, and does that still hold? `now` is database time in unix seconds.
///
/// Refuses with `invalid_delegation` saying which part does not fit. Whose token it is (`claims.agent`) and whether that
/// agent's key is `parent` is the caller's to look up.
pub fn verify(header: &str, parent: &PublicKey, token: Digest, helper: &AgentId, now: i64) -> Result<()> {
    if header.len() > MAX_DELEGATION {
        return Err(invalid(format!("is longer than {MAX_DELEGATION} bytes")));
    }
    let (text, signature) = header.split_once('.').ok_or_else(malformed)?;
    let signature = array_from_base64url::<64>(signature).ok_or_else(malformed)?;
    if !parent.verify_strict(signed(text).as_bytes(), &signature) {
        return Err(invalid("is not signed by the key of the agent the token was made for"));
    }
    let bytes = from_base64url(text).ok_or_else(malformed)?;
    let statement: Statement = serde_json::from_slice(&bytes).map_err(|_| malformed())?;
    if !same_secret(&statement.token.0, &token.0) {
        return Err(invalid("was made for another token"));
    }
    if statement.helper != *helper {
        return Err(invalid("was made for another helper key than the one that signed the call"));
    }
    if now >= statement.expires {
        return Err(invalid("has expired"));
    }
    Ok(())
}

fn signed(text: &str) -> String {
    [CONTEXT, text].concat()
}

fn malformed() -> Refusal {
    invalid("must be base64url(JSON with token, helper, expires) \".\" base64url(signature)")
}

fn invalid(why: impl AsRef<str>) -> Refusal {
    let message = format!("The Innkeeper-Delegation statement {}. Ask the parent agent for a new one.", why.as_ref());
    Refusal::new(Code::InvalidDelegation, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: i64 = 1_800_000_000;

    fn parent() -> SigningKey {
        SigningKey::from_seed([1; 32])
    }

    fn helper() -> AgentId {
        SigningKey::from_seed([2; 32]).public().thumbprint()
    }

    fn statement() -> String {
        sign(&parent(), Digest::of(b"token"), &helper(), NOW + 60).unwrap()
    }

    #[test]
    fn a_statement_holds_for_its_token_helper_and_time_and_nothing_else() {
        let (parent, stranger) = (parent().public(), SigningKey::from_seed([3; 32]).public());
        let (token, other) = (Digest::of(b"token"), Digest::of(b"other"));
        assert_eq!(verify(&statement(), &parent, token, &helper(), NOW), Ok(()));
        for (key, token, helper, now, word) in [
            (&stranger, token, helper(), NOW, "signed"),
            (&parent, other, helper(), NOW, "another token"),
            (&parent, token, stranger.thumbprint(), NOW, "another helper"),
            (&parent, token, helper(), NOW + 60, "expired"),
        ] {
            let refusal = verify(&statement(), key, token, &helper, now).unwrap_err();
            assert_eq!(refusal.code, Code::InvalidDelegation);
            assert!(refusal.message.contains(word), "{word}: {}", refusal.message);
        }
    }

    #[test]
    fn broken_statements_are_refused() {
        let whole = statement();
        let (text, signature) = whole.split_once('.').unwrap();
        let unknown = to_base64url(br#"{"token":"00","helper":"x","expires":1,"more":1}"#);
        for broken in [
            String::new(),
            ".".to_owned(),
            text.to_owned(),
            format!("{text}."),
            format!("{text}.{signature}="),
            format!("{text}A.{signature}"),
            format!("{text}.{signature}.{signature}"),
            format!("{unknown}.{}", to_base64url(&parent().sign(signed(&unknown).as_bytes()))),
            "x".repeat(MAX_DELEGATION + 1),
        ] {
            let refusal = verify(&broken, &parent().public(), Digest::of(b"token"), &helper(), NOW).unwrap_err();
            assert_eq!(refusal.code, Code::InvalidDelegation, "{broken}");
        }
    }

    #[test]
    fn a_statement_is_shorter_than_its_limit() {
        assert!(statement().len() < 350, "{}", statement().len());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "\\PC{0,200}(\\.\\PC{0,100})?") {
            prop_assert!(verify(&text, &parent().public(), Digest::of(b"token"), &helper(), NOW).is_err());
        }
    }
}

//! HTTP Message Signatures (RFC 9421) in the one profile Innkeeper accepts (DESIGN section 5).
//!
//! The profile: one signature per HTTP request; Ed25519; always `@method`, `@authority`, `@path` and `@query`; every
//! header of [`SignedParts`] that is present and no other component; the parameters `created`, `expires` (1 to 60 s
//! later), `nonce`, `keyid` (the key's RFC 7638 thumbprint) and `tag="innkeeper"`, each once, `alg="ed25519"` allowed.
//! Both headers must be in the canonical serialisation of RFC 9651, so that the text received is the text signed.
//! `vectors/http-signatures.json` has examples to test a client against.
//!
//! Single use of a nonce is not checked here: that needs memory.

mod base;
mod digest;
mod parse;
mod sign;
mod verify;

use inn_protocol::{AgentId, Code, Refusal};

pub use base::normalized_authority;
pub use digest::{check_content_digest, check_content_sha256, check_token_digest, content_digest, token_digest};
pub use parse::{ParsedSignature, parse};
pub use sign::sign;
pub use verify::verify;

/// Longest time from `created` to `expires`, in seconds.
pub const MAX_LIFETIME_SECONDS: i64 = 60;

/// How far ahead of the server's clock `created` may lie, in seconds.
pub const MAX_AHEAD_SECONDS: i64 = 30;

/// What a signature speaks for. Header values are given as received, without surrounding white space; a header that was
/// sent twice must be refused before (RFC 9421 would join the two, which nobody means).
#[derive(Debug, Clone, Copy, Default)]
pub struct SignedParts<'a> {
    /// In capitals, as on the request line.
    pub method: &'a str,
    /// Host and port the client addressed; see [`normalized_authority`]. Signed in lower case.
    pub authority: &'a str,
    /// As on the request line, percent-encoded; an empty path is signed as `/`.
    pub path: &'a str,
    /// With its leading `?`; empty or `?` when there is none (RFC 9421 section 2.2.7).
    pub query: &'a str,
    pub content_type: Option<&'a str>,
    /// `Content-Digest` (RFC 9530).
    pub content_digest: Option<&'a str>,
    pub idempotency_key: Option<&'a str>,
    /// `Innkeeper-Token-Digest`: digest of the token that came with the call.
    pub token_digest: Option<&'a str>,
    /// `Innkeeper-Delegation`: the parent agent's statement for a helper key.
    pub delegation: Option<&'a str>,
    /// `Innkeeper-Claim`: the claim a queue call belongs to.
    pub claim: Option<&'a str>,
}

/// The two headers that carry a signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignatureHeaders {
    pub signature_input: String,
    pub signature: String,
}

/// A signature that held. `base` and `signature` are what the register keeps: with the agent's public key they prove,
/// without us, what was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedSignature {
    pub base: String,
    pub signature: [u8; 64],
    pub nonce: String,
    pub agent: AgentId,
    /// Unix seconds.
    pub created: i64,
    /// Unix seconds; the nonce must be remembered until then.
    pub expires: i64,
}

fn invalid(message: impl Into<String>) -> Refusal {
    Refusal::new(Code::InvalidSignature, message)
}

#[cfg(test)]
mod tests;

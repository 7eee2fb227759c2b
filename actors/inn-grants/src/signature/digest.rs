//! Digests of bodies and tokens (RFC 9530): `sha-256=:<base64>:`.

use inn_protocol::{Code, Digest, Refusal, Result};

use crate::encoding::{array_from_base64, push_base64};
use crate::keys::same_secret;

/// The value of `Content-Digest` for a body.
pub fn content_digest(body: &[u8]) -> String {
    digest_text(Digest::of(body))
}

/// Compares a `Content-Digest` with the body that came. Exactly one digest, SHA-256.
pub fn check_content_digest(header: &str, body: &[u8]) -> Result<()> {
    check(header, body, "Content-Digest", "body")
}

/// [`check_content_digest`] for a body that was read piece by piece: `sha256` is the digest of what came.
pub fn check_content_sha256(header: &str, sha256: Digest) -> Result<()> {
    compare(header, sha256, "Content-Digest", "body")
}

/// The value of `Innkeeper-Token-Digest` for a token, as presented.
pub fn token_digest(token: &str) -> String {
    digest_text(Digest::of(token.as_bytes()))
}

/// Compares an `Innkeeper-Token-Digest` with the token that came.
pub fn check_token_digest(header: &str, token: &str) -> Result<()> {
    check(header, token.as_bytes(), "Innkeeper-Token-Digest", "token")
}

pub(crate) fn digest_text(digest: Digest) -> String {
    let mut text = String::with_capacity(54);
    text.push_str("sha-256=:");
    push_base64(&digest.0, &mut text);
    text.push(':');
    text
}

fn check(header: &str, bytes: &[u8], name: &str, what: &str) -> Result<()> {
    compare(header, Digest::of(bytes), name, what)
}

fn compare(header: &str, found: Digest, name: &str, what: &str) -> Result<()> {
    let stated = header.strip_prefix("sha-256=:").and_then(|rest| rest.strip_suffix(':'));
    let Some(stated) = stated.and_then(array_from_base64::<32>) else {
        return Err(Refusal::new(
            Code::DigestMismatch,
            format!("{name} must be exactly sha-256=:<base64 of 32 bytes>:."),
        ));
    };
    if same_secret(&stated, &found.0) {
        return Ok(());
    }
    let message = format!("{name} is not the digest of the {what} that arrived. Compute it over the exact bytes sent.");
    Err(Refusal::new(Code::DigestMismatch, message))
}

//! The client's half: makes the two headers.

use std::fmt::Write as _;

use inn_protocol::Result;

use super::base::{self, Component, Covered};
use super::parse::check_nonce;
use super::{MAX_LIFETIME_SECONDS, SignatureHeaders, SignedParts, invalid};
use crate::encoding::push_base64;
use crate::keys::SigningKey;

/// Signs an HTTP request under the label `sig1`, covering everything `parts` has.
///
/// `created` and `expires` are unix seconds; `nonce` is 16 to 64 url-safe characters that this key never used before.
/// Refuses what the verifier would refuse: a value that cannot be signed, a bad nonce, a life over 60 s.
pub fn sign(
    key: &SigningKey,
    parts: &SignedParts<'_>,
    created: i64,
    expires: i64,
    nonce: &str,
) -> Result<SignatureHeaders> {
    check_nonce(nonce)?;
    if created < 0 || !(1..=MAX_LIFETIME_SECONDS).contains(&expires.saturating_sub(created)) {
        return Err(invalid(format!("expires must be 1 to {MAX_LIFETIME_SECONDS} seconds after created.")));
    }
    let mut covered = Covered::default();
    for component in Component::ALL {
        if component.value(parts).is_some() {
            covered.push(component);
        }
    }
    let mut params = String::with_capacity(320);
    params.push('(');
    for (index, component) in covered.iter().enumerate() {
        let space = if index == 0 { "" } else { " " };
        // Writing to a String cannot fail.
        let _ = write!(params, "{space}\"{}\"", component.name());
    }
    let keyid = key.public().thumbprint();
    let _ = write!(
        params,
        ");created={created};expires={expires};nonce=\"{nonce}\";keyid=\"{keyid}\";alg=\"ed25519\";tag=\"innkeeper\""
    );
    let base = base::write(parts, &covered, &params)?;
    let mut signature = String::with_capacity(95);
    signature.push_str("sig1=:");
    push_base64(&key.sign(base.as_bytes()), &mut signature);
    signature.push(':');
    Ok(SignatureHeaders { signature_input: format!("sig1={params}"), signature })
}

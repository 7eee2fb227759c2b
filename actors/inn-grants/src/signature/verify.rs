//! The server's half: does this signature speak for this HTTP request, now, under this key?

use inn_protocol::{Code, Refusal, Result};

use super::base::{self, Component};
use super::parse::ParsedSignature;
use super::{MAX_AHEAD_SECONDS, SignedParts, VerifiedSignature, invalid};
use crate::keys::PublicKey;

/// Checks time, coverage, key and signature, cheapest first. `now` is database time in unix seconds.
///
/// Refuses with `signature_expired` when `expires` has passed, else with `invalid_signature` saying why. Afterwards the
/// caller still has to use up the nonce.
pub fn verify(
    parsed: &ParsedSignature<'_>,
    parts: &SignedParts<'_>,
    key: &PublicKey,
    now: i64,
) -> Result<VerifiedSignature> {
    if now >= parsed.expires() {
        let late = now.saturating_sub(parsed.expires());
        let message = format!("The signature expired {late} s ago. Sign each HTTP request just before sending it.");
        return Err(Refusal::new(Code::SignatureExpired, message));
    }
    let ahead = parsed.created().saturating_sub(now);
    if ahead > MAX_AHEAD_SECONDS {
        return Err(invalid(format!(
            "created lies {ahead} s ahead of the server's clock. Set your clock and sign again."
        )));
    }
    for component in Component::ALL {
        if component.value(parts).is_some() && !parsed.covered.contains(component) {
            let name = component.name();
            return Err(invalid(format!("The HTTP request has \"{name}\", so the signature must cover it.")));
        }
    }
    if key.thumbprint() != *parsed.agent() {
        return Err(invalid("keyid is not the thumbprint of the key this agent registered."));
    }
    let base = base::write(parts, &parsed.covered, parsed.params)?;
    if !key.verify_strict(base.as_bytes(), &parsed.signature) {
        return Err(invalid(
            "The signature does not fit the HTTP request that arrived. Compare your signature base with the published vectors.",
        ));
    }
    Ok(VerifiedSignature {
        base,
        signature: parsed.signature,
        nonce: parsed.nonce().to_owned(),
        agent: parsed.agent().clone(),
        created: parsed.created(),
        expires: parsed.expires(),
    })
}

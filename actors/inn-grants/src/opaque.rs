//! Random opaque secrets: session tokens, loopback agent tokens, one-time codes. Only their digest is stored.

use inn_protocol::Digest;

use crate::encoding::to_base64url;

/// `<prefix>_<43 characters>` and the digest to store. `random` must be fresh from a cryptographic source.
///
/// 256 random bits need no slow hash: looking up by digest is safe, and no comparison of secrets happens at all.
pub fn opaque_token(random: [u8; 32], prefix: &str) -> (String, Digest) {
    let token = format!("{prefix}_{}", to_base64url(&random));
    let digest = opaque_digest(&token);
    (token, digest)
}

/// The digest under which a presented token would be stored.
pub fn opaque_digest(token: &str) -> Digest {
    Digest::of(token.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_found_by_its_digest_and_different_bytes_make_different_tokens() {
        let (token, digest) = opaque_token([1; 32], "ses");
        assert!(token.starts_with("ses_") && token.len() == 4 + 43);
        assert_eq!(opaque_digest(&token), digest);
        assert_ne!(opaque_token([2; 32], "ses").1, digest);
        assert_ne!(opaque_token([1; 32], "lui").1, digest, "one kind of token is never taken for another");
    }
}

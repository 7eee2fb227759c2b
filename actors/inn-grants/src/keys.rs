//! Ed25519 keys and their names (RFC 8032, RFC 8037, RFC 7638).

use std::fmt;

use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{DecodePrivateKey as _, EncodePrivateKey as _, KeypairBytes};
use ed25519_dalek::{Signature, Signer as _, VerifyingKey};
use inn_protocol::{AgentId, Code, Digest, Refusal, Result};
use serde_json::{Value, json};
use subtle::ConstantTimeEq as _;
use zeroize::Zeroize as _;

use crate::encoding::{array_from_base64url, to_base64url};

/// A private key. Its bytes are wiped when it is dropped and never printed.
#[derive(Clone)]
pub struct SigningKey(ed25519_dalek::SigningKey);

impl SigningKey {
    /// The key of a 32-byte seed (RFC 8032 section 5.1.5). The seed must come from a cryptographic random source.
    pub fn from_seed(seed: [u8; 32]) -> Self {
        Self(ed25519_dalek::SigningKey::from_bytes(&seed))
    }

    /// The seed, for a key file and nothing else.
    pub fn seed(&self) -> Seed {
        Seed(self.0.to_bytes())
    }

    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }

    /// PKCS#8 version 1 in PEM (RFC 8410 section 7), the form `openssl pkey` reads and writes.
    pub fn to_pkcs8_pem(&self) -> Result<SecretText> {
        let mut pair = KeypairBytes { secret_key: self.0.to_bytes(), public_key: None };
        let pem = pair.to_pkcs8_pem(LineEnding::LF);
        pair.secret_key.zeroize();
        pem.map(|pem| SecretText((*pem).clone())).map_err(|_| Refusal::internal())
    }

    /// Reads what [`Self::to_pkcs8_pem`] or `openssl genpkey -algorithm ed25519` wrote.
    pub fn from_pkcs8_pem(text: &str) -> Result<Self> {
        ed25519_dalek::SigningKey::from_pkcs8_pem(text.trim()).map(Self).map_err(|_| {
            Refusal::new(
                Code::InvalidParameter,
                "The key file does not hold an Ed25519 private key in PKCS#8 PEM form.",
            )
        })
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey(of {})", self.public().thumbprint())
    }
}

/// The 32 secret bytes of a [`SigningKey`], wiped when dropped.
pub struct Seed([u8; 32]);

impl Seed {
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl Drop for Seed {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for Seed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seed(hidden)")
    }
}

/// A text that holds a secret, wiped when dropped.
pub struct SecretText(String);

impl SecretText {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Drop for SecretText {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretText(hidden)")
    }
}

/// A public key that is a point of the curve, canonically encoded and not of small order.
///
/// Holds the decompressed point, so that a cached key verifies without paying for that again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// Refuses bytes that are no point, that encode a point in a second way (one key must have one thumbprint), and the
    /// points of small order, under which one signature fits many messages.
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self> {
        let key = VerifyingKey::from_bytes(bytes).map_err(|_| invalid_key("is not a point of the Ed25519 curve"))?;
        if key.is_weak() {
            return Err(invalid_key("is a point of small order"));
        }
        if key.to_edwards().compress().as_bytes() != bytes {
            return Err(invalid_key("is not canonically encoded"));
        }
        Ok(Self(key))
    }

    /// 43 characters of base64url without padding, the `x` of a JWK.
    pub fn parse_base64url(text: &str) -> Result<Self> {
        let bytes = array_from_base64url(text)
            .ok_or_else(|| invalid_key("must be 32 bytes in base64url without padding (43 characters)"))?;
        Self::from_bytes(&bytes)
    }

    pub fn to_base64url(&self) -> String {
        to_base64url(self.as_bytes())
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }

    /// The agent's id: SHA-256 over the JWK's required members in lexical order (RFC 7638 section 3, RFC 8037 section 2).
    pub fn thumbprint(&self) -> AgentId {
        let mut jwk = String::with_capacity(96);
        jwk.push_str(r#"{"crv":"Ed25519","kty":"OKP","x":""#);
        jwk.push_str(&self.to_base64url());
        jwk.push_str(r#""}"#);
        let text = to_base64url(&Digest::of(jwk.as_bytes()).0);
        // 32 bytes always make 43 characters of this alphabet.
        AgentId::parse(&text).unwrap_or_else(|| unreachable!("a thumbprint is 43 url-safe characters"))
    }

    /// Strict verification: small-order components are refused and `s` must be reduced (RFC 8032 section 5.1.7).
    pub fn verify_strict(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        self.0.verify_strict(message, &Signature::from_bytes(signature)).is_ok()
    }

    /// JSON Web Key (RFC 8037 section 2).
    pub fn jwk(&self) -> Value {
        json!({"kty": "OKP", "crv": "Ed25519", "x": self.to_base64url()})
    }

    /// Reads a public JWK. A JWK with the private member `d` is refused: whoever sends one has just published a secret.
    pub fn from_jwk(jwk: &Value) -> Result<Self> {
        let member = |name: &str| jwk.get(name).and_then(Value::as_str);
        if member("kty") != Some("OKP") || member("crv") != Some("Ed25519") {
            return Err(invalid_key("must be a JWK with kty OKP and crv Ed25519"));
        }
        if jwk.get("d").is_some() {
            return Err(invalid_key("contains the private member d: this key is burnt, make a new one"));
        }
        Self::parse_base64url(member("x").ok_or_else(|| invalid_key("has no member x"))?)
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.to_base64url())
    }
}

/// Compares in a time that does not depend on where two secrets differ (it does depend on their lengths).
pub fn same_secret(left: &[u8], right: &[u8]) -> bool {
    left.ct_eq(right).into()
}

fn invalid_key(why: &str) -> Refusal {
    Refusal::new(Code::InvalidParameter, format!("The public key {why}."))
}

#[cfg(test)]
mod tests;

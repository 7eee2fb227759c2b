//! Tokens of an app's own users, in PocketBase's shape: JWT with HS256 (RFC 7515, RFC 7519) and the claims `id`, `type`,
//! `collectionId`, `exp` and what belongs to the type (`reference` notes on PocketBase, section E).
//!
//! The key of a token is made from the app's secret, the kind of token, the collection and the record's `tokenKey`: a
//! new `tokenKey` ends everything that was ever made with the old one, and a token of one kind never passes for another.

use std::fmt;

use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use zeroize::Zeroize as _;

use crate::encoding::{from_base64url, to_base64url};

/// PocketBase's id of the collection of superusers: who holds such a token says so in `collectionId`.
pub const SUPERUSERS_ID: &str = "pbc_3142635823";
pub const SUPERUSERS: &str = "_superusers";

/// `{"alg":"HS256","typ":"JWT"}`. The only header that is made, and the only one that is read: there is no algorithm to
/// choose for whoever shows a token.
const HEADER: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9";
/// Longest token that is looked at, in bytes.
const LONGEST: usize = 4096;

/// The secret of one app that all its users' tokens hang on. Wiped when dropped, never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct AppSecret([u8; 32]);

impl AppSecret {
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// A keyed digest under a purpose of its own: for one-time codes, which are too short for a plain one.
    pub fn digest(&self, purpose: &str, text: &str) -> [u8; 32] {
        self.mac(&["digest", purpose, text]).finalize().into_bytes().into()
    }

    /// The parts with their lengths, so that ("ab", "c") and ("a", "bc") differ.
    fn mac(&self, parts: &[&str]) -> Hmac<Sha256> {
        let mut mac = keyed(&self.0);
        for part in parts {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part.as_bytes());
        }
        mac
    }

    fn key(&self, kind: Kind, collection: &str, token_key: &str) -> Hmac<Sha256> {
        let key: [u8; 32] = self.mac(&["token", kind.as_str(), collection, token_key]).finalize().into_bytes().into();
        keyed(&key)
    }
}

pub(crate) fn keyed(key: &[u8; 32]) -> Hmac<Sha256> {
    let mut block = [0_u8; 64];
    for (to, from) in block.iter_mut().zip(key) {
        *to = *from;
    }
    // A key of exactly one block: nothing to refuse, nothing to shorten.
    Hmac::<Sha256>::new(&block.into())
}

impl Drop for AppSecret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for AppSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AppSecret(hidden)")
    }
}

/// What a token is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Kind {
    Auth,
    File,
    Verification,
    PasswordReset,
    EmailChange,
}

impl Kind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::File => "file",
            Self::Verification => "verification",
            Self::PasswordReset => "passwordReset",
            Self::EmailChange => "emailChange",
        }
    }
}

/// What a token says. Claims that do not belong to its kind are left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Claims {
    pub collection_id: String,
    /// Seconds since 1970.
    pub exp: i64,
    /// The record.
    pub id: String,
    /// A token for auth may be exchanged for a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refreshable: Option<bool>,
    #[serde(rename = "type")]
    pub kind: Kind,
    /// The record's email when the token was made: verification, password reset, email change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_email: Option<String>,
    /// Makes a token unlike every other; those of owners, which are found by their digest, are random through it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jti: Option<String>,
}

/// Does it look like such a token? (A Biscuit has no dots, a session token neither.)
pub fn is_one(token: &str) -> bool {
    token.len() <= LONGEST && token.split('.').count() == 3
}

/// Makes a token. `token_key` is the record's.
pub fn mint(claims: &Claims, secret: &AppSecret, token_key: &str) -> String {
    // Claims are texts and numbers; they always have a JSON form.
    let body = serde_json::to_vec(claims).unwrap_or_default();
    let signed = format!("{HEADER}.{}", to_base64url(&body));
    let mut mac = secret.key(claims.kind, &claims.collection_id, token_key);
    mac.update(signed.as_bytes());
    let signature: [u8; 32] = mac.finalize().into_bytes().into();
    format!("{signed}.{}", to_base64url(&signature))
}

/// What a token claims, before anybody has checked it: says which record's key to look up.
pub fn peek(token: &str) -> Option<Claims> {
    let (_, claims, _) = parts(token)?;
    Some(claims)
}

/// The claims of a token that was made with this record's key and is of this kind and not out of date.
pub fn verify(token: &str, kind: Kind, secret: &AppSecret, token_key: &str, now: i64) -> Option<Claims> {
    let (signed, claims, signature) = parts(token)?;
    let mut mac = secret.key(kind, &claims.collection_id, token_key);
    mac.update(signed.as_bytes());
    mac.verify_slice(&signature).ok()?;
    // A record without a key has no tokens, whatever was made of the empty one.
    (claims.kind == kind && claims.exp > now && !token_key.is_empty()).then_some(claims)
}

fn parts(token: &str) -> Option<(&str, Claims, Vec<u8>)> {
    if token.len() > LONGEST {
        return None;
    }
    let (signed, signature) = token.rsplit_once('.')?;
    let (header, body) = signed.split_once('.')?;
    if header != HEADER {
        return None;
    }
    let claims = serde_json::from_slice(&from_base64url(body)?).ok()?;
    Some((signed, claims, from_base64url(signature)?))
}

#[cfg(test)]
mod tests;

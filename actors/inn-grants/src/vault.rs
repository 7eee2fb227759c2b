//! Secrets at rest: what the platform has to keep and be able to read again (an app's token secret), sealed with a key
//! that is not in the database. XChaCha20-Poly1305; what a secret is for is bound to it as associated data, so that one
//! moved to another row cannot be opened there.

use std::collections::BTreeMap;
use std::fmt;

use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use inn_protocol::{AppId, TenantId};
use zeroize::{Zeroize as _, Zeroizing};

use crate::encoding::{array_from_base64url, to_base64url};

const NONCE: usize = 24;

/// A key that seals, 32 bytes. Wiped when it is dropped and never printed.
#[derive(Clone)]
pub struct SecretKey([u8; 32]);

impl SecretKey {
    /// The bytes must come from a cryptographic random source.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// For a key file and nothing else.
    pub fn to_base64url(&self) -> Zeroizing<String> {
        Zeroizing::new(to_base64url(&self.0))
    }

    /// What [`Self::to_base64url`] wrote.
    pub fn from_base64url(text: &str) -> Option<Self> {
        array_from_base64url(text).map(Self)
    }
}

impl Drop for SecretKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(hidden)")
    }
}

/// The key that seals now, and older ones that still open what they sealed.
pub struct Vault {
    current: u32,
    keys: BTreeMap<u32, SecretKey>,
}

/// A sealed secret, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed {
    /// Number of the key.
    pub key: u32,
    /// Nonce, ciphertext and tag.
    pub bytes: Vec<u8>,
}

/// Whose secret it is and what for.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    pub tenant: TenantId,
    pub app: AppId,
    pub purpose: &'a str,
}

impl Place<'_> {
    fn bound(&self, key: u32) -> String {
        format!("innkeeper secret\n{key}\n{}\n{}\n{}", self.tenant, self.app, self.purpose)
    }
}

/// Why a sealed secret could not be opened; for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VaultError {
    #[error("it was sealed with key number {0}, which is not in the key directory")]
    UnknownKey(u32),
    #[error("it was changed, or belongs to another place")]
    Damaged,
}

impl Vault {
    /// `keys` by number; the highest one seals. `None` without any.
    pub fn new(keys: BTreeMap<u32, SecretKey>) -> Option<Self> {
        let current = *keys.last_key_value()?.0;
        Some(Self { current, keys })
    }

    /// Number of the key that seals.
    pub const fn current(&self) -> u32 {
        self.current
    }

    /// Whether what this key sealed can be opened here.
    pub fn knows(&self, key: u32) -> bool {
        self.keys.contains_key(&key)
    }

    /// `nonce` must be fresh random bytes.
    pub fn seal(&self, secret: &[u8], place: Place<'_>, nonce: [u8; NONCE]) -> Result<Sealed, VaultError> {
        let bound = place.bound(self.current);
        let payload = Payload { msg: secret, aad: bound.as_bytes() };
        let sealed = self.cipher(self.current)?.encrypt(&XNonce::from(nonce), payload);
        let sealed = sealed.map_err(|_| VaultError::Damaged)?;
        Ok(Sealed { key: self.current, bytes: [nonce.as_slice(), &sealed].concat() })
    }

    pub fn open(&self, sealed: &Sealed, place: Place<'_>) -> Result<Vec<u8>, VaultError> {
        let (nonce, ciphertext) = sealed.bytes.split_first_chunk::<NONCE>().ok_or(VaultError::Damaged)?;
        let bound = place.bound(sealed.key);
        let payload = Payload { msg: ciphertext, aad: bound.as_bytes() };
        self.cipher(sealed.key)?.decrypt(&XNonce::from(*nonce), payload).map_err(|_| VaultError::Damaged)
    }

    fn cipher(&self, key: u32) -> Result<XChaCha20Poly1305, VaultError> {
        let key = self.keys.get(&key).ok_or(VaultError::UnknownKey(key))?;
        Ok(XChaCha20Poly1305::new(&Key::from(key.0)))
    }
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vault").field("current", &self.current).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn vault(numbers: &[u8]) -> Vault {
        Vault::new(numbers.iter().map(|n| (u32::from(*n), SecretKey::from_bytes([*n; 32]))).collect()).unwrap()
    }

    fn place() -> Place<'static> {
        let id = |n| Uuid::from_u128(n);
        Place { tenant: TenantId::from_uuid(id(1)), app: AppId::from_uuid(id(2)), purpose: "app tokens" }
    }

    #[test]
    fn what_was_sealed_is_opened_again_and_looks_like_nothing() {
        let vault = vault(&[1]);
        let sealed = vault.seal(b"secret", place(), [7; 24]).unwrap();
        assert_eq!(vault.open(&sealed, place()).unwrap(), b"secret");
        assert!(!sealed.bytes.windows(6).any(|window| window == b"secret"));
        assert_ne!(vault.seal(b"secret", place(), [8; 24]).unwrap(), sealed, "the nonce counts");
    }

    #[test]
    fn a_secret_moved_to_another_place_is_not_opened() {
        let vault = vault(&[1]);
        let sealed = vault.seal(b"secret", place(), [7; 24]).unwrap();
        let other = Uuid::from_u128(9);
        for elsewhere in [
            Place { tenant: TenantId::from_uuid(other), ..place() },
            Place { app: AppId::from_uuid(other), ..place() },
            Place { purpose: "mail", ..place() },
        ] {
            assert_eq!(vault.open(&sealed, elsewhere), Err(VaultError::Damaged));
        }
    }

    #[test]
    fn after_rotation_the_new_key_seals_and_the_old_one_still_opens() {
        let old = vault(&[1]).seal(b"secret", place(), [7; 24]).unwrap();
        let rotated = vault(&[1, 2]);
        assert_eq!(rotated.open(&old, place()).unwrap(), b"secret");
        let new = rotated.seal(b"secret", place(), [7; 24]).unwrap();
        assert_eq!(new.key, 2);
        assert_eq!(vault(&[1]).open(&new, place()), Err(VaultError::UnknownKey(2)));
        assert!(rotated.open(&Sealed { key: 1, ..new }, place()).is_err(), "the key's number is bound, too");
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let vault = vault(&[1]);
        let sealed = vault.seal(b"secret", place(), [7; 24]).unwrap();
        for at in 0..sealed.bytes.len() {
            let mut changed = sealed.clone();
            changed.bytes[at] ^= 1;
            assert_eq!(vault.open(&changed, place()), Err(VaultError::Damaged), "byte {at}");
        }
        for short in [0, 23, 24, 39] {
            let cut = Sealed { key: 1, bytes: sealed.bytes[..short].to_vec() };
            assert_eq!(vault.open(&cut, place()), Err(VaultError::Damaged));
        }
    }

    #[test]
    fn keys_are_never_printed() {
        let text = format!("{:?} {:?}", SecretKey::from_bytes([0xab; 32]), vault(&[1]));
        assert!(!text.contains("171") && !text.to_lowercase().contains("ab, ab"), "{text}");
    }
}

//! The platform's token keys: one signs, older ones stay valid for verifying until their tokens have expired.

use std::fmt;

use biscuit_auth::{Algorithm, KeyPair, PrivateKey};
use inn_protocol::{Refusal, Result};

use crate::cursor::CursorKey;
use crate::keys::{PublicKey, SigningKey};

/// The signing half. Its number travels in each token (`root_key_id`) and names the key to verify with.
pub struct RootKeys {
    pub(super) pair: KeyPair,
    pub(super) id: u32,
    public: RootPublicKeys,
    cursors: CursorKey,
}

impl RootKeys {
    /// `older` are earlier keys with their numbers, still good for verifying. Refuses a number given twice.
    pub fn new(id: u32, key: &SigningKey, older: &[(u32, PublicKey)]) -> Result<Self> {
        let keys = std::iter::once((id, key.public())).chain(older.iter().copied());
        let cursors = CursorKey::of(key.seed().as_bytes());
        Ok(Self { pair: pair(key.seed().as_bytes())?, id, public: RootPublicKeys::new(keys)?, cursors })
    }

    pub fn public(&self) -> &RootPublicKeys {
        &self.public
    }

    /// What seals cursors of streams; a cursor ends with the key.
    pub const fn cursors(&self) -> &CursorKey {
        &self.cursors
    }
}

impl fmt::Debug for RootKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RootKeys").field("id", &self.id).field("public", &self.public).finish_non_exhaustive()
    }
}

/// The verifying half.
#[derive(Clone)]
pub struct RootPublicKeys(Vec<(u32, PublicKey, biscuit_auth::PublicKey)>);

impl RootPublicKeys {
    /// Refuses a number given twice (`internal`: key files that contradict each other are the host's fault).
    pub fn new(keys: impl IntoIterator<Item = (u32, PublicKey)>) -> Result<Self> {
        let mut known: Vec<(u32, PublicKey, biscuit_auth::PublicKey)> = Vec::new();
        for (id, key) in keys {
            if known.iter().any(|(other, ..)| *other == id) {
                return Err(Refusal::internal());
            }
            let theirs = biscuit_auth::PublicKey::from_bytes(key.as_bytes(), Algorithm::Ed25519);
            known.push((id, key, theirs.map_err(|_| Refusal::internal())?));
        }
        Ok(Self(known))
    }

    /// Number and key, the signing one first.
    pub fn iter(&self) -> impl Iterator<Item = (u32, PublicKey)> + '_ {
        self.0.iter().map(|(id, key, _)| (*id, *key))
    }

    pub(super) fn find(&self, id: Option<u32>) -> Option<biscuit_auth::PublicKey> {
        self.0.iter().find(|(known, ..)| Some(*known) == id).map(|(.., key)| *key)
    }
}

impl fmt::Debug for RootPublicKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// A key pair of the library's own kind. Any 32 bytes are a seed, so this fails only if the library changes its mind.
pub(super) fn pair(seed: &[u8; 32]) -> Result<KeyPair> {
    let private = PrivateKey::from_bytes(seed, Algorithm::Ed25519).map_err(|_| Refusal::internal())?;
    Ok(KeyPair::from(&private))
}

//! The platform's keys: one signs tokens, one signs the register's heads, one seals secrets in the database.
//!
//! They are files: `token-<n>.pem` and `register-<n>.pem` (PKCS#8, private) and `…-<n>.pub` (base64url, public only).
//! The highest number with a private key signs; every other one stays for verifying. Which means that several nodes
//! rotate without a gap: give all of them the new `.pub` first, then the new `.pem`. The third kind has no public half:
//! `secrets` says more.

mod files;
mod secrets;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use inn_grants::seal::HeadStatement;
use inn_grants::token::RootKeys;
use inn_grants::vault::Vault;
use inn_grants::{PublicKey, SigningKey, seal};
use inn_protocol::Digest;
use inn_store::{HeadSigner, UnsignedHead};
use serde_json::{Value, json};

/// What a key is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// Signs agents' tokens.
    Token,
    /// Signs the register's heads.
    Register,
    /// Seals secrets in the database.
    Secret,
}

impl Kind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::Register => "register",
            Self::Secret => "secret",
        }
    }
}

/// Why the keys cannot be used; names the file and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {what}", path.display())]
pub struct KeyError {
    pub path: PathBuf,
    pub what: String,
}

/// Whose directory it is decides how it must be protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Below the data directory: ours alone, and made when missing.
    Made,
    /// Named by a setting, often a read-only mount shared with a group: never written.
    Given,
}

/// One kind's keys.
struct Line {
    id: u32,
    key: SigningKey,
    /// Every other number, for verifying.
    others: BTreeMap<u32, PublicKey>,
}

impl Line {
    fn public(&self) -> impl Iterator<Item = (u32, PublicKey)> {
        std::iter::once((self.id, self.key.public())).chain(self.others.iter().map(|(id, key)| (*id, *key)))
    }
}

/// All keys of the platform.
pub struct KeyRing {
    token: Line,
    register: Line,
    vault: Arc<Vault>,
}

impl KeyRing {
    /// Reads the keys. Missing ones are made when the directory is ours, and refused when it was given.
    pub fn open(dir: &Path, origin: Origin) -> Result<Self, KeyError> {
        if origin == Origin::Made {
            files::ensure_dir(dir)?;
        }
        files::check_dir(dir, origin)?;
        Ok(Self {
            token: line(dir, origin, Kind::Token)?,
            register: line(dir, origin, Kind::Register)?,
            vault: Arc::new(secrets::open(dir, origin)?),
        })
    }

    /// Reads the keys and makes none.
    pub fn look(dir: &Path, origin: Origin) -> Result<(), KeyError> {
        files::check_dir(dir, origin)?;
        existing(dir, origin, Kind::Token)?;
        existing(dir, origin, Kind::Register)?;
        secrets::look(dir, origin)
    }

    /// Seals and opens what is kept in the database.
    pub fn vault(&self) -> Arc<Vault> {
        Arc::clone(&self.vault)
    }

    /// Mints and verifies tokens.
    pub fn root(&self) -> Result<RootKeys, KeyError> {
        let older: Vec<_> = self.token.others.iter().map(|(id, key)| (*id, *key)).collect();
        RootKeys::new(self.token.id, &self.token.key, &older)
            .map_err(|refusal| KeyError { path: PathBuf::from("token keys"), what: refusal.message })
    }

    /// What `/v1/keys` answers. `id` of a token key is the number a token names its root key by.
    pub fn published(&self) -> Value {
        let jwk = |(id, key): (u32, PublicKey), kind: Kind| {
            let mut jwk = key.jwk();
            if let Some(members) = jwk.as_object_mut() {
                members.insert("kid".to_owned(), json!(key.thumbprint()));
                members.insert("use".to_owned(), json!(kind.as_str()));
                members.insert("id".to_owned(), json!(id));
            }
            jwk
        };
        let token = self.token.public().map(|key| jwk(key, Kind::Token));
        let register = self.register.public().map(|key| jwk(key, Kind::Register));
        json!({ "keys": token.chain(register).collect::<Vec<_>>() })
    }

    /// Whether a head that names this key could be checked here.
    pub fn knows_register_key(&self, kid: &str) -> bool {
        self.register_key(kid).is_some()
    }

    fn register_key(&self, kid: &str) -> Option<PublicKey> {
        self.register.public().map(|(_, key)| key).find(|key| key.thumbprint().as_str() == kid)
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyRing")
            .field("token", &self.token.id)
            .field("register", &self.register.id)
            .field("secret", &self.vault.current())
            .finish()
    }
}

impl HeadSigner for KeyRing {
    fn chain(&self, previous: Digest, entry: Digest) -> Digest {
        seal::chain(previous, entry)
    }

    fn sign(&self, head: &UnsignedHead) -> (String, Vec<u8>) {
        let key = &self.register.key;
        (key.public().thumbprint().to_string(), statement(head).sign(key).to_vec())
    }

    fn verify(&self, head: &UnsignedHead, key: &str, signature: &[u8]) -> bool {
        let (Some(key), Ok(signature)) = (self.register_key(key), <[u8; 64]>::try_from(signature)) else {
            return false;
        };
        statement(head).verify(&key, &signature)
    }
}

fn statement(head: &UnsignedHead) -> HeadStatement {
    HeadStatement { tenant: head.tenant, seq: head.seq, head: head.head, at: head.at }
}

/// Makes the next key and keeps of the old one what verifies, or opens. Answers the new number. Running nodes go on with what
/// they read at start: restart them.
pub fn rotate(dir: &Path, kind: Kind) -> Result<u32, KeyError> {
    files::check_dir(dir, Origin::Made)?;
    if kind == Kind::Secret {
        return secrets::rotate(dir);
    }
    let old = existing(dir, Origin::Made, kind)?;
    let next = old.others.keys().copied().max().unwrap_or(0).max(old.id).checked_add(1);
    let id = next.ok_or_else(|| files::error(dir, "has no number left for another key"))?;
    // The new key first: whatever happens in between, there is always one that signs.
    files::make_private(dir, kind, id)?;
    files::retire(dir, kind, old.id, old.key.public())?;
    Ok(id)
}

fn line(dir: &Path, origin: Origin, kind: Kind) -> Result<Line, KeyError> {
    if origin == Origin::Made && files::read(dir, origin, kind)?.is_empty() {
        files::make_private(dir, kind, 1)?;
    }
    existing(dir, origin, kind)
}

fn existing(dir: &Path, origin: Origin, kind: Kind) -> Result<Line, KeyError> {
    let mut found = files::read(dir, origin, kind)?;
    let Some((id, key)) = found.private.pop_last() else {
        let what = format!(
            "holds no private {0} key ({0}-<number>.pem). Put it back from where you keep a copy, or point INN_KEYS_DIR to \
             the directory that has it",
            kind.as_str()
        );
        return Err(files::error(dir, what));
    };
    let mut others = found.public;
    others.extend(found.private.into_iter().map(|(id, key)| (id, key.public())));
    if others.get(&id).is_some_and(|public| *public != key.public()) {
        let path = dir.join(format!("{}-{id}.pub", kind.as_str()));
        return Err(files::error(&path, "is not the public half of the private key beside it; remove the wrong one"));
    }
    others.remove(&id);
    Ok(Line { id, key, others })
}

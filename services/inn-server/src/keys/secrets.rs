//! The keys that seal secrets in the database: `secret-<n>.key`, 32 bytes as base64url on one line. The highest number
//! seals; every other one stays, private as it is, to open what it sealed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use inn_grants::vault::{SecretKey, Vault};

use super::files::{check_private, error, failed, number, write_new};
use super::{KeyError, Kind, Origin};

const ENDING: &str = "key";

/// The keys that lie in the directory. One is made when there is none and the directory is ours.
pub(super) fn open(dir: &Path, origin: Origin) -> Result<Vault, KeyError> {
    if origin == Origin::Made && read(dir, origin)?.is_empty() {
        make(dir, 1)?;
    }
    Vault::new(read(dir, origin)?).ok_or_else(|| missing(dir))
}

/// The same without making one: ours may have none yet.
pub(super) fn look(dir: &Path, origin: Origin) -> Result<(), KeyError> {
    let found = read(dir, origin)?;
    if found.is_empty() && origin == Origin::Given { Err(missing(dir)) } else { Ok(()) }
}

/// Makes the next key. The old ones stay: what they sealed is opened with them.
pub(super) fn rotate(dir: &Path) -> Result<u32, KeyError> {
    let found = read(dir, Origin::Made)?;
    let last = found.last_key_value().map_or(0, |(id, _)| *id);
    let id = last.checked_add(1).ok_or_else(|| error(dir, "has no number left for another key"))?;
    make(dir, id)?;
    Ok(id)
}

fn read(dir: &Path, origin: Origin) -> Result<BTreeMap<u32, SecretKey>, KeyError> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).map_err(failed(dir))? {
        let file = entry.map_err(failed(dir))?.file_name();
        let Some(id) = file.to_str().and_then(|file| number(file, Kind::Secret, ENDING)) else { continue };
        let path = dir.join(&file);
        check_private(&path, origin)?;
        let damaged = || {
            let what = "the key file is damaged. Put back a copy of it: without it the secrets it sealed (of the apps' own \
                        sign-in) cannot be opened";
            error(&path, what)
        };
        let text = fs::read_to_string(&path).map_err(|_| damaged())?;
        found.insert(id, SecretKey::from_base64url(text.trim()).ok_or_else(damaged)?);
    }
    Ok(found)
}

fn make(dir: &Path, id: u32) -> Result<(), KeyError> {
    let key = SecretKey::from_bytes(rand::random());
    let path = dir.join(format!("{}-{id}.{ENDING}", Kind::Secret.as_str()));
    write_new(&path, format!("{}\n", key.to_base64url().as_str()).as_bytes(), 0o600)
}

fn missing(dir: &Path) -> KeyError {
    let what = "holds no secret key (secret-<number>.key). Make one on a fresh data directory (`inn keys ls --data DIR`) \
                and copy it here, or put back the one that was here";
    error(dir, what)
}

//! Key files: made so that they are whole or absent, read only when nobody else can.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use inn_grants::{PublicKey, SigningKey};

use super::{KeyError, Kind, Origin};

/// A PEM of one key has 119 bytes.
const LARGEST_FILE: u64 = 4096;

/// The keys of one kind that lie in the directory, by number.
pub(super) struct Found {
    pub(super) private: BTreeMap<u32, SigningKey>,
    pub(super) public: BTreeMap<u32, PublicKey>,
}

impl Found {
    pub(super) fn is_empty(&self) -> bool {
        self.private.is_empty() && self.public.is_empty()
    }
}

pub(super) fn error(path: &Path, what: impl Into<String>) -> KeyError {
    KeyError { path: path.to_owned(), what: what.into() }
}

pub(super) fn failed(path: &Path) -> impl Fn(io::Error) -> KeyError {
    move |cause| error(path, cause.to_string())
}

pub(super) fn ensure_dir(dir: &Path) -> Result<(), KeyError> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed(dir))
}

/// Ours must be closed to everybody else; a given one may be shared with a group, for reading.
pub(super) fn check_dir(dir: &Path, origin: Origin) -> Result<(), KeyError> {
    let found = fs::metadata(dir).map_err(|cause| match origin {
        Origin::Made => error(dir, cause.to_string()),
        Origin::Given => error(
            dir,
            format!(
                "the key directory cannot be read ({cause}); INN_KEYS_DIR must name one that holds the platform's keys"
            ),
        ),
    })?;
    if !found.is_dir() {
        return Err(error(dir, "is not a directory"));
    }
    // Directories of mounted secrets are world-readable by construction; there the files decide.
    if origin == Origin::Made && found.permissions().mode() & 0o077 != 0 {
        let mode = found.permissions().mode() & 0o777;
        return Err(error(
            dir,
            format!("others can get at the platform's keys (mode {mode:03o}). Run: chmod 700 {}", dir.display()),
        ));
    }
    Ok(())
}

pub(super) fn check_private(path: &Path, origin: Origin) -> Result<(), KeyError> {
    let found = fs::metadata(path).map_err(failed(path))?;
    if !found.is_file() {
        return Err(error(path, "is not a file"));
    }
    if found.len() > LARGEST_FILE {
        return Err(damaged(path));
    }
    let (forbidden, wanted) = match origin {
        Origin::Made => (0o077, "600"),
        Origin::Given => (0o037, "640"),
    };
    let mode = found.permissions().mode() & 0o777;
    if mode & forbidden != 0 {
        return Err(error(
            path,
            format!("others can get at this private key (mode {mode:03o}). Run: chmod {wanted} {}", path.display()),
        ));
    }
    Ok(())
}

fn damaged(path: &Path) -> KeyError {
    error(
        path,
        "the key file is damaged. Put back a copy of it; without one move it away, and a new key is made. Heads and tokens signed with the lost key can then no longer be checked",
    )
}

fn name(kind: Kind, id: u32, ending: &str) -> String {
    format!("{}-{id}.{ending}", kind.as_str())
}

/// `token-7.pem` → 7. Other files in the directory are none of ours.
pub(super) fn number(file: &str, kind: Kind, ending: &str) -> Option<u32> {
    let digits = file.strip_prefix(kind.as_str())?.strip_prefix('-')?.strip_suffix(ending)?.strip_suffix('.')?;
    let id = digits.parse().ok().filter(|id| *id > 0)?;
    (name(kind, id, ending) == file).then_some(id)
}

pub(super) fn read(dir: &Path, origin: Origin, kind: Kind) -> Result<Found, KeyError> {
    let mut found = Found { private: BTreeMap::new(), public: BTreeMap::new() };
    for entry in fs::read_dir(dir).map_err(failed(dir))? {
        let file = entry.map_err(failed(dir))?.file_name();
        let Some(file) = file.to_str() else { continue };
        let path = dir.join(file);
        if let Some(id) = number(file, kind, "pem") {
            check_private(&path, origin)?;
            let text = fs::read_to_string(&path).map_err(|cause| match cause.kind() {
                io::ErrorKind::InvalidData => damaged(&path),
                _ => error(&path, cause.to_string()),
            })?;
            found.private.insert(id, SigningKey::from_pkcs8_pem(&text).map_err(|_| damaged(&path))?);
        } else if let Some(id) = number(file, kind, "pub") {
            let text = fs::read_to_string(&path).map_err(failed(&path))?;
            let key = PublicKey::parse_base64url(text.trim());
            found
                .public
                .insert(id, key.map_err(|_| error(&path, "the public key file is damaged; put back a copy of it"))?);
        }
    }
    Ok(found)
}

/// A new private key under this number. Somebody else's, made in the same moment, stays and is found by the next read.
pub(super) fn make_private(dir: &Path, kind: Kind, id: u32) -> Result<(), KeyError> {
    let pem = SigningKey::from_seed(rand::random()).to_pkcs8_pem();
    let path = dir.join(name(kind, id, "pem"));
    let pem = pem.map_err(|refusal| error(&path, refusal.message))?;
    write_new(&path, pem.as_str().as_bytes(), 0o600)
}

/// Leaves the public half of an old key and takes the private half away.
pub(super) fn retire(dir: &Path, kind: Kind, id: u32, key: PublicKey) -> Result<(), KeyError> {
    let public = dir.join(name(kind, id, "pub"));
    write_new(&public, format!("{}\n", key.to_base64url()).as_bytes(), 0o644)?;
    let private = dir.join(name(kind, id, "pem"));
    fs::remove_file(&private).map_err(failed(&private))?;
    sync_dir(dir)
}

/// Whole or not at all, and never over a file that is there.
pub(super) fn write_new(path: &Path, bytes: &[u8], mode: u32) -> Result<(), KeyError> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let draft = PathBuf::from(format!("{}.{:08x}.draft", path.display(), rand::random::<u32>()));
    let written = (|| {
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&draft)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        match fs::hard_link(&draft, path) {
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        }
    })();
    // A draft that stays behind holds a key nobody uses; it is not worth failing for.
    fs::remove_file(&draft).ok();
    written.map_err(failed(path))?;
    sync_dir(dir)
}

fn sync_dir(dir: &Path) -> Result<(), KeyError> {
    fs::File::open(dir).and_then(|dir| dir.sync_all()).map_err(failed(dir))
}

//! The digests of a bundle: the published aggregate, and the framed one that names a release.

use std::collections::BTreeMap;

use inn_protocol::Digest;
use sha2::{Digest as _, Sha256};

/// Separates this digest from every other SHA-256 we make.
const DOMAIN: &[u8] = b"innkeeper-bundle-v1\0";

/// SHA-256 over the raw bytes of the files in the listed order and nothing else (AIP-53, `agentapp/v1`, pack rule 4).
///
/// Bytes can move from one file to the next without changing it, so it proves interoperability and not identity.
pub(crate) fn aggregate<'a>(contents: impl IntoIterator<Item = &'a [u8]>) -> Digest {
    let mut hash = Sha256::new();
    for bytes in contents {
        hash.update(bytes);
    }
    Digest(hash.finalize().into())
}

pub(crate) fn of_files(files: &BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Digest> {
    files.iter().map(|(path, bytes)| (path.clone(), Digest::of(bytes))).collect()
}

/// SHA-256 over every file's name, length and own digest, each with its size in front, sorted by name (UTF-8 bytes).
pub(crate) fn framed(files: &BTreeMap<String, Vec<u8>>, digests: &BTreeMap<String, Digest>) -> Digest {
    let mut hash = Sha256::new();
    hash.update(DOMAIN);
    hash.update(length(files.len()));
    for (path, bytes) in files {
        let digest = digests.get(path).copied().unwrap_or_else(|| Digest::of(bytes));
        hash.update(length(path.len()));
        hash.update(path.as_bytes());
        hash.update(length(bytes.len()));
        hash.update(digest.0);
    }
    Digest(hash.finalize().into())
}

fn length(value: usize) -> [u8; 8] {
    (value as u64).to_be_bytes()
}

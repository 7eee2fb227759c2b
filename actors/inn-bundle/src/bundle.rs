use std::collections::BTreeMap;

use inn_protocol::{Code, Digest, Refusal};

use crate::archive::write_gzip_tar;
use crate::digest;
use crate::manifest::BundleManifest;

/// An opened bundle: its files, checked against its manifest. The files are not yet understood as an app.
#[derive(Debug, Clone, PartialEq)]
pub struct Bundle {
    pub manifest: BundleManifest,
    /// Every file but `manifest.json`, by path.
    pub files: BTreeMap<String, Vec<u8>>,
    /// SHA-256 of the bytes the bundle was read from (of the ZIP, when it came as one) or packed into.
    pub archive_digest: Digest,
    /// The published `sha256` of AIP-53. Unframed: it does not name a release, [`Bundle::digest`] does.
    pub aggregate: Digest,
    pub file_digests: BTreeMap<String, Digest>,
}

impl Bundle {
    /// The digest that names the release: every file's name, length and digest, framed. The same files give the same
    /// digest, whichever archive they came in and whenever it was made.
    pub fn digest(&self) -> Digest {
        digest::framed(&self.files, &self.file_digests)
    }

    /// The bundle as a `.agentapp`, always the same bytes for the same manifest and files.
    pub fn to_archive(&self) -> Result<Vec<u8>, Refusal> {
        let written = self.manifest.to_bytes().and_then(|manifest| write_gzip_tar(&manifest, &self.files));
        written.map_err(|error| Refusal::new(Code::InvalidBundle, format!("pack-failed: {error}")))
    }

    /// A file as text. `None` when there is no such file or it is not UTF-8.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).and_then(|bytes| std::str::from_utf8(bytes).ok())
    }
}

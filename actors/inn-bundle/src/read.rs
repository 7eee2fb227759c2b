use std::collections::BTreeSet;

use chrono::DateTime;
use inn_protocol::{Digest, Refusal};

use crate::archive::{Files, read_gzip_tar, read_project_zip};
use crate::bundle::Bundle;
use crate::digest;
use crate::identity::Identity;
use crate::limits::Limits;
use crate::manifest::{BundleManifest, MANIFEST};
use crate::pack;
use crate::path;
use crate::problem::{refuse, shorten};

/// Opens a bundle and checks it against its own manifest. Nothing in it is executed or written anywhere.
///
/// Takes a `.agentapp` (a gzip tar), or the ZIP of an A2App project with its `manifest.json` at the root, which is
/// packed on the way. Refuses with `invalid_bundle`; the message starts with one word (`unsafe-path`,
/// `digest-mismatch`, `missing-manifest`, `malformed-manifest`, `unsupported-format`, `unsafe-member`, `too-large`,
/// `too-many-members`, `duplicate-member`, `name-collision`, `unlisted-member`, `missing-member`,
/// `manifest-mismatch`, `malformed-archive`, `not-an-app`), and the one violation's field is the member.
pub fn read(bytes: &[u8], limits: &Limits) -> Result<Bundle, Refusal> {
    if bytes.len() as u64 > limits.max_archive_bytes {
        let what = format!("the file has {} bytes; a bundle may have {}", bytes.len(), limits.max_archive_bytes);
        return Err(refuse("too-large", "", what));
    }
    match bytes {
        [0x1f, 0x8b, ..] => open(read_gzip_tar(bytes, limits)?, Digest::of(bytes)),
        [b'P', b'K', 3 | 5, ..] => project(read_project_zip(bytes, limits)?, Digest::of(bytes)),
        [] => Err(refuse("unsupported-format", "", "the file is empty")),
        _ => Err(refuse("unsupported-format", "", "neither a gzip tar (.agentapp) nor a ZIP")),
    }
}

fn project(files: Files, archive_digest: Digest) -> Result<Bundle, Refusal> {
    if !files.contains_key(MANIFEST) {
        let what =
            "a ZIP needs the A2App project's manifest.json at its root (zip the folder's contents, not the folder)";
        return Err(refuse("missing-manifest", MANIFEST, what));
    }
    // The moment of making is not part of a ZIP that can be trusted; a fixed one keeps this reproducible.
    let mut bundle = pack::describe(pack::arrange(files)?, DateTime::UNIX_EPOCH)?;
    bundle.archive_digest = archive_digest;
    Ok(bundle)
}

fn open(mut files: Files, archive_digest: Digest) -> Result<Bundle, Refusal> {
    let Some(manifest) = files.remove(MANIFEST) else {
        return Err(refuse(
            "missing-manifest",
            MANIFEST,
            "a bundle has a manifest.json at its root; make it with `inn pack`",
        ));
    };
    let manifest = BundleManifest::parse(&manifest)?;
    check_members(&manifest, &files)?;
    let aggregate = digest::aggregate(manifest.files.iter().filter_map(|path| files.get(path)).map(Vec::as_slice));
    if aggregate != manifest.sha256 {
        let what = format!("the manifest says sha256 {} and the files give {aggregate}", manifest.sha256);
        return Err(refuse("digest-mismatch", MANIFEST, what));
    }
    check_identity(&manifest, &Identity::of(&files)?)?;
    let file_digests = digest::of_files(&files);
    Ok(Bundle { manifest, files, archive_digest, aggregate, file_digests })
}

/// The listed paths are safe and are exactly the members; so are their number and size.
fn check_members(manifest: &BundleManifest, files: &Files) -> Result<(), Refusal> {
    let mut listed = BTreeSet::new();
    for path in &manifest.files {
        path::check(path).map_err(|why| refuse("unsafe-path", path, format!("listed in {MANIFEST}: {why}")))?;
        if !listed.insert(path.as_str()) {
            return Err(refuse("malformed-manifest", path, format!("listed twice in {MANIFEST}")));
        }
    }
    if let Some(path) = listed.iter().find(|path| !files.contains_key(**path)) {
        return Err(refuse("missing-member", path, format!("listed in {MANIFEST} and not in the archive")));
    }
    if let Some(path) = files.keys().find(|path| !listed.contains(path.as_str())) {
        return Err(refuse("unlisted-member", path, format!("in the archive and not listed in {MANIFEST}")));
    }
    let count = files.len() as u64;
    if manifest.file_count != count {
        let what = format!("fileCount is {} and the bundle has {count} files", manifest.file_count);
        return Err(refuse("manifest-mismatch", MANIFEST, what));
    }
    let size: u64 = files.values().map(|bytes| bytes.len() as u64).sum();
    if manifest.total_size != size {
        let what = format!("totalSize is {} and the files have {size} bytes", manifest.total_size);
        return Err(refuse("manifest-mismatch", MANIFEST, what));
    }
    Ok(())
}

fn check_identity(manifest: &BundleManifest, identity: &Identity) -> Result<(), Refusal> {
    let source = identity.source;
    for (key, said, is) in [("id", &manifest.id, &identity.id), ("version", &manifest.version, &identity.version)] {
        if said != is {
            let what = format!("{key} is `{}` and {source} says `{}`", shorten(said), shorten(is));
            return Err(refuse("manifest-mismatch", MANIFEST, what));
        }
    }
    for (key, said, is) in
        [("agents", &manifest.agents, &identity.agents), ("workflows", &manifest.workflows, &identity.workflows)]
    {
        let (said, is): (BTreeSet<_>, BTreeSet<_>) = (said.iter().collect(), is.iter().collect());
        if said != is {
            let other: Vec<_> = said.symmetric_difference(&is).map(|id| shorten(id)).collect();
            let what = format!("{key} and those of {source} differ in: {}", shorten(&other.join(", ")));
            return Err(refuse("manifest-mismatch", MANIFEST, what));
        }
    }
    Ok(())
}

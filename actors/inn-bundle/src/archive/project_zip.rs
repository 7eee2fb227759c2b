use std::io::{Cursor, Read};

use inn_protocol::Refusal;
use zip::ZipArchive;

use super::meter::Meter;
use super::{Collected, Files};
use crate::limits::Limits;
use crate::pack::is_packed_away;
use crate::path;
use crate::problem::refuse;

/// Reads the ZIP of an A2App project: the files that a packer would take.
pub(crate) fn read(bytes: &[u8], limits: &Limits) -> Result<Files, Refusal> {
    let damaged =
        |error: zip::result::ZipError| refuse("malformed-archive", "", format!("not a readable ZIP ({error})"));
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(damaged)?;
    if archive.len() > limits.max_members {
        return Err(refuse("too-many-members", "", format!("more than {} members", limits.max_members)));
    }
    if archive.has_duplicate_names() {
        return Err(refuse("duplicate-member", "", "two members of the ZIP have the same name"));
    }
    // Whoever reads the local headers must see what the central directory shows, and no byte may serve two members.
    archive.validate_header_consistency().map_err(damaged)?;
    let mut collected = Collected::new(limits);
    let mut unpacked = 0_u64;
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(|error| {
            refuse("malformed-archive", &format!("member {index}"), format!("cannot be read ({error})"))
        })?;
        let raw = entry.name_raw().to_vec();
        let shown = String::from_utf8_lossy(&raw).into_owned();
        collected.count(&shown)?;
        let Some(path) = path::from_archive(&raw)? else { continue };
        if entry.is_symlink()
            || entry.unix_mode().is_some_and(|mode| !matches!(mode & 0o170_000, 0 | 0o100_000 | 0o040_000))
        {
            return Err(refuse("unsafe-member", &path, "a link or device; members are plain files"));
        }
        if entry.encrypted() {
            return Err(refuse("unsupported-format", &path, "is encrypted; send it without a password"));
        }
        if raw.ends_with(b"/") || entry.is_dir() {
            collected.names.folder(&path)?;
        } else if is_packed_away(&path) {
            collected.names.file(&path)?;
        } else {
            let size = entry.size();
            let compressed = entry.compressed_size().max(1);
            collected.file(path, size, &mut Meter::new(entry.by_ref(), compressed, 0, limits))?;
            unpacked = unpacked.saturating_add(size);
        }
    }
    if unpacked > Limits::RATIO_GRACE_BYTES && unpacked / (bytes.len() as u64).max(1) > limits.max_ratio {
        return Err(refuse("too-large", "", "unpacks to far more than a real app would for its size"));
    }
    Ok(collected.files)
}

use std::io::{self, Write};

use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

use super::Files;
use crate::manifest::MANIFEST;

/// Writes the same bytes for the same files, wherever and whenever it is called: sorted, mode 0644, no owner, no times.
pub(crate) fn gzip_tar(manifest: &[u8], files: &Files) -> io::Result<Vec<u8>> {
    let encoder = GzBuilder::new().mtime(0).operating_system(255).write(Vec::new(), Compression::default());
    let mut tar = Builder::new(encoder);
    append(&mut tar, MANIFEST, manifest)?;
    for (path, bytes) in files {
        append(&mut tar, path, bytes)?;
    }
    tar.into_inner()?.finish()
}

fn append<W: Write>(tar: &mut Builder<W>, path: &str, bytes: &[u8]) -> io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.set_mode(0o644);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(bytes.len() as u64);
    tar.append_data(&mut header, path, bytes)
}

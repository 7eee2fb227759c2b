use std::io::Read;

use flate2::bufread::GzDecoder;
use inn_protocol::Refusal;
use tar::{Archive, EntryType};

use super::meter::{Meter, refusal};
use super::{Collected, Files};
use crate::limits::Limits;
use crate::path;
use crate::problem::refuse;

/// A tar header and the padding of its data, in bytes.
const BLOCKS_PER_MEMBER: u64 = 1024;
/// The largest extension header (long name, pax records) that is read, in bytes.
const MAX_EXTENSION_BYTES: u64 = 64 * 1024;

/// Reads a gzip tar. Entries are taken raw, so that extension headers are ours to judge: a pax record that changes
/// size or target of the next entry is how one archive shows two parsers two trees.
pub(crate) fn read(bytes: &[u8], limits: &Limits) -> Result<Files, Refusal> {
    let overhead = BLOCKS_PER_MEMBER * 3 * (limits.max_members as u64 + 1) + 1024 * 1024;
    let mut stream = Meter::new(GzDecoder::new(bytes), bytes.len() as u64, overhead, limits);
    let mut collected = Collected::new(limits);
    {
        let mut archive = Archive::new(&mut stream);
        let mut long_name: Option<Vec<u8>> = None;
        let mut extensions = 0_usize;
        let entries = archive.entries().map_err(|error| refusal("", &error))?.raw(true);
        for entry in entries {
            let mut entry = entry.map_err(|error| refusal("", &error))?;
            let kind = entry.header().entry_type();
            let size = entry.header().entry_size().map_err(|error| refusal("", &error))?;
            match kind {
                EntryType::GNULongName | EntryType::XHeader | EntryType::XGlobalHeader => {
                    extensions += 1;
                    if extensions > 2 * limits.max_members {
                        return Err(refuse("too-many-members", "", "more extension headers than members are allowed"));
                    }
                    let data = extension(&mut entry, size)?;
                    let name = if kind == EntryType::GNULongName {
                        Some(data.strip_suffix(&[0]).unwrap_or(&data).to_vec())
                    } else {
                        pax_path(&data)?.filter(|_| kind == EntryType::XHeader)
                    };
                    if name.is_some() && long_name.is_some() {
                        return Err(refuse("malformed-archive", "", "two long names before one member"));
                    }
                    long_name = name.or(long_name);
                }
                EntryType::Regular | EntryType::Continuous | EntryType::Directory => {
                    let raw = long_name.take().unwrap_or_else(|| entry.header().path_bytes().into_owned());
                    let folder = kind == EntryType::Directory;
                    // Old tars mark a folder by the slash at the end of its name only.
                    let folder_by_name = raw.ends_with(b"/");
                    let shown = String::from_utf8_lossy(&raw).into_owned();
                    collected.count(&shown)?;
                    let Some(path) = path::from_archive(&raw)? else {
                        if folder {
                            continue;
                        }
                        return Err(refuse("unsafe-path", &shown, "a file without a name"));
                    };
                    if folder || folder_by_name {
                        if size != 0 {
                            return Err(refuse("malformed-archive", &path, "a folder with contents of its own"));
                        }
                        collected.names.folder(&path)?;
                    } else {
                        collected.file(path, size, &mut entry)?;
                    }
                }
                other => {
                    let raw = long_name.take().unwrap_or_else(|| entry.header().path_bytes().into_owned());
                    return Err(refuse("unsafe-member", &String::from_utf8_lossy(&raw), describe(other)));
                }
            }
        }
        if long_name.is_some() {
            return Err(refuse("malformed-archive", "", "a long name without a member"));
        }
    }
    finish(stream)?;
    Ok(collected.files)
}

/// After the end mark only zeros may follow, and after the gzip member nothing: bytes there are seen by some readers.
fn finish(mut stream: Meter<GzDecoder<&[u8]>>) -> Result<(), Refusal> {
    let mut buffer = [0_u8; 8192];
    loop {
        let count = stream.read(&mut buffer).map_err(|error| refusal("", &error))?;
        if count == 0 {
            break;
        }
        if buffer.iter().take(count).any(|byte| *byte != 0) {
            return Err(refuse("malformed-archive", "", "there is data after the end mark of the tar"));
        }
    }
    if stream.into_inner().into_inner().is_empty() {
        Ok(())
    } else {
        Err(refuse("malformed-archive", "", "there is data after the end of the gzip stream"))
    }
}

fn extension(entry: &mut impl Read, size: u64) -> Result<Vec<u8>, Refusal> {
    if size > MAX_EXTENSION_BYTES {
        return Err(refuse("malformed-archive", "", "an extension header larger than 64 KiB"));
    }
    let mut data = Vec::new();
    entry.take(MAX_EXTENSION_BYTES).read_to_end(&mut data).map_err(|error| refusal("", &error))?;
    Ok(data)
}

/// The `path` of pax records (`"<length> <key>=<value>\n"`, POSIX pax). Times, owners and vendor notes are passed over.
fn pax_path(mut data: &[u8]) -> Result<Option<Vec<u8>>, Refusal> {
    let broken = || refuse("malformed-archive", "", "a pax header that is not well formed");
    let mut path = None;
    while !data.is_empty() {
        let space = data.iter().position(|byte| *byte == b' ').ok_or_else(broken)?;
        let digits = data.get(..space).and_then(|digits| std::str::from_utf8(digits).ok());
        let length: usize = digits.and_then(|digits| digits.parse().ok()).ok_or_else(broken)?;
        let record = data.get(space + 1..length).and_then(|record| record.strip_suffix(b"\n")).ok_or_else(broken)?;
        let equals = record.iter().position(|byte| *byte == b'=').ok_or_else(broken)?;
        let (key, value) = (record.get(..equals).unwrap_or_default(), record.get(equals + 1..).unwrap_or_default());
        match key {
            b"path" => path = Some(value.to_vec()),
            b"size" | b"linkpath" => {
                return Err(refuse("unsafe-member", "", "a pax header that overrides size or target of a member"));
            }
            key if key.starts_with(b"GNU.sparse.") => {
                return Err(refuse("unsafe-member", "", "a sparse file; members are plain files"));
            }
            _ => {}
        }
        data = data.get(length..).unwrap_or_default();
    }
    Ok(path)
}

fn describe(kind: EntryType) -> &'static str {
    match kind {
        EntryType::Link => "a hard link; members are plain files",
        EntryType::Symlink | EntryType::GNULongLink => "a symbolic link; members are plain files",
        EntryType::Char | EntryType::Block => "a device; members are plain files",
        EntryType::Fifo => "a named pipe; members are plain files",
        EntryType::GNUSparse => "a sparse file; members are plain files",
        _ => "a kind of member that is not a plain file",
    }
}

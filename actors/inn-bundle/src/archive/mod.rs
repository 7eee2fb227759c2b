//! Archives read in memory, member by member, with every cap checked before a byte is kept.

mod gzip_tar;
mod meter;
mod project_zip;
mod write;

pub(crate) use gzip_tar::read as read_gzip_tar;
pub(crate) use project_zip::read as read_project_zip;
pub(crate) use write::gzip_tar as write_gzip_tar;

use std::collections::BTreeMap;
use std::io::Read;

use inn_protocol::Refusal;

use crate::limits::Limits;
use crate::path::Names;
use crate::problem::refuse;

pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// The members of one archive while they are being read.
struct Collected<'a> {
    limits: &'a Limits,
    files: Files,
    names: Names,
    members: usize,
    total: u64,
}

impl<'a> Collected<'a> {
    fn new(limits: &'a Limits) -> Self {
        Self { limits, files: Files::new(), names: Names::default(), members: 0, total: 0 }
    }

    /// One more member of any kind.
    fn count(&mut self, member: &str) -> Result<(), Refusal> {
        self.members += 1;
        if self.members > self.limits.max_members {
            let what = format!("more than {} members", self.limits.max_members);
            return Err(refuse("too-many-members", member, what));
        }
        Ok(())
    }

    /// Keeps one regular file. `size` is what the archive claims; it is checked before, the truth while reading.
    fn file(&mut self, path: String, size: u64, data: &mut dyn Read) -> Result<(), Refusal> {
        self.names.file(&path)?;
        self.check_size(&path, size)?;
        let mut bytes = Vec::new();
        let cap = size.min(self.limits.max_member_bytes);
        data.take(cap + 1).read_to_end(&mut bytes).map_err(|error| meter::refusal(&path, &error))?;
        let got = bytes.len() as u64;
        if got != size {
            let what = format!("the archive says {size} bytes and holds {}", if got > size { "more" } else { "fewer" });
            return Err(refuse("malformed-archive", &path, what));
        }
        self.total += got;
        self.files.insert(path, bytes);
        Ok(())
    }

    fn check_size(&self, path: &str, size: u64) -> Result<(), Refusal> {
        if size > self.limits.max_member_bytes {
            let what = format!("{size} bytes; one member may have {}", self.limits.max_member_bytes);
            return Err(refuse("too-large", path, what));
        }
        if self.total.saturating_add(size) > self.limits.max_total_bytes {
            let what =
                format!("with this member the bundle unpacks to more than {} bytes", self.limits.max_total_bytes);
            return Err(refuse("too-large", path, what));
        }
        Ok(())
    }
}

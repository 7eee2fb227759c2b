/// What a bundle may cost before it is refused. Every cap is checked while streaming, so a bomb is never unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Size of the file as sent, in bytes.
    pub max_archive_bytes: u64,
    /// Regular files and folders together.
    pub max_members: usize,
    /// Size of one file after decompression, in bytes.
    pub max_member_bytes: u64,
    /// Size of all files after decompression, in bytes.
    pub max_total_bytes: u64,
    /// Decompressed bytes for each byte sent. Not looked at below [`Limits::RATIO_GRACE_BYTES`], since the zero
    /// padding of a small honest tar compresses better than many a bomb.
    pub max_ratio: u64,
}

impl Limits {
    /// Decompressed bytes below which the ratio says nothing.
    pub const RATIO_GRACE_BYTES: u64 = 4 * 1024 * 1024;
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: u64 = 1024 * 1024;
        Self {
            max_archive_bytes: 64 * MIB,
            max_members: 5000,
            max_member_bytes: 32 * MIB,
            max_total_bytes: 256 * MIB,
            max_ratio: 200,
        }
    }
}

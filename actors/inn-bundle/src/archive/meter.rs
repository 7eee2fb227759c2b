use std::io::{self, Read};

use inn_protocol::Refusal;

use crate::limits::Limits;
use crate::problem::refuse;

/// A reader that stops with an error as soon as the decompressed stream grows beyond its caps.
pub(super) struct Meter<R> {
    inner: R,
    read: u64,
    max_bytes: u64,
    max_by_ratio: u64,
}

impl<R> Meter<R> {
    /// `compressed` is the size of what was sent; `overhead` is what the format adds to the files' own bytes.
    pub(super) fn new(inner: R, compressed: u64, overhead: u64, limits: &Limits) -> Self {
        Self {
            inner,
            read: 0,
            max_bytes: limits.max_total_bytes.saturating_add(overhead),
            max_by_ratio: compressed.saturating_mul(limits.max_ratio).max(Limits::RATIO_GRACE_BYTES),
        }
    }

    pub(super) fn into_inner(self) -> R {
        self.inner
    }
}

impl<R: Read> Read for Meter<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.read += count as u64;
        if self.read > self.max_bytes {
            return Err(io::Error::other(Stopped::TooLarge(self.max_bytes)));
        }
        if self.read > self.max_by_ratio {
            return Err(io::Error::other(Stopped::Ratio));
        }
        Ok(count)
    }
}

#[derive(Debug)]
enum Stopped {
    TooLarge(u64),
    Ratio,
}

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooLarge(max) => write!(f, "unpacks to more than {max} bytes"),
            Self::Ratio => f.write_str("unpacks to far more than a real app would for its size"),
        }
    }
}

impl std::error::Error for Stopped {}

/// Tells a stopped meter from a damaged archive.
pub(super) fn refusal(member: &str, error: &io::Error) -> Refusal {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Stopped>()) {
        Some(stopped) => refuse("too-large", member, stopped.to_string()),
        None => refuse("malformed-archive", member, format!("the archive is damaged here ({error})")),
    }
}

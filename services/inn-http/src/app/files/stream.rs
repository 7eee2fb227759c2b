//! A stored file as a stream of bytes, a little at a time.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt as _};
use inn_ports::{FileKey, Objects, PIECE_BYTES, StoreError, StoreResult};

/// In memory for each download at one time.
const STEP: u64 = 512 << 10;

/// Bytes `first..first + count` of a file. The first of them are read before anything is answered, so that a file that
/// is not there can still be told; a later error ends the answer in the middle, which its length gives away.
pub(super) async fn bytes(
    objects: Arc<dyn Objects>,
    key: FileKey,
    first: u64,
    count: u64,
) -> StoreResult<impl Stream<Item = Result<Bytes, std::io::Error>> + 'static> {
    let end = first.saturating_add(count);
    let begun = if count == 0 { Bytes::new() } else { step(&*objects, key, first, end).await? };
    let next = first.saturating_add(u64::try_from(begun.len()).unwrap_or(u64::MAX));
    let rest = stream::try_unfold((objects, next), move |(objects, at)| async move {
        if at >= end {
            return Ok(None);
        }
        let bytes = step(&*objects, key, at, end).await.map_err(|error| std::io::Error::other(format!("{error:?}")))?;
        let next = at.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        Ok(Some((bytes, (objects, next))))
    });
    let begun = (!begun.is_empty()).then_some(Ok(begun));
    Ok(stream::iter(begun).chain(rest))
}

/// Some bytes from `at` on, never none and never past `end`.
async fn step(objects: &dyn Objects, key: FileKey, at: u64, end: u64) -> StoreResult<Bytes> {
    let piece_bytes = u64::try_from(PIECE_BYTES).unwrap_or(u64::MAX);
    let number = u32::try_from(at / piece_bytes).map_err(|_| StoreError::Broken)?;
    let within = at % piece_bytes;
    let length = STEP.min(piece_bytes - within).min(end - at);
    match objects.piece(key, number, within..within + length).await? {
        Some(bytes) if u64::try_from(bytes.len()) == Ok(length) => Ok(bytes),
        _ => {
            tracing::error!(file = %key.file, number, "a piece of a kept file is not there, unless it was deleted just now");
            Err(StoreError::Broken)
        }
    }
}

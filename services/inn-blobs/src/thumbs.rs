//! Thumbs: made once, kept beside the file they show, gone with it.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use inn_ports::{FileKey, Objects as _, PIECE_BYTES, StoreError, StoreResult, Thumb};
use inn_protocol::{Code, Refusal};
use inn_rules::files::{SNIFFED_BYTES, ThumbSpec, sniff};

use crate::BlobStore;
use crate::picture;

/// Larger files are not opened.
const LARGEST_SOURCE: u64 = 32 << 20;
/// How long a call waits for its turn.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) async fn thumb(store: &BlobStore, file: FileKey, size: u64, spec: ThumbSpec) -> StoreResult<Option<Thumb>> {
    let name = format!("thumb-{}", spec.mark());
    if let Some(kept) = store.get_under(file, &name).await? {
        return Ok(shown(kept));
    }
    if size > LARGEST_SOURCE {
        return Ok(None);
    }
    let turn = tokio::time::timeout(PATIENCE, store.inner.thumbs.acquire()).await;
    let _turn = turn.map_err(|_| busy())?.map_err(|_| StoreError::Broken)?;
    // Somebody else may have made it while we waited.
    if let Some(kept) = store.get_under(file, &name).await? {
        return Ok(shown(kept));
    }
    let Some(source) = whole(store, file, size).await? else { return Ok(None) };
    let made = store.inner.io.spawn_blocking(move || picture::thumb(&source, spec)).await;
    let bytes = match made {
        Ok(Ok(bytes)) => Bytes::from(bytes),
        Ok(Err(problem)) => {
            tracing::debug!(file = %file.file, problem, "no thumb can be made of this file");
            // Kept empty, so that it is not tried again and again.
            Bytes::new()
        }
        Err(error) => {
            tracing::warn!(file = %file.file, %error, "making a thumb failed");
            Bytes::new()
        }
    };
    store.put_under(file, &name, bytes.clone()).await?;
    Ok(shown(bytes))
}

fn shown(bytes: Bytes) -> Option<Thumb> {
    if bytes.is_empty() {
        return None;
    }
    let start = bytes.get(..SNIFFED_BYTES).unwrap_or(&bytes);
    let media_type = sniff(start, bytes.len() <= SNIFFED_BYTES).name;
    Some(Thumb { bytes, media_type })
}

async fn whole(store: &BlobStore, file: FileKey, size: u64) -> StoreResult<Option<Bytes>> {
    let piece_bytes = u64::try_from(PIECE_BYTES).unwrap_or(u64::MAX);
    let mut bytes = BytesMut::new();
    let mut read = 0;
    let mut number = 0;
    while read < size {
        let length = piece_bytes.min(size - read);
        let Some(piece) = store.piece(file, number, 0..length).await? else { return Ok(None) };
        bytes.extend_from_slice(&piece);
        read += length;
        number += 1;
    }
    Ok(Some(bytes.freeze()))
}

fn busy() -> StoreError {
    Refusal::new(Code::Overloaded, "Many thumbs are being made at the moment. Ask again.").after(5).into()
}

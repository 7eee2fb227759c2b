//! Several ranges of a file in one answer, `multipart/byteranges` (RFC 9110 section 15.3.7.2).

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures_util::stream::{self, Stream, StreamExt as _, TryStreamExt as _};
use inn_ports::{FileKey, Objects, StoreResult};
use inn_rules::files::Part;

use super::stream::bytes;

pub(super) struct Parts {
    boundary: String,
    /// Each with what stands before it.
    all: Vec<(Bytes, Part)>,
    end: Bytes,
}

impl Parts {
    /// Of a file of that type and size, between boundaries that nobody can guess and put into a file.
    pub(super) fn new(parts: &[Part], media_type: &str, size: u64) -> Self {
        let boundary = format!("{:032x}", rand::random::<u128>());
        let head = |(index, part): (usize, &Part)| {
            let before = if index == 0 { "" } else { "\r\n" };
            let range = part.named(size);
            let head = format!("{before}--{boundary}\r\nContent-Range: {range}\r\nContent-Type: {media_type}\r\n\r\n");
            (Bytes::from(head), *part)
        };
        let all = parts.iter().enumerate().map(head).collect();
        let end = Bytes::from(format!("\r\n--{boundary}--\r\n"));
        Self { boundary, all, end }
    }

    pub(super) fn media_type(&self) -> String {
        format!("multipart/byteranges; boundary={}", self.boundary)
    }

    /// Bytes of the whole answer.
    pub(super) fn length(&self) -> u64 {
        let heads = self.all.iter().map(|(head, _)| head.len()).sum::<usize>() + self.end.len();
        let contents = self.all.iter().fold(0_u64, |total, (_, part)| total.saturating_add(part.count));
        u64::try_from(heads).unwrap_or(u64::MAX).saturating_add(contents)
    }

    /// The answer for a stored file. The first bytes are read before anything is answered, see [`bytes`].
    pub(super) async fn stored(
        self,
        objects: Arc<dyn Objects>,
        key: FileKey,
    ) -> StoreResult<impl Stream<Item = Result<Bytes, std::io::Error>> + 'static> {
        let mut parts = self.all.into_iter();
        let first = match parts.next() {
            Some((head, part)) => {
                let content = bytes(Arc::clone(&objects), key, part.first, part.count).await?;
                Some(stream::iter([Ok(head)]).chain(content))
            }
            None => None,
        };
        let rest = stream::iter(parts).then(move |(head, part)| {
            let objects = Arc::clone(&objects);
            async move {
                let content = bytes(objects, key, part.first, part.count).await;
                let content = content.map_err(|error| std::io::Error::other(format!("{error:?}")))?;
                Ok::<_, std::io::Error>(stream::iter([Ok(head)]).chain(content))
            }
        });
        Ok(stream::iter(first).flatten().chain(rest.try_flatten()).chain(stream::iter([Ok(self.end)])))
    }

    /// The answer for bytes at hand.
    pub(super) fn within(self, content: &Bytes) -> Bytes {
        let at = |place: u64| usize::try_from(place).unwrap_or(usize::MAX).min(content.len());
        let mut answer = BytesMut::new();
        for (head, part) in &self.all {
            answer.extend_from_slice(head);
            answer.extend_from_slice(&content.slice(at(part.first)..at(part.first.saturating_add(part.count))));
        }
        answer.extend_from_slice(&self.end);
        answer.freeze()
    }
}

//! Files of records: rows that say what there is, and the bytes.
//!
//! A row comes before its bytes and goes after them, so that nothing lies in the object store unnamed. That a committed
//! record and the row agree is the store's own doing, in the transaction of the commit.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use inn_protocol::receipt::Receipt;
use inn_protocol::register::CallRecord;
use inn_protocol::scope::Scope;
use inn_protocol::{AgentId, AppId, Digest, FileId, GrantId, SessionId, TenantId};
use inn_rules::files::ThumbSpec;

use crate::directory::{GrantState, SessionState};
use crate::error::StoreResult;

/// Bytes are kept in pieces of this size (the last one is shorter), each written at once. Part of the storage layout:
/// another number would not find what is there.
pub const PIECE_BYTES: usize = 4 << 20;

/// A file whose bytes are about to arrive.
#[derive(Debug, Clone)]
pub struct NewFile {
    pub id: FileId,
    pub tenant: TenantId,
    pub app: AppId,
    /// Ids of the model.
    pub collection: String,
    pub field: String,
    /// The name a record will give it.
    pub name: String,
}

/// What arrived.
#[derive(Debug, Clone)]
pub struct ReceivedFile {
    pub id: FileId,
    pub size: u64,
    pub media_type: String,
    pub digest: Digest,
}

/// A file a record names.
#[derive(Debug, Clone)]
pub struct StoredFile {
    pub id: FileId,
    /// Id of the field.
    pub field: String,
    pub size: u64,
    pub media_type: String,
    pub digest: Digest,
    pub kept_at: DateTime<Utc>,
}

/// A file whose bytes are to be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueFile {
    pub key: FileKey,
    /// They were removed before; this is the second look, after which nothing is left to name.
    pub again: bool,
}

/// A token for `?token=`. The holder is the caller of the call that takes it.
#[derive(Debug, Clone)]
pub struct NewFileToken {
    pub token: Digest,
    pub app: AppId,
    pub holder: FileTokenHolder,
    pub expires_at: DateTime<Utc>,
}

#[derive(Debug, Clone)]
pub enum FileTokenHolder {
    Person(SessionId),
    Agent { grant: GrantId, helper: Option<AgentId>, scopes: BTreeSet<Scope> },
}

/// Whose papers a token stands for, as they are now.
#[derive(Debug, Clone)]
pub struct FileTokenState {
    pub app: AppId,
    pub papers: FileTokenPapers,
}

#[derive(Debug, Clone)]
pub enum FileTokenPapers {
    /// The session, when it is still alive.
    Person(Arc<SessionState>),
    Agent {
        grant: Arc<GrantState>,
        helper: Option<AgentId>,
        scopes: Arc<BTreeSet<Scope>>,
    },
}

#[async_trait]
pub trait Files: Send + Sync {
    /// Before the first byte is written. Unless a record names it within a quarter of an hour, it is removed.
    async fn expect_file(&self, file: &NewFile) -> StoreResult<()>;
    /// After the last byte: from now on a record can name it.
    async fn file_received(&self, file: &ReceivedFile) -> StoreResult<()>;
    /// Says which field a file is for that was received before anything said so.
    async fn place_file(&self, file: FileId, collection: &str, field: &str) -> StoreResult<()>;
    /// Files of a form that did not become a record. Those that one names by now stay; answers the others, whose bytes
    /// may go.
    async fn discard_files(&self, files: &[FileId]) -> StoreResult<Vec<FileId>>;
    /// The file a record of the collection names.
    async fn file(&self, app: AppId, collection: &str, record: &str, name: &str) -> StoreResult<Option<StoredFile>>;
    /// The file that some record of the app names so: what a view shows belongs to a record of another collection.
    async fn file_shown(&self, app: AppId, name: &str) -> StoreResult<Option<StoredFile>>;
    /// Bytes of all files of the app that a record names or may still name.
    async fn file_bytes(&self, app: AppId) -> StoreResult<u64>;
    /// Keeps a token with its entry and receipt.
    async fn take_file_token(&self, call: &CallRecord, token: &NewFileToken) -> StoreResult<Receipt>;
    /// Claims files whose time has come, for a minute. Expired tokens are forgotten on the way.
    async fn due_files(&self, most: u16) -> StoreResult<Vec<DueFile>>;
    /// Their bytes are gone.
    async fn files_removed(&self, files: &[DueFile]) -> StoreResult<()>;
}

/// Names the bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileKey {
    pub app: AppId,
    pub file: FileId,
}

/// A small picture, ready to be sent.
#[derive(Debug, Clone)]
pub struct Thumb {
    pub bytes: Bytes,
    pub media_type: &'static str,
}

/// Bytes of files, in an object store.
#[async_trait]
pub trait Objects: Send + Sync {
    /// Writes one piece, whole or not at all. All but the last have [`PIECE_BYTES`].
    async fn put_piece(&self, file: FileKey, number: u32, bytes: Bytes) -> StoreResult<()>;
    /// Bytes of one piece; `None` when it is not there.
    async fn piece(&self, file: FileKey, number: u32, range: Range<u64>) -> StoreResult<Option<Bytes>>;
    /// Everything under the key, thumbs and what an interrupted write left. Removing nothing is no error.
    async fn remove(&self, file: FileKey) -> StoreResult<()>;
    /// The thumb of a picture of `size` bytes: made at the first call, kept, and read after that. `None` when there can
    /// be none: no picture, a broken one, one too large to open.
    async fn thumb(&self, file: FileKey, size: u64, spec: ThumbSpec) -> StoreResult<Option<Thumb>>;
}

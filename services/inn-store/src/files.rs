//! Files of records: the rows. That `kept` rows and the records that name them agree is done by triggers on the app's
//! tables ([`follow`]), in the transaction of whatever changes a record.

mod follow;
mod sweep;
#[cfg(test)]
mod tests;
mod tokens;

use async_trait::async_trait;
use inn_ports::{
    DueFile, FileTokenState, Files, NewFile, NewFileToken, ReceivedFile, StoreError, StoreResult, StoredFile,
};
use inn_protocol::receipt::Receipt;
use inn_protocol::register::CallRecord;
use inn_protocol::{AppId, Digest, FileId};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::PgStore;
use crate::error::{broken, committing};

pub(crate) use follow::{follow, forget_losers, purge, unfollow};

/// Longer than any upload may take, short enough that what nobody wanted does not lie around.
const EXPECT: &str = "INSERT INTO inn.files (id, tenant, app, collection, field, name, due_at)
    VALUES ($1, $2, $3, $4, $5, $6, clock_timestamp() + interval '15 minutes')";

const RECEIVED: &str = "UPDATE inn.files SET state = 'received', size = $2, media_type = $3, digest = $4
    WHERE id = $1 AND state = 'expected' AND due_at > clock_timestamp()";

const PLACE: &str = "UPDATE inn.files SET collection = $2, field = $3
    WHERE id = $1 AND state = 'received' AND collection = '' AND due_at > clock_timestamp()";

/// Waits for a commit that is naming them, and leaves alone what it kept. A minute's lease, in case we die now.
const DISCARD: &str = "UPDATE inn.files SET state = 'doomed', due_at = clock_timestamp() + interval '1 minute'
    WHERE id = ANY ($1) AND state IN ('expected', 'received') RETURNING id";

const FIND: &str = "SELECT id, field, size, media_type, digest, kept_at FROM inn.files
    WHERE app = $1 AND name = $2 AND state = 'kept'";
const BYTES: &str =
    "SELECT coalesce(sum(size), 0)::bigint FROM inn.files WHERE app = $1 AND state IN ('received', 'kept')";
const IN_RECORD: &str = "AND collection = $3 AND record = $4";
/// Names have fifty random bits, so there is one at most.
const ANYWHERE: &str = "ORDER BY kept_at LIMIT 1";

#[async_trait]
impl Files for PgStore {
    async fn expect_file(&self, file: &NewFile) -> StoreResult<()> {
        let client = self.client().await?;
        let statement = client.prepare_cached(EXPECT).await.map_err(broken("expect file"))?;
        let (id, tenant, app) = (file.id.uuid(), file.tenant.uuid(), file.app.uuid());
        client
            .execute(&statement, &[&id, &tenant, &app, &file.collection, &file.field, &file.name])
            .await
            .map_err(committing("expect file"))?;
        Ok(())
    }

    async fn file_received(&self, file: &ReceivedFile) -> StoreResult<()> {
        let client = self.client().await?;
        let statement = client.prepare_cached(RECEIVED).await.map_err(broken("file received"))?;
        let size = i64::try_from(file.size).map_err(|_| StoreError::Broken)?;
        let changed = client
            .execute(&statement, &[&file.id.uuid(), &size, &file.media_type, &file.digest.0.as_slice()])
            .await
            .map_err(committing("file received"))?;
        if changed == 1 {
            return Ok(());
        }
        // The sweeper was faster: it took longer than any upload may.
        tracing::warn!(file = %file.id, "a file was swept away while it arrived");
        Err(StoreError::Unavailable)
    }

    async fn place_file(&self, file: FileId, collection: &str, field: &str) -> StoreResult<()> {
        let client = self.client().await?;
        let statement = client.prepare_cached(PLACE).await.map_err(broken("place file"))?;
        let placed = client.execute(&statement, &[&file.uuid(), &collection, &field]).await;
        if placed.map_err(committing("place file"))? == 1 {
            return Ok(());
        }
        tracing::warn!(%file, "a file was swept away before it was known what it is for");
        Err(StoreError::Unavailable)
    }

    async fn discard_files(&self, files: &[FileId]) -> StoreResult<Vec<FileId>> {
        let client = self.client().await?;
        let statement = client.prepare_cached(DISCARD).await.map_err(broken("discard files"))?;
        let ids: Vec<Uuid> = files.iter().map(|file| file.uuid()).collect();
        let rows = client.query(&statement, &[&ids]).await.map_err(committing("discard files"))?;
        rows.iter().map(|row| row.try_get(0).map(FileId::from_uuid).map_err(broken("discard files"))).collect()
    }

    async fn file(&self, app: AppId, collection: &str, record: &str, name: &str) -> StoreResult<Option<StoredFile>> {
        if record.contains('\0') || name.contains('\0') {
            return Ok(None);
        }
        let client = self.client().await?;
        let statement = client.prepare_cached(&format!("{FIND} {IN_RECORD}")).await.map_err(broken("find file"))?;
        let row = client
            .query_opt(&statement, &[&app.uuid(), &name, &collection, &record])
            .await
            .map_err(broken("find file"))?;
        row.as_ref().map(stored).transpose()
    }

    async fn file_shown(&self, app: AppId, name: &str) -> StoreResult<Option<StoredFile>> {
        if name.contains('\0') {
            return Ok(None);
        }
        let client = self.client().await?;
        let statement = client.prepare_cached(&format!("{FIND} {ANYWHERE}")).await.map_err(broken("find file"))?;
        let row = client.query_opt(&statement, &[&app.uuid(), &name]).await.map_err(broken("find file"))?;
        row.as_ref().map(stored).transpose()
    }

    async fn file_bytes(&self, app: AppId) -> StoreResult<u64> {
        let client = self.client().await?;
        let statement = client.prepare_cached(BYTES).await.map_err(broken("sum of files"))?;
        let row = client.query_one(&statement, &[&app.uuid()]).await.map_err(broken("sum of files"))?;
        let bytes: i64 = row.try_get(0).map_err(broken("sum of files"))?;
        u64::try_from(bytes).map_err(|_| StoreError::Broken)
    }

    async fn take_file_token(&self, call: &CallRecord, token: &NewFileToken) -> StoreResult<Receipt> {
        tokens::take(self, call, token).await
    }

    async fn due_files(&self, most: u16) -> StoreResult<Vec<DueFile>> {
        sweep::due(self, most).await
    }

    async fn files_removed(&self, files: &[DueFile]) -> StoreResult<()> {
        sweep::removed(self, files).await
    }
}

/// One row of [`FIND`].
fn stored(row: &Row) -> StoreResult<StoredFile> {
    let read = broken("find file");
    let (size, digest): (i64, &[u8]) = (row.try_get(2).map_err(&read)?, row.try_get(4).map_err(&read)?);
    Ok(StoredFile {
        id: FileId::from_uuid(row.try_get(0).map_err(&read)?),
        field: row.try_get(1).map_err(&read)?,
        size: u64::try_from(size).map_err(|_| StoreError::Broken)?,
        media_type: row.try_get(3).map_err(&read)?,
        digest: Digest::from_slice(digest).ok_or(StoreError::Broken)?,
        kept_at: row.try_get(5).map_err(&read)?,
    })
}

/// See [`inn_ports::Directory::file_token`].
pub(crate) async fn token_state(store: &PgStore, token: Digest) -> StoreResult<Option<FileTokenState>> {
    tokens::state(store, token).await
}

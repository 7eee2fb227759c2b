//! Files whose time has come: never named by a record, named no more, or removed once already.

use inn_ports::{DueFile, FileKey, StoreResult};
use inn_protocol::{AppId, FileId};
use uuid::Uuid;

use crate::PgStore;
use crate::error::{broken, committing};

/// A claim is a minute's lease: another node takes over what this one did not get done. The first look dooms, so that no
/// commit can keep the file any more.
const CLAIM: &str = "
UPDATE inn.files f
SET state = CASE f.state WHEN 'gone' THEN 'gone' ELSE 'doomed' END, due_at = clock_timestamp() + interval '1 minute'
FROM (
    SELECT id FROM inn.files WHERE due_at <= clock_timestamp() ORDER BY due_at LIMIT $1 FOR UPDATE SKIP LOCKED
) AS due
WHERE f.id = due.id
RETURNING f.app, f.id, f.state = 'gone'";

/// A writer that was late by then has left nothing behind.
const REMOVED: &str = "UPDATE inn.files SET state = 'gone', due_at = clock_timestamp() + interval '10 minutes'
    WHERE id = ANY ($1) AND state = 'doomed'";
const FORGET: &str = "DELETE FROM inn.files WHERE id = ANY ($1) AND state = 'gone'";

const TOKENS: &str = "DELETE FROM inn.file_tokens WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM inn.file_tokens WHERE expires_at < clock_timestamp() LIMIT 1000))";

pub(super) async fn due(store: &PgStore, most: u16) -> StoreResult<Vec<DueFile>> {
    let client = store.client().await?;
    client.execute(TOKENS, &[]).await.map_err(broken("expired file tokens"))?;
    let statement = client.prepare_cached(CLAIM).await.map_err(broken("due files"))?;
    let rows = client.query(&statement, &[&i64::from(most)]).await.map_err(broken("due files"))?;
    let read = |row: &tokio_postgres::Row| {
        let key = FileKey { app: AppId::from_uuid(row.try_get(0)?), file: FileId::from_uuid(row.try_get(1)?) };
        Ok(DueFile { key, again: row.try_get(2)? })
    };
    rows.iter().map(|row| read(row).map_err(broken("due files"))).collect()
}

pub(super) async fn removed(store: &PgStore, files: &[DueFile]) -> StoreResult<()> {
    let ids = |again: bool| -> Vec<Uuid> {
        files.iter().filter(|due| due.again == again).map(|due| due.key.file.uuid()).collect()
    };
    let client = store.client().await?;
    for (ids, text) in [(ids(false), REMOVED), (ids(true), FORGET)] {
        if !ids.is_empty() {
            let statement = client.prepare_cached(text).await.map_err(broken("removed files"))?;
            client.execute(&statement, &[&ids]).await.map_err(committing("removed files"))?;
        }
    }
    Ok(())
}

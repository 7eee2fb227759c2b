//! Ended requests leave the hot table for the history.

use inn_ports::StoreResult;

use crate::PgStore;
use crate::error::{broken, committing};
use crate::people::sql::{all, column, run};

/// Rows of one transaction, and transactions of one sweep.
const BATCHES: usize = 10;

/// An app that watches its request finds the result in the hot table for a while. The columns are named, since the two
/// tables may grow in different orders.
const COPY: &str = "
INSERT INTO inn.requests_history (id, tenant, app, capability, payload, state, requester_user, requester_label, attempt,
    attempts, epoch, holder, holder_grant, held_by, lease_seconds, lease_until, next_at, waits_until, progress, result,
    reason, acknowledged, hard_seconds, hard_until, priority, questions, past_attempts, replay_of, rank, ready, unique_mode, unique_key, job, created_at, updated_at, ended_at)
SELECT id, tenant, app, capability, payload, state, requester_user, requester_label, attempt,
    attempts, epoch, holder, holder_grant, held_by, lease_seconds, lease_until, next_at, waits_until, progress, result,
    reason, acknowledged, hard_seconds, hard_until, priority, questions, past_attempts, replay_of, rank, ready, unique_mode, unique_key, job, created_at, updated_at, ended_at
FROM inn.requests WHERE ended_at < now() - interval '10 minutes'
ORDER BY ended_at LIMIT 500 FOR UPDATE SKIP LOCKED
RETURNING id";

const REMOVE: &str = "DELETE FROM inn.requests WHERE id = ANY($1)";

/// Moves what ended a while ago; answers how many.
pub(super) async fn archive(store: &PgStore) -> StoreResult<u64> {
    let mut moved = 0;
    for _ in 0..BATCHES {
        let mut client = store.client().await?;
        let tx = client.transaction().await.map_err(broken("archive"))?;
        let rows = all(&tx, "archive", COPY, &[]).await?;
        let ids = rows.iter().map(|row| column(row, "id")).collect::<StoreResult<Vec<uuid::Uuid>>>()?;
        let removed = run(&tx, "archive", REMOVE, &[&ids]).await?;
        tx.commit().await.map_err(committing("archive"))?;
        moved += removed;
        if ids.len() < 500 {
            break;
        }
    }
    Ok(moved)
}

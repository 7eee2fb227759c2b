//! Writing what the rules decided, guarded by the state and epoch it was decided from.

use deadpool_postgres::Transaction;
use inn_ports::{StoreError, StoreResult};
use inn_protocol::job::{Job, PastRun};
use inn_rules::jobs::{Change, Facts};
use tokio_postgres::Row;
use tokio_postgres::types::Json;

use super::rows;
use crate::people::sql::{maybe, run, storable};

/// A locked row of a job that a service carries out, and what its transition is decided from.
pub(super) struct Locked {
    pub(super) job: Job,
    pub(super) facts: Facts,
}

impl Locked {
    pub(super) fn read(row: &Row) -> StoreResult<Self> {
        Ok(Self { job: rows::job(row)?, facts: rows::facts(row)? })
    }

    /// Past attempts with the one that ends here, when one does; the oldest go first.
    fn past_attempts(&self, ended: Option<PastRun>) -> Option<Json<Vec<PastRun>>> {
        let ended = ended?;
        let kept = self.job.past_attempts.len().saturating_sub(Job::MOST_PAST - 1);
        Some(Json(self.job.past_attempts.iter().skip(kept).cloned().chain([ended]).collect()))
    }
}

const SAY: &str = "SELECT inn.job_say($1, $2, $3, $4)";

/// What was said of an earlier attempt does not hold for a completed job.
const APPLY: &str = concat!(
    "UPDATE inn.jobs j SET state = $4, node = $5, epoch = $6, lease_until = $7, next_at = $8, attempt = $9,
        cancel_requested = $10, taken_on = $11, remote = CASE WHEN $11 THEN coalesce($16, j.remote) END,
        progress = coalesce($12, j.progress), result = coalesce($13, j.result),
        error = CASE WHEN $4 = 'completed' THEN NULL ELSE coalesce($14, j.error) END,
        past_attempts = coalesce($15, j.past_attempts),
        updated_at = greatest(clock_timestamp(), j.updated_at + interval '1 microsecond'),
        ended_at = CASE WHEN $4 IN ('completed', 'failed', 'canceled') THEN clock_timestamp() END
     FROM inn.apps a WHERE j.id = $1 AND j.state = $2 AND j.epoch = $3 AND a.id = j.app RETURNING ",
    rows::columns!()
);

/// One transition of a locked row, its lines first: what has ended says nothing more. `Stale` when the row is no longer
/// what it was decided from (it is locked, so that cannot be).
pub(super) async fn apply(tx: &Transaction<'_>, current: &Locked, change: &Change) -> StoreResult<Job> {
    let id = current.job.id.uuid();
    for (kind, text, percent) in &change.given.lines {
        let (kind, text, percent) = (kind.as_str(), storable(text), percent.map(i16::from));
        run(tx, "line of a job", SAY, &[&id, &kind, &text, &percent]).await?;
    }
    let (from, to, given) = (&current.facts, &change.facts, &change.given);
    let attempt = i32::try_from(to.attempt).unwrap_or(i32::MAX);
    let (state, next) = (from.state.as_str(), to.state.as_str());
    let (progress, result) = (given.progress.as_ref().map(Json), given.result.as_ref().map(Json));
    let (error, past) = (given.error.as_ref().map(Json), current.past_attempts(given.ended.clone()));
    let remote = given.remote.as_deref().map(storable);
    let row = maybe(
        tx,
        "job transition",
        APPLY,
        &[
            &id,
            &state,
            &from.epoch,
            &next,
            &to.node,
            &to.epoch,
            &to.lease_until,
            &to.next_at,
            &attempt,
            &to.cancel_requested,
            &to.taken_on,
            &progress,
            &result,
            &error,
            &past,
            &remote,
        ],
    )
    .await?;
    row.as_ref().map(rows::job).transpose()?.ok_or(StoreError::Stale)
}

//! Looking at jobs, open or in the history.

use inn_ports::StoreResult;
use inn_protocol::job::{Job, JobLine, JobState};
use inn_protocol::{AppId, JobId, UserId};

use super::rows;
use crate::PgStore;
use crate::people::sql::{all, maybe};

/// One statement sees one moment, so a row on its way to the history is found in exactly one of the two places.
macro_rules! anywhere {
    ($condition:literal, $order:literal) => {
        concat!(
            "SELECT ",
            rows::columns!(),
            " FROM (
                (SELECT j.*, NULL::json AS log FROM inn.jobs j WHERE ",
            $condition,
            " ",
            $order,
            ") UNION ALL (SELECT * FROM inn.jobs_history j WHERE ",
            $condition,
            " ",
            $order,
            ")) j JOIN inn.apps a ON a.id = j.app ",
            $order
        )
    };
}

pub(super) async fn find(store: &PgStore, app: AppId, job: JobId) -> StoreResult<Option<Job>> {
    let client = store.client().await?;
    let text = anywhere!("j.id = $1 AND j.app = $2", "LIMIT 1");
    let row = maybe(&client, "job", text, &[&job.uuid(), &app.uuid()]).await?;
    row.as_ref().map(rows::job).transpose()
}

/// Newest first, at most 500; everybody's, or one person's.
pub(super) async fn list(
    store: &PgStore,
    app: AppId,
    state: Option<JobState>,
    requester: Option<UserId>,
    limit: u32,
) -> StoreResult<Vec<Job>> {
    let client = store.client().await?;
    let limit = i64::from(limit.clamp(1, 500));
    let text = anywhere!(
        "j.app = $1 AND ($2::text IS NULL OR j.state = $2) AND ($4::uuid IS NULL OR j.requester_user = $4)",
        "ORDER BY j.created_at DESC, j.id DESC LIMIT $3"
    );
    let (state, requester) = (state.map(JobState::as_str), requester.map(UserId::uuid));
    let rows = all(&client, "jobs", text, &[&app.uuid(), &state, &limit, &requester]).await?;
    rows.iter().map(rows::job).collect()
}

/// The lines of a job that has moved away are in its row.
const LINES: &str = "
SELECT l.seq, l.at, l.kind, l.text, l.percent FROM (
    SELECT l.seq, l.at, l.kind, l.text, l.percent
    FROM inn.jobs j JOIN inn.job_lines l ON l.job = j.id WHERE j.id = $1 AND j.app = $2
    UNION ALL
    SELECT l.seq, l.at, l.kind, l.text, l.percent
    FROM inn.jobs_history j, json_to_recordset(j.log) AS l (seq bigint, at timestamptz, kind text, text text, percent smallint)
    WHERE j.id = $1 AND j.app = $2
) l WHERE l.seq > $3 ORDER BY l.seq LIMIT $4";

pub(super) async fn lines(
    store: &PgStore,
    app: AppId,
    job: JobId,
    after: i64,
    limit: u32,
) -> StoreResult<Vec<JobLine>> {
    let client = store.client().await?;
    let limit = i64::from(limit.clamp(1, 1_000));
    let rows = all(&client, "lines of a job", LINES, &[&job.uuid(), &app.uuid(), &after, &limit]).await?;
    rows.iter().map(rows::line).collect()
}

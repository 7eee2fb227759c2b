//! Rows to the words of the protocol.

use inn_ports::StoreResult;
use inn_protocol::job::{Job, JobError, JobKind, JobLine, JobState, LineKind, PastRun};
use inn_protocol::request::Progress;
use inn_protocol::{AppId, JobId, RequestId, TenantId, UserId};
use inn_rules::jobs::Facts;
use tokio_postgres::Row;
use tokio_postgres::types::Json;
use uuid::Uuid;

use crate::grants::agent_id;
use crate::people::sql::{column, unreadable};

/// The columns of a job `j` of an app `a`, as [`job`] and [`facts`] read them.
macro_rules! columns {
    () => {
        "j.id, j.tenant, j.app, a.slug AS app_slug, j.operation, j.kind, j.state, j.params, j.requester_user, j.requester_label,
         j.agent, j.request, j.attempt, j.attempts, j.epoch, j.node, j.lease_until, j.next_at, j.deadline, j.taken_on,
         j.cancel_requested, j.progress, j.question, j.result, j.error, j.past_attempts, j.retry_of, j.lines, j.created_at,
         j.updated_at"
    };
}
pub(super) use columns;

pub(super) fn job(row: &Row) -> StoreResult<Job> {
    let (state, kind): (&str, &str) = (column(row, "state")?, column(row, "kind")?);
    let state = JobState::parse(state).ok_or_else(|| unreadable("state of a job", state))?;
    let ended = state.is_terminal();
    Ok(Job {
        id: JobId::from_uuid(column(row, "id")?),
        tenant: TenantId::from_uuid(column(row, "tenant")?),
        app: AppId::from_uuid(column(row, "app")?),
        app_slug: column(row, "app_slug")?,
        operation: column(row, "operation")?,
        kind: JobKind::parse(kind).ok_or_else(|| unreadable("kind of a job", kind))?,
        state,
        params: column(row, "params")?,
        requester: column::<Option<Uuid>>(row, "requester_user")?.map(UserId::from_uuid),
        requester_label: column(row, "requester_label")?,
        agent: column::<Option<&str>>(row, "agent")?.map(agent_id).transpose()?,
        request: column::<Option<Uuid>>(row, "request")?.map(RequestId::from_uuid),
        attempt: count(row, "attempt")?,
        attempts: count(row, "attempts")?,
        epoch: column(row, "epoch")?,
        node: column(row, "node")?,
        lease_until: column(row, "lease_until")?,
        next_at: if ended { None } else { column(row, "next_at")? },
        deadline: column(row, "deadline")?,
        cancel_requested: column(row, "cancel_requested")?,
        progress: column::<Option<Json<Progress>>>(row, "progress")?.map(|json| json.0),
        question: column(row, "question")?,
        result: column(row, "result")?,
        error: column::<Option<Json<JobError>>>(row, "error")?.map(|json| json.0),
        past_attempts: column::<Json<Vec<PastRun>>>(row, "past_attempts")?.0,
        retry_of: column::<Option<Uuid>>(row, "retry_of")?.map(JobId::from_uuid),
        lines: column(row, "lines")?,
        created_at: column(row, "created_at")?,
        updated_at: column(row, "updated_at")?,
    })
}

/// What the rules decide from. Of a job that a service carries out; an agent's has no deadline of its own.
pub(super) fn facts(row: &Row) -> StoreResult<Facts> {
    let state: &str = column(row, "state")?;
    Ok(Facts {
        state: JobState::parse(state).ok_or_else(|| unreadable("state of a job", state))?,
        node: column(row, "node")?,
        epoch: column(row, "epoch")?,
        lease_until: column(row, "lease_until")?,
        next_at: column(row, "next_at")?,
        deadline: column(row, "deadline")?,
        attempt: count(row, "attempt")?,
        attempts: count(row, "attempts")?,
        cancel_requested: column(row, "cancel_requested")?,
        taken_on: column(row, "taken_on")?,
    })
}

pub(super) fn line(row: &Row) -> StoreResult<JobLine> {
    let kind: &str = column(row, "kind")?;
    let percent = column::<Option<i16>>(row, "percent")?.map(u8::try_from).transpose();
    Ok(JobLine {
        seq: column(row, "seq")?,
        at: column(row, "at")?,
        kind: LineKind::parse(kind).ok_or_else(|| unreadable("kind of a job's line", kind))?,
        text: column(row, "text")?,
        percent: percent.map_err(|_| unreadable("count", "percent"))?,
    })
}

fn count(row: &Row, name: &str) -> StoreResult<u32> {
    let number: i32 = column(row, name)?;
    u32::try_from(number).map_err(|_| unreadable("count", name))
}

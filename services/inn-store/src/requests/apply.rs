//! Writing what the rules decided, guarded by the state and epoch it was decided from.

use chrono::{DateTime, Utc};
use deadpool_postgres::Transaction;
use inn_ports::{StoreError, StoreResult};
use inn_protocol::AgentId;
use inn_protocol::request::{PastAttempt, Question, QueueRequest};
use inn_rules::requests::{Change, Facts};
use serde_json::Value;
use tokio_postgres::Row;
use tokio_postgres::types::Json;
use uuid::Uuid;

use super::rows;
use crate::people::sql::{column, maybe, storable};

/// A locked row, and what its transition is decided from.
pub(super) struct Locked {
    pub(super) request: QueueRequest,
    pub(super) facts: Facts,
}

impl Locked {
    pub(super) fn read(row: &Row) -> StoreResult<Self> {
        let request = rows::request(row)?;
        let facts = Facts { next_at: column(row, "next_at")?, ..Facts::from(&request) };
        Ok(Self { request, facts })
    }

    /// Past attempts with the one that ends here, when one does; the oldest go first.
    fn past_attempts(&self, change: &Change) -> Option<Json<Vec<PastAttempt>>> {
        let ended = change.ended.clone()?;
        let kept = self.request.past_attempts.len().saturating_sub(QueueRequest::MOST_PAST - 1);
        Some(Json(self.request.past_attempts.iter().skip(kept).cloned().chain([ended]).collect()))
    }

    /// Questions with the new one, or with the answer to the last one.
    fn questions(&self, change: &Change, now: DateTime<Utc>) -> Option<Json<Vec<Question>>> {
        let mut questions = self.request.questions.clone();
        match (&change.question, &change.answer) {
            (Some(question), _) => questions.push(Question {
                question: question.clone(),
                asked_at: now,
                answer: None,
                answered_by: None,
                answered_at: None,
            }),
            (None, Some((answer, by))) => {
                let last = questions.last_mut()?;
                last.answer = Some(answer.clone());
                last.answered_by = Some(by.clone());
                last.answered_at = Some(now);
            }
            (None, None) => return None,
        }
        Some(Json(questions))
    }
}

/// A requeued row keeps its progress and result columns as they are; a row without holder has no grant either. What was
/// said about an earlier attempt does not hold for a completed request.
const APPLY: &str = concat!(
    "UPDATE inn.requests r SET
        state = $4, holder = $5, holder_grant = CASE WHEN $5::text IS NULL THEN NULL ELSE r.holder_grant END, epoch = $6,
        lease_until = $7, acknowledged = $13, hard_until = $14, questions = coalesce($15::json, r.questions),
        past_attempts = coalesce($16::json, r.past_attempts), attempt = $8, next_at = coalesce($9, r.next_at), reason = CASE WHEN $4::text = 'completed' THEN $10 ELSE coalesce($10, r.reason) END,
        progress = coalesce($11::json, r.progress), result = coalesce($12::json, r.result), updated_at = now(),
        ended_at = CASE WHEN $4::text IN ('completed', 'failed', 'canceled') THEN now() END
     FROM inn.apps a
     WHERE r.id = $1 AND r.state = $2 AND r.epoch = $3 AND a.id = r.app
     RETURNING ",
    rows::columns!()
);

/// One transition. `Stale` when the row is no longer what it was decided from (it is locked, so that cannot be).
pub(super) async fn apply(
    tx: &Transaction<'_>,
    current: &Locked,
    change: &Change,
    now: DateTime<Utc>,
) -> StoreResult<QueueRequest> {
    let progress = change.progress.as_ref().map(Json);
    let reason = change.reason.as_deref().map(storable);
    let result: Option<Json<&Value>> = change.result.as_ref().map(Json);
    let row = maybe(
        tx,
        "request transition",
        APPLY,
        &[
            &current.request.id.uuid(),
            &current.facts.state.as_str(),
            &current.facts.epoch,
            &change.state.as_str(),
            &change.holder.as_ref().map(AgentId::as_str),
            &change.epoch,
            &change.lease_until,
            &rows::stored(change.attempt),
            &change.next_at,
            &reason.as_deref(),
            &progress,
            &result,
            &change.acknowledged,
            &change.hard_until,
            &current.questions(change, now),
            &current.past_attempts(change),
        ],
    )
    .await?;
    row.as_ref().map(rows::request).transpose()?.ok_or(StoreError::Stale)
}

/// Many transitions that end a claim and give no progress, no result and no question (leases that ran out, claims that were fenced).
const APPLY_MANY: &str = "
UPDATE inn.requests r SET
    state = c.state, holder = c.holder, holder_grant = CASE WHEN c.holder IS NULL THEN NULL ELSE r.holder_grant END,
    epoch = c.epoch, lease_until = c.lease_until, hard_until = NULL,
    past_attempts = coalesce(c.past_attempts, r.past_attempts), attempt = c.attempt, next_at = coalesce(c.next_at, r.next_at),
    reason = coalesce(c.reason, r.reason), updated_at = now(),
    ended_at = CASE WHEN c.state IN ('completed', 'failed', 'canceled') THEN now() END
FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::bigint[], $7::timestamptz[], $8::integer[],
            $9::timestamptz[], $10::text[], $11::json[])
  AS c (id, state_before, epoch_before, state, holder, epoch, lease_until, attempt, next_at, reason, past_attempts)
WHERE r.id = c.id AND r.state = c.state_before AND r.epoch = c.epoch_before";

/// Columns of [`APPLY_MANY`].
#[derive(Default)]
pub(super) struct Many<'m> {
    ids: Vec<Uuid>,
    states_before: Vec<&'static str>,
    epochs_before: Vec<i64>,
    states: Vec<&'static str>,
    holders: Vec<Option<&'m str>>,
    epochs: Vec<i64>,
    leases: Vec<Option<DateTime<Utc>>>,
    attempts: Vec<i32>,
    nexts: Vec<Option<DateTime<Utc>>>,
    reasons: Vec<Option<&'m str>>,
    past_attempts: Vec<Option<Json<Vec<PastAttempt>>>>,
}

impl<'m> Many<'m> {
    pub(super) fn add(&mut self, current: &Locked, change: &'m Change) {
        self.ids.push(current.request.id.uuid());
        self.states_before.push(current.facts.state.as_str());
        self.epochs_before.push(current.facts.epoch);
        self.states.push(change.state.as_str());
        self.holders.push(change.holder.as_ref().map(AgentId::as_str));
        self.epochs.push(change.epoch);
        self.leases.push(change.lease_until);
        self.attempts.push(rows::stored(change.attempt));
        self.nexts.push(change.next_at);
        self.reasons.push(change.reason.as_deref());
        self.past_attempts.push(current.past_attempts(change));
    }

    /// Answers how many rows changed; they are locked, so all of them do.
    pub(super) async fn apply(&self, tx: &Transaction<'_>) -> StoreResult<u64> {
        if self.ids.is_empty() {
            return Ok(0);
        }
        crate::people::sql::run(
            tx,
            "request transitions",
            APPLY_MANY,
            &[
                &self.ids,
                &self.states_before,
                &self.epochs_before,
                &self.states,
                &self.holders,
                &self.epochs,
                &self.leases,
                &self.attempts,
                &self.nexts,
                &self.reasons,
                &self.past_attempts,
            ],
        )
        .await
    }
}

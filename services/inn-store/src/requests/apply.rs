//! Writing what the rules decided, guarded by the state and epoch it was decided from.

use std::borrow::Cow;
use std::sync::OnceLock;

use chrono::{DateTime, Utc};
use deadpool_postgres::Transaction;
use inn_ports::{StoreError, StoreResult};
use inn_protocol::AgentId;
use inn_protocol::request::{PastAttempt, Progress, Question, QueueRequest};
use inn_rules::requests::{Change, Facts};
use serde_json::Value;
use tokio_postgres::Row;
use tokio_postgres::types::{Json, ToSql, Type};
use uuid::Uuid;

use super::rows;
use crate::error::broken;
use crate::people::sql::{column, storable};

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

/// The columns a transition sets, from `$1` to `$16` shifted by a number: request, state and epoch it was decided from,
/// then what it becomes. A requeued row keeps its progress and result columns as they are; a row without holder has no
/// grant either. What was said about an earlier attempt does not hold for a completed request. `updated_at` never stands
/// still, so that it names one version of the row.
pub(super) fn assignments(shift: usize) -> String {
    let at = |number: usize| format!("${}", number + shift);
    format!(
        "state = {state}, holder = {holder}, holder_grant = CASE WHEN {holder}::text IS NULL THEN NULL ELSE r.holder_grant END,
        epoch = {epoch}, lease_until = {lease}, acknowledged = {acknowledged}, hard_until = {hard},
        questions = coalesce({questions}::json, r.questions), past_attempts = coalesce({past}::json, r.past_attempts),
        attempt = {attempt}, next_at = coalesce({next}, r.next_at), ready = coalesce({next} <= now(), true),
        reason = CASE WHEN {state}::text = 'completed' THEN {reason} ELSE coalesce({reason}, r.reason) END,
        progress = coalesce({progress}::json, r.progress), result = coalesce({result}::json, r.result),
        updated_at = greatest(clock_timestamp(), r.updated_at + interval '1 microsecond'),
        ended_at = CASE WHEN {state}::text IN ('completed', 'failed', 'canceled') THEN clock_timestamp() END",
        state = at(4),
        holder = at(5),
        epoch = at(6),
        lease = at(7),
        attempt = at(8),
        next = at(9),
        reason = at(10),
        progress = at(11),
        result = at(12),
        acknowledged = at(13),
        hard = at(14),
        questions = at(15),
        past = at(16),
    )
}

/// Types of the parameters of [`assignments`].
pub(super) const TYPES: [Type; 16] = [
    Type::UUID,
    Type::TEXT,
    Type::INT8,
    Type::TEXT,
    Type::TEXT,
    Type::INT8,
    Type::TIMESTAMPTZ,
    Type::INT4,
    Type::TIMESTAMPTZ,
    Type::TEXT,
    Type::JSON,
    Type::JSON,
    Type::BOOL,
    Type::TIMESTAMPTZ,
    Type::JSON,
    Type::JSON,
];

/// The values of the parameters of [`assignments`], owned so that they can be borrowed as one list.
pub(super) struct Values<'c> {
    request: Uuid,
    from: (&'static str, i64),
    state: &'static str,
    holder: Option<&'c str>,
    epoch: i64,
    lease_until: Option<DateTime<Utc>>,
    attempt: i32,
    next_at: Option<DateTime<Utc>>,
    reason: Option<Cow<'c, str>>,
    progress: Option<Json<&'c Progress>>,
    result: Option<Json<&'c Value>>,
    acknowledged: bool,
    hard_until: Option<DateTime<Utc>>,
    questions: Option<Json<Vec<Question>>>,
    past_attempts: Option<Json<Vec<PastAttempt>>>,
}

impl<'c> Values<'c> {
    pub(super) fn new(current: &Locked, change: &'c Change, now: DateTime<Utc>) -> Self {
        Self {
            request: current.request.id.uuid(),
            from: (current.facts.state.as_str(), current.facts.epoch),
            state: change.state.as_str(),
            holder: change.holder.as_ref().map(AgentId::as_str),
            epoch: change.epoch,
            lease_until: change.lease_until,
            attempt: rows::stored(change.attempt),
            next_at: change.next_at,
            reason: change.reason.as_deref().map(storable),
            progress: change.progress.as_ref().map(Json),
            result: change.result.as_ref().map(Json),
            acknowledged: change.acknowledged,
            hard_until: change.hard_until,
            questions: current.questions(change, now),
            past_attempts: current.past_attempts(change),
        }
    }

    pub(super) fn list(&self) -> [&(dyn ToSql + Sync); 16] {
        [
            &self.request,
            &self.from.0,
            &self.from.1,
            &self.state,
            &self.holder,
            &self.epoch,
            &self.lease_until,
            &self.attempt,
            &self.next_at,
            &self.reason,
            &self.progress,
            &self.result,
            &self.acknowledged,
            &self.hard_until,
            &self.questions,
            &self.past_attempts,
        ]
    }
}

/// One transition of a locked row. `Stale` when the row is no longer what it was decided from (it is locked, so that
/// cannot be).
pub(super) async fn apply(
    tx: &Transaction<'_>,
    current: &Locked,
    change: &Change,
    now: DateTime<Utc>,
) -> StoreResult<QueueRequest> {
    static TEXT: OnceLock<String> = OnceLock::new();
    let text = TEXT.get_or_init(|| {
        format!(
            "UPDATE inn.requests r SET {} FROM inn.apps a WHERE r.id = $1 AND r.state = $2 AND r.epoch = $3 AND a.id = r.app
             RETURNING {}",
            assignments(0),
            rows::columns!()
        )
    });
    let statement = tx.prepare_typed_cached(text, &TYPES).await.map_err(broken("request transition"))?;
    let values = Values::new(current, change, now);
    let row = tx.query_opt(&statement, &values.list()).await.map_err(broken("request transition"))?;
    row.as_ref().map(rows::request).transpose()?.ok_or(StoreError::Stale)
}

/// Many transitions that end a claim, with a result or without (leases that ran out, claims that were fenced).
const APPLY_MANY: &str = "
UPDATE inn.requests r SET
    state = c.state, holder = c.holder, holder_grant = CASE WHEN c.holder IS NULL THEN NULL ELSE r.holder_grant END,
    epoch = c.epoch, lease_until = c.lease_until, hard_until = NULL,
    past_attempts = coalesce(c.past_attempts, r.past_attempts), attempt = c.attempt, next_at = coalesce(c.next_at, r.next_at),
    ready = coalesce(c.next_at <= now(), true), reason = CASE WHEN c.state = 'completed' THEN c.reason ELSE coalesce(c.reason, r.reason) END,
    result = coalesce(c.result, r.result), acknowledged = r.acknowledged OR c.state = 'completed', updated_at = greatest(clock_timestamp(), r.updated_at + interval '1 microsecond'),
    ended_at = CASE WHEN c.state IN ('completed', 'failed', 'canceled') THEN now() END
FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::bigint[], $7::timestamptz[], $8::integer[],
            $9::timestamptz[], $10::text[], $11::json[], $12::json[])
  AS c (id, state_before, epoch_before, state, holder, epoch, lease_until, attempt, next_at, reason, past_attempts, result)
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
    results: Vec<Option<Json<&'m Value>>>,
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
        self.results.push(change.result.as_ref().map(Json));
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
                &self.results,
            ],
        )
        .await
    }
}

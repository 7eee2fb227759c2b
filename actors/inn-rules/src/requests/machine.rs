//! Transitions of a request. Pure: what the row says now, who asks, and the time, give the next row or a refusal.

use chrono::{DateTime, TimeDelta, Utc};
use inn_protocol::request::{HoldCommand, Progress, QueueRequest, RequestState};
use inn_protocol::{AgentId, Code, Refusal, Violation};
use serde_json::Value;

/// Longest wait before another attempt, in seconds.
const MAX_BACK_OFF_SECONDS: u32 = 300;
/// Longest reason kept, in characters; the rest is cut.
const MAX_REASON: usize = 500;
/// Longest progress line, in characters.
const MAX_STEP: usize = 200;

/// What must be known of a request to decide a transition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    pub state: RequestState,
    pub holder: Option<AgentId>,
    pub epoch: i64,
    pub lease_seconds: u32,
    pub lease_until: Option<DateTime<Utc>>,
    /// Claims that counted so far.
    pub attempt: u32,
    pub attempts: u32,
    /// Not claimable before this moment; `None` when it may be claimed at once.
    pub next_at: Option<DateTime<Utc>>,
}

impl From<&QueueRequest> for Facts {
    fn from(request: &QueueRequest) -> Self {
        Self {
            state: request.state,
            holder: request.holder.clone(),
            epoch: request.epoch,
            lease_seconds: request.lease_seconds,
            lease_until: request.lease_until,
            attempt: request.attempt,
            attempts: request.attempts,
            next_at: None,
        }
    }
}

/// The row after the transition. `None` for reason, progress and result leaves what is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub state: RequestState,
    /// Who holds it, or who ended it.
    pub holder: Option<AgentId>,
    pub epoch: i64,
    pub lease_until: Option<DateTime<Utc>>,
    pub attempt: u32,
    pub next_at: Option<DateTime<Utc>>,
    pub reason: Option<String>,
    pub progress: Option<Progress>,
    pub result: Option<Value>,
}

impl Change {
    fn keep(current: &Facts) -> Self {
        Self {
            state: current.state,
            holder: current.holder.clone(),
            epoch: current.epoch,
            lease_until: current.lease_until,
            attempt: current.attempt,
            next_at: current.next_at,
            reason: None,
            progress: None,
            result: None,
        }
    }

    /// Back to the queue, for whoever claims it from `next_at` on.
    fn requeue(current: &Facts, next_at: DateTime<Utc>, reason: String) -> Self {
        Self {
            state: RequestState::Submitted,
            holder: None,
            lease_until: None,
            next_at: Some(next_at),
            reason: Some(reason),
            ..Self::keep(current)
        }
    }

    fn end(current: &Facts, state: RequestState, reason: Option<String>) -> Self {
        Self { state, lease_until: None, next_at: None, reason, ..Self::keep(current) }
    }
}

/// Takes a waiting request under a lease, with the next epoch. Refused with `not_claimable` when it does not wait,
/// waits out a back-off, or has no attempt left.
pub fn claim(current: &Facts, by: &AgentId, now: DateTime<Utc>) -> Result<Change, Refusal> {
    let refuse = |why: &str| Err(Refusal::new(Code::NotClaimable, format!("This request cannot be claimed: {why}.")));
    if current.state != RequestState::Submitted {
        return refuse(&format!("it is {}", current.state.as_str()));
    }
    if let Some(next) = current.next_at.filter(|next| *next > now) {
        return refuse(&format!("it waits until {}", next.to_rfc3339()));
    }
    if current.attempt >= current.attempts {
        return refuse("its attempts are used up");
    }
    let Some(epoch) = current.epoch.checked_add(1) else { return refuse("it was claimed too often") };
    Ok(Change {
        state: RequestState::Working,
        holder: Some(by.clone()),
        epoch,
        lease_until: Some(lease(current, now)),
        attempt: current.attempt + 1,
        next_at: None,
        ..Change::keep(current)
    })
}

/// What the holder of a claim does with it. Refused with `claim_lost` unless `by` holds it in exactly this epoch: a
/// lease that ran out still counts as long as nobody has taken the request back.
pub fn hold(
    current: &Facts,
    by: &AgentId,
    epoch: i64,
    command: &HoldCommand,
    now: DateTime<Utc>,
) -> Result<Change, Refusal> {
    if current.state.is_terminal() {
        return Err(lost(&format!("the request is already {}", current.state.as_str())));
    }
    if current.state != RequestState::Working || current.holder.is_none() {
        return Err(lost("the request went back to the queue; claim it again"));
    }
    if current.epoch != epoch {
        return Err(lost("it was claimed again since"));
    }
    if current.holder.as_ref() != Some(by) {
        return Err(lost("another agent holds it"));
    }
    Ok(match command {
        HoldCommand::Heartbeat => Change { lease_until: longer(current, now), ..Change::keep(current) },
        HoldCommand::Progress(progress) => {
            check_progress(progress)?;
            Change { lease_until: longer(current, now), progress: Some(progress.clone()), ..Change::keep(current) }
        }
        HoldCommand::Complete(result) => {
            Change { result: Some(result.clone()), ..Change::end(current, RequestState::Completed, None) }
        }
        HoldCommand::Fail { reason } => try_again(current, &cut(reason), now),
        HoldCommand::Release { reason } => {
            Change { attempt: current.attempt.saturating_sub(1), ..Change::requeue(current, now, cut(reason)) }
        }
    })
}

/// A lease that ran out: back to the queue with the attempt counted, or the end when attempts are used up. `None`
/// when there is nothing to expire.
pub fn expire(current: &Facts, now: DateTime<Utc>) -> Option<Change> {
    let due = current.state == RequestState::Working && current.lease_until.is_none_or(|until| until <= now);
    due.then(|| try_again(current, "lease_lost", now))
}

/// The holder's grant was revoked: back to the queue at once, the attempt not counted. `None` when nobody holds it.
pub fn fence(current: &Facts, now: DateTime<Utc>) -> Option<Change> {
    (current.state == RequestState::Working).then(|| Change {
        attempt: current.attempt.saturating_sub(1),
        ..Change::requeue(current, now, "grant_revoked".to_owned())
    })
}

/// Whoever asked takes it back, also from under a claim. Refused with `conflict` when it has ended.
pub fn cancel(current: &Facts, reason: &str) -> Result<Change, Refusal> {
    if current.state.is_terminal() {
        let message = format!("This request is already {} and cannot be canceled.", current.state.as_str());
        return Err(Refusal::new(Code::Conflict, message));
    }
    Ok(Change::end(current, RequestState::Canceled, Some(cut(reason))))
}

/// Seconds before the next attempt after `attempt` of them: 2, 4, 8 … 300.
pub fn back_off(attempt: u32) -> u32 {
    2_u32.checked_pow(attempt).map_or(MAX_BACK_OFF_SECONDS, |seconds| seconds.min(MAX_BACK_OFF_SECONDS))
}

fn try_again(current: &Facts, reason: &str, now: DateTime<Utc>) -> Change {
    if current.attempt >= current.attempts {
        return Change::end(current, RequestState::Failed, Some(format!("attempts_exhausted: {reason}")));
    }
    let wait = TimeDelta::seconds(i64::from(back_off(current.attempt)));
    Change::requeue(current, now.checked_add_signed(wait).unwrap_or(now), reason.to_owned())
}

fn lease(current: &Facts, now: DateTime<Utc>) -> DateTime<Utc> {
    now.checked_add_signed(TimeDelta::seconds(i64::from(current.lease_seconds))).unwrap_or(now)
}

/// A heartbeat never shortens a lease, whatever the clocks say.
fn longer(current: &Facts, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    Some(lease(current, now)).max(current.lease_until)
}

fn lost(why: &str) -> Refusal {
    Refusal::new(Code::ClaimLost, format!("This claim no longer holds: {why}."))
}

fn cut(reason: &str) -> String {
    if reason.chars().count() <= MAX_REASON {
        return reason.to_owned();
    }
    reason.chars().take(MAX_REASON - 1).chain(['…']).collect()
}

fn check_progress(progress: &Progress) -> Result<(), Refusal> {
    let mut violations = Vec::new();
    if progress.step.chars().count() > MAX_STEP {
        violations.push(Violation::new(Code::InvalidParameter, "step", format!("at most {MAX_STEP} characters")));
    }
    if progress.percent > 100 {
        let violation = Violation::new(Code::InvalidParameter, "percent", "a whole number from 0 to 100");
        violations.push(violation.got(&progress.percent.into()));
    }
    if violations.is_empty() { Ok(()) } else { Err(Refusal::violations("The progress is not usable.", violations)) }
}

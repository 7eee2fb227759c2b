//! Transitions of a request. Pure: what the row says now, who asks, and the time, give the next row or a refusal.

use chrono::{DateTime, TimeDelta, Utc};
use inn_protocol::error::Lost;
use inn_protocol::request::{
    AttemptEnd, HoldCommand, OperateCommand, PastAttempt, Progress, QueueRequest, RequestState,
};
use inn_protocol::{AgentId, Code, Refusal};
use serde_json::Value;

use super::words;

/// A claim whose holder has not spoken since goes back after so many seconds, if its lease is not shorter anyway.
pub const ACKNOWLEDGE_SECONDS: u32 = 15;
/// How long a holder's question waits for its answer, in seconds.
pub const ANSWER_SECONDS: u32 = 7 * 86_400;
/// Longest wait before another attempt, in seconds.
const MAX_BACK_OFF_SECONDS: u32 = 300;

/// What must be known of a request to decide a transition.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    pub state: RequestState,
    pub holder: Option<AgentId>,
    pub epoch: i64,
    pub acknowledged: bool,
    pub lease_seconds: u32,
    pub lease_until: Option<DateTime<Utc>>,
    pub hard_seconds: u32,
    pub hard_until: Option<DateTime<Utc>>,
    /// Claims that counted so far.
    pub attempt: u32,
    pub attempts: u32,
    /// Questions so far, and when the last one was asked that has no answer.
    pub questions: usize,
    pub asked_at: Option<DateTime<Utc>>,
    /// Not claimable before this moment; `None` when it may be claimed at once.
    pub next_at: Option<DateTime<Utc>>,
}

impl From<&QueueRequest> for Facts {
    fn from(request: &QueueRequest) -> Self {
        let open = request.questions.last().filter(|question| question.answer.is_none());
        Self {
            state: request.state,
            holder: request.holder.clone(),
            epoch: request.epoch,
            acknowledged: request.acknowledged,
            lease_seconds: request.lease_seconds,
            lease_until: request.lease_until,
            hard_seconds: request.hard_seconds,
            hard_until: request.hard_until,
            attempt: request.attempt,
            attempts: request.attempts,
            questions: request.questions.len(),
            asked_at: open.map(|question| question.asked_at),
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
    pub acknowledged: bool,
    pub lease_until: Option<DateTime<Utc>>,
    pub hard_until: Option<DateTime<Utc>>,
    pub attempt: u32,
    pub next_at: Option<DateTime<Utc>>,
    pub reason: Option<String>,
    pub progress: Option<Progress>,
    pub result: Option<Value>,
    /// The attempt that ended here without a result, for the list of them.
    pub ended: Option<PastAttempt>,
    /// A new question of the holder.
    pub question: Option<String>,
    /// The answer to the open question, and who gave it.
    pub answer: Option<(Value, String)>,
}

impl Change {
    fn keep(current: &Facts) -> Self {
        Self {
            state: current.state,
            holder: current.holder.clone(),
            epoch: current.epoch,
            acknowledged: current.acknowledged,
            lease_until: current.lease_until,
            hard_until: current.hard_until,
            attempt: current.attempt,
            next_at: current.next_at,
            reason: None,
            progress: None,
            result: None,
            ended: None,
            question: None,
            answer: None,
        }
    }

    /// Back to the queue, for whoever claims it from `next_at` on.
    fn requeue(current: &Facts, next_at: DateTime<Utc>, reason: String) -> Self {
        Self {
            state: RequestState::Submitted,
            holder: None,
            lease_until: None,
            hard_until: None,
            next_at: Some(next_at),
            reason: Some(reason),
            ..Self::keep(current)
        }
    }

    fn end(current: &Facts, state: RequestState, reason: Option<String>) -> Self {
        Self { state, lease_until: None, hard_until: None, next_at: None, reason, ..Self::keep(current) }
    }

    /// With the attempt that ended, when somebody held it.
    fn ending(self, current: &Facts, how: AttemptEnd, reason: Option<&str>, now: DateTime<Utc>) -> Self {
        let ended = current.holder.clone().map(|agent| PastAttempt {
            attempt: current.attempt,
            epoch: current.epoch,
            agent,
            ended_at: now,
            how,
            reason: reason.filter(|reason| !reason.is_empty()).map(str::to_owned),
        });
        Self { ended, ..self }
    }
}

/// Takes a waiting request with the next epoch, under a short lease: the holder speaks at once, or the request goes
/// back. Refused with `not_claimable` when it does not wait, waits out a back-off, or has no attempt left.
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
    let hard = after(now, current.hard_seconds);
    Ok(Change {
        state: RequestState::Working,
        holder: Some(by.clone()),
        epoch,
        acknowledged: false,
        lease_until: Some(after(now, current.lease_seconds.min(ACKNOWLEDGE_SECONDS)).min(hard)),
        hard_until: Some(hard),
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
    let lost = |why: &str| Err(lost(current, why));
    if current.state.is_terminal() {
        return lost(&format!("the request is already {}", current.state.as_str()));
    }
    if !current.state.is_held() || current.holder.is_none() {
        return lost("the request went back to the queue; claim it again");
    }
    if current.epoch != epoch {
        return lost("it was claimed again since");
    }
    if current.holder.as_ref() != Some(by) {
        return lost("another agent holds it");
    }
    let spoken = Facts { acknowledged: true, ..current.clone() };
    Ok(match command {
        HoldCommand::Heartbeat => Change { lease_until: longer(current, now), ..Change::keep(&spoken) },
        HoldCommand::Progress(progress) => {
            words::check_progress(progress)?;
            // A holder that goes on has stopped waiting for its answer.
            let going_on = resumed(&spoken, now);
            Change {
                state: RequestState::Working,
                lease_until: longer(&going_on, now),
                progress: Some(progress.clone()),
                ..Change::keep(&going_on)
            }
        }
        HoldCommand::Ask { question } => {
            words::check_question(question, current.questions)?;
            if current.state == RequestState::InputRequired {
                let message = "This request waits for the answer to an earlier question already.";
                return Err(Refusal::new(Code::Conflict, message));
            }
            Change {
                state: RequestState::InputRequired,
                lease_until: Some(after(now, ANSWER_SECONDS)),
                question: Some(question.clone()),
                ..Change::keep(&spoken)
            }
        }
        HoldCommand::Complete(result) => {
            Change { result: Some(result.clone()), ..Change::end(&spoken, RequestState::Completed, None) }
        }
        HoldCommand::Fail { reason } => {
            let reason = words::cut(reason);
            try_again(current, &reason, now).ending(current, AttemptEnd::Failed, Some(&reason), now)
        }
        HoldCommand::Release { reason } => {
            let reason = words::cut(reason);
            uncounted(current, now, reason.clone()).ending(current, AttemptEnd::Released, Some(&reason), now)
        }
    })
}

/// What a member of the tenant does, over the holder's head or for it. Refused with `conflict` when the request is not
/// in a state for it.
pub fn operate(current: &Facts, command: &OperateCommand, now: DateTime<Utc>) -> Result<Change, Refusal> {
    let state = current.state.as_str();
    let refuse = |what: &str| Err(Refusal::new(Code::Conflict, format!("This request is {state}: {what}.")));
    match command {
        OperateCommand::Release { .. } if !current.state.is_held() => refuse("nobody holds it"),
        OperateCommand::Release { reason } => {
            let reason = words::cut(reason);
            let change = uncounted(current, now, format!("taken_back: {reason}"));
            Ok(change.ending(current, AttemptEnd::TakenBack, Some(&reason), now))
        }
        OperateCommand::Fail { .. } if current.state.is_terminal() => refuse("it has ended"),
        OperateCommand::Fail { reason } => {
            let reason = words::cut(reason);
            let change = Change::end(current, RequestState::Failed, Some(format!("failed_by_hand: {reason}")));
            Ok(change.ending(current, AttemptEnd::TakenBack, Some(&reason), now))
        }
        OperateCommand::Answer { .. } if current.state != RequestState::InputRequired => {
            refuse("it waits for no answer")
        }
        OperateCommand::Answer { answer, by } => {
            words::check_answer(answer)?;
            let going_on = resumed(current, now);
            Ok(Change {
                state: RequestState::Working,
                lease_until: Some(lease(&going_on, now)),
                answer: Some((answer.clone(), by.clone())),
                ..Change::keep(&going_on)
            })
        }
    }
}

/// A lease that ran out: back to the queue with the attempt counted, or the end when attempts are used up; a question
/// nobody answered ends it. `None` when there is nothing to expire.
pub fn expire(current: &Facts, now: DateTime<Utc>) -> Option<Change> {
    if !current.state.is_held() || current.lease_until.is_some_and(|until| until > now) {
        return None;
    }
    let how = match current.state {
        RequestState::InputRequired => AttemptEnd::NotAnswered,
        _ if !current.acknowledged => AttemptEnd::NotAcknowledged,
        _ if current.hard_until.is_some_and(|until| until <= now) => AttemptEnd::OutOfTime,
        _ => AttemptEnd::LeaseLost,
    };
    let change = match how {
        AttemptEnd::NotAnswered => {
            let reason = "not_answered: nobody answered the agent's question in time".to_owned();
            Change::end(current, RequestState::Failed, Some(reason))
        }
        _ => try_again(current, how.as_str(), now),
    };
    Some(change.ending(current, how, None, now))
}

/// Nobody claimed it in time: it ends, with a reason, instead of waiting for ever. `None` when it does not wait.
pub fn give_up(current: &Facts) -> Option<Change> {
    let reason = || "nobody_came: no agent completed this request within 7 days".to_owned();
    (current.state == RequestState::Submitted).then(|| Change::end(current, RequestState::Failed, Some(reason())))
}

/// The holder's grant was revoked: back to the queue at once, the attempt not counted. `None` when nobody holds it.
pub fn fence(current: &Facts, now: DateTime<Utc>) -> Option<Change> {
    let change = || uncounted(current, now, "grant_revoked".to_owned());
    current.state.is_held().then(|| change().ending(current, AttemptEnd::GrantRevoked, None, now))
}

/// Whoever asked takes it back, also from under a claim. Refused with `conflict` when it has ended.
pub fn cancel(current: &Facts, reason: &str) -> Result<Change, Refusal> {
    if current.state.is_terminal() {
        let message = format!("This request is already {} and cannot be canceled.", current.state.as_str());
        return Err(Refusal::new(Code::Conflict, message));
    }
    Ok(Change::end(current, RequestState::Canceled, Some(words::cut(reason))))
}

/// Whether an ended request may be done again, as a new one. Refused with `conflict` unless it failed or was canceled.
pub fn replayable(state: RequestState) -> Result<(), Refusal> {
    if matches!(state, RequestState::Failed | RequestState::Canceled) {
        return Ok(());
    }
    let message = format!("This request is {}; only what failed or was canceled can be replayed.", state.as_str());
    Err(Refusal::new(Code::Conflict, message))
}

/// Seconds before the next attempt after `attempt` of them: 2, 4, 8 … 300.
pub fn back_off(attempt: u32) -> u32 {
    2_u32.checked_pow(attempt).map_or(MAX_BACK_OFF_SECONDS, |seconds| seconds.min(MAX_BACK_OFF_SECONDS))
}

fn try_again(current: &Facts, reason: &str, now: DateTime<Utc>) -> Change {
    if current.attempt >= current.attempts {
        return Change::end(current, RequestState::Failed, Some(format!("attempts_exhausted: {reason}")));
    }
    Change::requeue(current, after(now, back_off(current.attempt)), reason.to_owned())
}

fn uncounted(current: &Facts, now: DateTime<Utc>, reason: String) -> Change {
    Change { attempt: current.attempt.saturating_sub(1), ..Change::requeue(current, now, reason) }
}

/// Waiting for a person does not count against the time of an attempt.
fn resumed(current: &Facts, now: DateTime<Utc>) -> Facts {
    let waited = match (current.state, current.asked_at) {
        (RequestState::InputRequired, Some(asked)) => (now - asked).max(TimeDelta::zero()),
        _ => return current.clone(),
    };
    let hard_until = current.hard_until.map(|until| until.checked_add_signed(waited).unwrap_or(until));
    Facts { state: RequestState::Working, lease_until: None, hard_until, ..current.clone() }
}

fn after(now: DateTime<Utc>, seconds: u32) -> DateTime<Utc> {
    now.checked_add_signed(TimeDelta::seconds(i64::from(seconds))).unwrap_or(now)
}

fn lease(current: &Facts, now: DateTime<Utc>) -> DateTime<Utc> {
    let until = after(now, current.lease_seconds);
    current.hard_until.map_or(until, |hard| until.min(hard))
}

/// A heartbeat never shortens a lease, whatever the clocks say.
fn longer(current: &Facts, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    Some(lease(current, now)).max(current.lease_until)
}

fn lost(current: &Facts, why: &str) -> Refusal {
    let lost = Some(Lost { state: current.state, epoch: current.epoch });
    Refusal { lost, ..Refusal::new(Code::ClaimLost, format!("This claim no longer holds: {why}.")) }
}

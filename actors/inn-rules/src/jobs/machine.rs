//! Transitions of a job. Pure: what the row says now, who speaks, and the time, give the next row or a refusal.

use chrono::{DateTime, TimeDelta, Utc};
use inn_protocol::job::{Job, JobError, JobState, LineKind, PastRun, Report, RunOutcome};
use inn_protocol::request::{Progress, RequestState};
use inn_protocol::{Code, Refusal};
use serde_json::Value;

use super::words;

/// A node that has not renewed its lease for so many seconds has lost the job.
pub const LEASE_SECONDS: u32 = 10;
/// Longest wait before another attempt, in seconds.
const MAX_BACK_OFF_SECONDS: u32 = 300;

/// What must be known of a job to decide a transition.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    pub state: JobState,
    pub node: Option<String>,
    pub epoch: i64,
    pub lease_until: Option<DateTime<Utc>>,
    pub next_at: Option<DateTime<Utc>>,
    pub deadline: DateTime<Utc>,
    /// Starts that counted so far.
    pub attempt: u32,
    pub attempts: u32,
    pub cancel_requested: bool,
    /// An upstream has taken it on: what comes next is a look at it, not another attempt.
    pub taken_on: bool,
}

/// What a transition gives the row besides its place. `None` leaves what is stored.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Given {
    pub progress: Option<Progress>,
    pub result: Option<Value>,
    pub error: Option<JobError>,
    /// The upstream's own name for it.
    pub remote: Option<String>,
    /// The attempt that ended here without a result, for the list of them.
    pub ended: Option<PastRun>,
    /// Lines for the log.
    pub lines: Vec<(LineKind, String, Option<u8>)>,
}

/// The row after the transition.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub facts: Facts,
    pub given: Given,
}

impl Change {
    fn to(facts: Facts) -> Self {
        Self { facts, given: Given::default() }
    }

    fn say(mut self, kind: LineKind, text: impl Into<String>) -> Self {
        self.given.lines.push((kind, text.into(), None));
        self
    }

    /// With the word of its new state as a line.
    fn said(self) -> Self {
        let word = self.facts.state.as_str();
        self.say(LineKind::State, word)
    }

    fn end(current: &Facts, state: JobState) -> Self {
        Self::to(Facts { state, node: None, lease_until: None, next_at: None, ..current.clone() })
    }

    fn failed(current: &Facts, error: JobError) -> Self {
        let text = format!("failed: {}", error.message);
        let mut change = Self::end(current, JobState::Failed).say(LineKind::State, words::cut(&text, words::MAX_LINE));
        change.given.error = Some(error);
        change
    }

    fn canceled(current: &Facts, reason: &str) -> Self {
        let error = JobError { code: "canceled".to_owned(), message: words::message(reason) };
        let mut change = Self::end(current, JobState::Canceled).said();
        change.given.error = Some(error);
        change
    }

    fn ending(mut self, current: &Facts, how: &str, reason: Option<&str>, now: DateTime<Utc>) -> Self {
        self.given.ended = current.node.clone().map(|by| PastRun {
            attempt: current.attempt,
            epoch: current.epoch,
            by,
            ended_at: now,
            how: how.to_owned(),
            reason: reason.filter(|reason| !reason.is_empty()).map(words::message),
        });
        self
    }
}

/// A node takes a job that is due: another attempt, or a look at the upstream that works on it. Refused with
/// `not_claimable` when it is not due, has ended or has no attempt left.
pub fn start(current: &Facts, node: &str, now: DateTime<Utc>) -> Result<Change, Refusal> {
    let refuse = |why: &str| Err(Refusal::new(Code::NotClaimable, format!("This job cannot be started: {why}.")));
    if !matches!(current.state, JobState::Queued | JobState::Waiting) {
        return refuse(&format!("it is {}", current.state.as_str()));
    }
    if let Some(next) = current.next_at.filter(|next| *next > now) {
        return refuse(&format!("nothing is due before {}", next.to_rfc3339()));
    }
    if current.deadline <= now {
        return refuse("its time is over");
    }
    let looks = current.taken_on;
    if !looks && current.attempt >= current.attempts {
        return refuse("its attempts are used up");
    }
    let Some(epoch) = current.epoch.checked_add(1) else { return refuse("it was started too often") };
    let started = Change::to(Facts {
        state: JobState::Running,
        node: Some(node.to_owned()),
        epoch,
        lease_until: Some(lease(current, now)),
        next_at: None,
        attempt: if looks { current.attempt } else { current.attempt + 1 },
        ..current.clone()
    });
    Ok(if looks { started } else { started.said() })
}

/// The node is still at it. It reads from the answer whether somebody has canceled. Refused with `claim_lost` unless it
/// runs the job in exactly this epoch.
pub fn renew(current: &Facts, node: &str, epoch: i64, now: DateTime<Utc>) -> Result<Change, Refusal> {
    hold(current, node, epoch)?;
    Ok(Change::to(Facts { lease_until: current.lease_until.max(Some(lease(current, now))), ..current.clone() }))
}

/// What came of the node's work. Refused with `claim_lost` unless it runs the job in exactly this epoch: an outcome
/// counts once, and never from a node that was given up.
pub fn settle(
    current: &Facts,
    node: &str,
    epoch: i64,
    outcome: &RunOutcome,
    now: DateTime<Utc>,
) -> Result<Change, Refusal> {
    hold(current, node, epoch)?;
    Ok(match outcome {
        RunOutcome::Completed(result) => match words::check_result(result) {
            Ok(()) => complete(current, result),
            Err(refusal) => {
                Change::failed(current, JobError { code: "result_too_large".to_owned(), message: refusal.message })
            }
        },
        _ if current.cancel_requested => Change::canceled(current, "canceled while it ran"),
        RunOutcome::Failed { error, again } => {
            let error = JobError { code: error.code.clone(), message: words::message(&error.message) };
            let reason = error.message.clone();
            try_again(current, error, *again, now).ending(current, "failed", Some(&reason), now)
        }
        RunOutcome::Waiting { remote: Some(remote), .. } if remote.chars().count() > Job::MOST_REMOTE => {
            let message = format!("the service named the job with more than {} characters", Job::MOST_REMOTE);
            Change::failed(current, JobError { code: "bad_answer".to_owned(), message })
        }
        RunOutcome::Waiting { look_after, progress, remote } => {
            let mut change = Change::to(Facts {
                state: JobState::Waiting,
                node: None,
                lease_until: None,
                next_at: Some(after(now, (*look_after).max(1)).min(current.deadline)),
                taken_on: true,
                ..current.clone()
            });
            if !current.taken_on {
                change = change.said();
            }
            change.given.remote.clone_from(remote);
            match progress {
                Some(progress) if words::check_progress(progress).is_ok() => with_progress(change, progress),
                _ => change,
            }
        }
    })
}

/// What a service says that works on the job by itself. Refused with `conflict` when the job has ended, and with
/// `invalid_parameter` or `too_large` when it cannot be kept.
pub fn report(current: &Facts, report: &Report) -> Result<Change, Refusal> {
    if current.state.is_terminal() {
        let message = format!("This job is already {}; nothing more is kept of it.", current.state.as_str());
        return Err(Refusal::new(Code::Conflict, message));
    }
    Ok(match report {
        Report::Progress(progress) => {
            words::check_progress(progress)?;
            with_progress(Change::to(current.clone()), progress)
        }
        Report::Log(line) => {
            words::check_line(line)?;
            Change::to(current.clone()).say(LineKind::Log, line.clone())
        }
        Report::Complete(result) => {
            words::check_result(result)?;
            complete(current, result)
        }
        Report::Fail(error) => {
            words::check_error(error)?;
            Change::failed(current, JobError { code: error.code.clone(), message: words::message(&error.message) })
        }
    })
}

/// Somebody takes it back. A node that runs it is told when it renews its lease, everything else ends at once. Refused
/// with `conflict` when it has ended.
pub fn cancel(current: &Facts, reason: &str) -> Result<Change, Refusal> {
    match current.state {
        JobState::Completed | JobState::Failed | JobState::Canceled => {
            let message = format!("This job is already {} and cannot be canceled.", current.state.as_str());
            Err(Refusal::new(Code::Conflict, message))
        }
        JobState::Running if current.cancel_requested => Ok(Change::to(current.clone())),
        JobState::Running => {
            let asked = Change::to(Facts { cancel_requested: true, ..current.clone() });
            Ok(asked.say(LineKind::State, "cancel requested"))
        }
        JobState::Queued | JobState::Waiting => Ok(Change::canceled(current, reason)),
    }
}

/// What time does to a job: a node that fell silent loses it, and a job that took too long ends. `None` when nothing is
/// due. A lost lease is taken up again at once, since it says nothing about the work; it counts as an attempt unless
/// the node only looked at an upstream.
pub fn expire(current: &Facts, now: DateTime<Utc>) -> Option<Change> {
    if current.state.is_terminal() {
        return None;
    }
    if current.deadline <= now {
        let error = JobError { code: "out_of_time".to_owned(), message: "it was not done in time".to_owned() };
        return Some(Change::failed(current, error).ending(current, "out_of_time", None, now));
    }
    if current.state != JobState::Running || current.lease_until.is_some_and(|until| until > now) {
        return None;
    }
    if current.cancel_requested {
        return Some(Change::canceled(current, "canceled while it ran"));
    }
    let back = if current.taken_on { JobState::Waiting } else { JobState::Queued };
    let change = if !current.taken_on && current.attempt >= current.attempts {
        let message = "the node that ran it was lost, and no attempt is left".to_owned();
        Change::failed(current, JobError { code: "lease_lost".to_owned(), message })
    } else {
        let change = Facts { state: back, node: None, lease_until: None, next_at: Some(now), ..current.clone() };
        Change::to(change).say(LineKind::State, format!("{}: its node was lost", back.as_str()))
    };
    Some(change.ending(current, "lease_lost", None, now))
}

/// It ends as failed, for a reason that has nothing to do with the work.
pub fn give_up(current: &Facts, code: &str, message: &str) -> Change {
    Change::failed(current, JobError { code: code.to_owned(), message: message.to_owned() })
}

/// Where a job of kind `agent` stands, from its request. The database keeps it so, in the transaction that changes the
/// request.
pub const fn of_request(state: RequestState) -> JobState {
    match state {
        RequestState::Submitted => JobState::Queued,
        RequestState::Working => JobState::Running,
        RequestState::InputRequired => JobState::Waiting,
        RequestState::Completed => JobState::Completed,
        RequestState::Failed => JobState::Failed,
        RequestState::Canceled => JobState::Canceled,
    }
}

/// Whether an ended job may be done again, as a new one. Refused with `conflict` unless it failed or was canceled.
pub fn retryable(job: &Job) -> Result<(), Refusal> {
    if matches!(job.state, JobState::Failed | JobState::Canceled) {
        return Ok(());
    }
    let message = format!("This job is {}; only what failed or was canceled can be retried.", job.state.as_str());
    Err(Refusal::new(Code::Conflict, message).id(&job.id))
}

/// Seconds before the next attempt after `attempt` of them: 2, 4, 8 … 300.
pub fn back_off(attempt: u32) -> u32 {
    2_u32.checked_pow(attempt).map_or(MAX_BACK_OFF_SECONDS, |seconds| seconds.min(MAX_BACK_OFF_SECONDS))
}

fn hold(current: &Facts, node: &str, epoch: i64) -> Result<(), Refusal> {
    let why = if current.state.is_terminal() {
        format!("the job is already {}", current.state.as_str())
    } else if current.state != JobState::Running || current.epoch != epoch {
        "it was taken up again since".to_owned()
    } else if current.node.as_deref() != Some(node) {
        "another node runs it".to_owned()
    } else {
        return Ok(());
    };
    Err(Refusal::new(Code::ClaimLost, format!("This start no longer holds: {why}.")))
}

fn complete(current: &Facts, result: &Value) -> Change {
    let mut change = Change::end(current, JobState::Completed).said();
    change.given.result = Some(result.clone());
    change
}

fn with_progress(mut change: Change, progress: &Progress) -> Change {
    change.given.lines.push((LineKind::Progress, progress.step.clone(), Some(progress.percent)));
    change.given.progress = Some(progress.clone());
    change
}

fn try_again(current: &Facts, error: JobError, again: bool, now: DateTime<Utc>) -> Change {
    if !again || current.attempt >= current.attempts {
        return Change::failed(current, error);
    }
    let pause = back_off(current.attempt);
    let text = format!("queued: another attempt in {pause} s, because {}", error.message);
    let mut change = Change::to(Facts {
        state: JobState::Queued,
        node: None,
        lease_until: None,
        next_at: Some(after(now, pause)),
        taken_on: false,
        ..current.clone()
    });
    change.given.error = Some(error);
    change.say(LineKind::State, words::cut(&text, words::MAX_LINE))
}

fn after(now: DateTime<Utc>, seconds: u32) -> DateTime<Utc> {
    now.checked_add_signed(TimeDelta::seconds(i64::from(seconds))).unwrap_or(now)
}

/// No lease outlives the job.
fn lease(current: &Facts, now: DateTime<Utc>) -> DateTime<Utc> {
    after(now, LEASE_SECONDS).min(current.deadline)
}

//! Jobs: one run of a long operation, which its caller follows instead of waiting for it (A2App notes, B.12).

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{AgentId, AppId, Digest, JobId, RequestId, TenantId, UserId};
use crate::request::Progress;

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// Nobody works on it yet, or it waits out a pause before its next attempt.
    Queued,
    /// A node or an agent works on it under a lease.
    Running,
    /// It goes on elsewhere: an upstream works and is looked at, or an agent waits for an answer.
    Waiting,
    Completed,
    /// Ended without a result: the error says why, and it can be retried as a new job.
    Failed,
    Canceled,
}

impl JobState {
    pub const ALL: [Self; 6] =
        [Self::Queued, Self::Running, Self::Waiting, Self::Completed, Self::Failed, Self::Canceled];
    /// The words of [`Self::ALL`], for people who named another one.
    pub const WORDS: &str = "queued, running, waiting, completed, failed, canceled";

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled)
    }

    /// The word of the A2App wire, which knows no `waiting`: to its caller such a job is running.
    pub const fn wire(self) -> &'static str {
        match self {
            Self::Waiting => "running",
            other => other.as_str(),
        }
    }
}

/// What carries a job out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobKind {
    /// The job is a request of one of the app's capabilities: it stands where the request stands.
    Agent,
    /// A service of the app's own, called by a node.
    Upstream,
}

impl JobKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Upstream => "upstream",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Agent, Self::Upstream].into_iter().find(|kind| kind.as_str() == text)
    }
}

/// A job to be made together with what carries it out.
#[derive(Debug, Clone)]
pub struct NewJob {
    pub id: JobId,
    pub operation: String,
    /// The agent that called the operation, when it was one.
    pub agent: Option<AgentId>,
    /// The ended job this one does again.
    pub retry_of: Option<JobId>,
}

/// A job that a service of the app's carries out.
#[derive(Debug, Clone)]
pub struct NewUpstreamJob {
    pub job: NewJob,
    pub params: Value,
    /// Of the token its service reports with, which is kept nowhere.
    pub token: Digest,
    /// The member who called; `None` for a visitor or a user of the app's own.
    pub requester: Option<UserId>,
    pub requester_label: String,
    pub attempts: u32,
    /// It ends as failed when it has not ended after so many seconds, attempts and pauses included.
    pub deadline_seconds: u32,
    /// Refused above this many open jobs of the app.
    pub max_open: u32,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    pub id: JobId,
    pub tenant: TenantId,
    pub app: AppId,
    pub app_slug: String,
    pub operation: String,
    pub kind: JobKind,
    pub state: JobState,
    pub params: Value,
    pub requester: Option<UserId>,
    pub requester_label: String,
    /// The agent that called the operation, when it was one.
    pub agent: Option<AgentId>,
    /// Of a job of kind `agent`: the request it stands for.
    pub request: Option<RequestId>,
    pub attempt: u32,
    pub attempts: u32,
    /// Fences late reports of nodes: every start has a higher one.
    pub epoch: i64,
    /// The node that runs it.
    pub node: Option<String>,
    pub lease_until: Option<DateTime<Utc>>,
    /// Nothing happens before this moment: the next attempt, or the next look at the upstream.
    pub next_at: Option<DateTime<Utc>>,
    /// When it is given up. A job of kind `agent` has the deadlines of its request.
    pub deadline: Option<DateTime<Utc>>,
    /// Somebody canceled it, and the node that runs it has not stopped yet.
    pub cancel_requested: bool,
    pub progress: Option<Progress>,
    /// What an agent asks and waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    pub result: Option<Value>,
    pub error: Option<JobError>,
    /// Attempts that ended without a result, oldest first; the last [`Job::MOST_PAST`].
    pub past_attempts: Vec<PastRun>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<JobId>,
    /// The number of the newest line of its log.
    pub lines: i64,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

impl Job {
    /// Past attempts that are kept.
    pub const MOST_PAST: usize = 32;
    /// Longest name an upstream gives a job, in characters.
    pub const MOST_REMOTE: usize = 200;
    /// Lines of the log that are kept: the newest ones.
    pub const MOST_LINES: i64 = 1_000;
}

/// Why a job has no result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobError {
    /// A word for programs, such as `attempts_exhausted`, `lease_lost`, `out_of_time` or one of the app's own.
    pub code: String,
    pub message: String,
}

/// An attempt that ended without a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PastRun {
    pub attempt: u32,
    pub epoch: i64,
    /// The node or the agent.
    #[serde(alias = "agent", alias = "node")]
    pub by: String,
    pub ended_at: DateTime<Utc>,
    /// `failed`, `lease_lost`, …
    pub how: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// One line of a job's log. Also what a stream of the job sends, under the number as its event id.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobLine {
    /// Starts at 1 and has no gaps; old lines are dropped from the front.
    pub seq: i64,
    pub at: DateTime<Utc>,
    pub kind: LineKind,
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent: Option<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LineKind {
    /// It stands elsewhere now: queued, running, waiting, or one of the ends.
    State,
    Progress,
    /// Words of whoever carries it out.
    Log,
}

impl LineKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Progress => "progress",
            Self::Log => "log",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::State, Self::Progress, Self::Log].into_iter().find(|kind| kind.as_str() == text)
    }
}

/// What came of a node's work on a job.
#[derive(Debug, Clone, PartialEq)]
pub enum RunOutcome {
    Completed(Value),
    /// `again`: another attempt may do better, while there are any.
    Failed {
        error: JobError,
        again: bool,
    },
    /// The upstream goes on by itself, under its own name for the job: look again in so many seconds.
    Waiting {
        look_after: u32,
        progress: Option<Progress>,
        remote: Option<String>,
    },
}

/// What a service that works on a job says about it, with the job's own token.
#[derive(Debug, Clone, PartialEq)]
pub enum Report {
    Progress(Progress),
    Log(String),
    Complete(Value),
    Fail(JobError),
}

/// A job a node has just started, and what it must show to go on.
#[derive(Debug, Clone)]
pub struct StartedJob {
    pub job: Job,
    /// The upstream's own name for it, from an earlier attempt or look.
    pub remote: Option<String>,
}

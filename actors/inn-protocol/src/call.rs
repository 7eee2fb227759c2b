//! One attempt by a caller: what is asked, where, with which papers.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::ids::{
    AgentId, AppId, CallId, Digest, GrantId, GrantRequestId, JobId, RequestId, SessionId, TenantId, UserId,
};

/// What is asked. One list for every face; the register's `action` column holds [`Action::name`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// A call of somebody verified that could not be made out: a broken body, an unknown operation, a parameter that is
    /// none. It is refused, and like every refused call it has an entry.
    Unreadable,
    // On an app
    /// Identity, describe, the operation list, the UI's files.
    DescribeApp,
    ListRecords {
        entity: String,
    },
    ViewRecord {
        entity: String,
        id: String,
    },
    CreateRecord {
        entity: String,
    },
    UpdateRecord {
        entity: String,
        id: String,
    },
    DeleteRecord {
        entity: String,
        id: String,
    },
    /// Several record writes that stand or fall together. It allows nothing by itself: each of them is decided for
    /// itself, as if it had come alone.
    Batch,
    /// A stream of what happens to records is opened (`connect`), or told what it is to be about (`subscribe`). It shows
    /// nothing by itself: each event is decided for itself, like a list or a view.
    Realtime {
        verb: &'static str,
    },
    /// A file of a record, or a thumb of it.
    ReadFile {
        entity: String,
        id: String,
        name: String,
        /// The field says that the record's view rule decides. Looked up by the edge; the look compares it again.
        protected: bool,
    },
    /// A token that opens protected files of the app for three minutes.
    TakeFileToken,
    /// Sign in to an auth collection of the app, and what belongs to it (`with-password`, `refresh`, `request-otp`, …).
    AppAuth {
        collection: String,
        /// The record it turned out to be about; empty while nobody has proved anything.
        record: String,
        verb: &'static str,
    },
    RunOperation {
        operation: String,
    },
    /// Put a request for agents into the queue.
    Ask {
        capability: String,
    },
    ViewRequest {
        request: RequestId,
    },
    ListRequests,
    CancelRequest {
        request: RequestId,
    },
    /// `take-back`, `end`, `replay` or `answer` by a member of the tenant or whoever asked.
    OperateRequest {
        request: RequestId,
        verb: &'static str,
    },
    /// Cancel many requests of an app at once.
    CancelRequests,
    /// `view`, `follow` or `logs`.
    ViewJob {
        job: JobId,
        verb: &'static str,
    },
    ListJobs,
    CancelJob {
        job: JobId,
    },
    /// Do a job that failed or was canceled again, as a new one.
    RetryJob {
        job: JobId,
    },
    // By an agent's key
    RegisterAgent,
    RequestGrant {
        app: String,
    },
    TakeToken {
        grant: GrantId,
    },
    Claim,
    /// Heartbeat, progress, ask-back, complete, fail or release of a claimed request; the verb is for the register.
    Hold {
        request: RequestId,
        verb: &'static str,
    },
    /// Results of several claimed requests.
    HoldMany,
    // By a person
    SignIn,
    /// See, switch or end one's own sessions, hand oneself over to an app's origin.
    OwnSession {
        verb: &'static str,
    },
    CreateTenant {
        slug: String,
    },
    ListQueueLimits,
    /// A weight or cap of the queue: what it is about, in words.
    SetQueueLimit {
        about: String,
    },
    ListMembers,
    /// A member by e-mail address or id.
    ManageMembers {
        member: String,
        verb: &'static str,
    },
    ListApps,
    Deploy {
        slug: String,
    },
    ManageApp {
        slug: String,
        verb: &'static str,
    },
    ListGrants,
    ViewGrantRequest {
        request: GrantRequestId,
    },
    /// `about` is the request that is decided; the app, when the host makes the grant of its token file.
    DecideGrant {
        about: String,
        verb: &'static str,
    },
    RevokeGrant {
        grant: GrantId,
    },
    Explain,
    ReadRegister {
        verb: &'static str,
    },
    ReadReceipt {
        call: CallId,
    },
}

impl Action {
    pub fn name(&self) -> String {
        let fixed = match self {
            Self::Unreadable => "calls.unreadable",
            Self::DescribeApp => "app.describe",
            Self::ListRecords { .. } => "records.list",
            Self::ViewRecord { .. } => "records.view",
            Self::CreateRecord { .. } => "records.create",
            Self::UpdateRecord { .. } => "records.update",
            Self::DeleteRecord { .. } => "records.delete",
            Self::Batch => "records.batch",
            Self::Realtime { verb } => return format!("realtime.{verb}"),
            Self::ReadFile { .. } => "files.read",
            Self::TakeFileToken => "files.token",
            Self::RunOperation { .. } => "operations.run",
            Self::Ask { .. } => "requests.ask",
            Self::ViewRequest { .. } => "requests.view",
            Self::ListRequests => "requests.list",
            Self::CancelRequest { .. } => "requests.cancel",
            Self::CancelRequests => "requests.cancel-many",
            Self::ViewJob { verb, .. } => return format!("jobs.{verb}"),
            Self::ListJobs => "jobs.list",
            Self::CancelJob { .. } => "jobs.cancel",
            Self::RetryJob { .. } => "jobs.retry",
            Self::RegisterAgent => "agents.register",
            Self::RequestGrant { .. } => "grants.request",
            Self::TakeToken { .. } => "tokens.take",
            Self::Claim => "requests.claim",
            Self::AppAuth { verb, .. } => return format!("auth.{verb}"),
            Self::Hold { verb, .. } | Self::OperateRequest { verb, .. } => return format!("requests.{verb}"),
            Self::HoldMany => "requests.complete-many",
            Self::SignIn => "sessions.sign-in",
            Self::OwnSession { verb } => return format!("sessions.{verb}"),
            Self::CreateTenant { .. } => "tenants.create",
            Self::ListQueueLimits => "queue.limits",
            Self::SetQueueLimit { .. } => "queue.set-limit",
            Self::ListMembers => "members.list",
            Self::ManageMembers { verb, .. } => return format!("members.{verb}"),
            Self::ListApps => "apps.list",
            Self::Deploy { .. } => "apps.deploy",
            Self::ManageApp { verb, .. } => return format!("apps.{verb}"),
            Self::ListGrants => "grants.list",
            Self::ViewGrantRequest { .. } => "grants.view-request",
            Self::DecideGrant { verb, .. } => return format!("grants.{verb}"),
            Self::RevokeGrant { .. } => "grants.revoke",
            Self::Explain => "explain",
            Self::ReadRegister { verb } => return format!("audit.{verb}"),
            Self::ReadReceipt { .. } => "receipts.view",
        };
        fixed.to_owned()
    }

    /// What it is done to, in words of the wire (`cards/abc…`, `op:cards.clear`), empty when there is nothing to name.
    pub fn target(&self) -> String {
        match self {
            Self::ListRecords { entity } | Self::CreateRecord { entity } => entity.clone(),
            Self::ViewRecord { entity, id } | Self::UpdateRecord { entity, id } | Self::DeleteRecord { entity, id } => {
                format!("{entity}/{id}")
            }
            Self::ReadFile { entity, id, name, .. } => format!("{entity}/{id}/{name}"),
            Self::AppAuth { collection, record, .. } if record.is_empty() => collection.clone(),
            Self::AppAuth { collection, record, .. } => format!("{collection}/{record}"),
            Self::RunOperation { operation } => format!("op:{operation}"),
            Self::Ask { capability } => format!("queue:{capability}"),
            Self::ViewRequest { request }
            | Self::CancelRequest { request }
            | Self::OperateRequest { request, .. }
            | Self::Hold { request, .. } => request.to_string(),
            Self::ViewJob { job, .. } | Self::CancelJob { job } | Self::RetryJob { job } => job.to_string(),
            Self::TakeToken { grant } | Self::RevokeGrant { grant } => grant.to_string(),
            Self::Deploy { slug } | Self::ManageApp { slug, .. } => slug.clone(),
            Self::ReadReceipt { call } => call.to_string(),
            Self::RequestGrant { app: about }
            | Self::CreateTenant { slug: about }
            | Self::DecideGrant { about, .. }
            | Self::ManageMembers { member: about, .. }
            | Self::SetQueueLimit { about } => about.clone(),
            Self::ViewGrantRequest { request } => request.to_string(),
            _ => String::new(),
        }
    }

    /// Changes something when allowed: is committed with its entry, and refused when the register cannot be written.
    pub const fn is_write(&self) -> bool {
        !matches!(
            self,
            Self::Unreadable
                | Self::DescribeApp
                | Self::ListRecords { .. }
                | Self::ViewRecord { .. }
                | Self::ReadFile { .. }
                | Self::ViewRequest { .. }
                | Self::ListRequests
                | Self::ViewJob { .. }
                | Self::ListJobs
                | Self::ListQueueLimits
                | Self::ListMembers
                | Self::ListApps
                | Self::ListGrants
                | Self::ViewGrantRequest { .. }
                | Self::Explain
                | Self::ReadRegister { .. }
                | Self::ReadReceipt { .. }
                | Self::Realtime { .. }
        )
    }
}

/// Where a call arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// `/v1` and the console.
    Platform,
    /// An app, on its own origin or below `/apps/<slug>` (where cookies count for nothing).
    App { slug: String, own_origin: bool },
}

/// What an app's rules may ask about the call itself (`@request.*` of PocketBase notes, section A.5).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RequestFacts {
    /// `default`, `expand`, `realtime`, `protectedFile`, `batch`, `oauth2`, `otp` or `password`.
    pub context: String,
    pub method: String,
    /// First value of every query parameter.
    pub query: BTreeMap<String, String>,
    /// First value of every header, by its name in lower snake case (`x_token`). Never those that carry papers.
    pub headers: BTreeMap<String, String>,
    /// The record body as sent; empty when there is none.
    pub body: serde_json::Map<String, Value>,
}

/// One attempt, before anybody has looked at its papers.
#[derive(Debug, Clone)]
pub struct Call {
    pub id: CallId,
    pub place: Place,
    pub action: Action,
    /// The tenant whose business it is, where neither place nor papers tell: an agent's key asks for a grant, takes a
    /// token, claims. Looked up by the edge; `None` for what belongs to no tenant (an agent registers).
    pub about: Option<TenantId>,
    pub papers: Papers,
    /// The JSON body, the operation's params or the query; `Null` when there is none.
    pub body: Value,
    /// SHA-256 of the raw body bytes.
    pub body_digest: Digest,
    /// The raw query, which is part of what an idempotency key stands for (`?dryRun=true` is another call).
    pub query: String,
    /// `Idempotency-Key`, at most 200 characters.
    pub idempotency_key: Option<String>,
    /// The answer is worthless after this moment (node clock).
    pub deadline: std::time::Instant,
    /// `X-A2App-Agent` / `X-LUI-Agent`: a name the caller gives itself. Kept as claimed, never believed.
    pub claimed_agent: Option<String>,
    /// For the app's rules.
    pub request: Arc<RequestFacts>,
}

/// What a caller shows at the door.
#[derive(Debug, Clone)]
pub enum Papers {
    None,
    /// RFC 9421 headers and everything they cover.
    Signed(Box<SignedPapers>),
    /// `Authorization: Bearer` without a signature.
    Bearer {
        token: String,
    },
    /// A session by cookie (with the exact Origin already checked by the edge) or by `Authorization: Bearer ses…`.
    Session {
        token: String,
        app_origin: bool,
    },
    /// `X-LUI-Token` / `X-A2App-Token` on a loopback host, without forwarding headers.
    Loopback {
        token: String,
    },
    /// A token of a record of the app's own auth collection. One that does not hold (any more) is passed over, as
    /// PocketBase does: its holder counts as a guest.
    AppUser {
        token: String,
    },
    /// The app's own page or a reading program on a loopback host, with nothing else to show.
    Visitor,
    /// `?token=` of a file: whoever took it, for as long as that one's own papers hold. A token that means nothing is
    /// passed over (PocketBase notes, section E), and what else was shown counts.
    File {
        token: String,
        otherwise: Box<Papers>,
    },
}

/// The covered parts of a signed HTTP request, as received. The edge has compared `content_digest` with the body.
#[derive(Debug, Clone, Default)]
pub struct SignedPapers {
    pub method: String,
    pub authority: String,
    pub path: String,
    /// With its leading `?`; a lone `?` when there is no query (RFC 9421 section 2.2.7).
    pub query: String,
    pub content_type: Option<String>,
    pub content_digest: Option<String>,
    pub idempotency_key: Option<String>,
    pub token_digest: Option<String>,
    pub delegation: Option<String>,
    pub claim: Option<String>,
    pub signature_input: String,
    pub signature: String,
    pub token: Option<String>,
    /// The public key sent along at registration, when the agent is not known yet (32 bytes).
    pub enrolling_key: Option<[u8; 32]>,
}

/// What must still be true in the database at the moment of commit. Each `None` is "does not apply".
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LiveCheck {
    pub app: Option<(AppId, i64)>,
    pub grant: Option<(GrantId, i64)>,
    pub member: Option<(TenantId, UserId, i64)>,
    pub session: Option<SessionId>,
    pub app_user: Option<AppUserCheck>,
    pub claim: Option<ClaimCheck>,
}

/// The claim a write is made under: the agent must hold the request, under this epoch, when it is committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimCheck {
    pub request: RequestId,
    pub epoch: i64,
    pub agent: AgentId,
}

impl ClaimCheck {
    /// Reads `innkeeper-claim: <request id>;<epoch>`. `None` when it says anything else.
    pub fn parse(header: &str) -> Option<(RequestId, i64)> {
        let (request, epoch) = header.split_once(';')?;
        let digits = !epoch.is_empty() && epoch.bytes().all(|byte| byte.is_ascii_digit());
        Some((request.parse().ok()?, epoch.parse().ok().filter(|_| digits)?))
    }
}

/// The record an app's user is signed in as, and the key its tokens are made with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppUserCheck {
    pub app: AppId,
    /// Name of the auth collection.
    pub collection: String,
    pub record: String,
    /// SHA-256 of `tokenKey`.
    pub token_key: Digest,
}

/// A nonce that counts once (DESIGN section 5). Inserted in the same transaction as the effect or the entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nonce {
    pub agent: AgentId,
    pub nonce: String,
    pub expires: DateTime<Utc>,
}

/// An idempotency key, unique on (app, caller, route, key), kept 24 hours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idempotency {
    pub scope: String,
    pub route: String,
    pub key: String,
    pub body: Digest,
}

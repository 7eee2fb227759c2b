//! The register: one entry per call of a verified caller (DESIGN invariants 2 and 3, section 7).

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Value, json};

use crate::call::{Idempotency, LiveCheck, Nonce};
use crate::ids::{AgentId, AppId, CallId, Digest, GrantId, TenantId, UserId};

/// What is known about a call before its outcome: the part of the entry the platform writes down.
#[derive(Debug, Clone)]
pub struct EntryDraft {
    pub call: CallId,
    pub tenant: TenantId,
    pub app: Option<AppId>,
    /// [`crate::caller::Caller::kind`].
    pub caller: &'static str,
    pub user: Option<UserId>,
    pub agent: Option<AgentId>,
    pub helper: Option<AgentId>,
    pub grant: Option<GrantId>,
    pub via: Option<&'static str>,
    /// `collection/id` of the app's own user who asked, or whom the agent acted as.
    pub app_user: Option<String>,
    pub action: String,
    pub target: String,
    /// SHA-256 of the raw body; of a form, of its parts (boundaries differ from one attempt to the next).
    pub body: Digest,
    /// A name the caller gave itself; never believed.
    pub claimed_agent: Option<String>,
    /// RFC 9421 signature base and signature: the platform cannot invent a call, the agent cannot deny one.
    pub signature_base: Option<String>,
    pub signature: Option<Vec<u8>>,
}

impl EntryDraft {
    /// The facts as one canonical text: what the entry's digest is taken over, together with outcome, time and effect.
    pub fn canonical(&self) -> String {
        let mut facts = json!({
            "action": self.action,
            "agent": self.agent,
            "app": self.app,
            "body": self.body,
            "call": self.call,
            "caller": self.caller,
            "claimedAgent": self.claimed_agent,
            "grant": self.grant,
            "helper": self.helper,
            "signature": self.signature.as_deref().map(hex::encode),
            "signatureBase": self.signature_base,
            "target": self.target,
            "tenant": self.tenant,
            "user": self.user,
            "via": self.via,
        });
        // Left out when there is none, so that entries of callers without one read as they always did.
        if let (Some(user), Some(members)) = (&self.app_user, facts.as_object_mut()) {
            members.insert("appUser".to_owned(), user.as_str().into());
        }
        crate::canonical::to_string(&facts)
    }
}

/// Everything the commit path needs to know about the call itself, whatever its effect is.
#[derive(Debug, Clone)]
pub struct CallRecord {
    pub draft: EntryDraft,
    pub live: LiveCheck,
    pub nonce: Option<Nonce>,
    pub idempotency: Option<Idempotency>,
}

/// How a call ended, as its entry says it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallOutcome {
    Done,
    Refused { code: &'static str },
}

impl CallOutcome {
    /// `done` or `refused:<code>`: the text in the entry and under its digest.
    pub fn text(&self) -> String {
        match self {
            Self::Done => "done".to_owned(),
            Self::Refused { code } => format!("refused:{code}"),
        }
    }
}

/// The digest of one entry: canonical facts, outcome, database time in microseconds, digest of the effect (or empty).
/// The same recipe runs in SQL inside the commit; `inn audit verify` recomputes it here.
pub fn entry_digest(facts: &str, outcome: &str, at: DateTime<Utc>, effect: Option<Digest>) -> Digest {
    let effect = effect.map(|digest| digest.to_string()).unwrap_or_default();
    Digest::of(format!("{facts}\n{outcome}\n{}\n{effect}", at.timestamp_micros()).as_bytes())
}

/// One committed entry, as read back.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    pub call: CallId,
    pub tenant: TenantId,
    pub at: DateTime<Utc>,
    /// The canonical facts, parsed.
    pub facts: Value,
    pub outcome: String,
    pub effect: Option<Digest>,
    pub digest: Digest,
    /// Place in the tenant's chain, once sealed (within a second).
    pub seq: Option<i64>,
}

/// Which entries to show; all given conditions must hold.
#[derive(Debug, Clone, Default)]
pub struct EntrySearch {
    pub app: Option<AppId>,
    pub user: Option<UserId>,
    pub agent: Option<AgentId>,
    pub grant: Option<GrantId>,
    pub action: Option<String>,
    /// `done`, `refused`, or a whole outcome text.
    pub outcome: Option<String>,
    pub since: Option<DateTime<Utc>>,
    /// Entries before this one (exclusive), for paging backwards through time.
    pub before: Option<(DateTime<Utc>, CallId)>,
    /// At most 500.
    pub limit: u32,
}

/// A signed head: everything up to `seq` is fixed by `head`.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Head {
    pub tenant: TenantId,
    pub seq: i64,
    pub head: Digest,
    pub at: DateTime<Utc>,
    /// Id of the key that signed, as listed at `/v1/keys`.
    pub key: String,
    /// Base64url Ed25519 signature.
    pub signature: String,
}

/// What `inn audit verify` found.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verification {
    pub ok: bool,
    pub entries: i64,
    pub sealed: i64,
    pub heads: i64,
    /// Each problem in one sentence, naming the entry or head. At most 100.
    pub problems: Vec<String>,
    pub head: Option<Head>,
}

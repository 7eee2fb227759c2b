//! Who asks, after verification.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;

use crate::ids::{AgentId, AppId, Digest, GrantId, SessionId, TenantId, UserId};
use crate::people::Role;
use crate::scope::Scope;

/// Who asks. Only the gateway makes one, from papers it has checked.
#[derive(Debug, Clone)]
pub enum Caller {
    /// Nobody has proved anything. Reaches only what is public.
    Stranger,
    /// A browser on the app's own origin, or a reading program, on a host bound to loopback: whoever sits at this
    /// machine (DESIGN section 5, `authMode: none`).
    Visitor,
    Person(Person),
    Agent(Agent),
    /// Somebody signed in to the app itself: a record of one of its auth collections.
    AppUser(AppUser),
    /// An agent that proved its key and nothing else: it may register, ask for a grant or a token, and claim.
    Key(AgentId),
    /// The platform itself (sweepers, the first deploy of demo apps).
    Platform,
}

/// A person with a live session, in one tenant.
#[derive(Debug, Clone)]
pub struct Person {
    pub user: UserId,
    pub email: Arc<str>,
    pub session: SessionId,
    pub tenant: TenantId,
    pub role: Role,
    /// Moves on when the person's membership changes; checked again at commit.
    pub member_epoch: i64,
    /// The session was opened by password within the last minutes, or the password came with this call: may consent.
    pub fresh: bool,
}

/// A record of an app's own auth collection whose token held (`reference` notes on PocketBase, section E). It is nobody
/// outside that app; what it may do there is said by the collections' rules, evaluated as that record.
#[derive(Debug, Clone)]
pub struct AppUser {
    pub app: AppId,
    pub tenant: TenantId,
    /// Name of the auth collection as the model spells it.
    pub collection: String,
    pub record: String,
    /// Digest of the record's `tokenKey`, checked again at commit: a new key ends every token.
    pub token_key: Digest,
}

impl AppUser {
    /// `users/abc…`: how entries, requests and limits name it.
    pub fn name(&self) -> String {
        format!("{}/{}", self.collection, self.record)
    }
}

/// An agent acting for a person under a live grant.
#[derive(Debug, Clone)]
pub struct Agent {
    pub agent: AgentId,
    /// A helper key the agent delegated this token to, when the call was signed by that key.
    pub helper: Option<AgentId>,
    pub grant: GrantId,
    pub grant_epoch: i64,
    pub app: AppId,
    /// The person it acts for, and that person's role now.
    pub user: UserId,
    pub tenant: TenantId,
    pub role: Role,
    pub member_epoch: i64,
    /// What the grant allows, already narrowed by the token's own checks.
    pub scopes: Arc<BTreeSet<Scope>>,
    /// Record of the app's own auth collection the person linked at consent (multi-user apps).
    pub app_record: Option<String>,
    pub via: Via,
}

/// How an agent proved itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Via {
    /// RFC 9421 signature and a token.
    Signed,
    /// A bearer token alone, which the owner allowed for this grant.
    PlainToken,
    /// The app's agent token file, on a host bound to loopback.
    LoopbackToken,
    /// A token for files that the agent took with papers of its own. Opens files and nothing else.
    FileToken,
}

impl Caller {
    /// A short word for logs, metrics and the register.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Stranger => "stranger",
            Self::Visitor => "visitor",
            Self::Person(_) => "person",
            Self::Agent(_) => "agent",
            Self::AppUser(_) => "app_user",
            Self::Key(_) => "key",
            Self::Platform => "platform",
        }
    }

    /// The person responsible: who asks, or for whom an agent asks.
    pub fn user(&self) -> Option<UserId> {
        match self {
            Self::Person(person) => Some(person.user),
            Self::Agent(agent) => Some(agent.user),
            _ => None,
        }
    }

    pub fn agent(&self) -> Option<&AgentId> {
        match self {
            Self::Agent(agent) => Some(&agent.agent),
            Self::Key(agent) => Some(agent),
            _ => None,
        }
    }

    pub fn grant(&self) -> Option<GrantId> {
        match self {
            Self::Agent(agent) => Some(agent.grant),
            _ => None,
        }
    }

    /// The text that separates one caller's idempotency keys from another's.
    pub fn idempotency_scope(&self) -> String {
        match self {
            Self::Stranger => "stranger".to_owned(),
            Self::Visitor => "visitor".to_owned(),
            Self::Person(person) => person.user.to_string(),
            Self::Agent(agent) => agent.grant.to_string(),
            Self::AppUser(user) => format!("{} {}", user.app, user.name()),
            Self::Key(agent) => agent.to_string(),
            Self::Platform => "platform".to_owned(),
        }
    }
}

//! Tokens: Biscuits that say which grant stands behind a call (DESIGN section 5, "Token").
//!
//! The authority block, signed by the platform's root key, holds facts and one check:
//!
//! | fact | value |
//! |---|---|
//! | `grant`, `user`, `app`, `tenant` | ids as on the wire |
//! | `grant_epoch` | integer; a grant whose epoch moved on has ended its tokens |
//! | `agent` | thumbprint of the key that must sign the calls |
//! | `reads`, `writes`, `operations`, `queues` | sets of names: the scopes, one fact per kind |
//! | `plain` | boolean: usable without a signature |
//! | `expires` | date, also enforced by `check if time($t), $t < …` |
//!
//! Whoever holds a token may append blocks that narrow it. Their checks may ask for the facts above and for what is
//! known about the call: `time(date)`, `action("data:cards:read")` (the scope it needs), `kind("read")` (`read`, `write`,
//! `operation` or `queue`) and `name("cards")`. Appended blocks are looked over, as data, before anything in them is
//! evaluated: they may contain checks and nothing else, and only such as end after a few steps. `&&` and `||` compile to
//! closures, which are not among those: write several expressions with commas and several alternatives with `or`.

mod claims;
mod mint;
mod narrow;
mod roots;
mod verify;
mod vet;

use std::collections::BTreeSet;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use inn_protocol::scope::Scope;
use inn_protocol::{AgentId, AppId, Code, GrantId, Refusal, TenantId, UserId};

pub use mint::mint;
pub use narrow::{Narrowing, attenuate};
pub use roots::{RootKeys, RootPublicKeys};
pub use verify::{VerifiedToken, verify};

/// Longest token, in characters, minted or presented. Leaves room for other headers within the usual 8 KiB.
pub const MAX_TOKEN: usize = 4096;

/// Most blocks, the authority block included: every block costs a signature to verify.
pub const MAX_BLOCKS: usize = 8;

/// What the platform says about a token's bearer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenClaims {
    pub grant: GrantId,
    pub grant_epoch: i64,
    pub agent: AgentId,
    pub user: UserId,
    pub app: AppId,
    pub tenant: TenantId,
    pub scopes: Arc<BTreeSet<Scope>>,
    /// In whole seconds; a fraction is dropped when minting.
    pub expires: DateTime<Utc>,
    /// The owner allowed this grant's tokens to be used without a signature.
    pub plain: bool,
}

fn invalid(message: impl Into<String>) -> Refusal {
    Refusal::new(Code::InvalidToken, message)
}

#[cfg(test)]
mod tests;

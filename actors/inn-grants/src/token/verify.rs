//! Reads and judges presented tokens.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use biscuit_auth::builder::{Expression, Op, Policy, PolicyKind, Predicate, Rule, Term, fact, pred, string};
use biscuit_auth::format::schema;
use biscuit_auth::{AuthorizerBuilder, AuthorizerLimits, Biscuit, UnverifiedBiscuit};
use chrono::{DateTime, TimeDelta, Utc};
use inn_protocol::scope::Scope;
use inn_protocol::{AppId, Code, Digest, Refusal, Result};
use prost::Message as _;

use super::mint::{parts, seconds};
use super::roots::RootPublicKeys;
use super::{MAX_BLOCKS, MAX_TOKEN, TokenClaims, claims, invalid, vet};
use crate::encoding::from_base64url;

/// A token whose signatures held and whose appended blocks are harmless. Says nothing about time, revocation or who sent
/// it; those are asked on every call. Made once per token and kept by [`Self::digest`].
pub struct VerifiedToken {
    pub claims: TokenClaims,
    /// One per block, the authority block's first. A token is revoked when any of them is.
    pub revocation_ids: Vec<Vec<u8>>,
    /// SHA-256 of the token as presented.
    pub digest: Digest,
    /// When it ends: the claim, or earlier if an appended block says so with `check if time($t), $t < …`.
    pub expires: DateTime<Utc>,
    /// Its holders appended blocks.
    pub has_blocks: bool,
    /// What it allows while it lives: the claim's scopes, less what appended blocks take away.
    scopes: Arc<BTreeSet<Scope>>,
    /// Kept only when appended blocks judge by the time of each call.
    pub(super) timed: Option<Biscuit>,
}

/// Verifies a token: length, block count, signatures against the root keys, then looks over the appended blocks.
///
/// Refuses with `invalid_token`, without telling how far a forgery got.
pub fn verify(token: &str, keys: &RootPublicKeys) -> Result<VerifiedToken> {
    let bytes = decode(token)?;
    let unverified = UnverifiedBiscuit::from(&bytes).map_err(|_| damaged())?;
    if unverified.block_count() > MAX_BLOCKS {
        return Err(invalid(format!(
            "The token has more than {MAX_BLOCKS} blocks. Take a new one and narrow it once."
        )));
    }
    let unknown = biscuit_auth::error::Format::UnknownPublicKey;
    let biscuit = unverified.verify(|id| keys.find(id).ok_or(unknown.clone())).map_err(|_| damaged())?;

    // The decoder skips fields it does not know: without this one token would have endless spellings and digests.
    if biscuit.to_vec().map_err(|_| damaged())? != bytes {
        return Err(damaged());
    }
    // The very bytes whose signatures held.
    let signed = biscuit.container().to_proto();
    if signed.authority.external_signature.is_some() {
        return Err(vet::third_party(0));
    }
    let claims = claims::read(&block(&signed.authority.block)?)?;
    let mut expires = claims.expires;
    let mut timed = false;
    for (index, appended) in (1..).zip(&signed.blocks) {
        if appended.external_signature.is_some() {
            return Err(vet::third_party(index));
        }
        let vetted = vet::vet(index, &block(&appended.block)?)?;
        timed |= vetted.timed;
        // An end beyond what dates can hold is no end.
        let end = vetted.end.and_then(|end| i64::try_from(end).ok()).and_then(|end| DateTime::from_timestamp(end, 0));
        expires = end.map_or(expires, |end| end.min(expires));
    }
    let has_blocks = !signed.blocks.is_empty();
    let scopes = if has_blocks && !timed {
        // Up to its end the verdict is always the same, so it is taken once, in the token's last second.
        let last = expires - TimeDelta::seconds(1);
        Arc::new(passing(&biscuit, &claims.scopes, last))
    } else {
        Arc::clone(&claims.scopes)
    };
    Ok(VerifiedToken {
        claims,
        revocation_ids: biscuit.revocation_identifiers(),
        digest: Digest::of(token.as_bytes()),
        expires,
        has_blocks,
        scopes,
        timed: timed.then_some(biscuit),
    })
}

impl VerifiedToken {
    /// When it ends: its own end, or an earlier one that was appended.
    pub const fn expires(&self) -> DateTime<Utc> {
        self.expires
    }

    /// Is the token still in its time? Refuses with `token_expired`.
    pub fn check_time(&self, now: DateTime<Utc>) -> Result<()> {
        if now < self.expires {
            return Ok(());
        }
        Err(Refusal::new(Code::TokenExpired, "The token has expired. Take a new one at /v1/token."))
    }

    /// Does the token, with everything its holders appended, allow this on this app at this time?
    ///
    /// A look into a set, unless an appended block judges by the time in another form than an end. Refuses with
    /// `token_expired`, `invalid_token` (another app's token) or `insufficient_scope`.
    pub fn allows(&self, scope: &Scope, app: AppId, now: DateTime<Utc>) -> Result<()> {
        self.check(app, now)?;
        if !self.claims.scopes.contains(scope) {
            let message = format!("The token does not hold the scope {scope}.");
            return Err(insufficient(message, scope).fix("the person the agent acts for, by a new grant"));
        }
        let timed = self.timed.as_ref();
        if self.scopes.contains(scope) && timed.is_none_or(|biscuit| passes(biscuit, scope, now)) {
            return Ok(());
        }
        let message = format!("The token was narrowed by its holder: it does not allow {scope} now.");
        Err(insufficient(message, scope).fix("whoever narrowed the token"))
    }

    /// The scopes the token allows on this app at this time: the claim's, less what appended blocks take away.
    ///
    /// Shared, not computed, except where [`Self::allows`] has to evaluate; then every scope is evaluated.
    pub fn scopes_at(&self, app: AppId, now: DateTime<Utc>) -> Result<Arc<BTreeSet<Scope>>> {
        self.check(app, now)?;
        Ok(match &self.timed {
            None => Arc::clone(&self.scopes),
            Some(biscuit) => Arc::new(passing(biscuit, &self.scopes, now)),
        })
    }

    fn check(&self, app: AppId, now: DateTime<Utc>) -> Result<()> {
        self.check_time(now)?;
        if app == self.claims.app {
            return Ok(());
        }
        Err(invalid("The token is for another app. Take one at /v1/token for a grant on this app."))
    }
}

impl fmt::Debug for VerifiedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifiedToken")
            .field("claims", &self.claims)
            .field("digest", &self.digest)
            .field("expires", &self.expires)
            .field("blocks", &self.revocation_ids.len())
            .finish_non_exhaustive()
    }
}

fn passing(biscuit: &Biscuit, scopes: &BTreeSet<Scope>, now: DateTime<Utc>) -> BTreeSet<Scope> {
    scopes.iter().filter(|scope| passes(biscuit, scope, now)).cloned().collect()
}

/// A check that cannot be evaluated (an overflow, a comparison of unlike things) has not passed.
fn passes(biscuit: &Biscuit, scope: &Scope, now: DateTime<Utc>) -> bool {
    evaluate(biscuit, scope, now).is_ok()
}

/// Runs the checks of a vetted token. Limits are steps: a busy machine must never turn into a refusal.
fn evaluate(biscuit: &Biscuit, scope: &Scope, now: DateTime<Utc>) -> Result<(), biscuit_auth::error::Token> {
    let (kind, name) = parts(scope);
    // `allow if true`: the claim was looked up already, only the token's own checks are left.
    let truth = Expression { ops: vec![Op::Value(Term::Bool(true))] };
    let query = Rule::new(pred("query", &[] as &[Term]), Vec::<Predicate>::new(), vec![truth], Vec::new());
    let always = Policy { queries: vec![query], kind: PolicyKind::Allow };
    let hour = Duration::from_hours(1);
    AuthorizerBuilder::new()
        .fact(fact("time", &[Term::Date(seconds(now))]))?
        .fact(fact("action", &[string(&scope.to_string())]))?
        .fact(fact("kind", &[string(kind)]))?
        .fact(fact("name", &[string(name)]))?
        .policy(always)?
        .set_limits(AuthorizerLimits { max_facts: 1000, max_iterations: 100, max_time: hour })
        .build(biscuit)?
        .authorize()?;
    Ok(())
}

/// The bytes of a token text, refusing long ones unread.
pub(super) fn decode(token: &str) -> Result<Vec<u8>> {
    if token.len() > MAX_TOKEN {
        return Err(invalid(format!("The token is longer than {MAX_TOKEN} characters.")));
    }
    from_base64url(token).ok_or_else(damaged)
}

fn block(data: &[u8]) -> Result<schema::Block> {
    schema::Block::decode(data).map_err(|_| damaged())
}

fn damaged() -> Refusal {
    invalid("The token is damaged or not one of ours. Take a new one at /v1/token.")
}

fn insufficient(message: String, scope: &Scope) -> Refusal {
    Refusal::new(Code::InsufficientScope, message).scope(scope).leg("grant")
}

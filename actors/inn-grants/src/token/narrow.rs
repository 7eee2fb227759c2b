//! Appends a narrowing block: the holder's own doing, no key of the platform needed.

use std::collections::BTreeSet;

use biscuit_auth::{BlockBuilder, UnverifiedBiscuit};
use chrono::{DateTime, Utc};
use inn_protocol::scope::Scope;
use inn_protocol::{Code, Refusal, Result};

use super::mint::{actions_among, check_length, expires_at};
use super::roots::pair;
use super::{MAX_BLOCKS, invalid};
use crate::encoding::to_base64url;

/// What a narrower token still allows. Narrowing never adds: a scope the token lacks stays out.
#[derive(Debug, Clone, Default)]
pub struct Narrowing {
    /// Only these scopes.
    pub scopes: Option<BTreeSet<Scope>>,
    /// Not from this second on.
    pub expires: Option<DateTime<Utc>>,
}

/// A narrower token. `next_seed` must be fresh random bytes.
///
/// Refuses an empty narrowing (`invalid_parameter`), a text that is no token or is sealed (`invalid_token`), and a result
/// that verification would refuse for its size (`too_large`).
pub fn attenuate(token: &str, narrowing: &Narrowing, next_seed: [u8; 32]) -> Result<String> {
    let bytes = super::verify::decode(token)?;
    let biscuit = UnverifiedBiscuit::from(bytes).map_err(|_| invalid("The token is damaged."))?;
    if biscuit.block_count() >= MAX_BLOCKS {
        let message = format!("The token has {MAX_BLOCKS} blocks already. Narrow one that was narrowed less often.");
        return Err(Refusal::new(Code::TooLarge, message));
    }
    let narrower = biscuit
        .append_with_keypair(&pair(&next_seed)?, block(narrowing)?)
        .map_err(|_| invalid("The token is sealed or damaged: it cannot be narrowed."))?;
    check_length(to_base64url(&narrower.to_vec().map_err(|_| Refusal::internal())?))
}

fn block(narrowing: &Narrowing) -> Result<BlockBuilder> {
    let mut block = BlockBuilder::new();
    if narrowing.scopes.as_ref().is_some_and(BTreeSet::is_empty)
        || (narrowing.scopes.is_none() && narrowing.expires.is_none())
    {
        return Err(Refusal::new(Code::InvalidParameter, "Say which scopes to keep, or when the narrower token ends."));
    }
    if let Some(scopes) = &narrowing.scopes {
        block = block.check(actions_among(scopes)).map_err(|_| Refusal::internal())?;
    }
    if let Some(expires) = narrowing.expires {
        block = block.check(expires_at(expires)).map_err(|_| Refusal::internal())?;
    }
    Ok(block)
}

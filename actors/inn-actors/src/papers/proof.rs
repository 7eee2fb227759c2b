//! How long what was shown counts, for those who go on listening after their call.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use inn_grants::token::VerifiedToken;
use inn_grants::{app_token, delegation};
use inn_protocol::call::{Call, Papers};

use super::Evidence;

/// The part of the papers that time can still take away.
#[derive(Clone, Default)]
pub(crate) struct Proof {
    /// An agent's token: what was appended to it may judge by the time in other ways than by an end.
    pub(crate) token: Option<Arc<VerifiedToken>>,
    /// When the first of the papers runs out.
    pub(crate) ends: Option<DateTime<Utc>>,
}

/// Of papers that hold: they were judged already.
pub(crate) fn proof(call: &Call, evidence: &Evidence) -> Proof {
    let seconds = |seconds: i64| DateTime::from_timestamp(seconds, 0);
    let ends = match &call.papers {
        Papers::Signed(papers) => {
            let token = evidence.token.as_ref().map(|token| token.expires());
            let delegation = papers.delegation.as_deref().and_then(delegation::expires).and_then(seconds);
            [token, delegation].into_iter().flatten().min()
        }
        Papers::Bearer { .. } => evidence.token.as_ref().map(|token| token.expires()),
        Papers::Session { .. } => evidence.session.as_ref().map(|session| session.expires_at),
        Papers::AppUser { token } => app_token::peek(token).and_then(|claims| seconds(claims.exp)),
        Papers::None | Papers::Visitor | Papers::Loopback { .. } | Papers::File { .. } => None,
    };
    Proof { token: evidence.token.clone(), ends }
}

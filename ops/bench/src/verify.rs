//! What verifying one signed call costs, alone: the steps of the door with a token it has seen before.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use chrono::{TimeDelta, Utc};
use inn_client::{AgentKey, Client, Outgoing, Papers, Prepared};
use inn_grants::signature::{self, SignedParts};
use inn_grants::token::{self, RootKeys, TokenClaims, VerifiedToken};
use inn_grants::{PublicKey, SigningKey};
use inn_protocol::scope::Scope;
use inn_protocol::{AppId, Digest, GrantId, TenantId, UserId};
use rustix::time::{ClockId, clock_gettime};

use crate::cards;

const CALLS: usize = 10_000;

/// Microseconds of CPU.
pub(crate) struct Cost {
    pub(crate) warm_p50: f64,
    pub(crate) warm_p99: f64,
    /// Reading and verifying a token for the first time.
    pub(crate) cold_p50: f64,
}

/// Signs calls as a client does and verifies each once, as the server does. One thread, no network.
pub(crate) fn measure() -> anyhow::Result<Cost> {
    let roots = RootKeys::new(1, &SigningKey::from_seed(rand::random()), &[])?;
    let agent = AgentKey::from_seed(rand::random());
    let app = AppId::new();
    let claims = TokenClaims {
        grant: GrantId::new(),
        grant_epoch: 1,
        agent: agent.public().thumbprint(),
        user: UserId::new(),
        app,
        tenant: TenantId::new(),
        scopes: Arc::new(scopes()?),
        expires: Utc::now() + TimeDelta::minutes(15),
        plain: false,
    };
    let text: Arc<str> = token::mint(&roots, &claims, rand::random())?.into();
    let mut cold = Vec::new();
    for _ in 0..200 {
        let began = cpu_time();
        black_box(token::verify(&text, roots.public())?);
        cold.push(micros(began));
    }
    let door = Door {
        app,
        key: *agent.public().as_bytes(),
        tokens: HashMap::from([(Digest::of(text.as_bytes()), Arc::new(token::verify(&text, roots.public())?))]),
        revoked: (0..100_000_u64).map(|number| Digest::of(&number.to_le_bytes()).0.to_vec()).collect(),
    };
    let client = Client::new("http://localhost:8090")?;
    let papers = Papers::Agent { key: agent, token: text, delegation: None };
    let mut warm = Vec::with_capacity(CALLS);
    // In parts, so that no signature is older than some seconds.
    for part in 0..10 {
        let calls: Vec<Prepared> = (0..CALLS / 10)
            .map(|number| {
                let card = cards::card(part * CALLS / 10 + number, "lst000000000000", &[]);
                let outgoing = Outgoing::post("/apps/bench/api/collections/cards/records", &card);
                Ok(client.prepare(&outgoing, &papers)?)
            })
            .collect::<anyhow::Result<_>>()?;
        for call in &calls {
            let began = cpu_time();
            let verified = door.verify(call)?;
            warm.push(micros(began));
            ensure!(verified == 5, "the token holds 5 scopes, not {verified}");
        }
    }
    Ok(Cost {
        warm_p50: percentile(&mut warm, 50),
        warm_p99: percentile(&mut warm, 99),
        cold_p50: percentile(&mut cold, 50),
    })
}

/// What the server keeps at hand.
struct Door {
    app: AppId,
    /// As the directory has it: bytes, not yet a point.
    key: [u8; 32],
    tokens: HashMap<Digest, Arc<VerifiedToken>>,
    revoked: HashSet<Vec<u8>>,
}

impl Door {
    /// Answers how many scopes the caller has.
    fn verify(&self, call: &Prepared) -> anyhow::Result<usize> {
        let request = call.request();
        let text = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
        let url = request.url();
        let authority = url.authority().to_owned();
        let query = url.query().map_or_else(|| "?".to_owned(), |query| format!("?{query}"));
        let body = request.body().and_then(|body| body.as_bytes()).unwrap_or_default();
        let digest = text("content-digest").context("no digest")?;
        signature::check_content_digest(digest, body)?;
        let (input, value) = (text("signature-input").context("no input")?, text("signature").context("no signature")?);
        // The server reads the signature twice: for the key to look up, and to check it.
        black_box(signature::parse(input, value)?.agent().clone());
        let parsed = signature::parse(input, value)?;
        let parts = SignedParts {
            method: request.method().as_str(),
            authority: &authority,
            path: url.path(),
            query: &query,
            content_type: text("content-type"),
            content_digest: Some(digest),
            token_digest: text("innkeeper-token-digest"),
            ..SignedParts::default()
        };
        let now = Utc::now();
        black_box(signature::verify(&parsed, &parts, &PublicKey::from_bytes(&self.key)?, now.timestamp())?);
        let bearer = text("authorization").and_then(|value| value.strip_prefix("Bearer ")).context("no token")?;
        signature::check_token_digest(parts.token_digest.context("no token digest")?, bearer)?;
        let token = self.tokens.get(&Digest::of(bearer.as_bytes())).context("the token is not in the cache")?;
        token.check_time(now)?;
        ensure!(!token.revocation_ids.iter().any(|id| self.revoked.contains(id)), "revoked");
        Ok(token.scopes_at(self.app, now)?.len())
    }
}

fn scopes() -> anyhow::Result<BTreeSet<Scope>> {
    Ok(cards::SCOPES.iter().map(|text| text.parse()).collect::<Result<_, _>>()?)
}

/// CPU time of this thread: what else runs on the machine does not count.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or_default(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

fn micros(began: Duration) -> f64 {
    cpu_time().saturating_sub(began).as_secs_f64() * 1e6
}

fn percentile(values: &mut [f64], percent: usize) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let place = (values.len() * percent / 100).min(values.len().saturating_sub(1));
    values.get(place).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_of_the_door_is_taken_and_holds() {
        let cost = measure().unwrap();
        assert!(cost.warm_p50 > 0.0 && cost.warm_p50 <= cost.warm_p99 && cost.cold_p50 > 0.0);
    }
}

//! Which tokens were minted, by digest.

use chrono::{DateTime, Utc};
use inn_ports::StoreResult;
use inn_protocol::register::CallRecord;
use inn_protocol::{Code, Digest, GrantId, Refusal};
use serde_json::json;

use crate::PgStore;
use crate::people::sql::{facts, maybe, run};

const LIVE: &str = "SELECT FROM inn.grants WHERE id = $1 AND revoked_at IS NULL FOR SHARE";

const FORGET_OLD: &str = "DELETE FROM inn.tokens WHERE grant_id = $1 AND expires < now() - interval '1 hour'";

/// Told twice is one row.
const MINTED: &str = "
INSERT INTO inn.tokens (digest, grant_id, expires) VALUES ($1, $2, $3) ON CONFLICT (digest) DO NOTHING";

pub(super) async fn minted(
    store: &PgStore,
    call: &CallRecord,
    grant: GrantId,
    token: Digest,
    expires: DateTime<Utc>,
) -> StoreResult<()> {
    let mut client = store.client().await?;
    let step = store.begin(&mut client, call).await?;
    if maybe(step.tx(), "live grant", LIVE, &[&grant.uuid()]).await?.is_none() {
        let message = "This grant was revoked or never given: ask for a new one.";
        return Err(step.refuse(Refusal::new(Code::TokenRevoked, message).leg("grant")).await);
    }
    run(step.tx(), "forget old tokens", FORGET_OLD, &[&grant.uuid()]).await?;
    run(step.tx(), "token minted", MINTED, &[&&token.0[..], &grant.uuid(), &expires]).await?;
    let stored = facts(json!({ "grant": grant, "token": token, "expires": expires }));
    step.commit("Took a token".to_owned(), stored).await?;
    Ok(())
}

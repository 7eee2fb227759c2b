//! Grant requests: an agent's wish, before anybody has decided.

use deadpool_postgres::GenericClient;
use inn_ports::{NewGrantRequest, StoreResult};
use inn_protocol::grant::GrantRequest;
use inn_protocol::register::CallRecord;
use inn_protocol::{Code, GrantRequestId, Refusal, TenantId};
use serde_json::json;

use super::rows;
use crate::PgStore;
use crate::people::sql::{all, column, facts, invalid, maybe, one, readable, run, seconds};

/// Pending requests of one agent for one app.
const MOST_PENDING: i64 = 20;
/// Scopes of one request.
const MOST_SCOPES: usize = 500;

macro_rules! view {
    ($condition:literal) => {
        concat!(
            "SELECT r.id, r.tenant, r.app, a.slug AS app_slug, r.agent, g.name AS agent_name, r.code, r.scopes, r.reason,
                    r.status, r.expires_at <= now() AS late, r.grant_id, r.created_at, r.expires_at
             FROM inn.grant_requests r JOIN inn.apps a ON a.id = r.app JOIN inn.agents g ON g.id = r.agent ",
            $condition
        )
    };
}

pub(super) async fn find<C: GenericClient + Sync>(client: &C, id: GrantRequestId) -> StoreResult<Option<GrantRequest>> {
    let row = maybe(client, "grant request", view!("WHERE r.id = $1"), &[&id.uuid()]).await?;
    row.as_ref().map(rows::request).transpose()
}

/// Locked until the end of the transaction: two people deciding at once decide one after the other.
pub(super) async fn find_locked<C: GenericClient + Sync>(
    client: &C,
    id: GrantRequestId,
) -> StoreResult<Option<GrantRequest>> {
    let row = maybe(client, "grant request", view!("WHERE r.id = $1 FOR UPDATE OF r"), &[&id.uuid()]).await?;
    row.as_ref().map(rows::request).transpose()
}

pub(super) async fn list(store: &PgStore, tenant: TenantId) -> StoreResult<Vec<GrantRequest>> {
    let client = store.client().await?;
    let text = view!("WHERE r.tenant = $1 ORDER BY r.created_at DESC, r.id DESC LIMIT 500");
    all(&client, "grant requests", text, &[&tenant.uuid()]).await?.iter().map(rows::request).collect()
}

/// The agent's row is held, so that its requests are counted one after the other.
const LOCK_AGENT: &str = "SELECT FROM inn.agents WHERE id = $1 FOR NO KEY UPDATE";

const PENDING: &str = "
SELECT count(*) AS pending FROM inn.grant_requests
WHERE agent = $1 AND app = $2 AND status = 'pending' AND expires_at > now()";

const ASK: &str = "
INSERT INTO inn.grant_requests (id, tenant, app, agent, code, scopes, reason, expires_at)
SELECT $1, a.tenant, a.id, $4, $5, $6, $7, now() + make_interval(secs => $8)
FROM inn.apps a WHERE a.id = $3 AND a.tenant = $2 AND a.status = 'active'";

pub(super) async fn ask(store: &PgStore, call: &CallRecord, new: &NewGrantRequest) -> StoreResult<GrantRequest> {
    readable("reason", &new.reason, 500)?;
    if !(1..=MOST_SCOPES).contains(&new.scopes.len()) {
        let expected = format!("1 to {MOST_SCOPES} scopes");
        return Err(invalid("scopes", &expected, format!("A grant request names {expected}.")).into());
    }
    let mut client = store.client().await?;
    let step = store.begin(&mut client, call).await?;
    let agent = new.agent.as_str();
    if maybe(step.tx(), "lock agent", LOCK_AGENT, &[&agent]).await?.is_none() {
        let message = "This agent is not registered here: register its key first.";
        return Err(step.refuse(Refusal::new(Code::UnknownAgent, message)).await);
    }
    let pending: i64 = column(&one(step.tx(), "count pending", PENDING, &[&agent, &new.app.uuid()]).await?, "pending")?;
    if pending >= MOST_PENDING {
        let message = format!(
            "This agent has {MOST_PENDING} undecided requests for this app, which is the most it may have. Wait until the person has decided."
        );
        return Err(step.refuse(Refusal::new(Code::RateLimited, message).after(60)).await);
    }
    let scopes = rows::texts(&new.scopes);
    let asked = run(
        step.tx(),
        "ask for grant",
        ASK,
        &[
            &new.id.uuid(),
            &new.tenant.uuid(),
            &new.app.uuid(),
            &agent,
            &new.code,
            &scopes,
            &new.reason,
            &seconds(new.lifetime),
        ],
    )
    .await?;
    let request = if asked == 1 { find(step.tx(), new.id).await? } else { None };
    let Some(request) = request else {
        return Err(step.refuse(Refusal::new(Code::UnknownApp, "There is no such app.")).await);
    };
    let body = json!({ "request": request.id, "app": request.app, "agent": request.agent, "scopes": request.scopes });
    step.outbox("grants.requested", Some(request.app), body.clone()).await?;
    let sentence = format!("\"{}\" asks to act on {}", request.agent_name, request.app_slug);
    step.commit(sentence, facts(body)).await?;
    Ok(request)
}

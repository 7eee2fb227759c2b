//! Agents' keys.

use inn_ports::{NewAgent, StoreResult};
use inn_protocol::grant::AgentRecord;
use inn_protocol::register::CallRecord;
use inn_protocol::{Code, Refusal, TenantId};
use serde_json::json;

use super::rows;
use crate::PgStore;
use crate::people::sql::{all, facts, invalid, maybe, readable};

/// A name is claimed, so it may change; the key behind an id may not.
const REGISTER: &str = "
INSERT INTO inn.agents AS a (id, public_key, name) VALUES ($1, $2, $3)
ON CONFLICT (id) DO UPDATE SET name = excluded.name WHERE a.public_key = excluded.public_key
RETURNING id, inn.base64url(public_key) AS public_key, name, registered_at";

pub(super) async fn register(store: &PgStore, call: &CallRecord, agent: &NewAgent) -> StoreResult<AgentRecord> {
    readable("name", &agent.name, 100)?;
    if agent.name.trim().is_empty() {
        return Err(invalid("name", "a name people will see", "An agent needs a name that people will see.").into());
    }
    let mut client = store.client().await?;
    let step = store.begin(&mut client, call).await?;
    let row = maybe(step.tx(), "register agent", REGISTER, &[&agent.id.as_str(), &&agent.public_key[..], &agent.name])
        .await?;
    let Some(row) = row else {
        let message = "This thumbprint is registered with another public key.";
        return Err(step.refuse(Refusal::new(Code::Conflict, message)).await);
    };
    let record = rows::agent(&row)?;
    let stored = facts(json!({ "agent": record.id, "name": record.name, "publicKey": record.public_key }));
    step.commit(format!("Registered the agent \"{}\"", record.name), stored).await?;
    Ok(record)
}

const LIST: &str = "
SELECT id, inn.base64url(public_key) AS public_key, name, registered_at FROM inn.agents
WHERE id IN (SELECT agent FROM inn.grants WHERE tenant = $1 UNION SELECT agent FROM inn.grant_requests WHERE tenant = $1)
ORDER BY registered_at DESC, id LIMIT 1000";

/// The agents that ask or asked for something in the tenant.
pub(super) async fn list(store: &PgStore, tenant: TenantId) -> StoreResult<Vec<AgentRecord>> {
    let client = store.client().await?;
    all(&client, "agents", LIST, &[&tenant.uuid()]).await?.iter().map(rows::agent).collect()
}

//! Taking grants away: at once, with everything that hangs on them.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use inn_ports::StoreResult;
use inn_protocol::grant::Revocation;
use inn_protocol::register::CallRecord;
use inn_protocol::{AppId, GrantId, Refusal, TenantId, UserId};
use serde_json::json;
use uuid::Uuid;

use super::list;
use crate::PgStore;
use crate::people::sql::{all, column, facts, must};
use crate::requests::fencing;
use crate::step::Step;

/// Which live grants of a tenant.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Which {
    Grant(GrantId),
    /// Everything that acts for this person.
    User(UserId),
}

/// In the order of ids, so that two revocations of the same grants wait for each other instead of deadlocking.
const REVOKE: &str = "
WITH chosen AS (
    SELECT id FROM inn.grants
    WHERE tenant = $1 AND revoked_at IS NULL AND ($2::uuid IS NULL OR id = $2) AND ($3::uuid IS NULL OR user_id = $3)
      AND ($2::uuid IS NOT NULL OR $3::uuid IS NOT NULL)
    ORDER BY id FOR UPDATE
)
UPDATE inn.grants g SET revoked_at = now(), epoch = nextval('inn.epoch'), loopback_token = NULL
FROM chosen WHERE g.id = chosen.id RETURNING g.id, g.app, g.revoked_at";

const TOKENS: &str = "
SELECT grant_id, count(*) AS ended FROM inn.tokens WHERE grant_id = ANY($1) AND expires > now() GROUP BY grant_id";

/// Revokes inside a transaction: grants, then the claims made under them. Answers what each one stopped.
pub(crate) async fn stop(step: &Step<'_>, tenant: TenantId, which: Which) -> StoreResult<Vec<Revocation>> {
    let (grant, user) = match which {
        Which::Grant(grant) => (Some(grant.uuid()), None),
        Which::User(user) => (None, Some(user.uuid())),
    };
    let revoked = all(step.tx(), "revoke", REVOKE, &[&tenant.uuid(), &grant, &user]).await?;
    let ids = revoked.iter().map(|row| column::<Uuid>(row, "id")).collect::<StoreResult<Vec<_>>>()?;
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let fenced = fencing::fence(step, &ids).await?;
    let mut tokens: BTreeMap<Uuid, i64> = BTreeMap::new();
    for row in all(step.tx(), "count tokens", TOKENS, &[&ids]).await? {
        tokens.insert(column(&row, "grant_id")?, column(&row, "ended")?);
    }
    let mut apps = BTreeSet::new();
    let mut stopped = Vec::with_capacity(revoked.len());
    for row in &revoked {
        let id: Uuid = column(row, "id")?;
        apps.insert(column::<Uuid>(row, "app")?);
        stopped.push(Revocation {
            grant: GrantId::from_uuid(id),
            revoked_at: column::<DateTime<Utc>>(row, "revoked_at")?,
            claims_fenced: fenced.get(&id).copied().unwrap_or(0),
            tokens_ended: tokens.get(&id).copied().unwrap_or(0),
        });
    }
    for app in apps {
        let grants: Vec<_> = stopped.iter().map(|revocation| revocation.grant).collect();
        step.outbox("grants.revoked", Some(AppId::from_uuid(app)), json!({ "grants": grants })).await?;
    }
    Ok(stopped)
}

/// The first revocation counts: a second one answers its time and that it stopped nothing more.
pub(super) async fn revoke(
    store: &PgStore,
    call: &CallRecord,
    tenant: TenantId,
    id: GrantId,
) -> StoreResult<Revocation> {
    let mut client = store.client().await?;
    let step = store.begin(&mut client, call).await?;
    let stopped = stop(&step, tenant, Which::Grant(id)).await?.pop();
    let Some(grant) = list::find(step.tx(), id).await?.filter(|grant| grant.tenant == tenant) else {
        return Err(step.refuse(Refusal::not_found()).await);
    };
    let repeated = stopped.is_none();
    let earlier =
        grant.revoked_at.map(|revoked_at| Revocation { grant: id, revoked_at, claims_fenced: 0, tokens_ended: 0 });
    let revocation = must(stopped.or(earlier))?;
    let sentence = if repeated {
        format!("\"{}\" had been put out of {} already", grant.agent_name, grant.app_slug)
    } else {
        format!(
            "Put \"{}\" out of {}; claims stopped: {}, tokens stopped: {}",
            grant.agent_name, grant.app_slug, revocation.claims_fenced, revocation.tokens_ended
        )
    };
    let stored = facts(json!(revocation));
    step.commit(sentence, stored).await?;
    Ok(revocation)
}

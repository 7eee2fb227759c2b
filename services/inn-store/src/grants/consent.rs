//! A person's decision about a grant request.

use deadpool_postgres::Transaction;
use inn_ports::{Consent, StoreResult};
use inn_protocol::grant::{Grant, GrantRequest, GrantRequestStatus};
use inn_protocol::people::Role;
use inn_protocol::register::CallRecord;
use inn_protocol::{Code, GrantRequestId, Refusal, TenantId, UserId};
use serde_json::json;

use super::{asking, linked, list, rows};
use crate::PgStore;
use crate::people::sql::{facts, invalid, maybe, must, run};

/// Held until the grant is committed: a removal comes before it, or after it and finds the grant to revoke.
const MEMBER: &str = "
SELECT m.role FROM inn.members m JOIN inn.users u ON u.id = m.user_id AND u.disabled_at IS NULL
WHERE m.tenant = $1 AND m.user_id = $2 AND m.removed_at IS NULL FOR SHARE OF m";

const GRANT: &str = "
INSERT INTO inn.grants (id, tenant, app, agent, user_id, scopes, others_requests, plain_token, app_record)
SELECT $1, a.tenant, a.id, $3, $4, $5, $6, $7, $8 FROM inn.apps a WHERE a.id = $2 AND a.status = 'active'";

const APPROVED: &str = "
UPDATE inn.grant_requests SET status = 'approved', grant_id = $2, decided_at = now()
WHERE id = $1 AND status = 'pending' AND expires_at > now()";

/// The person grants for themselves, all or part of what was asked. The same yes given twice is one grant.
pub(super) async fn approve(
    store: &PgStore,
    call: &CallRecord,
    id: GrantRequestId,
    consent: &Consent,
) -> StoreResult<Grant> {
    let mut client = store.client().await?;
    let step = store.begin(&mut client, call).await?;
    let Some(request) = asking::find_locked(step.tx(), id).await? else {
        return Err(step.refuse(Refusal::not_found()).await);
    };
    let Some(role) = role_of(step.tx(), request.tenant, consent.user).await? else {
        // Whose request it is, is none of their business.
        return Err(step.refuse(Refusal::not_found()).await);
    };
    if let Some(earlier) = request.grant {
        let earlier = list::find(step.tx(), earlier).await?;
        return match earlier {
            Some(grant) if same(&grant, consent) => {
                step.commit(sentence(&grant, "was approved already"), stored(&request, &grant)).await?;
                Ok(grant)
            }
            _ => Err(step.refuse(decided(&request)).await),
        };
    }
    if request.status != GrantRequestStatus::Pending {
        return Err(step.refuse(decided(&request)).await);
    }
    let allowed = part_of(&request, consent).and_then(|()| within_role(role, consent));
    if let Err(refusal) = allowed {
        return Err(step.refuse(refusal).await);
    }
    if let Some(record) = &consent.app_record
        && let Err(refusal) = linked::check(step.tx(), request.app, record).await?
    {
        return Err(step.refuse(refusal).await);
    }
    let scopes = rows::texts(&consent.scopes);
    let made = run(
        step.tx(),
        "grant",
        GRANT,
        &[
            &consent.grant.uuid(),
            &request.app.uuid(),
            &request.agent.as_str(),
            &consent.user.uuid(),
            &scopes,
            &consent.others_requests,
            &consent.plain_token,
            &consent.app_record,
        ],
    )
    .await?;
    if made == 0 {
        return Err(step.refuse(Refusal::new(Code::UnknownApp, "The app has been removed.")).await);
    }
    if run(step.tx(), "approve", APPROVED, &[&id.uuid(), &consent.grant.uuid()]).await? == 0 {
        // Locked and pending above: only its time can have run out in between.
        return Err(step.refuse(late()).await);
    }
    let grant = must(list::find(step.tx(), consent.grant).await?)?;
    step.outbox("grants.approved", Some(grant.app), json!({ "grant": grant.id, "agent": grant.agent })).await?;
    step.commit(sentence(&grant, "may act"), stored(&request, &grant)).await?;
    Ok(grant)
}

const REFUSED: &str = "
UPDATE inn.grant_requests SET status = 'refused', decided_at = now() WHERE id = $1 AND status = 'pending'";

/// Refusing twice, or refusing what ran out, is no different from refusing once.
pub(super) async fn refuse(store: &PgStore, call: &CallRecord, id: GrantRequestId) -> StoreResult<GrantRequest> {
    let mut client = store.client().await?;
    let step = store.begin(&mut client, call).await?;
    let Some(request) = asking::find_locked(step.tx(), id).await? else {
        return Err(step.refuse(Refusal::not_found()).await);
    };
    if let Some(user) = call.draft.user
        && !is_member(step.tx(), request.tenant, user).await?
    {
        return Err(step.refuse(Refusal::not_found()).await);
    }
    if request.status == GrantRequestStatus::Approved {
        return Err(step.refuse(decided(&request)).await);
    }
    run(step.tx(), "refuse grant", REFUSED, &[&id.uuid()]).await?;
    let request = must(asking::find(step.tx(), id).await?)?;
    step.outbox("grants.refused", Some(request.app), json!({ "request": id, "agent": request.agent })).await?;
    let sentence = format!("Refused what \"{}\" asked for on {}", request.agent_name, request.app_slug);
    step.commit(sentence, facts(json!({ "request": id, "app": request.app, "agent": request.agent }))).await?;
    Ok(request)
}

pub(super) async fn is_member(tx: &Transaction<'_>, tenant: TenantId, user: UserId) -> StoreResult<bool> {
    Ok(role_of(tx, tenant, user).await?.is_some())
}

async fn role_of(tx: &Transaction<'_>, tenant: TenantId, user: UserId) -> StoreResult<Option<Role>> {
    let row = maybe(tx, "find member", MEMBER, &[&tenant.uuid(), &user.uuid()]).await?;
    row.as_ref().map(crate::people::role).transpose()
}

/// What goes beyond the scopes, and whose it is to give.
fn within_role(role: Role, consent: &Consent) -> Result<(), Refusal> {
    let missing = if consent.others_requests && role < Role::Editor {
        Some(("Only editors and owners can let an agent answer other people's requests", "editor"))
    } else if consent.plain_token && role < Role::Owner {
        Some(("Only owners can let an agent use a plain token, without its signature", "owner"))
    } else if consent.app_record.is_some() && !consent.record_proved && role < Role::Owner {
        // Nothing else shows that a record is theirs.
        Some((
            "Without a token of the app's own sign-in (appToken) only owners can link a record of its users to a grant",
            "owner",
        ))
    } else {
        None
    };
    let Some((limit, needed)) = missing else { return Ok(()) };
    let message = format!("{limit}; you are {} here. Leave that out, or ask an owner.", role.as_str());
    let fix = format!("An owner of the tenant, by making the person {needed}.");
    Err(Refusal::new(Code::Forbidden, message).leg("user").fix(fix))
}

fn part_of(request: &GrantRequest, consent: &Consent) -> Result<(), Refusal> {
    if consent.scopes.is_empty() {
        let message = "Nothing was granted: choose at least one scope, or refuse the request.";
        return Err(invalid("scopes", "at least one scope of the request", message));
    }
    match consent.scopes.difference(&request.scopes).next() {
        None => Ok(()),
        Some(extra) => {
            let message = format!("\"{extra}\" was not asked for, so it cannot be granted.");
            Err(invalid("scopes", "only scopes of the request", message))
        }
    }
}

fn same(grant: &Grant, consent: &Consent) -> bool {
    grant.revoked_at.is_none()
        && grant.user == consent.user
        && grant.scopes == consent.scopes
        && grant.others_requests == consent.others_requests
        && grant.plain_token == consent.plain_token
        && grant.app_record == consent.app_record
}

fn decided(request: &GrantRequest) -> Refusal {
    let refusal = match request.status {
        GrantRequestStatus::Expired => return late(),
        GrantRequestStatus::Refused => "This request was refused already; the agent can ask again.",
        _ => "This request was approved already; the agent can ask again.",
    };
    let refusal = Refusal::new(Code::Conflict, refusal);
    match request.grant {
        Some(grant) => refusal.id(&grant),
        None => refusal,
    }
}

fn late() -> Refusal {
    Refusal::new(Code::Conflict, "This request's time has run out; the agent can ask again.")
}

fn sentence(grant: &Grant, what: &str) -> String {
    format!("\"{}\" {what} on {} for {}", grant.agent_name, grant.app_slug, grant.user_email)
}

fn stored(request: &GrantRequest, grant: &Grant) -> serde_json::Map<String, serde_json::Value> {
    let declined: Vec<_> = request.scopes.difference(&grant.scopes).collect();
    facts(json!({
        "grant": grant.id, "request": request.id, "app": grant.app, "agent": grant.agent, "user": grant.user,
        "scopes": grant.scopes, "declined": declined, "othersRequests": grant.others_requests,
        "plainToken": grant.plain_token, "appRecord": grant.app_record,
    }))
}

//! The grant behind an app's agent token file, on a host bound to loopback (DESIGN section 5).

use inn_ports::StoreResult;
use inn_protocol::app::AppSnapshot;
use inn_protocol::grant::Grant;
use inn_protocol::register::CallRecord;
use inn_protocol::{Code, Digest, GrantId, Refusal, UserId};
use serde_json::json;
use uuid::Uuid;

use super::consent::is_member;
use super::list;
use super::revocation::{self, Which};
use crate::PgStore;
use crate::people::sql::{column, facts, maybe, must, run};

/// Held while the app's token file is being given out: there is one.
const LOCK_APP: &str = "SELECT tenant FROM inn.apps WHERE id = $1 AND status = 'active' FOR NO KEY UPDATE";

/// The live one, or else the newest that was revoked.
const FIND: &str = "
SELECT id, user_id, revoked_at IS NOT NULL AS revoked FROM inn.grants WHERE app = $1 AND loopback
ORDER BY revoked_at IS NOT NULL, created_at DESC, id DESC LIMIT 1 FOR UPDATE";

/// A new digest moves the epoch, so that what was decided with the old file no longer commits.
const RENEW: &str = "
UPDATE inn.grants SET loopback_token = $2, scopes = coalesce($3::text[], scopes), epoch = nextval('inn.epoch')
WHERE id = $1 AND (loopback_token IS DISTINCT FROM $2 OR scopes <> coalesce($3::text[], scopes))";

/// The holder of a token file has no key. Its id is no key's thumbprint (that would take a preimage of SHA-256), and no
/// row of `inn.agents` has it, so no signature can ever speak for it.
const CREATE: &str = "
INSERT INTO inn.grants (id, tenant, app, agent, user_id, scopes, loopback, loopback_token)
VALUES ($1, $2, $3, inn.base64url(sha256(convert_to('innkeeper agent token file of ' || $3::uuid::text, 'UTF8'))), $4, $5, true, $6)";

/// Finds or creates the app's loopback grant for its owner and sets the digest of its token.
///
/// When the person themself asks (the call is theirs), the grant covers everything the current release declares, and one
/// they revoked is replaced. When the platform asks at start, scopes stay as they are and a revoked grant stays revoked:
/// it is answered as it is, and the token is not set.
pub(super) async fn grant_for(
    store: &PgStore,
    call: &CallRecord,
    app: &AppSnapshot,
    user: UserId,
    token: Digest,
) -> StoreResult<Grant> {
    let mut client = store.client().await?;
    let step = store.begin(&mut client, call).await?;
    let Some(row) = maybe(step.tx(), "lock app", LOCK_APP, &[&app.id.uuid()]).await? else {
        return Err(step.refuse(Refusal::new(Code::UnknownApp, "There is no such app.")).await);
    };
    let tenant = inn_protocol::TenantId::from_uuid(column(&row, "tenant")?);
    if !is_member(step.tx(), tenant, user).await? {
        let refusal = Refusal::new(Code::Forbidden, "An app's agent token acts for a member of the app's tenant.");
        return Err(step.refuse(refusal).await);
    }
    let asked_by_person = call.draft.user == Some(user);
    let scopes: Vec<String> = app.definition.scopes().iter().map(ToString::to_string).collect();
    let found = maybe(step.tx(), "find loopback grant", FIND, &[&app.id.uuid()]).await?;
    let mut keep = None;
    if let Some(row) = &found {
        let id = GrantId::from_uuid(column(row, "id")?);
        let (revoked, theirs) = (column::<bool>(row, "revoked")?, column::<Uuid>(row, "user_id")? == user.uuid());
        if revoked && !asked_by_person {
            let grant = must(list::find(step.tx(), id).await?)?;
            step.abandon().await;
            return Ok(grant);
        }
        if !revoked && theirs {
            keep = Some(id);
        } else if !revoked {
            revocation::stop(&step, tenant, Which::Grant(id)).await?;
        }
    }
    let id = if let Some(id) = keep {
        let renewed = asked_by_person.then_some(&scopes);
        run(step.tx(), "renew loopback grant", RENEW, &[&id.uuid(), &&token.0[..], &renewed]).await?;
        id
    } else {
        let id = GrantId::new();
        let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 6] =
            [&id.uuid(), &tenant.uuid(), &app.id.uuid(), &user.uuid(), &scopes, &&token.0[..]];
        run(step.tx(), "create loopback grant", CREATE, &parameters).await?;
        id
    };
    let grant = must(list::find(step.tx(), id).await?)?;
    step.outbox("grants.approved", Some(grant.app), json!({ "grant": grant.id, "agent": grant.agent })).await?;
    let stored =
        json!({ "grant": grant.id, "app": grant.app, "user": grant.user, "scopes": grant.scopes, "loopback": true });
    let sentence = format!("The agent token file of {} acts for {} on this machine", grant.app_slug, grant.user_email);
    step.commit(sentence, facts(stored)).await?;
    Ok(grant)
}

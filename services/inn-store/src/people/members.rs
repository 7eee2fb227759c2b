//! Members of a tenant. Every change moves the member's epoch, so what was decided before it does not commit after it.

use deadpool_postgres::Transaction;
use inn_ports::{StoreError, StoreResult};
use inn_protocol::people::{Member, Role};
use inn_protocol::receipt::Receipt;
use inn_protocol::register::CallRecord;
use inn_protocol::{Code, Refusal, TenantId, UserId};
use serde_json::json;
use uuid::Uuid;

use super::passwords::email_key;
use super::rows;
use super::sql::{all, column, facts, invalid, maybe, one, run};
use crate::PgStore;
use crate::grants::revocation::{self, Which};
use crate::step::Step;

/// Members one tenant may have.
const MOST_MEMBERS: i64 = 10_000;

const LIST: &str = "
SELECT m.user_id, u.email, m.role, m.since
FROM inn.members m JOIN inn.users u ON u.id = m.user_id
WHERE m.tenant = $1 AND m.removed_at IS NULL
ORDER BY m.since, m.user_id";

pub(super) async fn list(store: &PgStore, tenant: TenantId) -> StoreResult<Vec<Member>> {
    let client = store.client().await?;
    let rows = all(&client, "members", LIST, &[&tenant.uuid()]).await?;
    let member = |row| {
        Ok(Member {
            user: UserId::from_uuid(column(row, "user_id")?),
            email: column(row, "email")?,
            role: rows::role(row)?,
            since: column(row, "since")?,
        })
    };
    rows.iter().map(member).collect()
}

/// The tenant's row stands for the list of its members: whoever changes that list holds it. `NO KEY`, so that rows that
/// refer to the tenant (a session, a request) are not held up.
const LOCK_TENANT: &str = "SELECT name FROM inn.tenants WHERE id = $1 FOR NO KEY UPDATE";

const ROLE_NOW: &str = "SELECT role FROM inn.members WHERE tenant = $1 AND user_id = $2 AND removed_at IS NULL";

const OTHER_OWNERS: &str = "
SELECT count(*) AS others FROM inn.members m JOIN inn.users u ON u.id = m.user_id AND u.disabled_at IS NULL
WHERE m.tenant = $1 AND m.user_id <> $2 AND m.role = 'owner' AND m.removed_at IS NULL";

const HOW_MANY: &str = "SELECT count(*) AS members FROM inn.members WHERE tenant = $1 AND removed_at IS NULL";

const SET: &str = "
INSERT INTO inn.members AS m (tenant, user_id, role) VALUES ($1, $2, $3)
ON CONFLICT (tenant, user_id) DO UPDATE SET
    role = excluded.role, epoch = nextval('inn.epoch'), removed_at = NULL,
    since = CASE WHEN m.removed_at IS NULL THEN m.since ELSE clock_timestamp() END";

pub(super) async fn set(
    store: &PgStore,
    call: &CallRecord,
    tenant: TenantId,
    email: &str,
    password: Option<&str>,
    role: Role,
) -> StoreResult<Receipt> {
    let email = checked_email(email)?;
    let mut client = store.client().await?;
    let step = store.begin(&mut client, call).await?;
    let Some(name) = lock(step.tx(), tenant).await? else { return Err(step.refuse(Refusal::not_found()).await) };
    let (user, is_new) = match find_or_create(&step, tenant, call.draft.user, email, password).await? {
        Ok(found) => found,
        Err(refusal) => return Err(step.refuse(refusal).await),
    };
    let before = role_now(step.tx(), tenant, user).await?;
    if before == Some(Role::Owner) && role < Role::Owner && other_owners(step.tx(), tenant, user).await? == 0 {
        return Err(step.refuse(last_owner()).await);
    }
    if before.is_none() && members(step.tx(), tenant).await? >= MOST_MEMBERS {
        let message = format!("This tenant has {MOST_MEMBERS} members already, which is the most it may have.");
        return Err(step.refuse(Refusal::new(Code::Conflict, message)).await);
    }
    if before != Some(role) {
        run(step.tx(), "set member", SET, &[&tenant.uuid(), &user.uuid(), &role.as_str()]).await?;
    }
    step.outbox("members.changed", None, json!({ "tenant": tenant, "user": user })).await?;
    let word = role.as_str();
    let sentence = match before {
        None if is_new => format!("Added {email} to {name} as {word}, with a new account"),
        None => format!("Added {email} to {name} as {word}; they sign in with the password they have"),
        Some(_) => format!("{email} is now {word} in {name}"),
    };
    let stored =
        json!({ "tenant": tenant, "user": user, "email": email, "role": role, "before": before, "newAccount": is_new });
    step.commit(sentence, facts(stored)).await
}

const END_SESSIONS: &str =
    "UPDATE inn.sessions SET ended_at = now() WHERE user_id = $1 AND tenant = $2 AND ended_at IS NULL";

pub(super) async fn remove(store: &PgStore, call: &CallRecord, tenant: TenantId, user: UserId) -> StoreResult<Receipt> {
    let mut client = store.client().await?;
    let step = store.begin(&mut client, call).await?;
    let Some(name) = lock(step.tx(), tenant).await? else { return Err(step.refuse(Refusal::not_found()).await) };
    let Some(before) = role_now(step.tx(), tenant, user).await? else {
        return Err(step.refuse(Refusal::new(Code::NotFound, "This person is not a member of the tenant.")).await);
    };
    if before == Role::Owner && other_owners(step.tx(), tenant, user).await? == 0 {
        return Err(step.refuse(last_owner()).await);
    }
    let text = "
        UPDATE inn.members m SET removed_at = now(), epoch = nextval('inn.epoch') FROM inn.users u
        WHERE m.tenant = $1 AND m.user_id = $2 AND u.id = m.user_id RETURNING u.email";
    let email: String =
        column(&one(step.tx(), "remove member", text, &[&tenant.uuid(), &user.uuid()]).await?, "email")?;
    let stopped = revocation::stop(&step, tenant, Which::User(user)).await?;
    let sessions = run(step.tx(), "end sessions", END_SESSIONS, &[&user.uuid(), &tenant.uuid()]).await?;
    step.outbox("members.changed", None, json!({ "tenant": tenant, "user": user })).await?;
    let grants: Vec<_> = stopped.iter().map(|revocation| revocation.grant).collect();
    let fenced: i64 = stopped.iter().map(|revocation| revocation.claims_fenced).sum();
    let stored = json!({
        "tenant": tenant, "user": user, "email": email, "grantsRevoked": grants, "claimsFenced": fenced,
        "sessionsEnded": sessions,
    });
    step.commit(format!("Removed {email} from {name}; {} grants were revoked", grants.len()), facts(stored)).await
}

async fn lock(tx: &Transaction<'_>, tenant: TenantId) -> StoreResult<Option<String>> {
    let row = maybe(tx, "lock tenant", LOCK_TENANT, &[&tenant.uuid()]).await?;
    row.as_ref().map(|row| column(row, "name")).transpose()
}

async fn role_now(tx: &Transaction<'_>, tenant: TenantId, user: UserId) -> StoreResult<Option<Role>> {
    let row = maybe(tx, "member role", ROLE_NOW, &[&tenant.uuid(), &user.uuid()]).await?;
    row.as_ref().map(rows::role).transpose()
}

async fn other_owners(tx: &Transaction<'_>, tenant: TenantId, user: UserId) -> StoreResult<i64> {
    column(&one(tx, "other owners", OTHER_OWNERS, &[&tenant.uuid(), &user.uuid()]).await?, "others")
}

async fn members(tx: &Transaction<'_>, tenant: TenantId) -> StoreResult<i64> {
    column(&one(tx, "count members", HOW_MANY, &[&tenant.uuid()]).await?, "members")
}

const FIND: &str = "SELECT id, disabled_at IS NOT NULL AS disabled FROM inn.users WHERE email_key = $1";
const CREATE: &str = "
INSERT INTO inn.users (id, email, email_key, password) VALUES ($1, $2, $3, $4) ON CONFLICT (email_key) DO NOTHING";

/// Oldest first, and of two that were created in the same moment always the same one.
const MAY_CREATE: &str = "
SELECT t.id = $1 OR EXISTS (
    SELECT FROM inn.members m JOIN inn.users u ON u.id = m.user_id
    WHERE m.tenant = t.id AND m.user_id = $2 AND m.role = 'owner' AND m.removed_at IS NULL AND u.disabled_at IS NULL
) AS may
FROM (SELECT id FROM inn.tenants ORDER BY created_at, id LIMIT 1) AS t";

/// The person with this address and whether they are new. The password of somebody who exists is never touched: an owner
/// of one tenant must not get hold of a person's account, which reaches into others. For the same reason not every owner
/// sets the first one.
async fn find_or_create(
    step: &Step<'_>,
    tenant: TenantId,
    caller: Option<UserId>,
    email: &str,
    password: Option<&str>,
) -> StoreResult<Result<(UserId, bool), Refusal>> {
    let key = email_key(email);
    if let Some(row) = maybe(step.tx(), "find user", FIND, &[&key]).await? {
        if password.is_some() {
            return Ok(Err(has_account()));
        }
        if column(&row, "disabled")? {
            return Ok(Err(Refusal::new(Code::Conflict, "This person's account is disabled.")));
        }
        return Ok(Ok((UserId::from_uuid(column::<Uuid>(&row, "id")?), false)));
    }
    let Some(password) = password else {
        let message = "Nobody here has this address yet: give a first password for the new account.";
        return Ok(Err(invalid("password", "a password, since the address is new", message)));
    };
    let may = one(step.tx(), "first tenant", MAY_CREATE, &[&tenant.uuid(), &caller.map(UserId::uuid)]).await?;
    if !column::<bool>(&may, "may")? {
        return Ok(Err(accounts_elsewhere()));
    }
    let id = UserId::new();
    if run(step.tx(), "create user", CREATE, &[&id.uuid(), &email, &key, &password]).await? == 0 {
        // Somebody else created it since the look above.
        return Ok(Err(has_account()));
    }
    Ok(Ok((id, true)))
}

fn has_account() -> Refusal {
    let message = "This address has an account already, with a password of its own; nothing was changed. Leave the \
                   password out to add the person or to change their role.";
    Refusal::new(Code::Conflict, message)
}

fn accounts_elsewhere() -> Refusal {
    let message = "Nobody has this address yet, and only owners of the platform's first tenant create accounts: whoever \
                   sets the first password of somebody else's address could use it later in other tenants.";
    Refusal::new(Code::Forbidden, message).leg("user").fix(
        "An owner of the platform's first tenant, by creating the account; then any owner can add the person without a password.",
    )
}

/// An address as it will be kept: something on both sides of one `@`, at most 254 bytes, no spaces or control characters.
pub(super) fn checked_email(email: &str) -> Result<&str, StoreError> {
    let email = email.trim();
    let parts =
        email.split_once('@').is_some_and(|(name, host)| !name.is_empty() && !host.is_empty() && !host.contains('@'));
    if parts && email.len() <= 254 && !email.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Ok(email);
    }
    Err(invalid("email", "an email address", "\"email\" must be an email address.").into())
}

fn last_owner() -> Refusal {
    Refusal::new(Code::Conflict, "This is the tenant's last owner: make somebody else an owner first.")
}

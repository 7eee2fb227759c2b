//! Tenants: the first one, further ones, and whose they are.

use deadpool_postgres::GenericClient;
use inn_ports::StoreResult;
use inn_protocol::people::{Role, Tenant};
use inn_protocol::receipt::Receipt;
use inn_protocol::register::CallRecord;
use inn_protocol::{Code, Refusal, UserId};
use serde_json::json;

use super::members::checked_email;
use super::passwords::email_key;
use super::sql::{all, facts, maybe, one, readable, run};
use super::{rows, sql};
use crate::PgStore;
use crate::error::{broken, committing};

/// Tenants one person may own.
const MOST_OWNED: i64 = 100;

const TENANT: &str = "INSERT INTO inn.tenants (id, slug, name) VALUES ($1, $2, $3) ON CONFLICT (slug) DO NOTHING";
const USER: &str = "INSERT INTO inn.users (id, email, email_key, password) VALUES ($1, $2, $3, $4)";
const OWNER: &str = "INSERT INTO inn.members (tenant, user_id, role) VALUES ($1, $2, 'owner')";

/// The very first tenant and its owner. There is no caller yet, hence no entry.
pub(super) async fn found(
    store: &PgStore,
    tenant: &Tenant,
    user: UserId,
    email: &str,
    password: &str,
) -> StoreResult<bool> {
    let email = checked_email(email)?;
    checked(tenant)?;
    let mut client = store.client().await?;
    let tx = client.transaction().await.map_err(broken("found"))?;
    // Two nodes may start on one empty database: the second waits here and then finds it founded.
    tx.batch_execute("LOCK TABLE inn.users IN SHARE ROW EXCLUSIVE MODE").await.map_err(broken("found"))?;
    let text = "SELECT FROM inn.users UNION ALL SELECT FROM inn.members LIMIT 1";
    if maybe(&tx, "found", text, &[]).await?.is_some() {
        tx.rollback().await.map_err(broken("found"))?;
        return Ok(false);
    }
    if run(&tx, "found", TENANT, &[&tenant.id.uuid(), &tenant.slug, &tenant.name]).await? == 0 {
        return Err(taken(&tenant.slug).into());
    }
    run(&tx, "found", USER, &[&user.uuid(), &email, &email_key(email), &password]).await?;
    run(&tx, "found", OWNER, &[&tenant.id.uuid(), &user.uuid()]).await?;
    tx.commit().await.map_err(committing("found"))?;
    Ok(true)
}

const OWNED: &str = "
SELECT count(*) AS owned FROM inn.members WHERE user_id = $1 AND role = 'owner' AND removed_at IS NULL";

pub(super) async fn create(store: &PgStore, call: &CallRecord, tenant: &Tenant, owner: UserId) -> StoreResult<Receipt> {
    checked(tenant)?;
    let mut client = store.client().await?;
    let step = store.begin(&mut client, call).await?;
    let lock = "SELECT FROM inn.users WHERE id = $1 AND disabled_at IS NULL FOR NO KEY UPDATE";
    if maybe(step.tx(), "find owner", lock, &[&owner.uuid()]).await?.is_none() {
        return Err(step.refuse(Refusal::not_found()).await);
    }
    let tenants: i64 = sql::column(&one(step.tx(), "count tenants", OWNED, &[&owner.uuid()]).await?, "owned")?;
    if tenants >= MOST_OWNED {
        let message = format!("This person owns {MOST_OWNED} tenants already, which is the most one person may own.");
        return Err(step.refuse(Refusal::new(Code::Conflict, message)).await);
    }
    if run(step.tx(), "create tenant", TENANT, &[&tenant.id.uuid(), &tenant.slug, &tenant.name]).await? == 0 {
        return Err(step.refuse(taken(&tenant.slug)).await);
    }
    run(step.tx(), "create owner", OWNER, &[&tenant.id.uuid(), &owner.uuid()]).await?;
    let stored = facts(json!({ "tenant": tenant.id, "slug": tenant.slug, "name": tenant.name, "owner": owner }));
    step.commit(format!("Created the tenant {}", tenant.name), stored).await
}

const OF: &str = "
SELECT m.tenant, t.slug AS tenant_slug, t.name AS tenant_name, m.role
FROM inn.members m JOIN inn.tenants t ON t.id = m.tenant
WHERE m.user_id = $1 AND m.removed_at IS NULL
ORDER BY m.since, m.tenant";

/// Oldest membership first.
pub(super) async fn of<C: GenericClient + Sync>(client: &C, user: UserId) -> StoreResult<Vec<(Tenant, Role)>> {
    let rows = all(client, "tenants of a person", OF, &[&user.uuid()]).await?;
    rows.iter().map(|row| Ok((rows::tenant(row)?, rows::role(row)?))).collect()
}

fn checked(tenant: &Tenant) -> Result<(), Refusal> {
    let slug = tenant.slug.as_bytes();
    let letters = slug.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-');
    if !(1..=63).contains(&slug.len()) || !letters || slug.starts_with(b"-") || slug.ends_with(b"-") {
        let expected = "1 to 63 lower-case letters, digits and inner hyphens";
        return Err(sql::invalid("slug", expected, format!("A tenant's slug has {expected}.")));
    }
    readable("name", &tenant.name, 100)
}

fn taken(slug: &str) -> Refusal {
    Refusal::new(Code::SlugTaken, format!("The slug \"{slug}\" is taken; choose another one."))
}

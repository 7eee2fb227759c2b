//! What deploy, rollback and removal do inside the transaction of their call.
//!
//! Locks are taken in one order: the app's advisory lock (no second deploy), its tables, its row in `inn.apps`. A record
//! write holds its table before it looks at that row, so the other order would deadlock with it. Grants come after the
//! row, as a write looks at them.

mod health;
mod release;

use std::collections::BTreeSet;

use deadpool_postgres::Transaction;
use inn_ports::{DeployPlan, StoreError, StoreResult};
use inn_protocol::app::AppDefinition;
use inn_protocol::model::{CollectionKind, Model};
use inn_protocol::{AppId, Code, Digest, Refusal, TenantId, Violation};
use inn_rules::schema::{Change, diff};

use crate::columns::{ident, schema_name, table};
use crate::ddl::{self, SchemaChange};
use crate::error::broken;
use crate::{files, grants};

pub(crate) use release::{digest, keep_failure, listed};

/// What a deploy or rollback came to.
pub(crate) struct Outcome {
    pub(crate) app: AppId,
    /// Nothing had to be done.
    pub(crate) unchanged: bool,
    pub(crate) changes: Vec<String>,
}

/// The app's row, as it is under the lock.
struct Installed {
    id: AppId,
    tenant: TenantId,
    removed: bool,
    release: Option<Digest>,
    consented: Vec<String>,
}

const FIND: &str = "SELECT id, tenant, status = 'removed', release, consented FROM inn.apps";

/// Waiting longer than this for a table in use fails the deploy; queries behind it would wait as long.
const PATIENCE: &str = "SET LOCAL lock_timeout = '5s'; SET LOCAL statement_timeout = '120s'";

/// Puts the release into service, or says why not. The caller rolls back on an error.
pub(crate) async fn deploy(tx: &Transaction<'_>, plan: &DeployPlan) -> StoreResult<Outcome> {
    lock(tx, &plan.slug).await?;
    let definition = &*plan.definition;
    let installed = match find(tx, "slug = $1", &plan.slug).await? {
        Some(installed) if installed.tenant != plan.tenant => return Err(slug_taken(&plan.slug)),
        Some(installed) if installed.removed => {
            // The removed app keeps its id and its history; the name goes to a new app of the same tenant. No slug has
            // a `~`.
            let step_aside = "UPDATE inn.apps SET slug = slug || '~' || replace(id::text, '-', '') WHERE id = $1";
            tx.execute(step_aside, &[&installed.id.uuid()]).await.map_err(broken("move a removed app aside"))?;
            create(tx, plan).await?
        }
        Some(installed) => installed,
        None => create(tx, plan).await?,
    };
    let wanted: BTreeSet<&String> = plan.consented.iter().collect();
    let given: BTreeSet<&String> = declared(&installed.consented, definition).collect();
    let same_consent = wanted == given;
    if installed.release == Some(plan.release) && same_consent {
        return Ok(Outcome { app: installed.id, unchanged: true, changes: Vec::new() });
    }
    let current = match installed.release {
        Some(release) => Some(release::definition(tx, installed.id, release).await?),
        None => None,
    };
    let changes = diff(current.as_ref().map(|current| &current.model), &definition.model).map_err(StoreError::from)?;
    if !plan.allow_destructive {
        refuse_losses(&changes)?;
    }
    apply(tx, installed.id, current.as_ref(), definition, &changes, false).await?;
    release::insert(tx, installed.id, plan).await?;
    // What the owner consented to for capabilities this release does not have is kept for a way back.
    let mut consented = plan.consented.clone();
    consented.extend(installed.consented.into_iter().filter(|name| definition.capability(name).is_none()));
    activate(tx, installed.id, plan.release, Some(&consented)).await?;
    let mut changes: Vec<String> = changes.iter().map(Change::sentence).collect();
    if let Some(current) = &current {
        changes.extend(grants::carry(tx, installed.id, current, definition).await?);
    }
    health::check(tx, installed.id, definition).await?;
    Ok(Outcome { app: installed.id, unchanged: false, changes })
}

/// An earlier release, once active, comes back; what was dropped since comes back with it while it is kept.
pub(crate) async fn rollback(
    tx: &Transaction<'_>,
    tenant: TenantId,
    app: AppId,
    release: Digest,
) -> StoreResult<(String, Outcome)> {
    let slug = slug_of(tx, tenant, app).await?;
    lock(tx, &slug).await?;
    let installed = find_by_id(tx, app).await?.filter(|found| found.tenant == tenant && !found.removed);
    let current = installed.ok_or_else(unknown_app)?.release.ok_or_else(unknown_app)?;
    if current == release {
        return Ok((slug, Outcome { app, unchanged: true, changes: Vec::new() }));
    }
    if !release::was_active(tx, app, release).await? {
        let message = format!(
            "Release {release} of `{slug}` was never active, so there is nothing to go back to; see its releases."
        );
        return Err(Refusal::new(Code::NotFound, message).into());
    }
    let (from, to) = (release::definition(tx, app, current).await?, release::definition(tx, app, release).await?);
    let changes = diff(Some(&from.model), &to.model).map_err(StoreError::from)?;
    apply(tx, app, Some(&from), &to, &changes, true).await?;
    activate(tx, app, release, None).await?;
    let mut changes: Vec<String> = changes.iter().map(Change::sentence).collect();
    changes.extend(grants::carry(tx, app, &from, &to).await?);
    health::check(tx, app, &to).await?;
    Ok((slug, Outcome { app, unchanged: false, changes }))
}

/// Ends the app: its schema is dropped, its grants are revoked, its requests canceled, its sessions ended. The row and the
/// slug stay the tenant's.
pub(crate) async fn remove(tx: &Transaction<'_>, tenant: TenantId, app: AppId) -> StoreResult<String> {
    let slug = slug_of(tx, tenant, app).await?;
    lock(tx, &slug).await?;
    let installed = find_by_id(tx, app).await?.filter(|found| found.tenant == tenant && !found.removed);
    let installed = installed.ok_or_else(unknown_app)?;
    if let Some(release) = installed.release {
        let definition = release::definition(tx, app, release).await?;
        lock_tables(tx, app, Some(&definition.model)).await?;
    }
    let gone = "UPDATE inn.apps SET status = 'removed', release = NULL, epoch = nextval('inn.epoch'), \
                updated_at = clock_timestamp() WHERE id = $1";
    let ended = [
        ("remove app", gone),
        ("revoke grants", "UPDATE inn.grants SET revoked_at = clock_timestamp() WHERE app = $1 AND revoked_at IS NULL"),
        (
            "refuse grant requests",
            "UPDATE inn.grant_requests SET status = 'refused', decided_at = clock_timestamp() WHERE app = $1 AND status = 'pending'",
        ),
        (
            "cancel requests",
            "UPDATE inn.requests SET state = 'canceled', reason = 'The app was removed.', lease_until = NULL, \
             epoch = epoch + 1, updated_at = clock_timestamp(), ended_at = clock_timestamp() WHERE app = $1 AND ended_at IS NULL",
        ),
        (
            "remove files",
            "UPDATE inn.files SET state = 'doomed', due_at = clock_timestamp() WHERE app = $1 AND state NOT IN ('doomed', 'gone')",
        ),
        ("end sessions", "UPDATE inn.sessions SET ended_at = clock_timestamp() WHERE app = $1 AND ended_at IS NULL"),
    ];
    for (what, statement) in ended {
        tx.execute(statement, &[&app.uuid()]).await.map_err(broken(what))?;
    }
    let drop = format!("DROP SCHEMA IF EXISTS {} CASCADE", ident(&schema_name(app)));
    tx.batch_execute(&drop).await.map_err(broken("drop schema"))?;
    Ok(slug)
}

async fn apply(
    tx: &Transaction<'_>,
    app: AppId,
    current: Option<&AppDefinition>,
    next: &AppDefinition,
    changes: &[Change],
    restore: bool,
) -> StoreResult<()> {
    if current.is_none() {
        let create = format!("CREATE SCHEMA {}", ident(&schema_name(app)));
        tx.batch_execute(&create).await.map_err(broken("create schema"))?;
    }
    if changes.iter().all(|change| matches!(change, Change::RulesOnly { .. })) {
        return Ok(());
    }
    lock_tables(tx, app, current.map(|current| &current.model)).await?;
    let before = current.map(|current| &current.model);
    if let Some(before) = before {
        files::unfollow(tx, app, before).await?;
    }
    let now = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    let stamp = tx.query_one(now, &[]).await.and_then(|row| row.try_get(0)).map_err(broken("read the time"))?;
    if let Some(before) = before {
        ddl::drop_views(tx, app, before).await?;
    }
    SchemaChange { tx, app, model: &next.model, stamp, restore }.apply(changes).await?;
    ddl::make_views(tx, app, &next.model).await?;
    files::follow(tx, app, &next.model).await?;
    files::forget_losers(tx, app, before, &next.model).await
}

async fn lock_tables(tx: &Transaction<'_>, app: AppId, model: Option<&Model>) -> StoreResult<()> {
    let collections = model.into_iter().flat_map(|model| &model.collections);
    let mut tables: Vec<String> =
        collections.filter(|collection| collection.kind != CollectionKind::View).map(|c| table(app, c)).collect();
    tables.sort_unstable();
    if tables.is_empty() {
        return Ok(());
    }
    let lock = format!("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE", tables.join(", "));
    tx.batch_execute(&lock).await.map_err(|error| {
        if error.code().is_some_and(|code| code.code() == "55P03") {
            let message =
                "The app's tables are in use and did not become free in time; nothing was changed. Try again.";
            return Refusal::new(Code::Overloaded, message).after(5).into();
        }
        broken("lock tables")(error)
    })
}

async fn activate(tx: &Transaction<'_>, app: AppId, release: Digest, consented: Option<&[String]>) -> StoreResult<()> {
    let activate = "UPDATE inn.apps SET release = $2, consented = coalesce($3, consented), epoch = nextval('inn.epoch'), \
                    updated_at = clock_timestamp() WHERE id = $1";
    tx.execute(activate, &[&app.uuid(), &release.0.as_slice(), &consented]).await.map_err(broken("activate"))?;
    release::mark_active(tx, app, release).await
}

/// One deploy, rollback or removal of a name at a time; a second one is told, not queued.
async fn lock(tx: &Transaction<'_>, slug: &str) -> StoreResult<()> {
    let lock = "SELECT pg_try_advisory_xact_lock(hashtextextended('inn.deploy:' || $1::text, 0))";
    let free: bool =
        tx.query_one(lock, &[&slug]).await.and_then(|row| row.try_get(0)).map_err(broken("deploy lock"))?;
    if !free {
        let message = format!("Another deploy, rollback or removal of `{slug}` is running; wait for it and try again.");
        return Err(Refusal::new(Code::InProgress, message).into());
    }
    tx.batch_execute(PATIENCE).await.map_err(broken("deploy limits"))
}

async fn create(tx: &Transaction<'_>, plan: &DeployPlan) -> StoreResult<Installed> {
    let id = AppId::new();
    // Two first deploys of one name are kept apart by the lock; another tenant's uncommitted one is not waited for long.
    let create = "INSERT INTO inn.apps (id, tenant, slug) VALUES ($1, $2, $3) ON CONFLICT (slug) DO NOTHING";
    let created =
        tx.execute(create, &[&id.uuid(), &plan.tenant.uuid(), &plan.slug]).await.map_err(broken("create app"))?;
    if created == 0 {
        return Err(slug_taken(&plan.slug));
    }
    Ok(Installed { id, tenant: plan.tenant, removed: false, release: None, consented: Vec::new() })
}

async fn find(tx: &Transaction<'_>, condition: &str, value: &str) -> StoreResult<Option<Installed>> {
    let row = tx.query_opt(&format!("{FIND} WHERE {condition}"), &[&value]).await.map_err(broken("find app"))?;
    row.as_ref().map(installed).transpose()
}

async fn find_by_id(tx: &Transaction<'_>, app: AppId) -> StoreResult<Option<Installed>> {
    let row = tx.query_opt(&format!("{FIND} WHERE id = $1"), &[&app.uuid()]).await.map_err(broken("find app"))?;
    row.as_ref().map(installed).transpose()
}

fn installed(row: &tokio_postgres::Row) -> StoreResult<Installed> {
    let read = broken("find app");
    let release: Option<Vec<u8>> = row.try_get(3).map_err(&read)?;
    Ok(Installed {
        id: AppId::from_uuid(row.try_get(0).map_err(&read)?),
        tenant: TenantId::from_uuid(row.try_get(1).map_err(&read)?),
        removed: row.try_get(2).map_err(&read)?,
        release: release.as_deref().and_then(Digest::from_slice),
        consented: row.try_get(4).map_err(&read)?,
    })
}

/// The tenant's own app, whatever state it is in; another tenant's app does not exist for it.
async fn slug_of(tx: &Transaction<'_>, tenant: TenantId, app: AppId) -> StoreResult<String> {
    let slug = "SELECT slug FROM inn.apps WHERE id = $1 AND tenant = $2";
    let row = tx.query_opt(slug, &[&app.uuid(), &tenant.uuid()]).await.map_err(broken("find app"))?;
    row.ok_or_else(unknown_app)?.try_get(0).map_err(broken("find app"))
}

fn declared<'a>(consented: &'a [String], definition: &AppDefinition) -> impl Iterator<Item = &'a String> {
    consented.iter().filter(|name| definition.capability(name).is_some())
}

fn refuse_losses(changes: &[Change]) -> StoreResult<()> {
    let losses: Vec<&Change> = changes.iter().filter(|change| change.destructive()).collect();
    if losses.is_empty() {
        return Ok(());
    }
    let sentences: Vec<String> = losses.iter().map(|change| change.sentence()).collect();
    let violations =
        losses.iter().map(|change| Violation::new(Code::DestructiveChange, place(change), change.sentence())).collect();
    let message = format!(
        "This release would take stored data away: {}. Deploy with --allow-destructive if that is meant.",
        sentences.join("; ")
    );
    let refusal = Refusal { violations, ..Refusal::new(Code::DestructiveChange, message) };
    Err(refusal.into())
}

fn place(change: &Change) -> String {
    match change {
        Change::DropCollection { name, .. } => name.clone(),
        Change::DropField { collection, field, .. } => format!("{collection}.{}", field.name),
        Change::AlterField { collection, to, .. } => format!("{collection}.{}", to.name),
        _ => String::new(),
    }
}

fn slug_taken(slug: &str) -> StoreError {
    let message =
        format!("The name `{slug}` belongs to somebody else on this platform; deploy under another one (--slug).");
    Refusal::new(Code::SlugTaken, message).into()
}

fn unknown_app() -> StoreError {
    Refusal::new(Code::UnknownApp, "There is no such app in this tenant.").into()
}

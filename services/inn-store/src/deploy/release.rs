//! Rows of `inn.releases`.

use deadpool_postgres::{Object, Transaction};
use inn_ports::{DeployPlan, ReleaseInfo, StoreError, StoreResult};
use inn_protocol::app::AppDefinition;
use inn_protocol::{AppId, Digest, Refusal, TenantId};
use tokio_postgres::types::Json;

use crate::error::broken;

/// Keeps the release, or the newest upload of it: an archive can be packed anew without a change of its contents.
pub(super) async fn insert(tx: &Transaction<'_>, app: AppId, plan: &DeployPlan) -> StoreResult<()> {
    let insert = "INSERT INTO inn.releases (app, digest, archive, archive_bytes, version, definition, files, ui_files) \
                  VALUES ($1, $2, $3, $4, $5, $6, $7, $8) \
                  ON CONFLICT (app, digest) DO UPDATE SET archive = excluded.archive, archive_bytes = excluded.archive_bytes, \
                  version = excluded.version, definition = excluded.definition, files = excluded.files, ui_files = excluded.ui_files";
    let bytes = i64::try_from(plan.archive_bytes).unwrap_or(i64::MAX);
    tx.execute(
        insert,
        &[
            &app.uuid(),
            &plan.release.0.as_slice(),
            &plan.archive.0.as_slice(),
            &bytes,
            &plan.definition.version,
            &Json(&*plan.definition),
            &Json(&plan.files),
            &Json(&plan.ui_files),
        ],
    )
    .await
    .map_err(broken("keep release"))?;
    Ok(())
}

pub(super) async fn mark_active(tx: &Transaction<'_>, app: AppId, release: Digest) -> StoreResult<()> {
    let mark =
        "UPDATE inn.releases SET activated_at = clock_timestamp(), failure = NULL WHERE app = $1 AND digest = $2";
    tx.execute(mark, &[&app.uuid(), &release.0.as_slice()]).await.map_err(broken("activate release"))?;
    Ok(())
}

pub(super) async fn definition(tx: &Transaction<'_>, app: AppId, release: Digest) -> StoreResult<AppDefinition> {
    let read = "SELECT definition FROM inn.releases WHERE app = $1 AND digest = $2";
    let row = tx.query_opt(read, &[&app.uuid(), &release.0.as_slice()]).await.map_err(broken("read release"))?;
    let row = row.ok_or_else(|| {
        tracing::error!(%app, %release, "an app points to a release that is not kept");
        StoreError::Broken
    })?;
    let Json(definition) = row.try_get(0).map_err(broken("read release"))?;
    Ok(definition)
}

pub(super) async fn was_active(tx: &Transaction<'_>, app: AppId, release: Digest) -> StoreResult<bool> {
    let ask = "SELECT EXISTS (SELECT FROM inn.releases WHERE app = $1 AND digest = $2 AND activated_at IS NOT NULL)";
    let row = tx.query_one(ask, &[&app.uuid(), &release.0.as_slice()]).await.map_err(broken("read release"))?;
    row.try_get(0).map_err(broken("read release"))
}

/// After the rollback of a failed deploy, in a small transaction of its own: the reason stays with the release. A first
/// deploy has no app to keep it with; its reason is in the answer and its refusal in the register.
pub(crate) async fn keep_failure(client: &Object, plan: &DeployPlan, refusal: &Refusal) -> StoreResult<()> {
    let keep = "INSERT INTO inn.releases (app, digest, archive, archive_bytes, version, definition, files, ui_files, failure) \
                SELECT a.id, $3, $4, $5, $6, $7, $8, $9, $10 FROM inn.apps a \
                WHERE a.slug = $1 AND a.tenant = $2 AND a.status = 'active' \
                ON CONFLICT (app, digest) DO UPDATE SET failure = excluded.failure WHERE releases.activated_at IS NULL";
    let bytes = i64::try_from(plan.archive_bytes).unwrap_or(i64::MAX);
    client
        .execute(
            keep,
            &[
                &plan.slug,
                &plan.tenant.uuid(),
                &plan.release.0.as_slice(),
                &plan.archive.0.as_slice(),
                &bytes,
                &plan.definition.version,
                &Json(&*plan.definition),
                &Json(&plan.files),
                &Json(&plan.ui_files),
                &refusal.message.replace('\0', ""),
            ],
        )
        .await
        .map_err(broken("keep failure"))?;
    Ok(())
}

/// Newest first.
pub(crate) async fn listed(client: &Object, tenant: TenantId, app: AppId) -> StoreResult<Vec<ReleaseInfo>> {
    let list = "SELECT r.digest, r.archive, r.version, coalesce(a.release = r.digest, false), r.created_at, r.failure \
                FROM inn.releases r JOIN inn.apps a ON a.id = r.app WHERE a.id = $1 AND a.tenant = $2 \
                ORDER BY r.created_at DESC, r.digest";
    let rows = client.query(list, &[&app.uuid(), &tenant.uuid()]).await.map_err(broken("list releases"))?;
    rows.iter().map(info).collect()
}

fn info(row: &tokio_postgres::Row) -> StoreResult<ReleaseInfo> {
    let read = broken("list releases");
    Ok(ReleaseInfo {
        release: digest(row, 0)?,
        archive: digest(row, 1)?,
        version: row.try_get(2).map_err(&read)?,
        active: row.try_get(3).map_err(&read)?,
        created_at: row.try_get(4).map_err(&read)?,
        failure: row.try_get(5).map_err(&read)?,
    })
}

pub(crate) fn digest(row: &tokio_postgres::Row, column: usize) -> StoreResult<Digest> {
    let bytes: &[u8] = row.try_get(column).map_err(broken("read digest"))?;
    Digest::from_slice(bytes).ok_or_else(|| {
        tracing::error!("a kept digest does not have 32 bytes");
        StoreError::Broken
    })
}

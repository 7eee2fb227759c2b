//! Installed apps and their releases.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;
use inn_ports::{Apps, DeployPlan, Deployed, InstalledApp, ReleaseInfo, StoreError, StoreResult};
use inn_protocol::app::AppSnapshot;
use inn_protocol::receipt::Receipt;
use inn_protocol::register::CallRecord;
use inn_protocol::{AppId, Code, Digest, TenantId};
use serde_json::{Map, Value, json};

use crate::error::broken;
use crate::{PgStore, deploy, directory};

#[async_trait]
impl Apps for PgStore {
    async fn deploy(&self, call: &CallRecord, plan: &DeployPlan) -> StoreResult<Deployed> {
        if plan.tenant != call.draft.tenant {
            tracing::error!(call = %call.draft.call, "a deploy plan names another tenant than its call");
            return Err(StoreError::Broken);
        }
        let mut client = self.client().await?;
        let step = self.begin(&mut client, call).await?;
        // A dry run does everything, then goes back to here: only the entry and the receipt of the attempt stay.
        if plan.dry_run {
            step.tx().batch_execute("SAVEPOINT dry_run").await.map_err(broken("dry run"))?;
        }
        let outcome = match deploy::deploy(step.tx(), plan).await {
            Ok(outcome) => outcome,
            Err(StoreError::Refused(refusal)) => {
                let refused = step.refuse(*refusal.clone()).await;
                if !plan.dry_run && blames_the_release(refusal.code) {
                    // Whoever deploys is told the reason either way.
                    if let Err(error) = deploy::keep_failure(&client, plan, &refusal).await {
                        tracing::warn!(?error, slug = %plan.slug, "the reason of a failed deploy was not kept");
                    }
                }
                return Err(refused);
            }
            Err(error) => {
                step.abandon().await;
                return Err(error);
            }
        };
        let (name, slug) = (&plan.definition.name, &plan.slug);
        let sentence = if plan.dry_run {
            step.tx().batch_execute("ROLLBACK TO SAVEPOINT dry_run").await.map_err(broken("dry run"))?;
            format!("Tried the deploy of {name} as {slug}; nothing was changed")
        } else if outcome.unchanged {
            format!("Deployed {name} as {slug}, which already ran this release; nothing was changed")
        } else {
            step.outbox("app.deployed", Some(outcome.app), json!({ "slug": slug, "release": plan.release })).await?;
            format!("Deployed {name} as {slug}")
        };
        let receipt = step.commit(sentence, facts(&outcome, slug, plan.release)).await?;
        Ok(deployed(outcome, slug.clone(), plan.release, plan.dry_run, receipt))
    }

    async fn rollback(&self, call: &CallRecord, app: AppId, release: Digest) -> StoreResult<Deployed> {
        let mut client = self.client().await?;
        let step = self.begin(&mut client, call).await?;
        let (slug, outcome) = match deploy::rollback(step.tx(), call.draft.tenant, app, release).await {
            Ok(found) => found,
            Err(StoreError::Refused(refusal)) => return Err(step.refuse(*refusal).await),
            Err(error) => {
                step.abandon().await;
                return Err(error);
            }
        };
        let sentence = if outcome.unchanged {
            format!("Rolled {slug} back to the release it already ran; nothing was changed")
        } else {
            step.outbox("app.rolled-back", Some(app), json!({ "slug": slug, "release": release })).await?;
            format!("Rolled {slug} back to an earlier release")
        };
        let receipt = step.commit(sentence, facts(&outcome, &slug, release)).await?;
        Ok(deployed(outcome, slug, release, false, receipt))
    }

    async fn remove(&self, call: &CallRecord, app: AppId) -> StoreResult<Receipt> {
        let mut client = self.client().await?;
        let step = self.begin(&mut client, call).await?;
        let slug = match deploy::remove(step.tx(), call.draft.tenant, app).await {
            Ok(slug) => slug,
            Err(StoreError::Refused(refusal)) => return Err(step.refuse(*refusal).await),
            Err(error) => {
                step.abandon().await;
                return Err(error);
            }
        };
        step.outbox("app.removed", Some(app), json!({ "slug": slug })).await?;
        let stored = Map::from_iter([("app".to_owned(), json!(app)), ("slug".to_owned(), json!(slug))]);
        step.commit(format!("Removed {slug} with all its records"), stored).await
    }

    async fn apps(&self, tenant: TenantId) -> StoreResult<Vec<InstalledApp>> {
        let list = "SELECT a.id, a.slug, coalesce(r.definition ->> 'name', ''), a.release, r.version, \
                    coalesce(r.activated_at, a.updated_at) \
                    FROM inn.apps a JOIN inn.releases r ON r.app = a.id AND r.digest = a.release \
                    WHERE a.tenant = $1 AND a.status = 'active' ORDER BY a.slug COLLATE \"C\"";
        let client = self.client().await?;
        let rows = client.query(list, &[&tenant.uuid()]).await.map_err(broken("list apps"))?;
        rows.iter().map(installed).collect()
    }

    async fn all_apps(&self) -> StoreResult<Vec<Arc<AppSnapshot>>> {
        let client = self.client().await?;
        let all = format!("{} ORDER BY a.slug COLLATE \"C\"", directory::SNAPSHOT);
        let rows = client.query(&all, &[]).await.map_err(broken("read apps"))?;
        rows.iter().map(directory::snapshot).collect()
    }

    async fn releases(&self, tenant: TenantId, app: AppId) -> StoreResult<Vec<ReleaseInfo>> {
        deploy::listed(&self.client().await?, tenant, app).await
    }
}

/// Reasons that belong to the release, not to the moment or to who asked.
fn blames_the_release(code: Code) -> bool {
    !matches!(code, Code::SlugTaken | Code::InProgress | Code::Overloaded)
}

fn facts(outcome: &deploy::Outcome, slug: &str, release: Digest) -> Map<String, Value> {
    let facts = [
        ("app", json!(outcome.app)),
        ("slug", json!(slug)),
        ("release", json!(release)),
        ("unchanged", json!(outcome.unchanged)),
        ("changes", json!(outcome.changes)),
    ];
    facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn deployed(outcome: deploy::Outcome, slug: String, release: Digest, dry_run: bool, receipt: Receipt) -> Deployed {
    Deployed {
        app: outcome.app,
        slug,
        release,
        unchanged: outcome.unchanged,
        dry_run,
        changes: outcome.changes,
        receipt: Some(receipt),
    }
}

fn installed(row: &tokio_postgres::Row) -> StoreResult<InstalledApp> {
    let read = broken("list apps");
    Ok(InstalledApp {
        id: AppId::from_uuid(row.try_get(0).map_err(&read)?),
        slug: row.try_get(1).map_err(&read)?,
        name: row.try_get(2).map_err(&read)?,
        release: deploy::digest(row, 3)?,
        version: row.try_get(4).map_err(&read)?,
        deployed_at: row.try_get(5).map_err(&read)?,
    })
}

//! Installed apps and their releases.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use inn_protocol::app::{AppDefinition, AppSnapshot};
use inn_protocol::receipt::Receipt;
use inn_protocol::register::CallRecord;
use inn_protocol::{AppId, Digest, TenantId};
use serde::Serialize;

use crate::error::StoreResult;

#[derive(Debug, Clone)]
pub struct DeployPlan {
    pub tenant: TenantId,
    pub slug: String,
    pub definition: Arc<AppDefinition>,
    /// Names the release.
    pub release: Digest,
    /// SHA-256 of the archive as uploaded: the blob's name.
    pub archive: Digest,
    pub archive_bytes: u64,
    /// Per-file digests of the whole bundle.
    pub files: BTreeMap<String, Digest>,
    /// The UI's files: path below `ui_root` → blob.
    pub ui_files: BTreeMap<String, Digest>,
    /// Capabilities the deployer consents to (all of them unless told otherwise); consent is per capability.
    pub consented: Vec<String>,
    pub allow_destructive: bool,
    /// Says what would change, and changes nothing.
    pub dry_run: bool,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Deployed {
    pub app: AppId,
    pub slug: String,
    pub release: Digest,
    /// The digest was active already: nothing changed.
    pub unchanged: bool,
    pub dry_run: bool,
    /// Schema changes in sentences for people.
    pub changes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Receipt>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InstalledApp {
    pub id: AppId,
    pub slug: String,
    pub name: String,
    pub release: Digest,
    pub version: String,
    pub deployed_at: DateTime<Utc>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseInfo {
    pub release: Digest,
    pub archive: Digest,
    pub version: String,
    pub active: bool,
    pub created_at: DateTime<Utc>,
    /// Why it never became active.
    pub failure: Option<String>,
}

#[async_trait]
pub trait Apps: Send + Sync {
    /// Schema changes, release row, activation, entry and receipt in one transaction. On any failure the old release
    /// stays and the reason is kept with the failed release.
    async fn deploy(&self, call: &CallRecord, plan: &DeployPlan) -> StoreResult<Deployed>;
    /// Back to an earlier release that was active once. Never revives a revoked grant.
    async fn rollback(&self, call: &CallRecord, app: AppId, release: Digest) -> StoreResult<Deployed>;
    /// Takes the app out of service: its schema is dropped, its slug stays the tenant's.
    async fn remove(&self, call: &CallRecord, app: AppId) -> StoreResult<Receipt>;
    async fn apps(&self, tenant: TenantId) -> StoreResult<Vec<InstalledApp>>;
    /// Every app of every tenant, for start-up.
    async fn all_apps(&self) -> StoreResult<Vec<Arc<AppSnapshot>>>;
    async fn releases(&self, tenant: TenantId, app: AppId) -> StoreResult<Vec<ReleaseInfo>>;
}

//! What a release of an app declares: identity, model, operations, capabilities, files.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{AppId, Digest, TenantId};
use crate::model::Model;
use crate::scope::Scope;

/// Everything a bundle says, checked and typed. Made by `inn-bundle`, stored with the release, published by app actors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AppDefinition {
    /// The id the app gives itself (A2App `manifest.id` or AIP-53 `id`). Claimed, never a key of ours.
    pub declared_id: String,
    pub name: String,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub version: String,
    pub dialect: Dialect,
    pub auth_mode: AuthMode,
    pub model: Model,
    pub operations: Vec<Operation>,
    /// `operations.json` as the author wrote it; served verbatim at `/api/_ops`.
    pub operations_json: Value,
    pub capabilities: Vec<Capability>,
    pub limits: AppLimits,
    /// Folder of the bundle whose files are the UI (`app/pb/pb_public` or the folder of `ui.path`), without trailing slash.
    #[serde(default)]
    pub ui_root: Option<String>,
    /// The document served at `/`, relative to `ui_root`.
    #[serde(default)]
    pub ui_entry: Option<String>,
    /// The AIP-53 half, when the bundle has `.agentproto/APP.md`.
    #[serde(default)]
    pub aip53: Option<Aip53App>,
}

impl AppDefinition {
    pub fn operation(&self, name: &str) -> Option<&Operation> {
        self.operations.iter().find(|operation| operation.name == name)
    }

    pub fn capability(&self, name: &str) -> Option<&Capability> {
        self.capabilities.iter().find(|capability| capability.name == name)
    }

    /// Every scope this release can be granted, in the order of describe.
    pub fn scopes(&self) -> Vec<Scope> {
        let entities = self.model.collections.iter().filter(|c| !c.name.starts_with('_'));
        let data = entities.flat_map(|c| [Scope::Read(c.name.clone()), Scope::Write(c.name.clone())]);
        let operations = self.operations.iter().filter(|o| !o.system).map(|o| Scope::Operation(o.name.clone()));
        let capabilities = self.capabilities.iter().map(|c| Scope::Queue(c.name.clone()));
        data.chain(operations).chain(capabilities).collect()
    }
}

/// Which wire dialect the app's manifest asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Dialect {
    /// A2App 1.0 (`livingUIVersion: 2`, `agentAppVersion: 2`, and bundles without an A2App half).
    #[serde(rename = "1.0")]
    A2App1,
    /// A2App 0.1 (`agentAppVersion: "0.1.0"`).
    #[serde(rename = "0.1")]
    A2App01,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuthMode {
    None,
    MultiUser,
}

/// A verb the app declares (A2App `operations.json`, version 1).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    pub name: String,
    pub description: String,
    #[serde(default)]
    pub system: bool,
    #[serde(default)]
    pub destructive: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    #[serde(default)]
    pub params: BTreeMap<String, Param>,
    pub executor: Executor,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Param {
    #[serde(rename = "type")]
    pub kind: ParamKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default)]
    pub required: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    #[serde(default, rename = "enum", skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Vec<Value>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ParamKind {
    String,
    Number,
    Boolean,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Executor {
    Http {
        method: String,
        path: String,
    },
    /// Records without code: param `id` selects, `filter` must match too, the other params are the body.
    Crud {
        collection: String,
        action: CrudAction,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        filter: Option<String>,
    },
    Job {
        method: String,
        path: String,
    },
    /// The params are the payload of a request of this capability; the caller follows a job.
    Agent {
        capability: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CrudAction {
    List,
    Create,
    Update,
    Delete,
}

/// A kind of work the app may ask agents for (manifest key `innkeeper.capabilities`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Capability {
    pub name: String,
    /// One sentence for the person who consents, starting with a verb: "Summarise one board".
    pub sentence: String,
    /// JSON Schema of the payload.
    pub input: Value,
    /// JSON Schema of the result.
    pub result: Value,
    #[serde(default = "default_lease_seconds")]
    pub lease_seconds: u32,
    #[serde(default = "default_attempts")]
    pub attempts: u32,
    /// Seconds one attempt may take, however often its lease is renewed.
    #[serde(default = "default_hard_seconds")]
    pub hard_seconds: u32,
}

fn default_lease_seconds() -> u32 {
    60
}

fn default_attempts() -> u32 {
    3
}

/// A day.
fn default_hard_seconds() -> u32 {
    86_400
}

/// Limits an app asks for (manifest key `innkeeper.limits`); the host's own ceiling still applies.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AppLimits {
    /// Largest JSON body of a record write, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_body_bytes: Option<u64>,
    /// Requests waiting in the queue at one time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_open_requests: Option<u32>,
}

/// The AIP-53 half of a bundle: agents and workflows, attachment already checked in both directions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Aip53App {
    /// APP.md's frontmatter as JSON, unknown keys kept.
    pub frontmatter: Value,
    pub agents: Vec<Aip53Agent>,
    pub workflows: Vec<Aip53Workflow>,
    /// UI allowlist (`ui.tools`).
    #[serde(default)]
    pub ui_tools: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Aip53Agent {
    pub id: String,
    pub frontmatter: Value,
    /// The system prompt.
    #[serde(default)]
    pub body: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Aip53Workflow {
    pub id: String,
    pub frontmatter: Value,
}

/// The published snapshot of an installed app: what the one decision is made from.
#[derive(Debug, Clone)]
pub struct AppSnapshot {
    pub id: AppId,
    pub tenant: TenantId,
    pub slug: String,
    /// The digest that names the active release.
    pub release: Digest,
    /// Moves on with every activation; a commit made from an older one is decided again.
    pub epoch: i64,
    pub definition: Arc<AppDefinition>,
    /// Files of the UI: path below `ui_root` → digest under which the blob store keeps the bytes.
    pub ui_files: Arc<BTreeMap<String, Digest>>,
    /// Capabilities the owner consented to.
    pub consented: Vec<String>,
}

//! `manifest.json` at the root of a `.agentapp` (AIP-53, `agentapp/v1`): the bundle's own, not the app's.

use std::io;

use inn_protocol::{Digest, Refusal};
use serde::Serialize;
use serde_json::Value;

use crate::json;
use crate::problem::{refuse, shorten};

/// The path of the bundle's own manifest. No file of an app may have it.
pub const MANIFEST: &str = "manifest.json";
/// The one format that is read and written.
pub const FORMAT: &str = "agentapp/v1";

/// What a bundle says about itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BundleManifest {
    pub format: String,
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub agents: Vec<String>,
    pub workflows: Vec<String>,
    /// Base names of the UI's documents.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ui: Vec<String>,
    /// Every file's path. The order is the order of the aggregate digest.
    pub files: Vec<String>,
    pub file_count: u64,
    /// Bytes of all files.
    pub total_size: u64,
    pub sha256: Digest,
    /// ISO 8601. Written for people; nothing depends on it.
    pub created_at: String,
    pub agentproto_version: String,
}

impl BundleManifest {
    /// JSON with two spaces and a newline, as the format asks.
    pub(crate) fn to_bytes(&self) -> io::Result<Vec<u8>> {
        let mut bytes = serde_json::to_vec_pretty(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Reads a manifest, in the order of refusals of the reference: not JSON, members missing, other format.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        let malformed = |what: &str| refuse("malformed-manifest", MANIFEST, what);
        let value = json::parse(bytes).map_err(|error| malformed(&format!("not JSON: {error}")))?;
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let need = |key: &str| text(key).ok_or_else(|| malformed(&format!("`{key}` must be a text")));
        let count = |key: &str| {
            value.get(key).and_then(Value::as_u64).ok_or_else(|| malformed(&format!("`{key}` must be a whole number")))
        };
        let format = need("format")?;
        if format != FORMAT {
            let what = format!("the format is `{}`; this host reads `{FORMAT}`", shorten(&format));
            return Err(refuse("unsupported-format", MANIFEST, what));
        }
        let sha256 = need("sha256")?;
        Ok(Self {
            format,
            id: need("id")?,
            name: text("name"),
            version: need("version")?,
            description: text("description"),
            agents: ids(&value, "agents")?,
            workflows: ids(&value, "workflows")?,
            ui: if value.get("ui").is_some() { ids(&value, "ui")? } else { Vec::new() },
            files: ids(&value, "files")?,
            file_count: count("fileCount")?,
            total_size: count("totalSize")?,
            sha256: Digest::from_hex(&sha256).ok_or_else(|| malformed("`sha256` must be 64 hex digits"))?,
            created_at: text("createdAt").unwrap_or_default(),
            agentproto_version: text("agentprotoVersion").unwrap_or_default(),
        })
    }
}

/// A list of texts, or of objects with an `id` (both are in use).
fn ids(value: &Value, key: &str) -> Result<Vec<String>, Refusal> {
    let malformed = || refuse("malformed-manifest", MANIFEST, format!("`{key}` must be a list of texts"));
    let items = value.get(key).and_then(Value::as_array).ok_or_else(malformed)?;
    let text = |item: &Value| item.as_str().or_else(|| item.get("id").and_then(Value::as_str)).map(str::to_owned);
    items.iter().map(|item| text(item).ok_or_else(malformed)).collect()
}

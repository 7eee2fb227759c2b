//! Who a bundle says it is: read from `APP.md`, or from the A2App manifest when there is none.

use inn_protocol::{Digest, Refusal};
use serde_json::Value;

use crate::archive::Files;
use crate::frontmatter;
use crate::json;
use crate::problem::refuse;

/// The AIP-53 half of a bundle.
pub(crate) const APP_MD: &str = ".agentproto/APP.md";
/// The A2App half of a bundle.
pub(crate) const APP_MANIFEST: &str = "app/manifest.json";
/// The UI that an A2App build leaves behind.
pub(crate) const PB_PUBLIC: &str = "app/pb/pb_public";

const DEFAULT_VERSION: &str = "0.1.0";

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Identity {
    /// The file it was read from.
    pub(crate) source: &'static str,
    pub(crate) id: String,
    pub(crate) version: String,
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) agents: Vec<String>,
    pub(crate) workflows: Vec<String>,
    pub(crate) ui: Vec<String>,
}

impl Identity {
    pub(crate) fn of(files: &Files) -> Result<Self, Refusal> {
        if let Some(bytes) = files.get(APP_MD) {
            return Self::of_app_md(bytes);
        }
        match files.get(APP_MANIFEST) {
            Some(bytes) => Self::of_a2app(bytes, files),
            None => Err(refuse("not-an-app", "", format!("an app has {APP_MD} (AIP-53) or {APP_MANIFEST} (A2App)"))),
        }
    }

    /// AIP-53, pack rule 1: a missing id falls back to `slug`, then to `app`; a missing version to `0.1.0`.
    fn of_app_md(bytes: &[u8]) -> Result<Self, Refusal> {
        let document = frontmatter::parse(bytes).map_err(|why| refuse("malformed-app", APP_MD, why))?;
        let data = document.data.unwrap_or(Value::Null);
        let text = |key: &str| data.get(key).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
        let ids = |key: &str| {
            let items = data.get(key).and_then(Value::as_array).into_iter().flatten();
            items.filter_map(|item| item.get("id").and_then(Value::as_str)).map(str::to_owned).collect()
        };
        let ui = data.get("ui").and_then(|ui| ui.get("path")).and_then(Value::as_str);
        Ok(Self {
            source: APP_MD,
            id: text("id").or_else(|| text("slug")).unwrap_or("app").to_owned(),
            version: text("version").unwrap_or(DEFAULT_VERSION).to_owned(),
            name: text("name").map(str::to_owned),
            description: text("description").map(str::to_owned),
            agents: ids("agents"),
            workflows: ids("workflows"),
            ui: ui.and_then(|path| path.rsplit('/').next()).map(str::to_owned).into_iter().collect(),
        })
    }

    fn of_a2app(bytes: &[u8], files: &Files) -> Result<Self, Refusal> {
        let malformed = |why: String| refuse("malformed-app", APP_MANIFEST, why);
        let value = json::parse(bytes).map_err(|error| malformed(format!("not JSON: {error}")))?;
        if !value.is_object() {
            return Err(malformed("must be a JSON object".to_owned()));
        }
        let index = "index.html";
        let ui = files.contains_key(&format!("{PB_PUBLIC}/{index}")).then(|| index.to_owned());
        Ok(Self {
            source: APP_MANIFEST,
            id: a2app_id(&value),
            version: a2app_version(&value),
            name: concrete(&value, "name").map(str::to_owned),
            description: concrete(&value, "description").map(str::to_owned),
            agents: Vec::new(),
            workflows: Vec::new(),
            ui: ui.into_iter().collect(),
        })
    }
}

/// A text of the A2App manifest that says something: not blank, and not a template's hole (`{{PROJECT_ID}}`).
pub(crate) fn concrete<'a>(manifest: &'a Value, key: &str) -> Option<&'a str> {
    let text = manifest.get(key)?.as_str()?.trim();
    (!text.is_empty() && !text.contains("{{")).then_some(text)
}

/// The app's declared id. A template gets one from its name, so that it stays the same from release to release.
pub(crate) fn a2app_id(manifest: &Value) -> String {
    if let Some(id) = concrete(manifest, "id") {
        return id.to_owned();
    }
    let name = concrete(manifest, "name").unwrap_or("App");
    let digest = Digest::of(name.as_bytes()).to_string();
    let short: String = digest.chars().take(8).collect();
    let mut slug = String::new();
    for character in name.chars().take(48) {
        if character.is_ascii_alphanumeric() {
            slug.push(character.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { format!("app-{short}") } else { format!("{slug}-{short}") }
}

pub(crate) fn a2app_version(manifest: &Value) -> String {
    let version = concrete(manifest, "appVersion").or_else(|| concrete(manifest, "version"));
    version.unwrap_or(DEFAULT_VERSION).to_owned()
}

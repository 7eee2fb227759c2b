//! From files to a typed app. Everything wrong is collected, so that one answer tells it all.

mod a2app;
mod agent_md;
mod app_md;
mod attachment;
mod auth;
mod capabilities;
mod field;
pub(crate) mod index;
mod manifest_extras;
mod model;
mod operation;
mod refs;
mod schema;
mod system_fields;
mod tool_md;
mod ui_block;
mod workflow_md;
mod workspace_md;

use chrono::{DateTime, Utc};
use inn_protocol::Refusal;
use inn_protocol::app::{AppDefinition, AuthMode, Dialect};
use serde_json::Value;

use crate::bundle::Bundle;
use crate::frontmatter;
use crate::identity::{APP_MANIFEST, APP_MD, PB_PUBLIC};
use crate::json;
use crate::node::Node;
use crate::problem::Problems;

const MIGRATIONS: &str = "app/pb/pb_migrations/";
const HOOKS: &str = "app/pb/pb_hooks/";

/// Reads the app out of an opened bundle: model, operations, capabilities, agents, workflows, UI.
///
/// `created_at` fills the hole `{{CREATED_AT}}` of a template manifest. Nothing is executed. Refuses with
/// `invalid_bundle` and one violation for each problem, its field being `member` or `member#field`.
pub fn load(bundle: &Bundle, created_at: DateTime<Utc>) -> Result<AppDefinition, Refusal> {
    let mut problems = Problems::default();
    refuse_scripts(bundle, &mut problems);

    let manifest = json_member(bundle, APP_MANIFEST, &mut problems);
    let app_md = document(bundle, APP_MD, &mut problems);
    let aip = app_md.as_ref().map(|(data, _)| app_md::load(bundle, data, &mut problems));
    let fallback_name = aip.as_ref().and_then(|aip| aip.name.as_deref()).or(bundle.manifest.name.as_deref());
    let a2app = manifest
        .as_ref()
        .map(|value| a2app::load(&Node::root(APP_MANIFEST, value), fallback_name, created_at, &mut problems));
    let dialect = a2app.as_ref().map_or(Dialect::A2App1, |a2app| a2app.dialect);

    let model = model::load(bundle, &mut problems);
    let (operations, operations_json) = operation::load(bundle, dialect, &model, &mut problems);

    let extras = [
        manifest.as_ref().and_then(|value| Node::root(APP_MANIFEST, value).get("innkeeper")),
        app_md.as_ref().and_then(|(data, _)| Node::root(APP_MD, data).get("innkeeper")),
    ];
    let (capabilities, limits) = manifest_extras::load(&extras, &mut problems);
    operation::check_capabilities(&operations, &capabilities, &mut problems);

    let (ui_root, ui_entry) = if bundle.files.contains_key(&format!("{PB_PUBLIC}/index.html")) {
        (Some(PB_PUBLIC.to_owned()), Some("index.html".to_owned()))
    } else {
        aip.as_ref().and_then(|aip| aip.ui.clone()).unzip()
    };

    if a2app.is_none() && problems.is_empty() {
        match aip.as_ref() {
            None => problems.add("", format!("an app has {APP_MD} (AIP-53) or {APP_MANIFEST} (A2App)")),
            Some(aip) if aip.id.is_none() => {
                problems
                    .add(format!("{APP_MD}#id"), "an app without an id can be packed but not installed; give it one");
            }
            Some(_) => {}
        }
    }
    problems.into_result()?;

    let aip_id = aip.as_ref().and_then(|aip| aip.id.clone()).unwrap_or_default();
    let (declared_id, name, description, version, auth_mode) = match (a2app, &aip) {
        (Some(a2app), aip) => {
            let description = a2app.description.or_else(|| aip.as_ref().and_then(|aip| aip.description.clone()));
            let version = aip.as_ref().and_then(|aip| aip.version.clone()).unwrap_or(a2app.version);
            (a2app.id, a2app.name, description, version, a2app.auth_mode)
        }
        (None, Some(aip)) => {
            let version = aip.version.clone().unwrap_or_else(|| bundle.manifest.version.clone());
            let name = aip.name.clone().unwrap_or_else(|| aip_id.clone());
            (aip_id, name, aip.description.clone(), version, AuthMode::None)
        }
        (None, None) => return Err(Refusal::internal()),
    };
    Ok(AppDefinition {
        declared_id,
        name,
        description: description.unwrap_or_default(),
        version,
        dialect,
        auth_mode,
        model,
        operations,
        operations_json,
        capabilities,
        limits,
        ui_root,
        ui_entry,
        aip53: aip.map(|aip| aip.app),
    })
}

/// App code that would silently not run is refused by name; the platform's own files (`_*`) are replaced by native code.
fn refuse_scripts(bundle: &Bundle, problems: &mut Problems) {
    for path in bundle.files.keys() {
        if let Some(name) = path.strip_prefix(HOOKS)
            && name.ends_with(".pb.js")
            && !name.starts_with('_')
            && !name.contains('/')
        {
            problems.add(path, "JavaScript hooks are not supported yet and would silently not run; remove the file");
        }
    }
    let migration = bundle
        .files
        .keys()
        .find(|path| path.starts_with(MIGRATIONS) && path.rsplit_once('.').is_some_and(|(_, ending)| ending == "js"));
    if let Some(path) = migration.filter(|_| !bundle.files.contains_key(model::SCHEMA)) {
        let what = format!("JavaScript migrations are not supported yet; add {} (a collections export)", model::SCHEMA);
        problems.add(path, what);
    }
}

/// A JSON member, when the bundle has it.
fn json_member(bundle: &Bundle, path: &str, problems: &mut Problems) -> Option<Value> {
    let parsed = json::parse(bundle.files.get(path)?);
    parsed.map_err(|error| problems.add(path, format!("must be JSON: {error}"))).ok()
}

/// A Markdown member with frontmatter, when the bundle has it: its data and its body.
fn document(bundle: &Bundle, path: &str, problems: &mut Problems) -> Option<(Value, String)> {
    match frontmatter::parse(bundle.files.get(path)?) {
        Ok(document) => {
            if document.data.is_none() {
                problems.add(path, "must start with a line `---` and YAML frontmatter");
            }
            document.data.map(|data| (data, document.body))
        }
        Err(why) => {
            problems.add(path, why);
            None
        }
    }
}

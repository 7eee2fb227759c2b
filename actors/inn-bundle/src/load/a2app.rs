//! `app/manifest.json` of an A2App project, which may still be a template.

use chrono::{DateTime, SecondsFormat, Utc};
use inn_protocol::app::{AuthMode, Dialect};
use serde_json::{Value, json};

use crate::identity::{a2app_id, a2app_version, concrete};
use crate::node::Node;
use crate::problem::Problems;

pub(super) struct A2App {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) version: String,
    pub(super) dialect: Dialect,
    pub(super) auth_mode: AuthMode,
}

/// `pipeline` holds shell lines of the author's machine: looked at, kept out, never run.
pub(super) fn load(
    manifest: &Node<'_>,
    fallback_name: Option<&str>,
    created_at: DateTime<Utc>,
    problems: &mut Problems,
) -> A2App {
    if !manifest.value.is_object() {
        manifest.problem("must be a JSON object", problems);
    }
    let id = a2app_id(manifest.value);
    let name = concrete(manifest.value, "name").or(fallback_name).unwrap_or("App").to_owned();
    let fill = |text: &str| {
        text.replace("{{PROJECT_ID}}", &id)
            .replace("{{PROJECT_NAME}}", &name)
            .replace("{{PROJECT_DESCRIPTION}}", "")
            .replace("{{CREATED_AT}}", &created_at.to_rfc3339_opts(SecondsFormat::Secs, true))
            .replace("{{PORT}}", "0")
            .trim()
            .to_owned()
    };
    if let Some(id) = manifest.get("id") {
        id.sized(1, 128, problems);
        one_line(&id, problems);
    }
    if let Some(name) = manifest.need("name", problems) {
        name.filled(problems);
        name.sized(1, 120, problems);
        one_line(&name, problems);
    }
    let description = manifest.get("description").and_then(|node| node.sized(0, 2000, problems)).map(fill);
    if let Some(port) = manifest.get("port")
        && !port.value.is_string()
    {
        port.whole(0, 65_535, problems);
    }
    if let Some(pipeline) = manifest.get("pipeline") {
        for (_, step) in pipeline.members(problems) {
            step.text(problems);
        }
    }
    let auth_mode = manifest.need("authMode", problems).and_then(|node| node.one_of(&["none", "multi-user"], problems));
    A2App {
        name: fill(manifest.value.get("name").and_then(Value::as_str).unwrap_or(&name)),
        description: description.filter(|text| !text.is_empty()),
        version: a2app_version(manifest.value),
        dialect: dialect(manifest, problems),
        auth_mode: if auth_mode == Some("multi-user") { AuthMode::MultiUser } else { AuthMode::None },
        id,
    }
}

fn dialect(manifest: &Node<'_>, problems: &mut Problems) -> Dialect {
    if let Some(version) = manifest.get("agentAppVersion") {
        if *version.value == json!("0.1.0") {
            return Dialect::A2App01;
        }
        if *version.value != json!(2) {
            version.problem("must be 2 (A2App 1.0) or \"0.1.0\" (A2App 0.1)", problems);
        }
        return Dialect::A2App1;
    }
    if let Some(version) = manifest.need("livingUIVersion", problems)
        && *version.value != json!(2)
    {
        version.problem("must be 2; other generations of Living UI cannot be hosted", problems);
    }
    Dialect::A2App1
}

fn one_line(node: &Node<'_>, problems: &mut Problems) {
    if node.value.as_str().is_some_and(|text| text.contains(char::is_control)) {
        node.problem("must not contain control characters", problems);
    }
}

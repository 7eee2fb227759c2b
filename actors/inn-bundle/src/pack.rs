use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat, Utc};
use inn_protocol::{Digest, Refusal};
use serde_json::Value;

use crate::archive::Files;
use crate::bundle::Bundle;
use crate::digest;
use crate::identity::{APP_MANIFEST, APP_MD, Identity};
use crate::json;
use crate::limits::Limits;
use crate::manifest::{BundleManifest, FORMAT, MANIFEST};
use crate::path::{self, Names};
use crate::problem::refuse;

/// Folders that are never part of an app: dependencies, version control, run-time data.
const AWAY_FOLDERS: [&str; 6] = ["node_modules", ".git", ".venv", "__pycache__", "pb_data", ".pb_data"];
/// Files that are secrets or belong to one machine.
const AWAY_FILES: [&str; 10] = [
    ".superuser",
    ".agent-token",
    ".tunnel-origin",
    ".tunnel-secret",
    ".lan-origin",
    ".lan-secret",
    "credentials.json",
    "token.json",
    ".DS_Store",
    "Thumbs.db",
];
const AWAY_ENDINGS: [&str; 9] =
    [".db", ".db-wal", ".db-shm", ".sqlite", ".sqlite3", ".sqlite-wal", ".sqlite-shm", ".log", ".agentapp"];

/// True for relative paths (files or folders, `/` between) that the packer leaves out, so that a walk can skip them.
///
/// AIP-53 leaves out folders called `node_modules` and `.git`; an A2App packager also leaves out environments, run-time
/// data, secrets and databases. `pb_public` stays: it is the UI.
pub fn is_packed_away(path: &str) -> bool {
    let mut segments = path.split('/').peekable();
    if matches!(segments.peek(), Some(&"logs")) || path.starts_with("app/logs/") || path == "app/logs" {
        return true;
    }
    let name = path.rsplit('/').next().unwrap_or_default();
    let lower = name.to_ascii_lowercase();
    segments.any(|segment| AWAY_FOLDERS.contains(&segment))
        || AWAY_FILES.contains(&name)
        || lower == ".env"
        || lower.starts_with(".env.")
        || AWAY_ENDINGS.iter().any(|ending| lower.ends_with(ending))
}

/// Packs the files of an app's folder into a `.agentapp`, byte for byte the same for the same files and time.
///
/// `files` are paths relative to the folder. An A2App project (`manifest.json` at the root) is moved under `app/`; a
/// `manifest.json` left over from an unpacked bundle is written anew. Refuses names that no bundle may have, a folder
/// that is no app (`not-an-app`), and what [`Limits::default`] would refuse to read back.
pub fn pack(files: BTreeMap<String, Vec<u8>>, created_at: DateTime<Utc>) -> Result<(Vec<u8>, Bundle), Refusal> {
    let mut bundle = describe(arrange(files)?, created_at)?;
    let bytes = bundle.to_archive()?;
    bundle.archive_digest = Digest::of(&bytes);
    Ok((bytes, bundle))
}

/// The name a packed bundle gets when nobody chose one: `<safe id>-<version>.agentapp` (AIP-53, pack rule 6).
pub fn archive_name(manifest: &BundleManifest) -> String {
    format!("{}-{}.agentapp", safe(&manifest.id), safe(&manifest.version))
}

fn safe(text: &str) -> String {
    let text = text.strip_prefix('@').unwrap_or(text);
    let mut out = String::new();
    for character in text.chars() {
        if character.is_ascii_alphanumeric() || "._-".contains(character) {
            out.push(character);
        } else if !out.ends_with('-') {
            out.push('-');
        }
    }
    if out.is_empty() { "app".to_owned() } else { out }
}

/// Leaves out what is packed away and puts the rest where a bundle has it.
pub(crate) fn arrange(files: Files) -> Result<Files, Refusal> {
    let mut kept: Files = files.into_iter().filter(|(path, _)| !is_packed_away(path)).collect();
    let Some(manifest) = kept.get(MANIFEST) else { return Ok(kept) };
    let parsed = json::parse(manifest).ok();
    let has = |key: &str| parsed.as_ref().is_some_and(|value| value.get(key).is_some());
    if parsed.as_ref().and_then(|value| value.get("format")).and_then(Value::as_str) == Some(FORMAT) {
        kept.remove(MANIFEST);
        return Ok(kept);
    }
    let is_project = ["livingUIVersion", "agentAppVersion", "authMode", "pipeline"].iter().any(|key| has(key))
        || kept.contains_key("operations.json");
    if !is_project {
        let what =
            "the root's manifest.json is the bundle's own; this one is neither a bundle's nor an A2App project's";
        return Err(refuse("malformed-manifest", MANIFEST, what));
    }
    let moved = |path: String| {
        if path.starts_with(".agentproto/") || path == "WORKSPACE.md" { path } else { format!("app/{path}") }
    };
    Ok(kept.into_iter().map(|(path, bytes)| (moved(path), bytes)).collect())
}

/// Makes the manifest of arranged files. The archive digest is filled in by whoever has the archive.
pub(crate) fn describe(files: Files, created_at: DateTime<Utc>) -> Result<Bundle, Refusal> {
    check(&files, &Limits::default())?;
    if !files.contains_key(APP_MD) && !files.contains_key(APP_MANIFEST) {
        let what = format!("an app has {APP_MD} (AIP-53) or a manifest.json with operations.json (A2App)");
        return Err(refuse("not-an-app", "", what));
    }
    let identity = Identity::of(&files)?;
    let aggregate = digest::aggregate(files.values().map(Vec::as_slice));
    let manifest = BundleManifest {
        format: FORMAT.to_owned(),
        id: identity.id,
        name: identity.name,
        version: identity.version,
        description: identity.description,
        agents: identity.agents,
        workflows: identity.workflows,
        ui: identity.ui,
        files: files.keys().cloned().collect(),
        file_count: files.len() as u64,
        total_size: files.values().map(|bytes| bytes.len() as u64).sum(),
        sha256: aggregate,
        created_at: created_at.to_rfc3339_opts(SecondsFormat::Millis, true),
        agentproto_version: ">=0.1.0".to_owned(),
    };
    let file_digests = digest::of_files(&files);
    Ok(Bundle { manifest, files, archive_digest: Digest([0; 32]), aggregate, file_digests })
}

fn check(files: &Files, limits: &Limits) -> Result<(), Refusal> {
    let mut names = Names::default();
    let mut total = 0_u64;
    if files.len() >= limits.max_members {
        return Err(refuse(
            "too-many-members",
            "",
            format!("{} files; a bundle may have {}", files.len(), limits.max_members),
        ));
    }
    for (path, bytes) in files {
        path::check(path).map_err(|why| refuse("unsafe-path", path, why))?;
        names.file(path)?;
        total += bytes.len() as u64;
        if bytes.len() as u64 > limits.max_member_bytes || total > limits.max_total_bytes {
            return Err(refuse("too-large", path, "too large for a bundle"));
        }
    }
    Ok(())
}

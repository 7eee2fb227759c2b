//! `inn pack`, `unpack`, `validate`: bundles on this machine, no platform needed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use clap::Args;
use inn_bundle::{Bundle, Limits};
use serde_json::{Value, json};

use super::error::{CliError, CliResult};
use super::out::Out;

/// Makes a bundle (.agentapp) of an app's folder
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  inn pack ops/demo/kanban
  inn pack . -o ../kanban.agentapp

Dependencies, run-time data, databases and secrets stay out. Links are refused.")]
pub struct Pack {
    /// The app's folder
    dir: PathBuf,
    /// File to write; without it <id>-<version>.agentapp in this folder
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Answer with JSON on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

/// Unpacks a bundle into a new folder; nothing in it is run
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:
  inn unpack kanban-1.0.0.agentapp -o kanban")]
pub struct Unpack {
    /// The bundle
    file: PathBuf,
    /// Folder to make; without it the bundle's name without its ending
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Answer with JSON on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

/// Says what is wrong with a bundle or an app's folder, naming the member
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  inn validate ops/demo/kanban
  inn validate kanban-1.0.0.agentapp --json")]
pub struct Validate {
    /// A bundle (.agentapp), the ZIP of a project, or a folder
    path: PathBuf,
    /// Answer with JSON on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn pack(args: &Pack) -> CliResult<()> {
    let out = Out::new(args.json);
    let (bytes, bundle) = pack_folder(&args.dir, Utc::now())?;
    let file = args.output.clone().unwrap_or_else(|| PathBuf::from(inn_bundle::archive_name(&bundle.manifest)));
    fs::write(&file, &bytes).map_err(|error| CliError::io(format!("{} cannot be written", file.display()), &error))?;
    let answer = facts(&bundle, &json!({"file": file, "bytes": bytes.len()}));
    out.say(format!("Packed {} files of {}.", bundle.manifest.file_count, args.dir.display()));
    out.answer(&answer, |_| file.display().to_string());
    Ok(())
}

pub(crate) fn unpack(args: &Unpack) -> CliResult<()> {
    let out = Out::new(args.json);
    let (_, bundle) = open(&args.file)?;
    let folder = args.output.clone().unwrap_or_else(|| args.file.with_extension(""));
    let failed = |path: &Path, error| CliError::io(format!("{} cannot be made", path.display()), &error);
    // Refusing a folder that exists keeps a bundle from writing over files or through links that are there already.
    fs::create_dir(&folder).map_err(|error| failed(&folder, error))?;
    for (path, bytes) in &bundle.files {
        let target = folder.join(path);
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).map_err(|error| failed(parent, error))?;
        }
        fs::write(&target, bytes).map_err(|error| failed(&target, error))?;
    }
    let answer = facts(&bundle, &json!({"folder": folder}));
    out.say(format!("Unpacked {} files.", bundle.files.len()));
    out.answer(&answer, |_| folder.display().to_string());
    Ok(())
}

pub(crate) fn validate(args: &Validate) -> CliResult<()> {
    let out = Out::new(args.json);
    let (_, bundle) = open(&args.path)?;
    let mut definition = inn_bundle::load(&bundle, Utc::now())?;
    inn_rules::view::infer(&mut definition.model)?;
    let entities: Vec<_> = definition.model.collections.iter().map(|collection| &collection.name).collect();
    let operations: Vec<_> = definition.operations.iter().map(|operation| &operation.name).collect();
    let capabilities: Vec<_> = definition.capabilities.iter().map(|capability| &capability.name).collect();
    let more = json!({"ok": true, "entities": entities, "operations": operations, "capabilities": capabilities});
    let answer = facts(&bundle, &more);
    out.answer(&answer, |_| {
        format!(
            "{} {} is fine: {} files, {} entities, {} operations, {} capabilities.",
            definition.name,
            bundle.manifest.version,
            bundle.manifest.file_count,
            entities.len(),
            operations.len(),
            capabilities.len(),
        )
    });
    Ok(())
}

/// The bytes of a bundle, checked; a folder is packed on the way.
pub(crate) fn open(path: &Path) -> CliResult<(Vec<u8>, Bundle)> {
    let data =
        fs::metadata(path).map_err(|error| CliError::io(format!("{} cannot be read", path.display()), &error))?;
    if data.is_dir() {
        return pack_folder(path, Utc::now());
    }
    let limits = Limits::default();
    if data.len() > limits.max_archive_bytes {
        let what =
            format!("{} has {} bytes; a bundle may have {}.", path.display(), data.len(), limits.max_archive_bytes);
        return Err(CliError::local("invalid_bundle", what));
    }
    let bytes = fs::read(path).map_err(|error| CliError::io(format!("{} cannot be read", path.display()), &error))?;
    let bundle = inn_bundle::read(&bytes, &limits)?;
    Ok((bytes, bundle))
}

fn pack_folder(folder: &Path, at: DateTime<Utc>) -> CliResult<(Vec<u8>, Bundle)> {
    let mut walk = Walk { root: folder, files: BTreeMap::new(), bytes: 0, limits: Limits::default() };
    walk.folder(folder, "")?;
    Ok(inn_bundle::pack(walk.files, at)?)
}

fn facts(bundle: &Bundle, more: &Value) -> Value {
    let mut answer = json!({
        "id": bundle.manifest.id,
        "name": bundle.manifest.name,
        "version": bundle.manifest.version,
        "files": bundle.manifest.file_count,
        "totalSize": bundle.manifest.total_size,
        "release": bundle.digest(),
        "archive": bundle.archive_digest,
    });
    if let (Some(answer), Some(more)) = (answer.as_object_mut(), more.as_object()) {
        answer.extend(more.clone());
    }
    answer
}

/// Collects a folder's files. Links are refused rather than followed: what lies behind one is not the app's.
struct Walk<'w> {
    root: &'w Path,
    files: BTreeMap<String, Vec<u8>>,
    bytes: u64,
    limits: Limits,
}

impl Walk<'_> {
    fn folder(&mut self, folder: &Path, below: &str) -> CliResult<()> {
        let failed = |error| CliError::io(format!("{} cannot be read", folder.display()), &error);
        for entry in fs::read_dir(folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let Some(name) = entry.file_name().to_str().map(str::to_owned) else {
                return Err(refused(&entry.path(), "its name is not UTF-8"));
            };
            let path = if below.is_empty() { name } else { format!("{below}/{name}") };
            if inn_bundle::is_packed_away(&path) {
                continue;
            }
            let kind = entry.file_type().map_err(failed)?;
            if kind.is_dir() {
                self.folder(&entry.path(), &path)?;
            } else if kind.is_file() {
                self.file(&entry.path(), path)?;
            } else {
                return Err(refused(&entry.path(), "it is a link or a special file; put the file itself there"));
            }
        }
        Ok(())
    }

    fn file(&mut self, file: &Path, path: String) -> CliResult<()> {
        let failed = |error| CliError::io(format!("{} cannot be read", file.display()), &error);
        let size = fs::metadata(file).map_err(failed)?.len();
        self.bytes += size;
        if size > self.limits.max_member_bytes {
            return Err(refused(file, &format!("it has more than {} bytes", self.limits.max_member_bytes)));
        }
        if self.files.len() >= self.limits.max_members || self.bytes > self.limits.max_total_bytes {
            let what = format!(
                "there are more than {} files or {} bytes below {}; is it an app's folder?",
                self.limits.max_members,
                self.limits.max_total_bytes,
                self.root.display()
            );
            return Err(refused(file, &what));
        }
        self.files.insert(path, fs::read(file).map_err(failed)?);
        Ok(())
    }
}

fn refused(path: &Path, why: &str) -> CliError {
    CliError::local("invalid_bundle", format!("{} cannot be packed: {why}.", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(folder: &Path) {
        fs::write(folder.join("manifest.json"), r#"{"id":"a","name":"A","version":"1.0.0","livingUIVersion":2}"#)
            .unwrap();
        fs::write(folder.join("operations.json"), r#"{"opsVersion":1,"operations":[]}"#).unwrap();
    }

    #[test]
    fn a_folder_packs_and_unpacks_to_the_same_files_and_never_over_a_folder() {
        let temp = tempfile::tempdir().unwrap();
        let app = temp.path().join("app");
        fs::create_dir_all(app.join("node_modules/x")).unwrap();
        fs::write(app.join("node_modules/x/index.js"), "no").unwrap();
        fs::write(app.join(".env"), "SECRET=1").unwrap();
        project(&app);
        let file = temp.path().join("a.agentapp");
        pack(&Pack { dir: app, output: Some(file.clone()), json: true }).unwrap();
        let (_, bundle) = open(&file).unwrap();
        assert_eq!(bundle.files.keys().collect::<Vec<_>>(), ["app/manifest.json", "app/operations.json"]);
        let args = Unpack { file, output: Some(temp.path().join("again")), json: true };
        unpack(&args).unwrap();
        assert!(temp.path().join("again/app/manifest.json").is_file());
        assert_eq!(unpack(&args).unwrap_err().exit(), 1);
    }

    #[test]
    fn a_link_is_refused_and_named() {
        let temp = tempfile::tempdir().unwrap();
        project(temp.path());
        std::os::unix::fs::symlink("/etc/passwd", temp.path().join("notes.txt")).unwrap();
        let error = open(temp.path()).unwrap_err();
        assert!(error.text().contains("notes.txt") && error.text().contains("link"), "{}", error.text());
    }

    #[test]
    fn what_is_no_bundle_is_refused_naming_what_is_wrong() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("x.agentapp");
        fs::write(&file, "hello").unwrap();
        let error = open(&file).unwrap_err();
        assert_eq!((error.exit(), error.text().contains("unsupported-format")), (1, true), "{}", error.text());
    }
}

//! The ready file: there, whole, as soon as everything answers, and only then.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::platform::Facts;

pub(super) fn write(path: &Path, facts: &Facts) -> anyhow::Result<()> {
    let context = || format!("cannot write the ready file {}", path.display());
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.draft", std::process::id()));
    let draft: PathBuf = path.with_file_name(name);
    let mut file = fs::File::create(&draft).with_context(context)?;
    let mut text = serde_json::to_vec(facts)?;
    text.push(b'\n');
    file.write_all(&text).with_context(context)?;
    file.sync_all().with_context(context)?;
    fs::rename(&draft, path).with_context(context)
}

pub(super) fn remove(path: &Path) -> anyhow::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove the old ready file {}", path.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::AppFacts;

    #[test]
    fn it_holds_exactly_the_published_members() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ready.json");
        let facts = Facts {
            platform: "http://localhost:1".to_owned(),
            pid: 2,
            postgres_pid: Some(3),
            owner: Some("owner@localhost".to_owned()),
            apps: vec![AppFacts {
                slug: "kanban".to_owned(),
                origin: "http://kanban.localhost:1".to_owned(),
                token_file: Some(PathBuf::from("/data/tokens/kanban")),
            }],
        };
        write(&path, &facts).unwrap();
        let read: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let wanted = serde_json::json!({
            "platform": "http://localhost:1", "pid": 2, "postgres_pid": 3, "owner": "owner@localhost",
            "apps": [{"slug": "kanban", "origin": "http://kanban.localhost:1", "token_file": "/data/tokens/kanban"}],
        });
        assert_eq!(read, wanted);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no draft stays behind");
        remove(&path).unwrap();
        remove(&path).unwrap();
        assert!(!path.exists());
    }
}

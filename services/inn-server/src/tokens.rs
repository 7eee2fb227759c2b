//! Agent token files: on a host bound to loopback every app has one, so that one token and curl drive an app end to end.
//!
//! The file is the credential of a grant that its owner sees and can revoke. A revoked one is not given out again.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use inn_grants::opaque::{opaque_digest, opaque_token};
use inn_ports::{Apps as _, Directory as _, Grants as _, People as _, StoreError, StoreResult};
use inn_protocol::app::AppSnapshot;
use inn_protocol::call::Action;
use inn_protocol::people::Role;
use inn_protocol::{Digest, UserId};
use inn_store::PgStore;

use crate::calls::platform_call;

/// Begins every token of this kind.
const PREFIX: &str = "lui";

/// Who gives out an app's token when several nodes share a database: a token has one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// The database is this platform's own.
    Owner,
    /// Another node may have given one out already: then it stays there.
    Guest,
}

/// The files below one directory.
#[derive(Debug, Clone)]
pub(crate) struct AgentTokens {
    dir: PathBuf,
    rule: Rule,
}

impl AgentTokens {
    pub(crate) fn new(dir: PathBuf, rule: Rule) -> Self {
        Self { dir, rule }
    }

    /// The token file of an app, when there is one.
    pub(crate) fn file_of(&self, slug: &str) -> Option<PathBuf> {
        let path = self.dir.join(slug);
        let path = std::path::absolute(&path).unwrap_or(path);
        path.is_file().then_some(path)
    }

    /// Makes missing files and removes those of apps that are gone. At start (`thorough`) also looks whether the
    /// database still knows each token.
    pub(crate) async fn ensure(&self, store: &PgStore, thorough: bool) -> StoreResult<()> {
        let apps = store.all_apps().await?;
        self.prepare(&apps)?;
        for app in &apps {
            // One app's trouble is not the others'.
            if let Err(error) = self.ensure_one(store, app, thorough).await {
                tracing::warn!(app = app.slug, ?error, "the agent token file could not be made");
            }
        }
        Ok(())
    }

    async fn ensure_one(&self, store: &PgStore, app: &Arc<AppSnapshot>, thorough: bool) -> StoreResult<()> {
        let path = self.dir.join(&app.slug);
        let kept = read(&path)?;
        let token = match kept {
            Some(_) if !thorough => return Ok(()),
            Some(token) => match store.loopback_grant(opaque_digest(&token)).await? {
                Some(grant) if grant.app == app.id && !grant.revoked => return Ok(()),
                _ => token,
            },
            None => opaque_token(rand::random(), PREFIX).0,
        };
        let live = self.live_grant(store, app).await?;
        if live && self.rule == Rule::Guest {
            return Ok(());
        }
        let Some(owner) = owner(store, app).await? else { return Ok(()) };
        let digest = opaque_digest(&token);
        let verb = Action::DecideGrant { about: app.slug.clone(), verb: "loopback" };
        let call = platform_call(&verb, app.tenant, Some(app.id), Digest::of(digest.to_string().as_bytes()));
        let grant = store.loopback_grant_for(&call, app, owner, digest).await?;
        if grant.revoked_at.is_none() {
            return write(&path, &token);
        }
        tracing::debug!(app = app.slug, "the agent token of this app was revoked");
        remove(&path)
    }

    async fn live_grant(&self, store: &PgStore, app: &AppSnapshot) -> StoreResult<bool> {
        let grants = store.grants(app.tenant, None, None).await?;
        Ok(grants.iter().any(|grant| grant.loopback && grant.app == app.id && grant.revoked_at.is_none()))
    }

    /// The directory, closed to others, without files of apps that are gone.
    fn prepare(&self, apps: &[Arc<AppSnapshot>]) -> StoreResult<()> {
        let slugs: BTreeSet<&str> = apps.iter().map(|app| app.slug.as_str()).collect();
        let prepared = (|| {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)?;
            for entry in fs::read_dir(&self.dir)? {
                let entry = entry?;
                let ours = entry.file_name().to_str().is_some_and(|name| slugs.contains(name));
                if !ours && entry.file_type()?.is_file() {
                    fs::remove_file(entry.path())?;
                }
            }
            Ok(())
        })();
        prepared.map_err(|error| failed(&self.dir, &error))
    }
}

/// The person an app's token acts for: the oldest owner of its tenant.
async fn owner(store: &PgStore, app: &AppSnapshot) -> StoreResult<Option<UserId>> {
    let members = store.members(app.tenant).await?;
    let owners = members.iter().filter(|member| member.role == Role::Owner);
    Ok(owners.min_by_key(|member| member.since).map(|member| member.user))
}

fn failed(path: &Path, error: &io::Error) -> StoreError {
    tracing::error!(path = %path.display(), %error, "agent token file");
    StoreError::Broken
}

fn read(path: &Path) -> StoreResult<Option<String>> {
    match fs::read_to_string(path) {
        // A file that was cut short is as good as none.
        Ok(text) => Ok(Some(text.trim().to_owned()).filter(|token| token.starts_with("lui_") && token.len() == 47)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(path, &error)),
    }
}

/// Whole or not at all, readable by its owner only.
fn write(path: &Path, token: &str) -> StoreResult<()> {
    let draft = path.with_extension("draft");
    let written = (|| {
        remove_if_there(&draft)?;
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        writeln!(file, "{token}")?;
        file.sync_all()?;
        fs::rename(&draft, path)
    })();
    written.map_err(|error| failed(path, &error))
}

fn remove(path: &Path) -> StoreResult<()> {
    remove_if_there(path).map_err(|error| failed(path, &error))
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_token_file_is_closed_and_reads_back_and_a_cut_one_counts_for_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kanban");
        assert_eq!(read(&path).unwrap(), None);
        let (token, _) = opaque_token([7; 32], PREFIX);
        write(&path, &token).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(read(&path).unwrap().as_deref(), Some(token.as_str()));
        fs::write(&path, token.chars().take(20).collect::<String>()).unwrap();
        assert_eq!(read(&path).unwrap(), None);
        remove(&path).unwrap();
        remove(&path).unwrap();
    }

    #[test]
    fn files_of_apps_that_are_gone_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let tokens = AgentTokens::new(dir.path().join("tokens"), Rule::Owner);
        tokens.prepare(&[]).unwrap();
        write(&tokens.dir.join("gone"), "lui_x").unwrap();
        assert!(tokens.file_of("gone").is_some_and(|path| path.is_absolute()));
        tokens.prepare(&[]).unwrap();
        assert_eq!(tokens.file_of("gone"), None);
    }
}

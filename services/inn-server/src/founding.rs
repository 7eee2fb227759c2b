//! The first tenant and its owner: where a platform begins. One that has anybody in it is left alone.

use std::path::Path;

use anyhow::Context as _;
use inn_grants::password;
use inn_ports::People as _;
use inn_protocol::people::Tenant;
use inn_protocol::{Refusal, TenantId, UserId};
use inn_store::PgStore;

use crate::config::{PeopleSettings, SettingError};

/// A password is a line, not a book.
const LARGEST_PASSWORD_FILE: u64 = 4096;

/// What became of the wish to found a platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Founding {
    /// Tenant and owner were made just now.
    Done { owner: String, tenant: String },
    /// Somebody is there already: nothing was changed, not even a password.
    Before { owner: String },
    /// Nobody was named.
    NoOwner,
}

/// Founds the platform for the owner that the settings name. The password's file is read only when it is needed, so it
/// may be gone afterwards.
pub(crate) async fn as_set(store: &PgStore, people: &PeopleSettings) -> anyhow::Result<Founding> {
    let Some(owner) = people.owner.clone() else {
        if people.owner_password_file.is_some() {
            let what = "INN_OWNER_PASSWORD_FILE (--password-file) is set, and INN_OWNER (--owner) is missing: whose password is it?";
            return Err(SettingError(what.to_owned()).into());
        }
        return Ok(Founding::NoOwner);
    };
    if store.user_secret(&owner).await.map_err(Refusal::from)?.is_some() {
        return Ok(Founding::Before { owner });
    }
    let file = people.owner_password_file.as_deref().ok_or_else(|| {
        SettingError(format!(
            "INN_OWNER_PASSWORD_FILE (--password-file) is missing: {owner} needs a password to found the platform with"
        ))
    })?;
    let founded = found(store, &people.owner_tenant, &owner, read_password(file)?).await?;
    let tenant = people.owner_tenant.clone();
    Ok(if founded { Founding::Done { owner, tenant } } else { Founding::Before { owner } })
}

/// Answers `false` when the platform was founded before; then nothing is changed.
pub(crate) async fn found(store: &PgStore, slug: &str, owner: &str, password: String) -> anyhow::Result<bool> {
    let hash = tokio::task::spawn_blocking(move || password::hash(&password, rand::random())).await??;
    let tenant = Tenant { id: TenantId::new(), slug: slug.to_owned(), name: name_of(slug) };
    Ok(store.found(&tenant, UserId::new(), owner, &hash).await.map_err(Refusal::from)?)
}

/// A name to begin with: `home-office` → `Home office`.
fn name_of(slug: &str) -> String {
    let mut letters = slug.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters.map(|letter| if letter == '-' { ' ' } else { letter })).collect()
}

/// One line that is good enough for a password.
pub(crate) fn read_password(path: &Path) -> anyhow::Result<String> {
    let file = || format!("--password-file {}", path.display());
    let size = std::fs::metadata(path).with_context(file)?.len();
    if size > LARGEST_PASSWORD_FILE {
        return Err(SettingError(format!("{}: has {size} bytes, which is no password", file())).into());
    }
    let text = std::fs::read_to_string(path).with_context(file)?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    if line.contains('\n') {
        return Err(SettingError(format!("{}: must hold the password alone, on one line", file())).into());
    }
    password::check_password(line).map_err(|refusal| SettingError(format!("{}: {}", file(), refusal.message)))?;
    Ok(line.to_owned())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn password_of(text: &str) -> anyhow::Result<String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("password");
        std::fs::write(&path, text).unwrap();
        read_password(&path)
    }

    #[test]
    fn a_password_file_holds_one_line() {
        for (text, password) in [
            ("correct horse\n", "correct horse"),
            ("correct horse", "correct horse"),
            ("correct horse\r\n", "correct horse"),
            (" correct horse \n", " correct horse "),
        ] {
            assert_eq!(password_of(text).unwrap(), password);
        }
        for text in ["short\n", "", "correct horse\nbattery staple\n", &"x".repeat(5000)] {
            let refused = password_of(text).unwrap_err();
            assert!(refused.is::<SettingError>() && refused.to_string().contains("--password-file"), "{refused}");
        }
        assert!(read_password(&PathBuf::from("/nowhere/password")).is_err());
    }

    #[test]
    fn a_tenant_is_called_after_its_slug() {
        assert_eq!(name_of("home"), "Home");
        assert_eq!(name_of("home-office-2"), "Home office 2");
    }
}

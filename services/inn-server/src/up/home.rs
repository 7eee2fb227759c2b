//! The first tenant and its owner.

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use anyhow::{Context as _, anyhow};
use inn_grants::opaque::opaque_token;
use inn_ports::{NewSession, People as _, StoreError};
use inn_protocol::call::Action;
use inn_protocol::{AppId, Digest, Refusal, SessionId, TenantId, UserId};
use inn_store::PgStore;
use serde::{Deserialize, Serialize};
use url::Url;

use super::{OWNER, UpOptions};
use crate::address::Addresses;
use crate::calls::platform_call;
use crate::config::{DataSettings, Settings};
use crate::founding;
use crate::platform::read_optional;

pub(super) const FILE: &str = "home.json";

/// Whose platform this is.
pub(crate) struct Home {
    pub(crate) tenant: TenantId,
    pub(crate) owner: String,
    user: UserId,
    /// Made up just now.
    pub(crate) new_password: Option<String>,
}

/// Remembered beside the data, so that the next start knows whom to greet.
#[derive(Serialize, Deserialize)]
struct Remembered {
    owner: String,
}

impl Home {
    /// Founds an empty platform, or finds who founded this one.
    pub(crate) async fn open(store: &PgStore, settings: &Settings, options: &UpOptions) -> anyhow::Result<Self> {
        let dir = &settings.data.dir;
        let path = dir.join(FILE);
        let remembered = read_optional(&path)?.map(|text| serde_json::from_str::<Remembered>(&text));
        let remembered = remembered.transpose().with_context(|| format!("{} is damaged; remove it", path.display()))?;
        let owner = options.owner.clone().or(remembered.map(|home| home.owner)).unwrap_or_else(|| OWNER.to_owned());
        let new_password = found(store, &settings.people.owner_tenant, &owner, options.password.clone()).await?;
        let Some(secret) = store.user_secret(&owner).await.map_err(Refusal::from)? else {
            return Err(anyhow!(
                "this platform was founded by somebody else than {owner}: start it with --owner and the address that was \
                 used then, or choose another data directory with --data"
            ));
        };
        let tenant = secret.tenants.first().map(|tenant| tenant.id);
        let tenant =
            tenant.ok_or_else(|| anyhow!("{owner} is a member of no tenant any more: start with another --owner"))?;
        remember(&path, &owner)?;
        Ok(Self { tenant, owner, user: secret.user, new_password })
    }

    /// A one-time link that signs the owner in. Without one the password still does.
    pub(crate) async fn link(&self, store: &PgStore, addresses: &Addresses, session_hours: i64) -> Option<Url> {
        match self.hand_over(store, session_hours).await {
            Ok(code) => addresses.platform.join(&format!("/enter?code={code}")).ok(),
            Err(error) => {
                tracing::warn!(?error, "no sign-in link could be made; sign in with the password");
                None
            }
        }
    }

    async fn hand_over(&self, store: &PgStore, hours: i64) -> Result<String, StoreError> {
        let (_, token) = opaque_token(rand::random(), "ses");
        let session = NewSession {
            id: SessionId::new(),
            user: self.user,
            tenant: self.tenant,
            token,
            app: None,
            lifetime: chrono::Duration::hours(hours),
        };
        let call = |action: Action| platform_call(&action, self.tenant, None, Digest::of(b""));
        store.open_session(&call(Action::SignIn), &session).await?;
        let (code, digest) = opaque_token(rand::random(), "code");
        // No app: the platform's own origin.
        let platform = AppId::from_uuid(uuid::Uuid::nil());
        let hand_over = call(Action::OwnSession { verb: "handoff" });
        store.open_handoff(&hand_over, digest, session.id, platform).await?;
        Ok(code)
    }
}

/// Answers the made-up password when one was needed; `None` also when the platform was founded before.
async fn found(store: &PgStore, slug: &str, owner: &str, given: Option<String>) -> anyhow::Result<Option<String>> {
    let made_up = given.is_none().then(make_up);
    let password = given.or_else(|| made_up.clone()).unwrap_or_default();
    let founded = founding::found(store, slug, owner, password).await?;
    Ok(made_up.filter(|_| founded))
}

/// 160 random bits in letters that are not taken for each other when copied by hand.
fn make_up() -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let random: [u8; 32] = rand::random();
    let letters = random.iter().filter_map(|byte| LETTERS.get(usize::from(byte % 32)));
    letters.enumerate().fold(String::new(), |mut text, (place, letter)| {
        if place > 0 && place % 8 == 0 {
            text.push('-');
        }
        text.push(char::from(*letter));
        text
    })
}

fn remember(path: &Path, owner: &str) -> anyhow::Result<()> {
    let text = serde_json::to_string(&Remembered { owner: owner.to_owned() })?;
    if read_optional(path)?.as_deref() == Some(text.as_str()) {
        return Ok(());
    }
    let draft = path.with_extension("draft");
    fs::write(&draft, text).and_then(|()| fs::rename(&draft, path)).with_context(|| path.display().to_string())
}

/// The data directory, made when missing. Started by root it lets the database's unprivileged user pass through; what
/// is secret in it lies in closed directories of its own.
pub(crate) fn prepare_dir(data: &DataSettings) -> anyhow::Result<()> {
    let dir = &data.dir;
    let context = || format!("the data directory {} cannot be used (--data)", dir.display());
    fs::DirBuilder::new().recursive(true).mode(0o711).create(dir).with_context(context)?;
    let found = fs::metadata(dir).with_context(context)?;
    let mode = found.permissions().mode();
    // Only a directory of root's own: nothing of anybody else's is opened up.
    if is_root() && found.uid() == 0 && mode & 0o011 != 0o011 {
        fs::set_permissions(dir, fs::Permissions::from_mode(mode | 0o011)).with_context(context)?;
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(data.blobs()).with_context(context)
}

/// The owner of this process's own entry in `/proc`.
fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

#[cfg(test)]
mod tests {
    use inn_grants::password;

    use super::*;

    #[test]
    fn a_made_up_password_is_long_and_never_the_same() {
        let [one, two] = [make_up(), make_up()];
        assert_eq!(one.len(), 35);
        assert!(one.split('-').all(|part| part.len() == 8), "{one}");
        assert_ne!(one, two);
        assert!(password::check_password(&one).is_ok());
    }

    #[test]
    fn the_owner_is_remembered() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE);
        remember(&path, "a@b.example").unwrap();
        remember(&path, "a@b.example").unwrap();
        let text = read_optional(&path).unwrap().unwrap();
        assert_eq!(serde_json::from_str::<Remembered>(&text).unwrap().owner, "a@b.example");
    }

    #[test]
    fn the_data_directory_can_be_passed_through_by_the_databases_user() {
        let dir = tempfile::tempdir().unwrap();
        let data = |dir: &Path| DataSettings { dir: dir.to_owned(), keys_dir: None, blobs_dir: None };
        let mode = |dir: &Path| fs::metadata(dir).unwrap().permissions().mode() & 0o777;
        let deep = dir.path().join("deep/data");
        prepare_dir(&data(&deep)).unwrap();
        prepare_dir(&data(&deep)).unwrap();
        fs::set_permissions(&deep, fs::Permissions::from_mode(0o700)).unwrap();
        prepare_dir(&data(&deep)).unwrap();
        assert_eq!(mode(&deep), if is_root() { 0o711 } else { 0o700 });
        assert_eq!(mode(&deep.join("blobs")), 0o700);
        fs::write(dir.path().join("file"), "x").unwrap();
        let refused = format!("{:#}", prepare_dir(&data(&dir.path().join("file/data"))).unwrap_err());
        assert!(refused.contains("--data"), "{refused}");
    }
}

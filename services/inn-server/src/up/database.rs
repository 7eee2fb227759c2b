//! The embedded database of `inn up`.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::SyncSender;

use anyhow::Context as _;
use inn_embedded::{EmbeddedError, EmbeddedPostgres, Options};
use tokio_util::sync::CancellationToken;

use super::keeper::Keeper;
use crate::config::Settings;
use crate::platform::read_optional;

/// The database every cluster has from the start.
const DATABASE: &str = "postgres";
/// Where clusters lie whose data directory the database's own user cannot enter (`/root`, most of all).
const ELSEWHERE: &str = "/var/lib/inn-postgres";
/// In the data directory: names the cluster's place, when that is not below it.
const POINTER: &str = "postgres-place";

/// Starts it and keeps it running; see [`Keeper::new`] for `stop` and `restarts`.
pub(crate) fn start(settings: &Settings, stop: CancellationToken, restarts: SyncSender<u32>) -> anyhow::Result<Keeper> {
    let dir = std::path::absolute(&settings.data.dir).with_context(|| settings.data.dir.display().to_string())?;
    let place = place(&dir)?;
    not_lost(&dir, &place)?;
    let server = match EmbeddedPostgres::start(Options::below(&place)) {
        Err(EmbeddedError::Unreachable { user, dir: closed }) if place == dir => {
            let place = move_out(&dir, Path::new(ELSEWHERE))?;
            tracing::warn!(
                "{user}, who runs the database, cannot enter {}: it lies in {} instead; {} says so",
                closed.display(),
                place.display(),
                dir.join(POINTER).display()
            );
            EmbeddedPostgres::start(Options::below(&place))?
        }
        started => started?,
    };
    tracing::debug!(pid = server.pid(), data = %server.data_dir().display(), "embedded database");
    Keeper::new(server, DATABASE, stop, restarts)
}

/// Below the data directory, or where the pointer in it says.
fn place(dir: &Path) -> anyhow::Result<PathBuf> {
    let pointer = dir.join(POINTER);
    let Some(text) = read_optional(&pointer)? else { return Ok(dir.to_owned()) };
    let place = PathBuf::from(text.trim());
    anyhow::ensure!(place.is_absolute(), "{} is damaged: it must hold an absolute path", pointer.display());
    anyhow::ensure!(
        place.is_dir(),
        "the database of {} lies outside of it, in {} ({} says so), and that folder is gone or cannot be entered. {}",
        dir.display(),
        place.display(),
        pointer.display(),
        remedy(dir)
    );
    Ok(place)
}

/// Where a platform was founded there must be its database: an empty one in its place would look like a loss of
/// everything, and would hide where the real one is.
fn not_lost(dir: &Path, place: &Path) -> anyhow::Result<()> {
    let (home, cluster) = (dir.join(super::home::FILE), Options::below(place).data_dir);
    // Another user's cluster cannot be looked into, and is there all the same.
    let gone = |path: &Path| matches!(path.symlink_metadata(), Err(error) if error.kind() == ErrorKind::NotFound);
    let lost = gone(&cluster) || gone(&cluster.join("PG_VERSION"));
    anyhow::ensure!(
        !(home.exists() && lost),
        "a platform was founded in {} ({} says so), but its database is gone: there is none in {}. {}",
        dir.display(),
        home.display(),
        cluster.display(),
        remedy(dir)
    );
    Ok(())
}

fn remedy(dir: &Path) -> String {
    format!(
        "Put it back, from a backup if need be; or begin anew with another --data, or by moving {} away",
        dir.display()
    )
}

/// A new place that belongs to this data directory alone: another one at the same path later gets another.
fn move_out(dir: &Path, base: &Path) -> anyhow::Result<PathBuf> {
    let place = base.join(format!("{:016x}", rand::random::<u64>()));
    let made = fs::DirBuilder::new().recursive(true).mode(0o711).create(&place);
    made.with_context(|| place.display().to_string())?;
    let note = format!("{}\n", dir.display());
    fs::write(place.join("belongs-to"), note).with_context(|| place.display().to_string())?;
    let (pointer, draft) = (dir.join(POINTER), dir.join("postgres-place.draft"));
    let written = fs::write(&draft, format!("{}\n", place.display())).and_then(|()| fs::rename(&draft, &pointer));
    written.with_context(|| pointer.display().to_string())?;
    Ok(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_database_lies_below_the_data_directory_unless_a_pointer_says_otherwise() {
        let home = tempfile::tempdir().unwrap();
        let (dir, base) = (home.path().join("data"), home.path().join("elsewhere"));
        fs::create_dir(&dir).unwrap();
        assert_eq!(place(&dir).unwrap(), dir);
        let moved = move_out(&dir, &base).unwrap();
        assert_eq!(place(&dir).unwrap(), moved);
        assert_eq!(fs::read_to_string(moved.join("belongs-to")).unwrap().trim(), dir.display().to_string());
        fs::remove_file(dir.join(POINTER)).unwrap();
        assert_ne!(move_out(&dir, &base).unwrap(), moved, "a new beginning does not meet old data");
    }

    #[test]
    fn a_founded_platform_never_gets_an_empty_database_in_place_of_a_lost_one() {
        let home = tempfile::tempdir().unwrap();
        let (dir, place) = (home.path().join("data"), home.path().join("place"));
        for folder in [&dir, &place] {
            fs::create_dir(folder).unwrap();
        }
        not_lost(&dir, &place).unwrap();
        fs::write(dir.join(super::super::home::FILE), "{}").unwrap();
        let refused = not_lost(&dir, &place).unwrap_err().to_string();
        assert!(refused.contains("place/postgres") && refused.contains("--data"), "{refused}");
        fs::create_dir(place.join("postgres")).unwrap();
        assert!(not_lost(&dir, &place).is_err(), "an empty folder is no database");
        fs::write(place.join("postgres/PG_VERSION"), "15\n").unwrap();
        not_lost(&dir, &place).unwrap();
    }

    #[test]
    fn a_pointer_to_nowhere_is_refused_and_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let pointer = home.path().join(POINTER);
        fs::write(&pointer, "/nowhere/at/all\n").unwrap();
        let refused = place(home.path()).unwrap_err().to_string();
        for told in ["/nowhere/at/all", POINTER, "gone", "backup", "--data"] {
            assert!(refused.contains(told), "{told} in {refused}");
        }
        fs::write(&pointer, "").unwrap();
        assert!(place(home.path()).unwrap_err().to_string().contains("absolute"));
    }
}

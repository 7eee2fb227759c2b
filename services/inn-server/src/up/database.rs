//! The embedded database of `inn up`.

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use inn_embedded::{EmbeddedError, EmbeddedPostgres, Options};

use crate::config::Settings;
use crate::platform::read_optional;

/// The database every cluster has from the start.
const DATABASE: &str = "postgres";
/// Where clusters lie whose data directory the database's own user cannot enter (`/root`, most of all).
const ELSEWHERE: &str = "/var/lib/inn-postgres";
/// In the data directory: names the cluster's place, when that is not below it.
const POINTER: &str = "postgres-place";

/// Starts it and answers its address. The server itself goes into `running` at once, whatever happens next.
pub(crate) fn start(settings: &Settings, running: &mut Option<EmbeddedPostgres>) -> anyhow::Result<String> {
    let dir = std::path::absolute(&settings.data.dir).with_context(|| settings.data.dir.display().to_string())?;
    let place = place(&dir)?;
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
    let url = server.url(DATABASE);
    tracing::debug!(pid = server.pid(), data = %server.data_dir().display(), "embedded database");
    *running = Some(server);
    Ok(url)
}

/// Below the data directory, or where the pointer in it says.
fn place(dir: &Path) -> anyhow::Result<PathBuf> {
    let pointer = dir.join(POINTER);
    let Some(text) = read_optional(&pointer)? else { return Ok(dir.to_owned()) };
    let place = PathBuf::from(text.trim());
    anyhow::ensure!(place.is_absolute(), "{} is damaged: it must hold an absolute path", pointer.display());
    anyhow::ensure!(
        place.is_dir(),
        "{} says that the database lies in {}, which is gone; put it back, or remove that file to begin with an empty one",
        pointer.display(),
        place.display()
    );
    Ok(place)
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
    fn a_pointer_to_nowhere_is_refused_and_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let pointer = home.path().join(POINTER);
        fs::write(&pointer, "/nowhere/at/all\n").unwrap();
        let refused = place(home.path()).unwrap_err().to_string();
        assert!(refused.contains("/nowhere/at/all") && refused.contains(POINTER), "{refused}");
        fs::write(&pointer, "").unwrap();
        assert!(place(home.path()).unwrap_err().to_string().contains("absolute"));
    }
}

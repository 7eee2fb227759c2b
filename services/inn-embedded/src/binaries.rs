//! Finding `initdb` and `postgres`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::EmbeddedError;

/// One installed PostgreSQL.
#[derive(Debug, Clone)]
pub(crate) struct Binaries {
    pub(crate) dir: PathBuf,
    /// Major version, as in `PG_VERSION`.
    pub(crate) major: String,
}

/// Where distributions keep them: Debian and Ubuntu, the PGDG packages for Red Hat, Homebrew.
const PLACES: [(&str, &str); 4] =
    [("/usr/lib/postgresql", "bin"), ("/usr/pgsql", "bin"), ("/opt/homebrew/opt", "bin"), ("/usr/local/opt", "bin")];

impl Binaries {
    /// The version the data was made by; without data the newest one.
    pub(crate) fn find(data_dir: &Path) -> Result<Self, EmbeddedError> {
        let installed = installed();
        let wanted = std::fs::read_to_string(data_dir.join("PG_VERSION")).ok().map(|text| text.trim().to_owned());
        let Some(newest) = installed.first() else { return Err(EmbeddedError::NotInstalled) };
        let Some(wanted) = wanted else { return Ok(newest.clone()) };
        installed.iter().find(|one| one.major == wanted).cloned().ok_or_else(|| EmbeddedError::OtherVersion {
            data_dir: data_dir.to_owned(),
            wanted,
            found: installed.iter().map(|one| one.major.as_str()).collect::<Vec<_>>().join(", "),
        })
    }

    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

/// Newest first; of equal ones, that on PATH.
fn installed() -> Vec<Binaries> {
    let on_path =
        std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect::<Vec<_>>()).unwrap_or_default();
    let in_places = PLACES.iter().flat_map(|(root, bin)| {
        let versions = std::fs::read_dir(root).into_iter().flatten().flatten();
        versions.map(move |version| version.path().join(bin))
    });
    let mut found: Vec<Binaries> = on_path.into_iter().chain(in_places).filter_map(|dir| version(&dir)).collect();
    found.sort_by_key(|one| std::cmp::Reverse(one.major.parse::<u32>().unwrap_or(0)));
    found
}

/// Asks the server program itself; a wrapper or a folder without both programs is not an installation.
fn version(dir: &Path) -> Option<Binaries> {
    if !dir.join("initdb").is_file() || !dir.join("postgres").is_file() {
        return None;
    }
    let answer = Command::new(dir.join("postgres")).arg("--version").output().ok()?;
    let major = major(&String::from_utf8_lossy(&answer.stdout))?;
    // Through links like /usr/bin/postgres, so that the server finds its library beside itself.
    let real = dir.join("postgres").canonicalize().ok()?;
    let real = real.parent().filter(|real| real.join("initdb").is_file()).unwrap_or(dir);
    Some(Binaries { dir: real.to_owned(), major })
}

/// `postgres (PostgreSQL) 15.18 (Debian …)` → `15`.
fn major(text: &str) -> Option<String> {
    let number = text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    let digits: String = number.chars().take_while(char::is_ascii_digit).collect();
    (!digits.is_empty()).then_some(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_is_read_from_what_the_program_says() {
        assert_eq!(major("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n").as_deref(), Some("15"));
        assert_eq!(major("postgres (PostgreSQL) 18beta1").as_deref(), Some("18"));
        assert_eq!(major("something else"), None);
    }

    #[test]
    fn data_of_a_version_that_is_not_installed_is_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("PG_VERSION"), "7\n").unwrap();
        match Binaries::find(dir.path()) {
            Err(EmbeddedError::OtherVersion { wanted, .. }) => assert_eq!(wanted, "7"),
            other => panic!("{other:?}"),
        }
    }
}

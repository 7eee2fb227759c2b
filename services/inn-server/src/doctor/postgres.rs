//! Is there a PostgreSQL that `inn up` can run?

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Check;

const NAME: &str = "postgresql";
/// Oldest version the platform runs on: `xid8` and `pg_current_xact_id` came with it.
const OLDEST: u32 = 13;
const INSTALL: &str =
    "Install it (Debian, Ubuntu: apt-get install postgresql), or give a server of your own in DATABASE_URL";

/// Looks on PATH, then where distributions keep several versions side by side.
pub(super) fn check(path: Option<&OsStr>, distribution: &Path) -> Check {
    let on_path = path.into_iter().flat_map(std::env::split_paths);
    let versions =
        std::fs::read_dir(distribution).into_iter().flatten().flatten().map(|entry| entry.path().join("bin"));
    let mut found: Vec<(u32, PathBuf)> =
        on_path.chain(versions).filter_map(|dir| Some((version(&dir)?, dir))).collect();
    found.sort();
    match found.pop() {
        None => Check::fail(NAME, "the programs initdb and postgres were not found", INSTALL),
        Some((version, dir)) if version < OLDEST => Check::fail(
            NAME,
            format!("version {version} in {}; {OLDEST} is the oldest that will do", dir.display()),
            INSTALL,
        ),
        Some((version, dir)) => Check::ok(NAME, format!("version {version} in {}", dir.display())),
    }
}

/// A server that was asked, `15.18 (Debian 15.18-0+deb12u1)`.
pub(super) fn server(version: &str) -> Check {
    const NAME: &str = "server";
    let found = format!("PostgreSQL {version}");
    let major: Option<u32> = version.split(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse().ok());
    match major {
        Some(major) if major < OLDEST => {
            Check::fail(NAME, found, format!("Upgrade it: {OLDEST} is the oldest that will do"))
        }
        _ => Check::ok(NAME, found),
    }
}

fn version(dir: &Path) -> Option<u32> {
    let initdb = dir.join("initdb");
    if !initdb.is_file() || !dir.join("postgres").exists() {
        return None;
    }
    let output = Command::new(initdb).arg("--version").output().ok()?;
    major(&String::from_utf8_lossy(&output.stdout))
}

/// `initdb (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)` → 15.
fn major(text: &str) -> Option<u32> {
    text.split("(PostgreSQL) ").nth(1)?.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::super::State;
    use super::*;

    fn fake(dir: &Path, version: &str) {
        std::fs::create_dir_all(dir).unwrap();
        std::fs::write(dir.join("postgres"), "").unwrap();
        let initdb = dir.join("initdb");
        std::fs::write(&initdb, format!("#!/bin/sh\necho 'initdb (PostgreSQL) {version}'\n")).unwrap();
        std::fs::set_permissions(&initdb, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_server_that_is_too_old_fails() {
        assert_eq!(server("15.18 (Debian 15.18-0+deb12u1)").state, State::Ok);
        assert_eq!(server("17beta1").state, State::Ok);
        assert_eq!(server("12.4").state, State::Fail);
    }

    #[test]
    fn the_newest_version_counts_and_none_or_an_old_one_is_told_with_the_remedy() {
        let home = tempfile::tempdir().unwrap();
        let nothing = check(None, home.path());
        assert!(nothing.state == State::Fail && nothing.advice.unwrap().contains("apt-get install postgresql"));
        fake(&home.path().join("11/bin"), "11.2");
        let old = check(None, home.path());
        assert!(old.state == State::Fail && old.found.contains("version 11"), "{old:?}");
        fake(&home.path().join("16/bin"), "16.1 (Debian 16.1-1)");
        let fine = check(None, home.path());
        assert!(fine.state == State::Ok && fine.found.contains("version 16"), "{fine:?}");
        fake(&home.path().join("own"), "17beta1");
        let newest = check(Some(home.path().join("own").as_os_str()), home.path());
        assert!(newest.found.contains("version 17"), "{newest:?}");
    }
}

//! Who runs PostgreSQL: ourselves, or, when we are root, an unprivileged user.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::EmbeddedError;

/// The user PostgreSQL runs as, when that is not ourselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) name: String,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl Account {
    /// `None`: run as whoever we are.
    pub(crate) fn choose() -> Result<Option<Self>, EmbeddedError> {
        // The owner of our own process entry is our effective user; without /proc nobody runs us as root unnoticed,
        // since PostgreSQL itself refuses.
        let uid = fs::metadata("/proc/self").map_or(u32::MAX, |own| own.uid());
        if uid != 0 {
            return Ok(None);
        }
        let passwd = fs::read_to_string("/etc/passwd").map_err(EmbeddedError::io("cannot read", "/etc/passwd"))?;
        ["postgres", "nobody"].iter().find_map(|name| find(&passwd, name)).map(Some).ok_or(EmbeddedError::NoAccount)
    }

    pub(crate) fn apply(&self, command: &mut Command) {
        command.uid(self.uid).gid(self.gid);
    }

    pub(crate) fn own(&self, path: &Path) -> Result<(), EmbeddedError> {
        std::os::unix::fs::chown(path, Some(self.uid), Some(self.gid))
            .map_err(EmbeddedError::io("cannot hand over", path))
    }

    /// Every folder above `path` must let the user through, or PostgreSQL fails later with a riddle.
    pub(crate) fn check_way_to(&self, path: &Path) -> Result<(), EmbeddedError> {
        for dir in path.ancestors().skip(1) {
            let Ok(meta) = fs::metadata(dir) else { continue };
            let shift = match (meta.uid() == self.uid, meta.gid() == self.gid) {
                (true, _) => 6,
                (_, true) => 3,
                _ => 0,
            };
            if meta.mode() >> shift & 0o1 == 0 {
                return Err(EmbeddedError::Unreachable { user: self.name.clone(), dir: PathBuf::from(dir) });
            }
        }
        Ok(())
    }
}

/// One line of a passwd file: `name:password:uid:gid:…`.
fn find(passwd: &str, name: &str) -> Option<Account> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (found, _password) = (fields.next()?, fields.next()?);
        let (uid, gid) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        // A user with uid 0 is root by another name.
        (found == name && uid != 0).then(|| Account { name: name.to_owned(), uid, gid })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_read_from_its_passwd_line_and_never_root() {
        let passwd =
            "root:x:0:0:root:/root:/bin/bash\nbroken\nnobody:x:65534:65533:n:/:/bin/false\ntoor:x:0:0::/:/bin/sh\n";
        let nobody = find(passwd, "nobody").unwrap();
        assert_eq!((nobody.uid, nobody.gid), (65534, 65533));
        assert_eq!(find(passwd, "toor"), None);
        assert_eq!(find(passwd, "broken"), None);
        assert_eq!(find(passwd, "postgres"), None);
    }

    #[test]
    fn a_folder_that_keeps_the_user_out_is_named() {
        let root = tempfile::tempdir().unwrap();
        let open = root.path().join("open");
        let shut = open.join("shut");
        fs::create_dir_all(shut.join("data")).unwrap();
        let mode = |path: &Path, mode| {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        mode(root.path(), 0o755);
        mode(&open, 0o755);
        mode(&shut, 0o700);
        let stranger = Account { name: "nobody".into(), uid: 4_000_000, gid: 4_000_000 };
        assert!(stranger.check_way_to(&shut).is_ok());
        match stranger.check_way_to(&shut.join("data")) {
            Err(EmbeddedError::Unreachable { user, dir }) => assert_eq!((user.as_str(), dir), ("nobody", shut)),
            other => panic!("{other:?}"),
        }
    }
}

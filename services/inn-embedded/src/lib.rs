//! A private PostgreSQL, run as a child process: unix socket only, its own data directory, no configuration.
//!
//! The server belongs to whoever started it. It runs below a small shell guard that holds the other end of a pipe of
//! ours: when this process ends, however it ends (`kill -9` included), the pipe closes and the guard shuts PostgreSQL
//! down. Started by root, PostgreSQL runs as an unprivileged user.
//!
//! Access: `trust` on a socket in a directory only that user and root can enter. Peer authentication cannot work here,
//! since root connects to a server of another user; whoever can enter the directory could read the data files as well.
//!
//! Everything here blocks; call it before the runtime starts or from a blocking thread.

mod account;
mod binaries;
mod guard;
mod server;
mod stale;

use std::path::PathBuf;

pub use server::EmbeddedPostgres;

/// How much a crash of the machine may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Committed means on disk.
    Full,
    /// For tests: no fsync. A crash of the machine may cost everything.
    Test,
}

/// What to start.
#[derive(Debug, Clone)]
pub struct Options {
    /// The cluster's files. Created (with `initdb`) when it does not exist yet.
    pub data_dir: PathBuf,
    /// Where the socket lies, mode 0700. A path too long for a socket address is replaced by a private temporary
    /// directory: ask [`EmbeddedPostgres::socket_dir`].
    pub socket_dir: PathBuf,
    /// The number in the socket's name; no TCP port is ever opened. Default 5432.
    pub port: Option<u16>,
    pub durability: Durability,
    /// The database role that owns everything.
    pub superuser_name: String,
}

impl Options {
    /// Data and socket below one folder, for keeping.
    pub fn below(dir: impl Into<PathBuf>) -> Self {
        let dir = dir.into();
        Self {
            data_dir: dir.join("postgres"),
            socket_dir: dir.join("socket"),
            port: None,
            durability: Durability::Full,
            superuser_name: "inn".to_owned(),
        }
    }

    /// The same for tests.
    pub fn test(dir: impl Into<PathBuf>) -> Self {
        Self { durability: Durability::Test, ..Self::below(dir) }
    }
}

/// Why the server could not be started or stopped, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    #[error(
        "PostgreSQL's programs initdb and postgres were not found on PATH or in /usr/lib/postgresql/*/bin: \
         install them (Debian, Ubuntu: apt-get install postgresql) or use a server of your own (DATABASE_URL)"
    )]
    NotInstalled,
    #[error(
        "the data in {} was made by PostgreSQL {wanted}, but only {found} is installed: install version {wanted}, or move \
         the data with pg_upgrade", data_dir.display()
    )]
    OtherVersion { data_dir: PathBuf, wanted: String, found: String },
    #[error(
        "PostgreSQL refuses to run as root, and no unprivileged user (postgres, nobody) was found in /etc/passwd: create \
         one, or start as another user"
    )]
    NoAccount,
    #[error("the user {user} that runs PostgreSQL cannot enter {}: choose a data directory outside of it", dir.display())]
    Unreachable { user: String, dir: PathBuf },
    #[error("{} is not empty and is not a PostgreSQL data directory: choose another one", dir.display())]
    NotOurs { dir: PathBuf },
    #[error(
        "another PostgreSQL (process {pid}) still runs on {} after {waited} seconds: another `inn up` owns it, or the one \
         before has not finished shutting down; stop it and start again", data_dir.display()
    )]
    StillRunning { data_dir: PathBuf, pid: u32, waited: u64 },
    #[error("{what} {}: {cause}", path.display())]
    Io { what: &'static str, path: PathBuf, cause: std::io::Error },
    #[error("initdb failed: {0}")]
    Init(String),
    #[error("PostgreSQL did not start: {0}")]
    Start(String),
    #[error("PostgreSQL did not stop within {0} seconds and was told to stop at once; it recovers at the next start")]
    Stop(u64),
}

impl EmbeddedError {
    pub(crate) fn io(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |cause| Self::Io { what, path, cause }
    }
}

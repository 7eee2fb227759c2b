//! Starting, watching and stopping the server.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::account::Account;
use crate::binaries::Binaries;
use crate::{Durability, EmbeddedError, Options, guard, stale};

/// A socket's address holds 107 bytes, of which `/.s.PGSQL.65535.lock` takes 21.
const LONGEST_SOCKET_DIR: usize = 84;
const START_LIMIT: Duration = Duration::from_mins(1);
/// A fast shutdown writes a checkpoint, which takes a while on a slow disk.
const STOP_LIMIT: Duration = Duration::from_secs(30);
const LOG: &str = "server.log";

/// A running private PostgreSQL. Dropped, it is shut down; when this process is killed, its guard does that.
#[derive(Debug)]
pub struct EmbeddedPostgres {
    guard: Child,
    pid: u32,
    place: Place,
}

/// Everything a second launch of the same server needs to know.
#[derive(Debug, Clone)]
struct Place {
    data_dir: PathBuf,
    socket_dir: PathBuf,
    /// A temporary socket directory, removed with the server.
    private_socket: bool,
    /// A temporary folder around everything, removed with the server.
    scratch: Option<PathBuf>,
    port: u16,
    superuser: String,
    durability: Durability,
}

impl EmbeddedPostgres {
    /// Initialises the data directory when it is new, starts the server and waits until it takes connections.
    /// Waits up to 30 seconds for a killed predecessor's server to finish.
    pub fn start(options: Options) -> Result<Self, EmbeddedError> {
        Self::launch(Place::of(options, None)?)
    }

    /// A server for tests in a folder of its own, which is removed when the server ends, however this process ends.
    pub fn temporary() -> Result<Self, EmbeddedError> {
        let dir = tempfile::Builder::new()
            .prefix("inn-pg-")
            .tempdir()
            .map_err(EmbeddedError::io("cannot create a directory in", std::env::temp_dir()))?
            .keep();
        own_dir(&dir, Account::choose()?.as_ref())?;
        Self::launch(Place::of(Options::test(&dir), Some(dir))?)
    }

    /// How the server ended, when it has ended although nobody told it to. Does not block.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.guard.try_wait().ok().flatten()
    }

    /// Starts a server that has [`ended`](Self::ended) again: same data, same address. What was committed is there,
    /// what was under way is not. Waits up to 30 seconds for leftover processes of the old one. Not for
    /// [`temporary`](Self::temporary) servers, whose data went with them.
    ///
    /// After an error this value stands for no running server; it may be tried again.
    pub fn restart(&mut self) -> Result<(), EmbeddedError> {
        if self.place.scratch.is_some() {
            return Err(EmbeddedError::Start("it was a temporary server, and its data went with it".to_owned()));
        }
        // When only the guard was killed, this ends the server below it.
        drop(self.guard.stdin.take());
        self.wait(STOP_LIMIT);
        *self = Self::launch(self.place.clone())?;
        Ok(())
    }

    fn launch(place: Place) -> Result<Self, EmbeddedError> {
        let account = Account::choose()?;
        let binaries = Binaries::find(&place.data_dir)?;
        for parent in [place.data_dir.parent(), place.socket_dir.parent()].into_iter().flatten() {
            fs::create_dir_all(parent).map_err(EmbeddedError::io("cannot create", parent))?;
        }
        if let Some(account) = &account {
            account.check_way_to(&place.data_dir)?;
            account.check_way_to(&place.socket_dir)?;
        }
        stale::wait_until_gone(&place.data_dir, STOP_LIMIT)?;
        initialise(&place, &binaries, account.as_ref())?;
        if place.private_socket {
            private_dir(&place.socket_dir, account.as_ref())?;
        }
        own_dir(&place.socket_dir, account.as_ref())?;

        let socket = place.private_socket.then_some(&place.socket_dir);
        let mut command = guard::command(socket.into_iter().chain(&place.scratch));
        command.arg(binaries.program("postgres")).arg("-D").arg(&place.data_dir);
        for (name, value) in settings(&place) {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        command.stderr(Stdio::from(log_file(&place.data_dir, account.as_ref())?)).current_dir("/");
        if let Some(account) = &account {
            account.apply(&mut command);
        }
        let guard = command.spawn().map_err(|error| EmbeddedError::Start(format!("/bin/sh: {error}")))?;
        let mut server = Self { guard, pid: 0, place };
        // From here on a failure drops `server`, which stops what was started.
        server.wait_until_ready()?;
        Ok(server)
    }

    /// The address of one database, for tokio-postgres (and, in this form, libpq).
    pub fn url(&self, database: &str) -> String {
        let host = percent(&self.place.socket_dir.to_string_lossy());
        format!("postgresql://{}@{host}:{}/{}", percent(&self.place.superuser), self.place.port, percent(database))
    }

    /// The server's own process (not the guard's).
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    pub fn socket_dir(&self) -> &Path {
        &self.place.socket_dir
    }

    pub fn data_dir(&self) -> &Path {
        &self.place.data_dir
    }

    /// Ends every session, writes a checkpoint and waits for the end: 30 seconds, then the server is told to stop at
    /// once (and recovers at its next start), which is reported.
    pub fn stop(mut self) -> Result<(), EmbeddedError> {
        self.shut_down()
    }

    fn shut_down(&mut self) -> Result<(), EmbeddedError> {
        // The guard sees the end of its pipe.
        drop(self.guard.stdin.take());
        if self.wait(STOP_LIMIT) {
            return Ok(());
        }
        // SIGQUIT is PostgreSQL's immediate shutdown. Sending a signal needs either unsafe code or a program.
        let _ = Command::new("kill").args(["-QUIT", &self.pid.to_string()]).stderr(Stdio::null()).status();
        self.wait(Duration::from_secs(5));
        Err(EmbeddedError::Stop(STOP_LIMIT.as_secs()))
    }

    fn wait(&mut self, limit: Duration) -> bool {
        let started = Instant::now();
        loop {
            match self.guard.try_wait() {
                Ok(Some(_)) | Err(_) => return true,
                Ok(None) if started.elapsed() > limit => return false,
                Ok(None) => pause(Duration::from_millis(10)),
            }
        }
    }

    /// The server says `ready` in the eighth line of its lock file, with its number in the first.
    fn wait_until_ready(&mut self) -> Result<(), EmbeddedError> {
        let started = Instant::now();
        let lock = self.place.data_dir.join("postmaster.pid");
        loop {
            if let Ok(Some(status)) = self.guard.try_wait() {
                return Err(EmbeddedError::Start(format!("it ended with {status}\n{}", self.log_tail())));
            }
            let text = fs::read_to_string(&lock).unwrap_or_default();
            let mut lines = text.lines();
            let pid = lines.next().and_then(|line| line.trim().parse().ok());
            let ready = lines.nth(6).is_some_and(|line| line.trim() == "ready");
            if let (Some(pid), true) = (pid, ready) {
                self.pid = pid;
                return Ok(());
            }
            if started.elapsed() > START_LIMIT {
                let seconds = START_LIMIT.as_secs();
                return Err(EmbeddedError::Start(format!(
                    "it was not ready after {seconds} seconds\n{}",
                    self.log_tail()
                )));
            }
            pause(Duration::from_millis(10));
        }
    }

    /// Where the server writes what it has to say.
    pub fn log_path(&self) -> PathBuf {
        self.place.data_dir.join(LOG)
    }

    fn log_tail(&self) -> String {
        let text = fs::read(self.log_path()).unwrap_or_default();
        let start = text.len().saturating_sub(2000);
        String::from_utf8_lossy(text.get(start..).unwrap_or_default()).into_owned()
    }
}

impl Drop for EmbeddedPostgres {
    fn drop(&mut self) {
        if let Err(error) = self.shut_down() {
            tracing::warn!(%error, "embedded PostgreSQL");
        }
    }
}

/// Blocks this thread, which is what a blocking interface does.
#[expect(clippy::disallowed_methods, reason = "documented as blocking; never called on a worker")]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}

impl Place {
    fn of(options: Options, scratch: Option<PathBuf>) -> Result<Self, EmbeddedError> {
        let absolute = |path: &Path| std::path::absolute(path).map_err(EmbeddedError::io("cannot resolve", path));
        let (socket_dir, private_socket) = socket_dir(absolute(&options.socket_dir)?)?;
        Ok(Self {
            data_dir: absolute(&options.data_dir)?,
            socket_dir,
            private_socket,
            scratch,
            port: options.port.unwrap_or(5432),
            superuser: options.superuser_name,
            durability: options.durability,
        })
    }
}

/// The directory, and whether it is a private temporary one to be removed afterwards.
fn socket_dir(wanted: PathBuf) -> Result<(PathBuf, bool), EmbeddedError> {
    // libpq reads a comma as the end of one host and the start of another.
    let usable = wanted.as_os_str().len() <= LONGEST_SOCKET_DIR && !wanted.to_string_lossy().contains(',');
    if usable {
        return Ok((wanted, false));
    }
    let private = tempfile::Builder::new()
        .prefix("inn-socket-")
        .tempdir()
        .map_err(EmbeddedError::io("cannot create a socket directory in", std::env::temp_dir()))?;
    Ok((private.keep(), true))
}

/// The guard removes a temporary directory with its server, so a restart makes it again. Its name is known by then and
/// lies where everybody may create things: only one that is ours is used.
fn private_dir(dir: &Path, account: Option<&Account>) -> Result<(), EmbeddedError> {
    match fs::DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        made => return made.map_err(EmbeddedError::io("cannot create", dir)),
    }
    let found = fs::symlink_metadata(dir).map_err(EmbeddedError::io("cannot look at", dir))?;
    let own = fs::metadata("/proc/self").map_or(u32::MAX, |own| own.uid());
    let ours = found.uid() == own || account.is_some_and(|account| found.uid() == account.uid);
    if found.is_dir() && (ours || own == u32::MAX) {
        return Ok(());
    }
    Err(EmbeddedError::Start(format!("{} belongs to somebody else", dir.display())))
}

fn own_dir(dir: &Path, account: Option<&Account>) -> Result<(), EmbeddedError> {
    fs::create_dir_all(dir).map_err(EmbeddedError::io("cannot create", dir))?;
    fs::set_permissions(dir, fs::Permissions::from_mode(0o700)).map_err(EmbeddedError::io("cannot protect", dir))?;
    account.map_or(Ok(()), |account| account.own(dir))
}

/// Makes the cluster beside its place and moves it there, so that a kill in the middle leaves nothing half-made.
fn initialise(place: &Place, binaries: &Binaries, account: Option<&Account>) -> Result<(), EmbeddedError> {
    let data_dir = &place.data_dir;
    if data_dir.join("PG_VERSION").exists() {
        return Ok(());
    }
    let used = fs::read_dir(data_dir).is_ok_and(|mut entries| entries.next().is_some());
    if used {
        return Err(EmbeddedError::NotOurs { dir: data_dir.clone() });
    }
    let mut name = data_dir.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let fresh = data_dir.with_file_name(name);
    if fresh.exists() {
        fs::remove_dir_all(&fresh).map_err(EmbeddedError::io("cannot remove", &fresh))?;
    }
    own_dir(&fresh, account)?;
    let mut command = Command::new(binaries.program("initdb"));
    command.arg("-D").arg(&fresh).args(["-U", &place.superuser]);
    command.args(["--auth=trust", "--encoding=UTF8", "--locale=C", "--data-checksums"]);
    if place.durability == Durability::Test {
        command.arg("--no-sync");
    }
    command.stdin(Stdio::null()).current_dir("/").env("LC_ALL", "C");
    if let Some(account) = account {
        account.apply(&mut command);
    }
    let output = command.output().map_err(|error| EmbeddedError::Init(error.to_string()))?;
    if !output.status.success() {
        return Err(EmbeddedError::Init(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    if data_dir.exists() {
        fs::remove_dir(data_dir).map_err(EmbeddedError::io("cannot replace the empty", data_dir))?;
    }
    fs::rename(&fresh, data_dir).map_err(EmbeddedError::io("cannot move the new cluster to", data_dir))
}

fn log_file(data_dir: &Path, account: Option<&Account>) -> Result<File, EmbeddedError> {
    let path = data_dir.join(LOG);
    // A log that only grows is a full disk one day; what a restart needs to know is in the last run.
    if fs::metadata(&path).is_ok_and(|meta| meta.len() > 10 << 20) {
        fs::remove_file(&path).map_err(EmbeddedError::io("cannot remove", &path))?;
    }
    let file =
        OpenOptions::new().create(true).append(true).open(&path).map_err(EmbeddedError::io("cannot write", &path))?;
    if let Some(account) = account {
        account.own(&path)?;
    }
    Ok(file)
}

/// Sized for a small machine that runs other things too.
fn settings(place: &Place) -> Vec<(&'static str, String)> {
    let mut settings = vec![
        ("listen_addresses", String::new()),
        ("unix_socket_directories", socket_list(&place.socket_dir)),
        ("unix_socket_permissions", "0700".to_owned()),
        ("port", place.port.to_string()),
    ];
    let fixed = [
        ("max_connections", "60"),
        ("shared_buffers", "128MB"),
        ("work_mem", "8MB"),
        ("maintenance_work_mem", "64MB"),
        ("effective_cache_size", "512MB"),
        ("wal_buffers", "8MB"),
        ("min_wal_size", "80MB"),
        ("max_wal_size", "1GB"),
        ("checkpoint_timeout", "15min"),
        ("checkpoint_completion_target", "0.9"),
        ("random_page_cost", "1.1"),
        ("jit", "off"),
        ("max_parallel_workers_per_gather", "0"),
        // So that pg_basebackup copies it while it runs; each copy takes two.
        ("wal_level", "replica"),
        ("max_wal_senders", "4"),
        // Queue and nonce tables turn over quickly.
        ("autovacuum_naptime", "20s"),
        ("log_min_messages", "warning"),
        ("log_line_prefix", "%m [%p] "),
        // Values of people's records do not belong into a log.
        ("log_min_error_statement", "panic"),
        ("log_timezone", "UTC"),
        ("timezone", "UTC"),
    ];
    settings.extend(fixed.map(|(name, value)| (name, value.to_owned())));
    if place.durability == Durability::Test {
        settings.extend(["fsync", "synchronous_commit", "full_page_writes"].map(|name| (name, "off".to_owned())));
        // Tests run side by side, each with pools of its own. The later value of a setting wins.
        settings.push(("max_connections", "300".to_owned()));
    }
    settings
}

/// The setting is a comma-separated list; quotes keep a comma in the path from splitting it.
fn socket_list(dir: &Path) -> String {
    format!("\"{}\"", dir.to_string_lossy().replace('"', "\"\""))
}

fn percent(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
        out
    })
}

#[cfg(test)]
mod tests;

//! Starting, watching and stopping the server.

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
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
    data_dir: PathBuf,
    socket_dir: PathBuf,
    port: u16,
    superuser: String,
}

/// What the guard removes after the server's end.
#[derive(Default)]
struct Leftovers(Vec<PathBuf>);

impl EmbeddedPostgres {
    /// Initialises the data directory when it is new, starts the server and waits until it takes connections.
    /// Waits up to 30 seconds for a killed predecessor's server to finish.
    pub fn start(options: Options) -> Result<Self, EmbeddedError> {
        Self::launch(options, Leftovers::default())
    }

    /// A server for tests in a folder of its own, which is removed when the server ends, however this process ends.
    pub fn temporary() -> Result<Self, EmbeddedError> {
        let dir = tempfile::Builder::new()
            .prefix("inn-pg-")
            .tempdir()
            .map_err(EmbeddedError::io("cannot create a directory in", std::env::temp_dir()))?
            .keep();
        own_dir(&dir, Account::choose()?.as_ref())?;
        Self::launch(Options::test(&dir), Leftovers(vec![dir]))
    }

    fn launch(options: Options, mut leftovers: Leftovers) -> Result<Self, EmbeddedError> {
        let account = Account::choose()?;
        let binaries = Binaries::find(&options.data_dir)?;
        let data_dir =
            std::path::absolute(&options.data_dir).map_err(EmbeddedError::io("cannot resolve", &options.data_dir))?;
        let (socket_dir, private) = socket_dir(&options)?;
        for parent in [data_dir.parent(), socket_dir.parent()].into_iter().flatten() {
            fs::create_dir_all(parent).map_err(EmbeddedError::io("cannot create", parent))?;
        }
        if let Some(account) = &account {
            account.check_way_to(&data_dir)?;
            account.check_way_to(&socket_dir)?;
        }
        stale::wait_until_gone(&data_dir, STOP_LIMIT)?;
        initialise(&options, &binaries, account.as_ref(), &data_dir)?;
        own_dir(&socket_dir, account.as_ref())?;

        let port = options.port.unwrap_or(5432);
        if private {
            leftovers.0.push(socket_dir.clone());
        }
        let mut command = guard::command(&leftovers.0);
        command.arg(binaries.program("postgres")).arg("-D").arg(&data_dir);
        for (name, value) in settings(&options, &socket_dir, port) {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        command.stderr(Stdio::from(log_file(&data_dir, account.as_ref())?)).current_dir("/");
        if let Some(account) = &account {
            account.apply(&mut command);
        }
        let guard = command.spawn().map_err(|error| EmbeddedError::Start(format!("/bin/sh: {error}")))?;
        let mut server = Self { guard, pid: 0, data_dir, socket_dir, port, superuser: options.superuser_name };
        // From here on a failure drops `server`, which stops what was started.
        server.wait_until_ready()?;
        Ok(server)
    }

    /// The address of one database, for tokio-postgres (and, in this form, libpq).
    pub fn url(&self, database: &str) -> String {
        let host = percent(&self.socket_dir.to_string_lossy());
        format!("postgresql://{}@{host}:{}/{}", percent(&self.superuser), self.port, percent(database))
    }

    /// The server's own process (not the guard's).
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    pub fn socket_dir(&self) -> &Path {
        &self.socket_dir
    }

    pub fn data_dir(&self) -> &Path {
        &self.data_dir
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
        let lock = self.data_dir.join("postmaster.pid");
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

    fn log_tail(&self) -> String {
        let text = fs::read(self.data_dir.join(LOG)).unwrap_or_default();
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

/// The directory, and whether it is a private temporary one to be removed afterwards.
fn socket_dir(options: &Options) -> Result<(PathBuf, bool), EmbeddedError> {
    let wanted =
        std::path::absolute(&options.socket_dir).map_err(EmbeddedError::io("cannot resolve", &options.socket_dir))?;
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

fn own_dir(dir: &Path, account: Option<&Account>) -> Result<(), EmbeddedError> {
    fs::create_dir_all(dir).map_err(EmbeddedError::io("cannot create", dir))?;
    fs::set_permissions(dir, fs::Permissions::from_mode(0o700)).map_err(EmbeddedError::io("cannot protect", dir))?;
    account.map_or(Ok(()), |account| account.own(dir))
}

/// Makes the cluster beside its place and moves it there, so that a kill in the middle leaves nothing half-made.
fn initialise(
    options: &Options,
    binaries: &Binaries,
    account: Option<&Account>,
    data_dir: &Path,
) -> Result<(), EmbeddedError> {
    if data_dir.join("PG_VERSION").exists() {
        return Ok(());
    }
    let used = fs::read_dir(data_dir).is_ok_and(|mut entries| entries.next().is_some());
    if used {
        return Err(EmbeddedError::NotOurs { dir: data_dir.to_owned() });
    }
    let mut name = data_dir.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let fresh = data_dir.with_file_name(name);
    if fresh.exists() {
        fs::remove_dir_all(&fresh).map_err(EmbeddedError::io("cannot remove", &fresh))?;
    }
    own_dir(&fresh, account)?;
    let mut command = Command::new(binaries.program("initdb"));
    command.arg("-D").arg(&fresh).args(["-U", &options.superuser_name]);
    command.args(["--auth=trust", "--encoding=UTF8", "--locale=C", "--data-checksums"]);
    if options.durability == Durability::Test {
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
fn settings(options: &Options, socket_dir: &Path, port: u16) -> Vec<(&'static str, String)> {
    let mut settings = vec![
        ("listen_addresses", String::new()),
        ("unix_socket_directories", socket_list(socket_dir)),
        ("unix_socket_permissions", "0700".to_owned()),
        ("port", port.to_string()),
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
        ("max_wal_senders", "0"),
        ("wal_level", "minimal"),
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
    if options.durability == Durability::Test {
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

//! Starting and stopping the servers under test. Whatever was started here is stopped here, by its process id.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;

const START: Duration = Duration::from_mins(1);
const STOP: Duration = Duration::from_secs(40);

/// A child process. Dropped, it is asked to end, waited for, and ended.
pub(crate) struct Server {
    child: Child,
    log: PathBuf,
}

impl Server {
    /// `log` takes what it says.
    pub(crate) fn start(mut command: Command, log: PathBuf) -> anyhow::Result<Self> {
        let file = File::create(&log).with_context(|| log.display().to_string())?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let child =
            command.spawn().with_context(|| format!("{} cannot be started", command.get_program().display()))?;
        Ok(Self { child, log })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks again until there is an answer. Fails with the end of its log when it ends or takes too long.
    pub(crate) async fn until<T>(&mut self, mut look: impl AsyncFnMut() -> Option<T>) -> anyhow::Result<T> {
        let began = Instant::now();
        loop {
            if let Some(found) = look().await {
                return Ok(found);
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("it ended with {status}; its last words:\n{}", self.last_words());
            }
            if began.elapsed() > START {
                bail!("it was not ready after {} s; its last words:\n{}", START.as_secs(), self.last_words());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub(crate) fn last_words(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let from = text.len().saturating_sub(1500);
        String::from_utf8_lossy(text.get(from..).unwrap_or_default()).into_owned()
    }

    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        self.end()
    }

    fn end(&mut self) -> anyhow::Result<()> {
        if self.child.try_wait()?.is_some() {
            return Ok(());
        }
        kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        let began = Instant::now();
        while self.child.try_wait()?.is_none() {
            if began.elapsed() > STOP {
                self.child.kill()?;
                self.child.wait()?;
                bail!("process {} did not end within {} s and was killed", self.child.id(), STOP.as_secs());
            }
            pause();
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // On the way out of an error, which is the one to be told.
        let _ = self.end();
    }
}

#[expect(clippy::disallowed_methods, reason = "the servers are stopped after the last measurement, nothing else waits")]
fn pause() {
    std::thread::sleep(Duration::from_millis(20));
}

/// What `inn up` writes once everything answers.
#[derive(Deserialize)]
pub(crate) struct ReadyFile {
    pub(crate) platform: String,
    pub(crate) pid: u32,
    pub(crate) postgres_pid: Option<u32>,
}

/// A folder of this run. PostgreSQL runs as another user when we are root, and must be able to pass through.
pub(crate) fn folder(below: &Path) -> anyhow::Result<tempfile::TempDir> {
    let open = fs::Permissions::from_mode(0o711);
    let made = tempfile::Builder::new().prefix("inn-bench-").permissions(open).tempdir_in(below);
    made.with_context(|| format!("no folder can be made in {} (--dir)", below.display()))
}

/// `inn` with nothing of this process's own settings.
pub(crate) fn inn(binary: &Path) -> Command {
    let mut command = Command::new(binary);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("INN_") || text.starts_with("OTEL_") || text == "DATABASE_URL" || text == "REDIS_URL" {
            command.env_remove(&name);
        }
    }
    command
}

/// Runs a program to its end; its words are the error when it fails.
pub(crate) fn run(mut command: Command) -> anyhow::Result<()> {
    let program = command.get_program().to_owned();
    let output =
        command.stdin(Stdio::null()).output().with_context(|| format!("{} cannot be started", program.display()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(anyhow!(
        "{} ended with {}: {}",
        program.display(),
        output.status,
        String::from_utf8_lossy(&output.stderr).trim()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_started_is_stopped() {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new("sleep");
        command.arg("600");
        let server = Server::start(command, dir.path().join("log")).unwrap();
        let proc = PathBuf::from(format!("/proc/{}", server.pid()));
        assert!(proc.exists());
        server.stop().unwrap();
        assert!(!proc.exists());
    }

    #[tokio::test]
    async fn a_server_that_ends_at_once_is_told_with_its_last_words() {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "echo no room >&2; exit 3"]);
        let mut server = Server::start(command, dir.path().join("log")).unwrap();
        let error = server.until(async || None::<()>).await.unwrap_err().to_string();
        assert!(error.contains("no room") && error.contains('3'), "{error}");
    }
}

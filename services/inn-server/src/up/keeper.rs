//! Keeps the embedded database running: notices its end, starts it again, and ends the platform when that does not help.

use std::process::ExitStatus;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use inn_embedded::{EmbeddedError, EmbeddedPostgres};
use tokio_util::sync::CancellationToken;

/// The end of the server is noticed at most this late.
const LOOK: Duration = Duration::from_millis(200);

/// How hard to try.
#[derive(Debug, Clone, Copy)]
struct Patience {
    /// Before each attempt; when none is left, that was that.
    pauses: &'static [Duration],
    /// After this long without an end the count begins anew.
    steady: Duration,
}

const PATIENCE: Patience = Patience {
    pauses: &[
        Duration::ZERO,
        Duration::from_millis(250),
        Duration::from_secs(1),
        Duration::from_secs(3),
        Duration::from_secs(8),
    ],
    steady: Duration::from_mins(1),
};

/// The database is gone for good; the platform has ended for it.
#[derive(Debug, thiserror::Error)]
#[error(
    "the embedded PostgreSQL ended by itself ({status}) and {attempts} attempts to keep it running did not help ({last}); \
     its log is {log}. Mend the cause and start `inn up` again"
)]
pub(crate) struct GaveUp {
    status: ExitStatus,
    attempts: usize,
    last: String,
    log: String,
}

/// A watched server. Dropping it stops the server, too.
pub(crate) struct Keeper {
    url: String,
    pid: u32,
    /// Closing it is the order to stop.
    order: Option<SyncSender<()>>,
    thread: Option<JoinHandle<anyhow::Result<()>>>,
}

impl Keeper {
    /// Watches `server`. `restarts` is told the number of each new server process; `stop` is cancelled when the server
    /// cannot be kept running.
    pub(crate) fn new(
        server: EmbeddedPostgres,
        database: &str,
        stop: CancellationToken,
        restarts: SyncSender<u32>,
    ) -> anyhow::Result<Self> {
        Self::with(PATIENCE, server, database, stop, restarts)
    }

    fn with(
        patience: Patience,
        server: EmbeddedPostgres,
        database: &str,
        stop: CancellationToken,
        restarts: SyncSender<u32>,
    ) -> anyhow::Result<Self> {
        let (url, pid) = (server.url(database), server.pid());
        let (order, orders) = sync_channel(1);
        let watch = Watch { patience, server, stop, restarts, orders };
        let thread = std::thread::Builder::new().name("inn-database".to_owned()).spawn(move || watch.run())?;
        Ok(Self { url, pid, order: Some(order), thread: Some(thread) })
    }

    /// The address; the same after a restart.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The process that ran at first.
    pub(crate) const fn pid(&self) -> u32 {
        self.pid
    }

    /// Stops the server, and answers how its life was: a [`GaveUp`] when it ended before.
    pub(crate) fn end(mut self) -> anyhow::Result<()> {
        self.finish()
    }

    fn finish(&mut self) -> anyhow::Result<()> {
        self.order = None;
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread.join().unwrap_or_else(|_| Err(anyhow!("the thread that watches the database panicked")))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if let Err(error) = self.finish() {
            tracing::error!(error = format!("{error:#}"), "embedded PostgreSQL");
        }
    }
}

struct Watch {
    patience: Patience,
    server: EmbeddedPostgres,
    stop: CancellationToken,
    restarts: SyncSender<u32>,
    orders: Receiver<()>,
}

/// Somebody wants the end.
struct Ordered;

impl Watch {
    fn run(mut self) -> anyhow::Result<()> {
        let mut pauses = self.patience.pauses.iter();
        let mut since = Instant::now();
        while self.rest(LOOK).is_ok() {
            let Some(status) = self.server.ended() else {
                if since.elapsed() > self.patience.steady {
                    pauses = self.patience.pauses.iter();
                }
                continue;
            };
            if self.stop.is_cancelled() {
                // A machine that shuts down ends all of us at once.
                tracing::warn!(%status, "embedded PostgreSQL ended before the platform did");
                return Ok(());
            }
            tracing::error!(%status, "embedded PostgreSQL ended by itself; calls are refused until it runs again");
            match self.again(&mut pauses) {
                Ok(Some(last)) => return Err(self.give_up(status, &last)),
                Ok(None) => since = Instant::now(),
                Err(Ordered) => return Ok(()),
            }
        }
        self.server.stop().context("the embedded database did not stop cleanly")
    }

    /// Tries while there are pauses left. Answers the last failure when none are.
    fn again(&mut self, pauses: &mut std::slice::Iter<'_, Duration>) -> Result<Option<String>, Ordered> {
        let mut last = "it ended again and again".to_owned();
        for pause in pauses {
            self.rest(*pause)?;
            match self.server.restart() {
                Ok(()) => {
                    let pid = self.server.pid();
                    tracing::warn!(pid, "embedded PostgreSQL runs again");
                    // Nobody may be interested, and then nobody is waited for.
                    self.restarts.try_send(pid).ok();
                    return Ok(None);
                }
                Err(error) => {
                    tracing::error!(%error, "embedded PostgreSQL could not be started again");
                    last = in_short(&error);
                }
            }
        }
        Ok(Some(last))
    }

    fn give_up(&self, status: ExitStatus, last: &str) -> anyhow::Error {
        let log = self.server.log_path().display().to_string();
        let gone = GaveUp { status, attempts: self.patience.pauses.len(), last: last.to_owned(), log };
        tracing::error!("{gone}");
        self.stop.cancel();
        gone.into()
    }

    fn rest(&self, time: Duration) -> Result<(), Ordered> {
        match self.orders.recv_timeout(time) {
            Err(RecvTimeoutError::Timeout) => Ok(()),
            _ => Err(Ordered),
        }
    }
}

/// Without the pages of log that some errors carry.
fn in_short(error: &EmbeddedError) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;

    use inn_embedded::Options;

    use super::*;

    fn server(home: &tempfile::TempDir) -> EmbeddedPostgres {
        std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        EmbeddedPostgres::start(Options::below(home.path())).unwrap()
    }

    fn kill(pid: u32) {
        assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
    }

    #[test]
    fn a_server_that_dies_is_started_again_until_it_dies_too_often() {
        let home = tempfile::tempdir().unwrap();
        let patience = Patience { pauses: &[Duration::ZERO, Duration::ZERO], steady: Duration::from_hours(1) };
        let (tell, told) = sync_channel(8);
        let stop = CancellationToken::new();
        let keeper = Keeper::with(patience, server(&home), "postgres", stop.clone(), tell).unwrap();
        let mut pid = keeper.pid();
        for _ in 0..2 {
            kill(pid);
            let next = told.recv_timeout(Duration::from_mins(1)).unwrap();
            assert_ne!(next, pid);
            pid = next;
            assert!(!stop.is_cancelled());
        }
        kill(pid);
        assert_eq!(told.recv_timeout(Duration::from_mins(1)), Err(RecvTimeoutError::Disconnected), "the watch is over");
        assert!(stop.is_cancelled());
        let gone = keeper.end().unwrap_err();
        let text = gone.to_string();
        assert!(gone.is::<GaveUp>() && text.contains("2 attempts") && text.contains("server.log"), "{text}");
    }

    #[test]
    fn a_server_that_cannot_start_is_given_up_with_its_reason() {
        let home = tempfile::tempdir().unwrap();
        let server = server(&home);
        std::fs::write(server.data_dir().join("postgresql.conf"), "no_such_setting = 1\n").unwrap();
        let patience = Patience { pauses: &[Duration::ZERO, Duration::ZERO], steady: Duration::from_hours(1) };
        let (tell, told) = sync_channel(8);
        let keeper = Keeper::with(patience, server, "postgres", CancellationToken::new(), tell).unwrap();
        kill(keeper.pid());
        assert_eq!(told.recv_timeout(Duration::from_mins(1)), Err(RecvTimeoutError::Disconnected));
        assert!(keeper.end().unwrap_err().to_string().contains("it ended with"));
    }

    #[test]
    fn a_server_that_is_told_to_stop_is_not_started_again() {
        let home = tempfile::tempdir().unwrap();
        let (tell, told) = sync_channel(8);
        let keeper = Keeper::new(server(&home), "postgres", CancellationToken::new(), tell).unwrap();
        keeper.end().unwrap();
        assert_eq!(told.recv_timeout(Duration::from_mins(1)), Err(RecvTimeoutError::Disconnected));
        assert!(!home.path().join("postgres/postmaster.pid").exists(), "stopped cleanly");
    }
}

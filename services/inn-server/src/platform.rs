//! One running platform: what is started in which order, and ended in the opposite one.
//!
//! A platform lives on a thread of its own with two runtimes: a multi-threaded one that owns every connection to the
//! outside, and the actix system that serves HTTP on top of it. Several platforms fit into one process.

mod background;
mod edge;
mod parts;
mod peers;
mod probe;
#[cfg(test)]
mod tests;
mod trace;

pub(crate) use parts::{blob_config, open_keys, read_optional};

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use parking_lot::Mutex;
use serde::Serialize;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::config::Settings;
use crate::up::UpOptions;
use crate::up::keeper::{GaveUp, Keeper};

use parts::{Parts, Watch};

/// What the platform is started for.
#[derive(Debug, Clone)]
pub enum Role {
    /// With a database of its own, a first tenant and demo apps.
    Up(UpOptions),
    /// On a given database. `migrate` brings it up to date first; otherwise a database that is behind is refused.
    Serve { migrate: bool },
}

/// One app, as the ready file tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AppFacts {
    pub slug: String,
    pub origin: String,
    /// The app's agent token file, on a host bound to loopback.
    pub token_file: Option<PathBuf>,
}

/// What is worth knowing about a platform that answers; serialised, it is the ready file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Facts {
    /// Without a slash at its end.
    pub platform: String,
    pub pid: u32,
    pub postgres_pid: Option<u32>,
    /// The first owner's address; `null` when the database is not ours to look after.
    pub owner: Option<String>,
    pub apps: Vec<AppFacts>,
}

/// Told once, at start, and written nowhere else.
#[derive(Clone, Default)]
pub struct Welcome {
    /// The owner's password, when it was made up just now.
    pub password: Option<String>,
    /// A one-time link that signs the owner in.
    pub link: Option<Url>,
}

/// A platform that answers. Dropping it stops it.
pub struct Platform {
    facts: Facts,
    welcome: Welcome,
    database_url: String,
    stop: CancellationToken,
    restarts: Mutex<Receiver<u32>>,
    thread: Option<JoinHandle<anyhow::Result<()>>>,
}

/// What the thread tells once everything answers.
struct Started {
    facts: Facts,
    welcome: Welcome,
    database_url: String,
}

impl Platform {
    /// Starts everything and returns when it answers. Blocks: call it from a thread that may wait.
    pub fn start(settings: Settings, role: Role) -> anyhow::Result<Self> {
        Self::start_until(settings, role, CancellationToken::new())
    }

    /// The same; cancelling `stop` begins the end, also while it is still starting.
    pub fn start_until(settings: Settings, role: Role, stop: CancellationToken) -> anyhow::Result<Self> {
        crate::tls::install();
        let (tell, told) = sync_channel(1);
        let (restarted, restarts) = sync_channel(UNREAD_RESTARTS);
        let watch = Watch { stop: stop.clone(), restarts: restarted };
        let thread = std::thread::Builder::new()
            .name("inn-platform".to_owned())
            .spawn(move || run(&settings, &role, &tell, watch))?;
        if let Ok(Started { facts, welcome, database_url }) = told.recv() {
            let restarts = Mutex::new(restarts);
            return Ok(Self { facts, welcome, database_url, stop, restarts, thread: Some(thread) });
        }
        // The thread ended without a word: its result is why.
        match thread.join() {
            Ok(Err(error)) => Err(error),
            _ => Err(anyhow!("the platform ended while it was starting; the log says why")),
        }
    }

    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The platform's URL, without a slash at its end.
    pub fn url(&self) -> &str {
        &self.facts.platform
    }

    pub fn welcome(&self) -> &Welcome {
        &self.welcome
    }

    /// The database it runs on, for another node beside it. Secret.
    pub fn database_url(&self) -> &str {
        &self.database_url
    }

    /// Waits until the embedded database had to be started again; answers its new process. `None` when that cannot
    /// happen any more, because the platform has ended or its database is not its own.
    pub fn database_restarted(&self) -> Option<u32> {
        self.restarts.lock().recv().ok()
    }

    /// Waits until the platform has ended, because it was told to or by itself.
    pub fn wait(mut self) -> anyhow::Result<()> {
        self.join()
    }

    /// Not ready, then deaf, then calls under way end, then loops, then connections, then the database.
    pub fn stop(self) -> anyhow::Result<()> {
        self.stop.cancel();
        self.wait()
    }

    fn join(&mut self) -> anyhow::Result<()> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread.join().unwrap_or_else(|_| Err(anyhow!("the platform's thread panicked; the log says where")))
    }
}

impl Drop for Platform {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Err(error) = self.join() {
            tracing::error!(error = format!("{error:#}"), "the platform did not end well");
        }
    }
}

/// Restarts of the embedded database that are kept for whoever asks later.
const UNREAD_RESTARTS: usize = 8;
/// How long connections may take to close after everything that uses them has ended.
const CLOSING: Duration = Duration::from_secs(3);

fn run(settings: &Settings, role: &Role, tell: &SyncSender<Started>, watch: Watch) -> anyhow::Result<()> {
    let io = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(settings.http.io_threads)
        .thread_name("inn-io")
        .enable_all()
        .build()
        .context("the I/O runtime could not be started")?;
    // Dropped last: it must outlive every connection.
    let mut database = None;
    let stop = watch.stop.clone();
    let served = Parts::assemble(settings, role, &io, watch, &mut database)
        .and_then(|parts| edge::serve(settings, parts, &io, tell, stop));
    io.shutdown_timeout(CLOSING);
    match (served, database.map_or(Ok(()), Keeper::end)) {
        // Everything else that failed then failed for want of a database.
        (_, Err(gone)) if gone.is::<GaveUp>() => Err(gone),
        (Err(error), Err(stopped)) => {
            tracing::error!(error = format!("{stopped:#}"), "embedded PostgreSQL");
            Err(error)
        }
        (served, stopped) => served.and(stopped),
    }
}

//! What a killed predecessor left behind.
//!
//! After `kill -9` of the platform its guard is still shutting the old server down. Starting a second one meanwhile
//! would fail, so we wait for the first to go, for a bounded time. Only when no process of the old server is left is
//! its lock file removed: PostgreSQL itself would refuse to start when the number in it now belongs to another process,
//! which is common in containers.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::EmbeddedError;
use crate::server::pause;

pub(crate) fn wait_until_gone(data_dir: &Path, limit: Duration) -> Result<(), EmbeddedError> {
    let lock = data_dir.join("postmaster.pid");
    if !lock.exists() {
        return Ok(());
    }
    let started = Instant::now();
    let mut told = false;
    while let Some(pid) = process_in(data_dir) {
        if started.elapsed() > limit {
            let waited = limit.as_secs();
            return Err(EmbeddedError::StillRunning { data_dir: data_dir.to_owned(), pid, waited });
        }
        if !told {
            tracing::warn!(pid, "an earlier PostgreSQL still runs on this data directory; waiting for it to finish");
            told = true;
        }
        pause(Duration::from_millis(50));
    }
    // Without /proc nothing is known about other processes: PostgreSQL's own check decides.
    if lock.exists() && Path::new("/proc/self/cwd").exists() {
        tracing::warn!("an earlier PostgreSQL was killed; its lock file is removed and the log replayed");
        fs::remove_file(&lock).map_err(EmbeddedError::io("cannot remove the stale lock file", &lock))?;
    }
    Ok(())
}

/// A process whose working directory is the data directory: a postmaster or one of its children.
fn process_in(data_dir: &Path) -> Option<u32> {
    let data_dir = data_dir.canonicalize().ok()?;
    let processes = fs::read_dir("/proc").ok()?;
    processes.flatten().find_map(|process| {
        let pid: u32 = process.file_name().to_str()?.parse().ok()?;
        // Unreadable ones belong to other users, who cannot use our directory.
        let cwd = fs::read_link(process.path().join("cwd")).ok()?;
        (cwd == data_dir && pid != std::process::id()).then_some(pid)
    })
}

//! One `inn up` a data directory. The lock is the kernel's, so that it goes with the process however that ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;

use anyhow::{Context as _, bail};

/// Held while the platform runs.
#[derive(Debug)]
pub(crate) struct DataLock {
    _file: File,
}

impl DataLock {
    /// Refuses when another process has it, and names that process.
    pub(crate) fn take(dir: &Path) -> anyhow::Result<Self> {
        let path = dir.join("lock");
        let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = opened.with_context(|| format!("cannot open {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                (&file).take(20).read_to_string(&mut holder).ok();
                let holder = holder.trim();
                let who = if holder.is_empty() { "another process".to_owned() } else { format!("process {holder}") };
                bail!(
                    "{who} runs on the data directory {} already: stop it first, or choose another directory with --data",
                    dir.display()
                );
            }
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("cannot lock {}", path.display()));
            }
        }
        // The number is for people; what counts is the lock.
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "{}", std::process::id())?;
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_one_holder_and_the_next_is_told_which() {
        let dir = tempfile::tempdir().unwrap();
        let first = DataLock::take(dir.path()).unwrap();
        let refused = DataLock::take(dir.path()).unwrap_err().to_string();
        assert!(
            refused.contains(&format!("process {}", std::process::id())) && refused.contains("--data"),
            "{refused}"
        );
        drop(first);
        DataLock::take(dir.path()).unwrap();
    }

    #[test]
    fn what_a_killed_process_left_behind_locks_nobody_out() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("lock"), "4194304\n").unwrap();
        DataLock::take(dir.path()).unwrap();
        let text = std::fs::read_to_string(dir.path().join("lock")).unwrap();
        assert_eq!(text.trim(), std::process::id().to_string());
    }
}

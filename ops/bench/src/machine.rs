//! What the kernel says about processes and the machine (`/proc`; Linux only).

use std::collections::HashMap;
use std::fs;
use std::io::{Seek as _, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};

/// The processes that a server consists of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Processes {
    pub(crate) server: u32,
    /// PostgreSQL's first process; its children belong to it.
    pub(crate) database: Option<u32>,
}

/// CPU time since the start of the processes, user and system.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cpu {
    pub(crate) server: Duration,
    pub(crate) database: Duration,
    /// Of this program.
    pub(crate) client: Duration,
    /// Of everybody on the machine.
    pub(crate) machine: Duration,
    /// What all processors together could have given.
    pub(crate) capacity: Duration,
}

impl Cpu {
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            server: self.server.saturating_sub(before.server),
            database: self.database.saturating_sub(before.database),
            client: self.client.saturating_sub(before.client),
            machine: self.machine.saturating_sub(before.machine),
            capacity: self.capacity.saturating_sub(before.capacity),
        }
    }

    pub(crate) fn add(&mut self, more: Self) {
        self.server += more.server;
        self.database += more.database;
        self.client += more.client;
        self.machine += more.machine;
        self.capacity += more.capacity;
    }

    /// Share of the machine that went to neither the server nor this program.
    pub(crate) fn others(&self) -> f64 {
        let others = self.machine.saturating_sub(self.server + self.database + self.client);
        others.as_secs_f64() / self.capacity.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

impl Processes {
    pub(crate) fn cpu(self) -> anyhow::Result<Cpu> {
        let all = table()?;
        let ticks =
            |pid: u32, reaped: bool| all.get(&pid).map_or(0, |row| row.own + if reaped { row.reaped } else { 0 });
        let mut database = 0;
        if let Some(first) = self.database {
            // A process that ends hands its time to its parent, so this sum never goes back.
            database = ticks(first, true);
            database += all.values().filter(|row| row.parent == first).map(|row| row.own).sum::<u64>();
        }
        let (machine, capacity) = machine()?;
        Ok(Cpu {
            server: time(ticks(self.server, false)),
            database: time(database),
            client: time(ticks(std::process::id(), false)),
            machine,
            capacity,
        })
    }

    /// Resident memory of the server in bytes.
    pub(crate) fn resident(self) -> anyhow::Result<u64> {
        kilobytes(&format!("/proc/{}/status", self.server), "VmRSS:")
    }

    /// The most resident memory the server has had, in bytes.
    pub(crate) fn peak(self) -> anyhow::Result<u64> {
        kilobytes(&format!("/proc/{}/status", self.server), "VmHWM:")
    }

    /// Memory of the database in bytes: pages shared by its processes are counted once.
    pub(crate) fn database_memory(self) -> anyhow::Result<u64> {
        let Some(first) = self.database else { return Ok(0) };
        let all = table()?;
        let pids = all.iter().filter(|(pid, row)| **pid == first || row.parent == first).map(|(pid, _)| *pid);
        let mut sum = 0;
        for pid in pids {
            sum += kilobytes(&format!("/proc/{pid}/smaps_rollup"), "Pss:")?;
        }
        Ok(sum)
    }
}

struct Row {
    parent: u32,
    /// Ticks of the process itself.
    own: u64,
    /// Ticks of children that have ended.
    reaped: u64,
}

fn table() -> anyhow::Result<HashMap<u32, Row>> {
    let mut rows = HashMap::new();
    for entry in fs::read_dir("/proc").context("/proc cannot be read: the benchmark runs on Linux only")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // A process may end while we look.
        let Some(row) = fs::read_to_string(format!("/proc/{pid}/stat")).ok().as_deref().and_then(parse) else {
            continue;
        };
        rows.insert(pid, row);
    }
    Ok(rows)
}

/// Fields after the name, which is in parentheses and may hold anything (`man 5 proc`).
fn parse(stat: &str) -> Option<Row> {
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |place: usize| fields.get(place).and_then(|text| text.parse::<u64>().ok());
    Some(Row {
        parent: u32::try_from(number(1)?).ok()?,
        own: number(11)? + number(12)?,
        reaped: number(13)? + number(14)?,
    })
}

/// Busy time of all processors, and all their time.
fn machine() -> anyhow::Result<(Duration, Duration)> {
    let text = fs::read_to_string("/proc/stat")?;
    let line = text.lines().next().unwrap_or_default();
    let ticks: Vec<u64> = line.split_whitespace().skip(1).filter_map(|text| text.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; guest time is in user already.
    let [user, nice, system, idle, iowait, irq, softirq, steal] =
        *ticks.first_chunk::<8>().ok_or_else(|| anyhow!("/proc/stat has an unknown form"))?;
    let busy = user + nice + system + irq + softirq + steal;
    Ok((time(busy), time(busy + idle + iowait)))
}

fn time(ticks: u64) -> Duration {
    let rate = rustix::param::clock_ticks_per_second().max(1);
    Duration::from_millis(ticks * 1000 / rate)
}

fn kilobytes(path: &str, name: &str) -> anyhow::Result<u64> {
    let text = fs::read_to_string(path).with_context(|| path.to_owned())?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.trim().strip_suffix("kB")).and_then(|text| text.trim().parse::<u64>().ok());
    Ok(number.ok_or_else(|| anyhow!("{path} has no {name}"))? * 1024)
}

/// Processor, count of them, kernel and load, in one line.
pub(crate) fn describe() -> String {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let info = text("/proc/cpuinfo");
    let model = info.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown processor");
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = text("/proc/sys/kernel/osrelease");
    format!("{cores} × {}, Linux {}", model.trim_start_matches([' ', '\t', ':']), kernel.trim())
}

/// One, five and fifteen minutes.
pub(crate) fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

/// Median time of an 8 KiB append made durable: what a commit with fsync costs at least on this disk.
pub(crate) fn sync_cost(dir: &Path) -> anyhow::Result<Duration> {
    let mut file = tempfile::tempfile_in(dir)?;
    file.write_all(&vec![0; 1 << 20])?;
    file.rewind()?;
    file.sync_data()?;
    let mut times = Vec::new();
    for _ in 0..100 {
        file.write_all(&[1; 8192])?;
        let began = Instant::now();
        file.sync_data()?;
        times.push(began.elapsed());
    }
    times.sort_unstable();
    Ok(times.get(50).copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_name_with_blanks_and_parentheses_shifts_nothing() {
        let row = parse("42 (a ) b) S 7 1 1 0 -1 4194560 10 20 0 0 11 12 13 14 20 0 1").unwrap();
        assert_eq!((row.parent, row.own, row.reaped), (7, 23, 27));
        assert!(parse("42 (cut").is_none());
    }

    #[test]
    fn own_time_and_memory_can_be_read() {
        let own = Processes { server: std::process::id(), database: None };
        let before = own.cpu().unwrap();
        assert!(own.cpu().unwrap().capacity >= before.capacity);
        assert!(own.resident().unwrap() > 1 << 20);
        assert_eq!(own.database_memory().unwrap(), 0);
    }
}

//! The load: N connections, each sends, waits for the whole answer, sends the next.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::task::JoinSet;

use crate::machine::{Cpu, Processes};
use crate::wire::{Connection, Ready};

/// Who is loaded, and whose CPU is counted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    pub(crate) processes: Processes,
}

/// One unit of work on a connection.
pub(crate) trait Job: Clone + Send + 'static {
    /// `false` when there is nothing left to do.
    fn once(&self, connection: &mut Connection) -> impl Future<Output = anyhow::Result<bool>> + Send;
}

/// Requests made before the clock starts, handed out in order.
#[derive(Clone)]
pub(crate) struct Supply(Arc<Mutex<std::vec::IntoIter<Ready>>>);

impl Supply {
    pub(crate) fn new(requests: Vec<Ready>) -> Self {
        Self(Arc::new(Mutex::new(requests.into_iter())))
    }

    pub(crate) fn next(&self) -> Option<Ready> {
        self.0.lock().next()
    }
}

impl Job for Supply {
    async fn once(&self, connection: &mut Connection) -> anyhow::Result<bool> {
        let Some(request) = self.next() else { return Ok(false) };
        connection.send_ok(request).await?;
        Ok(true)
    }
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) done: usize,
    pub(crate) elapsed: Duration,
    pub(crate) cpu: Cpu,
    /// Microseconds a unit, sorted by [`Self::percentile`].
    pub(crate) micros: Vec<u32>,
    /// Any failure fails the row: a server that refuses is not fast.
    pub(crate) failure: Option<String>,
}

impl Tally {
    pub(crate) fn add(&mut self, more: Self) {
        self.done += more.done;
        self.elapsed += more.elapsed;
        self.cpu.add(more.cpu);
        self.micros.extend(more.micros);
        self.failure = self.failure.take().or(more.failure);
    }

    #[allow(clippy::cast_precision_loss)]
    pub(crate) fn per_second(&self) -> f64 {
        self.done as f64 / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// Milliseconds of CPU a unit.
    #[allow(clippy::cast_precision_loss)]
    pub(crate) fn each(&self, cpu: Duration) -> f64 {
        cpu.as_secs_f64() * 1000.0 / (self.done.max(1) as f64)
    }

    /// Milliseconds that `percent` of the units took at most.
    pub(crate) fn percentile(&mut self, percent: usize) -> f64 {
        self.micros.sort_unstable();
        let place = (self.micros.len() * percent / 100).min(self.micros.len().saturating_sub(1));
        f64::from(self.micros.get(place).copied().unwrap_or_default()) / 1000.0
    }
}

/// Runs until the time is up or the work is done, whatever comes first; units under way are finished and counted.
pub(crate) async fn slice<J: Job>(target: Target, connections: usize, time: Duration, job: J) -> anyhow::Result<Tally> {
    let mut open = Vec::with_capacity(connections);
    for _ in 0..connections {
        open.push(Connection::open(target.address).await?);
    }
    let before = target.processes.cpu()?;
    let began = Instant::now();
    let end = began + time;
    let mut workers = JoinSet::new();
    for mut connection in open {
        let job = job.clone();
        workers.spawn(async move {
            let mut micros: Vec<u32> = Vec::with_capacity(1024);
            while Instant::now() < end {
                let sent = Instant::now();
                match job.once(&mut connection).await {
                    Ok(true) => micros.push(u32::try_from(sent.elapsed().as_micros()).unwrap_or(u32::MAX)),
                    Ok(false) => break,
                    Err(error) => return (micros, Some(format!("{error:#}"))),
                }
            }
            (micros, None)
        });
    }
    let mut tally = Tally::default();
    while let Some(worker) = workers.join_next().await {
        let (micros, failure) = worker?;
        tally.done += micros.len();
        tally.micros.extend(micros);
        tally.failure = tally.failure.take().or(failure);
    }
    tally.elapsed = began.elapsed();
    tally.cpu = target.processes.cpu()?.since(before);
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_all_slices() {
        let part = |micros: Vec<u32>| Tally { done: micros.len(), micros, ..Tally::default() };
        let mut all = part((1..=60).map(|number| number * 1000).collect());
        all.add(part((61..=100).map(|number| number * 1000).collect()));
        assert_eq!((all.percentile(50), all.percentile(99), all.done), (51.0, 100.0, 100));
        assert!(Tally::default().percentile(99).abs() < f64::EPSILON);
    }

    #[test]
    fn one_failed_slice_fails_the_row() {
        let mut all = Tally::default();
        all.add(Tally { failure: Some("status 503".to_owned()), ..Tally::default() });
        all.add(Tally::default());
        assert_eq!(all.failure.as_deref(), Some("status 503"));
    }
}

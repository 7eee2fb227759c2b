//! Work that nobody asks for: each loop has a name, says so when a round fails, waits longer after each failure and goes
//! on. None ends before the platform does.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::vitals::PlatformVitals;

/// Longest wait after failures, unless the loop's own pause is longer.
const LONGEST_BACKOFF: Duration = Duration::from_secs(30);
/// How long loops may take to notice that the platform stops.
const PATIENCE: Duration = Duration::from_secs(5);

/// The running loops of one platform.
pub(crate) struct Loops {
    io: tokio::runtime::Handle,
    vitals: Arc<PlatformVitals>,
    stop: CancellationToken,
    running: Vec<(&'static str, JoinHandle<()>)>,
}

impl Loops {
    pub(crate) fn new(io: tokio::runtime::Handle, vitals: Arc<PlatformVitals>) -> Self {
        Self { io, vitals, stop: CancellationToken::new(), running: Vec::new() }
    }

    /// Works, pauses, works again. `round` is called anew each time; one that panics counts as failed.
    pub(crate) fn every<F, R, E>(&mut self, name: &'static str, pause: Duration, mut round: F)
    where
        F: FnMut() -> R + Send + 'static,
        R: Future<Output = Result<(), E>> + Send,
        E: std::fmt::Debug + Send,
    {
        let (vitals, stop) = (Arc::clone(&self.vitals), self.stop.clone());
        let task = self.io.spawn(async move {
            let mut failures = 0_u32;
            loop {
                let outcome = tokio::select! {
                    biased;
                    () = stop.cancelled() => return,
                    outcome = AssertUnwindSafe(round()).catch_unwind() => outcome,
                };
                let well = matches!(outcome, Ok(Ok(())));
                vitals.loop_ended(name, well);
                match outcome {
                    Ok(Ok(())) => failures = 0,
                    Ok(Err(error)) => {
                        failures = failures.saturating_add(1);
                        tracing::warn!(name, failures, ?error, "a background loop failed and will try again");
                    }
                    Err(_) => {
                        failures = failures.saturating_add(1);
                        tracing::error!(name, failures, "a background loop panicked and will try again");
                    }
                }
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(backoff(pause, failures)) => {}
                }
            }
        });
        self.running.push((name, task));
    }

    /// Tells all of them and waits for their end.
    pub(crate) async fn end(self) {
        self.stop.cancel();
        for (name, mut task) in self.running {
            if tokio::time::timeout(PATIENCE, &mut task).await.is_err() {
                tracing::warn!(name, "a background loop did not end in time and was cut off");
                task.abort();
            }
        }
    }
}

fn backoff(pause: Duration, failures: u32) -> Duration {
    let doubled = pause.saturating_mul(1 << failures.min(16));
    doubled.min(LONGEST_BACKOFF.max(pause))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use inn_http::Vitals as _;

    use super::*;

    #[test]
    fn waits_double_up_to_a_ceiling() {
        let second = Duration::from_secs(1);
        assert_eq!([0, 1, 2, 5, 40].map(|failures| backoff(second, failures).as_secs()), [1, 2, 4, 30, 30]);
        assert_eq!(backoff(Duration::from_hours(1), 3), Duration::from_hours(1), "a slow loop is not made faster");
    }

    #[tokio::test]
    async fn a_loop_outlives_errors_and_panics_and_ends_when_told() {
        let vitals = Arc::new(PlatformVitals::new().unwrap());
        let mut loops = Loops::new(tokio::runtime::Handle::current(), Arc::clone(&vitals));
        let rounds = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&rounds);
        loops.every("test", Duration::from_millis(1), move || {
            let round = counted.fetch_add(1, Ordering::SeqCst);
            async move {
                match round {
                    0 => Err("broken"),
                    1 => panic!("more broken"),
                    _ => Ok(()),
                }
            }
        });
        while rounds.load(Ordering::SeqCst) < 4 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        loops.end().await;
        let at_end = rounds.load(Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert_eq!(rounds.load(Ordering::SeqCst), at_end);
        assert!(vitals.metrics().contains("inn_loop_failures_total{loop=\"test\"} 2"));
    }
}

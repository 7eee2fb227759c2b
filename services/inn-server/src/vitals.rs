//! How the platform is: readiness and the numbers of `/metrics`. One registry a platform, since a process may run several.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use inn_actors::Gateway;
use inn_http::Vitals;
use inn_store::{PgStore, PoolStatus};
use parking_lot::Mutex;
use prometheus::{
    Encoder as _, Gauge, GaugeVec, Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry, TextEncoder,
};

/// The parts of this node that can be asked how they are.
pub(crate) struct PlatformVitals {
    draining: AtomicBool,
    registry: Registry,
    gateway: OnceLock<Gateway>,
    /// Scrapes take turns: counters that others keep are carried over by their difference.
    scrape: Mutex<()>,
    in_flight: IntGauge,
    strangers: IntCounter,
    resident: IntGauge,
    stuck: IntGauge,
    seal_lag: Gauge,
    clock_offset: Gauge,
    answers: IntCounterVec,
    durations: Histogram,
    loop_failures: IntCounterVec,
    loop_success: GaugeVec,
    store: OnceLock<PgStore>,
    pool: IntGaugeVec,
    pool_waiting: IntGauge,
}

impl PlatformVitals {
    pub(crate) fn new() -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let gauge = |name: &str, help: &str| -> Result<IntGauge, prometheus::Error> {
            let gauge = IntGauge::new(name, help)?;
            registry.register(Box::new(gauge.clone()))?;
            Ok(gauge)
        };
        let fraction = |name: &str, help: &str| -> Result<Gauge, prometheus::Error> {
            let gauge = Gauge::new(name, help)?;
            registry.register(Box::new(gauge.clone()))?;
            Ok(gauge)
        };
        let counters = |name: &str, help: &str, label: &str| -> Result<IntCounterVec, prometheus::Error> {
            let counters = IntCounterVec::new(Opts::new(name, help), &[label])?;
            registry.register(Box::new(counters.clone()))?;
            Ok(counters)
        };
        let strangers = IntCounter::new(
            "inn_strangers_total",
            "Calls refused for bad papers; they are counted and not registered.",
        )?;
        registry.register(Box::new(strangers.clone()))?;
        let durations =
            HistogramOpts::new("inn_http_duration_seconds", "From the end of a request's headers to its answer.")
                .buckets(vec![0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0]);
        let durations = Histogram::with_opts(durations)?;
        registry.register(Box::new(durations.clone()))?;
        let loop_success = GaugeVec::new(
            Opts::new("inn_loop_success_timestamp_seconds", "When a background loop last did its work."),
            &["loop"],
        )?;
        registry.register(Box::new(loop_success.clone()))?;
        let pool = Opts::new("inn_pool_connections", "Open connections to the database, by what they do.");
        let pool = IntGaugeVec::new(pool, &["state"])?;
        registry.register(Box::new(pool.clone()))?;
        Ok(Self {
            store: OnceLock::new(),
            pool,
            pool_waiting: gauge("inn_pool_waiting", "Calls that wait for a connection to the database.")?,
            in_flight: gauge("inn_calls_in_flight", "Calls that hold a permit.")?,
            strangers,
            resident: gauge("inn_resident_bytes", "Memory of the process that is in use (RSS).")?,
            stuck: gauge("inn_stuck", "Requests and jobs without owner, deadline or next step. Must be 0.")?,
            seal_lag: fraction("inn_seal_lag_seconds", "Age of the oldest register entry that is not sealed yet.")?,
            clock_offset: fraction("inn_clock_offset_seconds", "Database time minus this node's clock.")?,
            answers: counters("inn_http_answers_total", "HTTP answers by class of status.", "status")?,
            durations,
            loop_failures: counters("inn_loop_failures_total", "Failed rounds of background loops.", "loop")?,
            loop_success,
            draining: AtomicBool::new(false),
            gateway: OnceLock::new(),
            scrape: Mutex::new(()),
            registry,
        })
    }

    /// Tells whom to ask; only the first call counts.
    pub(crate) fn watch(&self, gateway: Gateway, store: PgStore) {
        self.gateway.get_or_init(|| gateway);
        self.store.get_or_init(|| store);
    }

    /// From now on this node is not ready.
    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    pub(crate) fn answered(&self, status: u16, took: Duration) {
        let class = match status {
            100..=199 => "1xx",
            200..=299 => "2xx",
            300..=399 => "3xx",
            400..=499 => "4xx",
            _ => "5xx",
        };
        self.answers.with_label_values(&[class]).inc();
        self.durations.observe(took.as_secs_f64());
    }

    pub(crate) fn stuck(&self, rows: i64) {
        self.stuck.set(rows);
    }

    pub(crate) fn seal_lag(&self, lag: Duration) {
        self.seal_lag.set(lag.as_secs_f64());
    }

    pub(crate) fn clock_offset(&self, seconds: f64) {
        self.clock_offset.set(seconds);
    }

    pub(crate) fn loop_ended(&self, name: &str, well: bool) {
        if well {
            // Milliseconds since 1970 fit a double for the next 285,000 years.
            #[allow(clippy::cast_precision_loss)]
            let now = chrono::Utc::now().timestamp_millis() as f64 / 1000.0;
            self.loop_success.with_label_values(&[name]).set(now);
        } else {
            self.loop_failures.with_label_values(&[name]).inc();
        }
    }

    fn look(&self) {
        if let Some(gateway) = self.gateway.get() {
            self.in_flight.set(whole(gateway.in_flight()));
            self.strangers.inc_by(gateway.strangers().saturating_sub(self.strangers.get()));
        }
        if let Some(PoolStatus { size, available, waiting }) = self.store.get().map(PgStore::pool_status) {
            self.pool.with_label_values(&["idle"]).set(whole(available));
            self.pool.with_label_values(&["used"]).set(whole(size.saturating_sub(available)));
            self.pool_waiting.set(whole(waiting));
        }
        if let Some(resident) = std::fs::read_to_string("/proc/self/status").ok().as_deref().and_then(resident_bytes) {
            self.resident.set(resident);
        }
    }
}

impl Vitals for PlatformVitals {
    fn draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    fn metrics(&self) -> String {
        let _turn = self.scrape.lock();
        self.look();
        let mut out = Vec::new();
        if let Err(error) = TextEncoder::new().encode(&self.registry.gather(), &mut out) {
            tracing::error!(%error, "metrics could not be rendered");
        }
        String::from_utf8_lossy(&out).into_owned()
    }
}

fn whole(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// `VmRSS` of `/proc/<pid>/status`, which is in KiB (proc(5)).
fn resident_bytes(status: &str) -> Option<i64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<i64>().ok()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_tell_what_happened() {
        let vitals = PlatformVitals::new().unwrap();
        vitals.answered(204, Duration::from_millis(3));
        vitals.answered(503, Duration::from_millis(3));
        vitals.stuck(2);
        vitals.seal_lag(Duration::from_millis(250));
        vitals.loop_ended("sealer", true);
        vitals.loop_ended("sealer", false);
        let text = vitals.metrics();
        for line in [
            "inn_http_answers_total{status=\"2xx\"} 1",
            "inn_http_answers_total{status=\"5xx\"} 1",
            "inn_http_duration_seconds_count 2",
            "inn_stuck 2",
            "inn_seal_lag_seconds 0.25",
            "inn_loop_failures_total{loop=\"sealer\"} 1",
        ] {
            assert!(text.contains(line), "{line} in\n{text}");
        }
        let resident = text.lines().find_map(|line| line.strip_prefix("inn_resident_bytes ")).unwrap();
        assert!(resident.parse::<f64>().unwrap() > 1_000_000.0, "a running process has memory");
    }

    #[test]
    fn two_platforms_of_one_process_count_apart() {
        let [one, two] = [PlatformVitals::new().unwrap(), PlatformVitals::new().unwrap()];
        one.stuck(7);
        assert!(one.metrics().contains("inn_stuck 7") && two.metrics().contains("inn_stuck 0"));
    }

    #[test]
    fn readiness_goes_and_does_not_come_back() {
        let vitals = PlatformVitals::new().unwrap();
        assert!(!vitals.draining());
        vitals.drain();
        assert!(vitals.draining());
    }

    #[test]
    fn resident_memory_is_read_in_bytes() {
        assert_eq!(resident_bytes("Name:\tinn\nVmRSS:\t  1234 kB\n"), Some(1_263_616));
        assert_eq!(resident_bytes("Name:\tinn\n"), None);
    }
}

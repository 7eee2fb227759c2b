//! How far the server's clock is from ours, told by the `Date` header of its answers.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use chrono::DateTime;

/// `Date` has whole seconds and took some time to arrive: less than this is no difference.
const NOISE_SECONDS: i64 = 3;

/// Seconds to add to our clock. Zero until an answer said otherwise.
#[derive(Debug, Default)]
pub(crate) struct Skew(AtomicI64);

impl Skew {
    /// The server's time now, in unix seconds, as well as it is known.
    pub(crate) fn now(&self) -> i64 {
        own_seconds().saturating_add(self.0.load(Ordering::Relaxed))
    }

    /// Takes the time of an answer that has just arrived. True when the known difference changed.
    pub(crate) fn learn(&self, date: &str) -> bool {
        let Ok(date) = DateTime::parse_from_rfc2822(date) else { return false };
        let ahead = date.timestamp().saturating_sub(own_seconds());
        let ahead = if ahead.abs() < NOISE_SECONDS { 0 } else { ahead };
        let before = self.0.swap(ahead, Ordering::Relaxed);
        (before - ahead).abs() >= NOISE_SECONDS
    }
}

fn own_seconds() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn http_date(seconds: i64) -> String {
        DateTime::from_timestamp(seconds, 0).unwrap().format("%a, %d %b %Y %H:%M:%S GMT").to_string()
    }

    #[test]
    fn a_servers_clock_is_followed_and_noise_is_not() {
        let skew = Skew::default();
        assert!(!skew.learn(&http_date(own_seconds() + 1)));
        assert!((skew.now() - own_seconds()).abs() <= 1);
        assert!(skew.learn(&http_date(own_seconds() - 300)));
        assert!((skew.now() - (own_seconds() - 300)).abs() <= 1);
        assert!(!skew.learn("yesterday, around noon"), "a broken header changes nothing");
        assert!((skew.now() - (own_seconds() - 300)).abs() <= 1);
    }
}

//! When to send again, and after how long. Bounded in number and in time.

use std::time::Duration;

use crate::error::ClientError;

/// How stubborn a client is with calls that may be sent again.
#[derive(Debug, Clone, Copy)]
pub struct RetryPolicy {
    /// Attempts in all; 1 never repeats.
    pub attempts: u32,
    /// Wait before the second attempt; doubles from there.
    pub first_wait: Duration,
    /// No wait is longer, and a server that asks for a longer one gets no second attempt.
    pub longest_wait: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { attempts: 4, first_wait: Duration::from_millis(200), longest_wait: Duration::from_secs(5) }
    }
}

impl RetryPolicy {
    /// The answer stands, whatever it is.
    pub const NEVER: Self =
        Self { attempts: 1, first_wait: Duration::from_millis(1), longest_wait: Duration::from_millis(1) };

    /// How long to wait before attempt number `next` (from 2) of a repeatable call that ended with `error`; `None` to
    /// let it stand. `spread` is a random number from 0 to 1, so that many clients do not come back at one moment.
    pub fn wait(&self, error: &ClientError, next: u32, spread: f64) -> Option<Duration> {
        if next > self.attempts {
            return None;
        }
        let doubled = self.first_wait.saturating_mul(1 << next.saturating_sub(2).min(16)).min(self.longest_wait);
        let own = doubled.mul_f64(0.5 + spread.clamp(0.0, 1.0) / 2.0);
        match error {
            ClientError::Unreachable { .. } => Some(own),
            ClientError::Refused(body) if body.retry == "after" => {
                let asked = Duration::from_secs(body.retry_after_seconds.unwrap_or(1));
                (asked <= self.longest_wait).then(|| asked.max(own))
            }
            ClientError::Refused(body) if body.retry == "same_key" => Some(own),
            ClientError::Refused(_) | ClientError::Protocol { .. } | ClientError::Invalid(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::RefusalBody;

    fn refused(retry: &str, after: Option<u64>) -> ClientError {
        let body = serde_json::json!({"code": "x", "message": "y", "retry": retry, "retryAfterSeconds": after});
        ClientError::Refused(Box::new(RefusalBody::read(503, body.to_string().as_bytes(), None).unwrap()))
    }

    #[test]
    fn waits_grow_and_end() {
        let policy = RetryPolicy::default();
        let lost = ClientError::Unreachable { url: String::new(), cause: String::new(), sent: true };
        let waits: Vec<_> = (2..=5).map(|next| policy.wait(&lost, next, 1.0).map(|wait| wait.as_millis())).collect();
        assert_eq!(waits, [Some(200), Some(400), Some(800), None]);
        assert_eq!(policy.wait(&lost, 2, 0.0).map(|wait| wait.as_millis()), Some(100));
    }

    #[test]
    fn a_refusal_is_repeated_only_when_it_says_so_and_as_late_as_it_says() {
        let policy = RetryPolicy::default();
        assert_eq!(policy.wait(&refused("no", None), 2, 0.5), None);
        assert_eq!(policy.wait(&refused("after", Some(2)), 2, 0.5), Some(Duration::from_secs(2)));
        assert_eq!(policy.wait(&refused("after", Some(600)), 2, 0.5), None, "nobody waits ten minutes unasked");
        assert!(policy.wait(&refused("same_key", None), 2, 0.5).is_some());
        assert_eq!(RetryPolicy::NEVER.wait(&refused("after", Some(1)), 2, 0.5), None);
    }
}

//! Waiting for what happens in the background.

use std::future::Future;
use std::time::{Duration, Instant};

/// Generous: a busy machine is not a failure.
const DEADLINE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(20);

/// Asks again until there is an answer; fails after half a minute with `what` was waited for.
pub async fn until<T, F: Future<Output = Option<T>>>(what: &str, mut look: impl FnMut() -> F) -> T {
    let end = Instant::now() + DEADLINE;
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(Instant::now() < end, "waited {} s for {what}", DEADLINE.as_secs());
        tokio::time::sleep(PAUSE).await;
    }
}

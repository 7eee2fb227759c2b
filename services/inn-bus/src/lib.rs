//! Wake-ups: inside one process, and between nodes over Redis (DESIGN invariant 6: Redis is speed, never the truth).
//!
//! A hint says "look again", nothing else. Whoever misses one finds out from the database a little later, so nothing here
//! is retried for long, nothing is stored, and a Redis that is down costs time only.

mod hub;
mod local;
mod remote;
mod wire;

use std::sync::Arc;

use inn_ports::Bus;
use tokio::runtime::Handle;

/// The address does not name a Redis server. The address itself is not repeated: it may hold a password.
#[derive(Debug, thiserror::Error)]
#[error("the Redis address cannot be used ({0}); expected redis://[user:password@]host[:port][/db]")]
pub struct InvalidRedisUrl(String);

/// The bus of this node: in-process without an address, otherwise also over that Redis.
///
/// Answers at once: connections are made, and made again, by tasks on `io`. They end when the bus is dropped.
///
/// # Errors
/// [`InvalidRedisUrl`] when the text is not an address. A server that does not answer is not an error.
pub fn connect(redis_url: Option<&str>, io: &Handle) -> Result<Arc<dyn Bus>, InvalidRedisUrl> {
    match redis_url {
        None => Ok(Arc::new(local::LocalBus::default())),
        Some(url) => Ok(Arc::new(remote::RedisBus::start(url, io)?)),
    }
}

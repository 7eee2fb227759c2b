//! The bus of a platform with several nodes: hints over Redis Pub/Sub.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use inn_ports::{Bus, PolicyHints, Topic};
use parking_lot::Mutex;
use redis::Client;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use uuid::Uuid;

use crate::InvalidRedisUrl;
use crate::hub::Hub;
use crate::wire::News;

mod publisher;
mod subscriber;

/// Where the nodes of one platform meet.
const CHANNEL: &str = "innkeeper:hints";
/// Hints of one node are sent at most this often, together.
const COALESCE: Duration = Duration::from_millis(10);
/// Whatever Redis is asked is given up after this time.
const PATIENCE: Duration = Duration::from_millis(150);
/// Between attempts to reach a Redis that is down: doubled from the first to the second.
const RETRY: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// A silent subscription is asked this often whether it still lives.
const HEARTBEAT: Duration = Duration::from_secs(10);

pub(crate) struct RedisBus {
    shared: Arc<Shared>,
    tasks: [AbortHandle; 2],
}

struct Shared {
    /// Tells our own messages apart when Redis hands them back.
    node: Uuid,
    hub: Hub,
    /// What the publisher has not sent yet. Bounded by collapsing into "everything".
    unsent: Mutex<News>,
    /// Something is unsent.
    publish: Notify,
}

impl RedisBus {
    pub(crate) fn start(url: &str, io: &Handle) -> Result<Self, InvalidRedisUrl> {
        let client = Client::open(url).map_err(|error| InvalidRedisUrl(error.category().to_owned()))?;
        Ok(Self::spawn(&client, Arc::new(Shared::new()), io))
    }

    fn spawn(client: &Client, shared: Arc<Shared>, io: &Handle) -> Self {
        let publisher = io.spawn(publisher::run(client.clone(), Arc::clone(&shared)));
        let subscriber = io.spawn(subscriber::run(client.clone(), Arc::clone(&shared)));
        Self { shared, tasks: [publisher.abort_handle(), subscriber.abort_handle()] }
    }
}

impl Shared {
    fn new() -> Self {
        Self { node: Uuid::new_v4(), hub: Hub::default(), unsent: Mutex::default(), publish: Notify::new() }
    }
}

impl Drop for RedisBus {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

#[async_trait]
impl Bus for RedisBus {
    async fn publish(&self, topic: Topic) {
        // This node first and directly: what it does itself must not depend on Redis.
        self.shared.hub.wake(topic);
        self.shared.unsent.lock().add(topic);
        self.shared.publish.notify_one();
    }

    async fn wait(&self, topics: &[Topic], limit: Duration) -> bool {
        self.shared.hub.wait(topics, limit).await
    }

    fn policy_hints(&self) -> Box<dyn PolicyHints> {
        self.shared.hub.policy_hints()
    }
}

/// Waiting times between attempts: doubled up to a ceiling, from the start again after a success.
struct Backoff(Duration);

impl Backoff {
    const fn new() -> Self {
        Self(RETRY.0)
    }

    async fn pause(&mut self) {
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 * 2).min(RETRY.1);
    }
}

fn timed_out() -> redis::RedisError {
    (redis::ErrorKind::Io, "no answer in time").into()
}

#[cfg(test)]
mod tests;

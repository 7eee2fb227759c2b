//! Who waits on this node, and for what.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use inn_ports::{PolicyHints, Topic};
use inn_protocol::TenantId;
use parking_lot::Mutex;
use tokio::sync::{Notify, broadcast};

/// Policy hints a slow reader may fall behind before it is told to forget everything instead.
const POLICY_BACKLOG: usize = 1024;

/// Waiters by topic, and the stream of policy hints. A waiter that stops waiting leaves nothing behind.
pub(crate) struct Hub {
    waiters: Mutex<HashMap<Topic, Vec<Arc<Notify>>>>,
    /// `None`: hints were missed, forget everything.
    policy: broadcast::Sender<Option<TenantId>>,
}

impl Default for Hub {
    fn default() -> Self {
        Self { waiters: Mutex::default(), policy: broadcast::Sender::new(POLICY_BACKLOG) }
    }
}

impl Hub {
    /// Wakes everybody on this node who waits for the topic.
    pub(crate) fn wake(&self, topic: Topic) {
        if let Some(waiters) = self.waiters.lock().get(&topic) {
            for waiter in waiters {
                waiter.notify_one();
            }
        }
        if let Topic::Policy(tenant) = topic {
            // Fails only when nobody listens, which is fine.
            let _ = self.policy.send(Some(tenant));
        }
    }

    /// Hints from other nodes may have been missed: everybody looks again and every cache forgets.
    pub(crate) fn wake_everything(&self) {
        for waiter in self.waiters.lock().values().flatten() {
            waiter.notify_one();
        }
        let _ = self.policy.send(None);
    }

    /// Waits for one of the topics; `true` when woken, `false` when the time is over.
    pub(crate) async fn wait(&self, topics: &[Topic], limit: Duration) -> bool {
        let registered = Registered::new(self, topics);
        // `notify_one` keeps a permit, so a wake between registering and this line is not lost.
        tokio::time::timeout(limit, registered.notify.notified()).await.is_ok()
    }

    pub(crate) fn policy_hints(&self) -> Box<dyn PolicyHints> {
        Box::new(Hints(self.policy.subscribe()))
    }

    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.waiters.lock().len()
    }
}

/// One waiter's places in the table, given back when it is dropped (answered, timed out or canceled).
struct Registered<'h> {
    hub: &'h Hub,
    topics: Vec<Topic>,
    notify: Arc<Notify>,
}

impl<'h> Registered<'h> {
    fn new(hub: &'h Hub, topics: &[Topic]) -> Self {
        let notify = Arc::new(Notify::new());
        let mut unique: Vec<Topic> = Vec::with_capacity(topics.len());
        let mut waiters = hub.waiters.lock();
        for topic in topics {
            if !unique.contains(topic) {
                unique.push(*topic);
                waiters.entry(*topic).or_default().push(Arc::clone(&notify));
            }
        }
        drop(waiters);
        Self { hub, topics: unique, notify }
    }
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        let mut waiters = self.hub.waiters.lock();
        for topic in &self.topics {
            if let Some(list) = waiters.get_mut(topic) {
                list.retain(|waiter| !Arc::ptr_eq(waiter, &self.notify));
                if list.is_empty() {
                    waiters.remove(topic);
                }
            }
        }
    }
}

struct Hints(broadcast::Receiver<Option<TenantId>>);

#[async_trait]
impl PolicyHints for Hints {
    async fn next(&mut self) -> Option<Option<TenantId>> {
        match self.0.recv().await {
            Ok(hint) => Some(hint),
            Err(broadcast::error::RecvError::Lagged(_)) => Some(None),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

#[cfg(test)]
mod tests;

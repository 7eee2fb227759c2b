//! Wake-ups between nodes. Hints only: whoever misses one finds out from the database a little later.

use async_trait::async_trait;
use inn_protocol::{AppId, TenantId};

/// What changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Topic {
    /// A request of the app became claimable or changed.
    Requests(AppId),
    /// Grants, members or releases of the tenant moved on: forget cached snapshots.
    Policy(TenantId),
    /// Records of some app were changed.
    Changes,
}

#[async_trait]
pub trait Bus: Send + Sync {
    /// Tells every node, this one included. Never fails and never waits for long: a lost hint costs time only.
    async fn publish(&self, topic: Topic);
    /// Waits until one of the topics is published or the time is over; `true` when woken. Subscribes before it returns
    /// its first pending, so a publish after the call started is never missed on this node.
    async fn wait(&self, topics: &[Topic], limit: std::time::Duration) -> bool;
    /// A stream of every `Policy` hint, for the cache that must forget.
    fn policy_hints(&self) -> Box<dyn PolicyHints>;
}

/// An endless supply of tenants whose policy moved on.
#[async_trait]
pub trait PolicyHints: Send {
    /// `None` when the bus has shut down; `Some(None)` when hints were missed and everything should be forgotten.
    async fn next(&mut self) -> Option<Option<TenantId>>;
}

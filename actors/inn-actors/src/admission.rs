//! The permit in front of every mailbox and pool. No permit, no work: 503 for a full node, 429 for a full share.
//!
//! A mailbox is no limit (fresh senders go past it), so this is the first wall and the mailbox only the second.

use std::collections::HashMap;
use std::sync::Arc;

use inn_protocol::{AppId, Code, Refusal, TenantId};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many calls may be under way at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdmissionLimits {
    /// On this node. Start value: four times the connection pool, enough to keep it busy and short enough to wait for.
    pub node: usize,
    /// Of one tenant on this node: leaves room for the others.
    pub tenant: usize,
    /// Of one app on this node: half its mailbox, so that the mailbox is never the first wall.
    pub app: usize,
}

impl Default for AdmissionLimits {
    fn default() -> Self {
        Self { node: 256, tenant: 192, app: 128 }
    }
}

/// Held from admission to answer. Waiting (long poll, SSE) must not hold one.
#[derive(Debug)]
pub(crate) struct Slot {
    _permits: Vec<OwnedSemaphorePermit>,
}

impl Slot {
    /// Stands in for a slot that was handed on.
    pub(crate) const fn spent() -> Self {
        Self { _permits: Vec::new() }
    }
}

pub(crate) struct Admission {
    limits: AdmissionLimits,
    node: Arc<Semaphore>,
    shares: Mutex<Shares>,
}

#[derive(Default)]
struct Shares {
    tenants: HashMap<TenantId, Arc<Semaphore>>,
    apps: HashMap<AppId, Arc<Semaphore>>,
}

impl Admission {
    pub(crate) fn new(limits: AdmissionLimits) -> Self {
        Self { limits, node: Arc::new(Semaphore::new(limits.node)), shares: Mutex::default() }
    }

    /// A permit for one call, or why there is none.
    pub(crate) fn enter(&self, share: Option<(TenantId, AppId)>) -> Result<Slot, Refusal> {
        let node = Arc::clone(&self.node).try_acquire_owned().map_err(|_| {
            Refusal::new(
                Code::Overloaded,
                "This node is working on as many calls as it can; nothing was done. Send it again.",
            )
            .after(1)
        })?;
        let mut permits = vec![node];
        if let Some((tenant, app)) = share {
            let (tenant, app) = self.shares(tenant, app);
            for semaphore in [tenant, app] {
                let permit = semaphore.try_acquire_owned().map_err(|_| {
                    Refusal::new(
                        Code::RateLimited,
                        "This app's share of the node is in use; nothing was done. Send it again a little later.",
                    )
                    .after(1)
                })?;
                permits.push(permit);
            }
        }
        Ok(Slot { _permits: permits })
    }

    /// Calls under way on this node.
    pub(crate) fn in_flight(&self) -> usize {
        self.limits.node.saturating_sub(self.node.available_permits())
    }

    fn shares(&self, tenant: TenantId, app: AppId) -> (Arc<Semaphore>, Arc<Semaphore>) {
        let mut shares = self.shares.lock();
        let limits = self.limits;
        let tenant = shares.tenants.entry(tenant).or_insert_with(|| Arc::new(Semaphore::new(limits.tenant)));
        let tenant = Arc::clone(tenant);
        let app = shares.apps.entry(app).or_insert_with(|| Arc::new(Semaphore::new(limits.app)));
        (tenant, Arc::clone(app))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_app_is_told_to_wait_while_another_app_still_gets_in() {
        let admission = Admission::new(AdmissionLimits { node: 10, tenant: 5, app: 1 });
        let (tenant, first, second) = (TenantId::new(), AppId::new(), AppId::new());
        let held = admission.enter(Some((tenant, first))).unwrap();
        let refused = admission.enter(Some((tenant, first))).unwrap_err();
        assert_eq!((refused.code, refused.retry_after_seconds), (Code::RateLimited, Some(1)));
        assert!(admission.enter(Some((tenant, second))).is_ok());
        drop(held);
        assert!(admission.enter(Some((tenant, first))).is_ok());
    }

    #[test]
    fn a_full_node_answers_overloaded_and_a_refused_call_gives_its_permits_back() {
        let admission = Admission::new(AdmissionLimits { node: 2, tenant: 1, app: 1 });
        let (tenant, app) = (TenantId::new(), AppId::new());
        let held = admission.enter(Some((tenant, app))).unwrap();
        assert!(admission.enter(Some((tenant, app))).is_err());
        assert_eq!(admission.in_flight(), 1, "the node permit of the refused call came back");
        let other = admission.enter(None).unwrap();
        assert_eq!(admission.enter(None).unwrap_err().code, Code::Overloaded);
        drop((held, other));
    }
}

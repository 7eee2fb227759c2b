//! Caps: how many requests may be held at a time, by app, capability, requester and agent.

use inn_protocol::queue::LimitKind;
use inn_protocol::request::ClaimOffer;
use inn_protocol::{AgentId, AppId};

/// What is left of one cap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    pub kind: LimitKind,
    /// Of an app or a capability.
    pub app: Option<AppId>,
    /// A capability's name, a requester's lane, an agent's id; empty for an app.
    pub subject: String,
    pub left: u32,
}

/// What is left of a tenant's caps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rooms(Vec<Room>);

impl Rooms {
    pub fn new(rooms: Vec<Room>) -> Self {
        Self(rooms)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one more request of this lane may be held by the agent.
    pub fn has(&self, agent: &AgentId, offer: &ClaimOffer, lane: &str) -> bool {
        self.0.iter().all(|room| room.left > 0 || !room.is_about(agent, offer, lane))
    }

    /// Counts one more that is held.
    pub fn take(&mut self, agent: &AgentId, offer: &ClaimOffer, lane: &str) {
        for room in self.0.iter_mut().filter(|room| room.is_about(agent, offer, lane)) {
            room.left = room.left.saturating_sub(1);
        }
    }

    /// How many of `wanted` may be held, and counts them.
    pub fn fit(&mut self, agent: &AgentId, offer: &ClaimOffer, lane: &str, wanted: u32) -> u32 {
        let mut about: Vec<&mut Room> = self.0.iter_mut().filter(|room| room.is_about(agent, offer, lane)).collect();
        let fits = about.iter().map(|room| room.left).min().map_or(wanted, |left| left.min(wanted));
        for room in &mut about {
            room.left -= fits;
        }
        fits
    }
}

impl Room {
    fn is_about(&self, agent: &AgentId, offer: &ClaimOffer, lane: &str) -> bool {
        match self.kind {
            LimitKind::Tenant => false,
            LimitKind::App => self.app == Some(offer.app),
            LimitKind::Capability => self.app == Some(offer.app) && self.subject == offer.capability,
            LimitKind::Person => self.subject == lane,
            LimitKind::Agent => self.subject == agent.as_str(),
        }
    }
}

//! What probably waits, and whose turn it is: one node's picture of the queue. Pure; the time is an argument.
//!
//! A claim is decided by the database. The board only says where to look, so that thousands of waiting agents ask the
//! database one question together, and so that a claim goes straight to the rows it takes, past whatever dead rows an
//! old transaction keeps ahead of them. What it says is never older than a look ([`LOOK_MILLIS`]).

mod lanes;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};

use chrono::{DateTime, Utc};
use inn_protocol::request::ClaimOffer;
use inn_protocol::{AgentId, AppId, TenantId};

use super::rooms::Rooms;
use super::turns::Turns;
use lanes::Lanes;

/// A picture older than this is looked at again before anybody is told that nothing waits, in milliseconds.
pub const LOOK_MILLIS: u64 = 1_000;
/// Looks take at most this part of the time: one that took long (dead rows) is repeated the later.
const LOOK_SHARE: u64 = 20;
/// Agents whose turns are remembered.
const MOST_AGENTS: usize = 10_000;
/// Capabilities in the picture; the ones that nobody asked about lately go first.
const MOST_PILES: usize = 10_000;
/// Rows one claim may take.
pub const MOST_CLAIMED: u32 = 100;

/// The lane of a requester: the requests of one never hold up those of another.
pub fn lane(user: inn_protocol::UserId) -> String {
    user.uuid().to_string()
}

#[derive(Debug, Default)]
pub struct Board {
    piles: HashMap<AppId, BTreeMap<String, Pile>>,
    count: usize,
    agents: HashMap<AgentId, AgentTurns>,
    rooms: HashMap<TenantId, Rooms>,
}

/// Whose turn it is when one agent serves many.
#[derive(Debug, Default)]
struct AgentTurns {
    tenants: Turns<TenantId>,
    apps: Turns<AppId>,
}

/// What waits of one capability.
#[derive(Debug, Default)]
struct Pile {
    lanes: Lanes,
    weights: Weights,
    /// When it was looked at last, and what the look took.
    looked_at: Option<u64>,
    took: u64,
    /// Own lanes that were looked at, and when, by agents that may have no other.
    looked_lanes: HashMap<String, u64>,
}

/// How often tenant and app are served among their like, from 1 to 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weights {
    pub tenant: u32,
    pub app: u32,
}

impl Default for Weights {
    fn default() -> Self {
        Self { tenant: 1, app: 1 }
    }
}

/// A question to the database: what waits here?
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    pub app: AppId,
    pub capability: String,
    /// This lane only, or all of them from `after` on, round the ring.
    pub lane: Option<String>,
    pub after: String,
}

/// The answer about one lane.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    pub lane: String,
    /// Waiting rows, counted up to a limit.
    pub waiting: u32,
    /// The first of them.
    pub from: DateTime<Utc>,
    /// How often this requester is served among others.
    pub weight: u32,
}

/// Rows of one lane that were kept for a claim.
#[derive(Debug, Clone, PartialEq)]
pub struct Pick {
    /// Index of the offer.
    pub offer: usize,
    pub lane: String,
    /// Rows before this one are gone, as far as is known.
    pub from: DateTime<Utc>,
    pub quota: u32,
}

/// One claim to be made: of one tenant, since it is one call of one register.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    pub tenant: TenantId,
    pub picks: Vec<Pick>,
}

impl Board {
    /// What must be looked at before these offers are answered from the board.
    pub fn stale(&self, offers: &[ClaimOffer], now: u64) -> Vec<Look> {
        self.looks(offers, |at, took| now.saturating_sub(at) >= LOOK_MILLIS.max(took.saturating_mul(LOOK_SHARE)))
    }

    /// What must be looked at before it is certain that nothing waits: whatever was not looked at since this moment.
    pub fn unseen_since(&self, offers: &[ClaimOffer], since: u64) -> Vec<Look> {
        self.looks(offers, |at, _| at < since)
    }

    fn looks(&self, offers: &[ClaimOffer], old: impl Fn(u64, u64) -> bool) -> Vec<Look> {
        let mut seen = HashSet::new();
        let mut looks = Vec::new();
        for offer in offers {
            let pile = self.pile(offer);
            let own = (!offer.others).then(|| lane(offer.user));
            let at = match (&own, pile) {
                (None, Some(pile)) => pile.looked_at,
                (Some(own), Some(pile)) => {
                    let whole = pile.looked_at.filter(|_| pile.lanes.all_known());
                    whole.max(pile.looked_lanes.get(own).copied())
                }
                (_, None) => None,
            };
            if at.is_some_and(|at| !old(at, pile.map_or(0, |pile| pile.took))) {
                continue;
            }
            if seen.insert((offer.app, offer.capability.as_str(), own.clone())) {
                let after = pile.map(|pile| pile.lanes.look_after().to_owned()).unwrap_or_default();
                looks.push(Look { app: offer.app, capability: offer.capability.clone(), lane: own, after });
            }
        }
        looks
    }

    /// The answer to a look that was begun at `now` and took `took` milliseconds. `complete` when no lane was left out.
    pub fn found(&mut self, look: &Look, found: Vec<Found>, complete: bool, weights: Weights, (now, took): (u64, u64)) {
        self.make_room(now);
        let pile = self.pile_mut(look.app, &look.capability);
        pile.weights = weights;
        pile.took = took;
        match &look.lane {
            None => {
                pile.looked_at = Some(now);
                pile.lanes.found(&look.after, found, complete);
            }
            Some(lane) => {
                pile.looked_lanes.retain(|_, at| now.saturating_sub(*at) < 60 * LOOK_MILLIS);
                pile.looked_lanes.insert(lane.clone(), now);
                pile.lanes.found_one(lane, found.into_iter().next());
            }
        }
    }

    /// How much of what is capped may still be held.
    pub fn set_rooms(&mut self, tenant: TenantId, rooms: Rooms) {
        if rooms.is_empty() {
            self.rooms.remove(&tenant)
        } else {
            self.rooms.insert(tenant, rooms)
        };
    }

    /// Weights or caps have changed: everything is looked at again before it is believed.
    pub fn doubt(&mut self) {
        for pile in self.piles.values_mut().flat_map(BTreeMap::values_mut) {
            pile.looked_at = None;
            pile.looked_lanes.clear();
        }
    }

    /// Whether claims of this tenant are capped, as far as is known.
    pub fn capped(&self, tenant: TenantId) -> bool {
        self.rooms.contains_key(&tenant)
    }

    /// A request was put into the queue, or back into it, by this node.
    pub fn waits(&mut self, app: AppId, capability: &str, lane: &str, from: DateTime<Utc>) {
        // Where nobody looks, nothing needs to be known.
        if let Some(pile) = self.piles.get_mut(&app).and_then(|piles| piles.get_mut(capability)) {
            pile.lanes.waits(lane, from);
        }
    }

    /// Keeps rows for one claim: of the tenant whose turn it is, among its apps and requesters in their turn, at most
    /// `max`. Nobody else of this node is sent to the same rows.
    pub fn reserve(&mut self, agent: &AgentId, offers: &[ClaimOffer], max: u32) -> Option<Turn> {
        if self.agents.len() >= MOST_AGENTS && !self.agents.contains_key(agent) {
            self.agents.clear();
        }
        let turns = self.agents.entry(agent.clone()).or_default();
        let piles = &mut self.piles;
        let mut nothing = Rooms::default();
        let waiting = |piles: &HashMap<AppId, BTreeMap<String, Pile>>, rooms: &Rooms, offer: &ClaimOffer| {
            let pile = piles.get(&offer.app).and_then(|piles| piles.get(&offer.capability));
            pile.is_some_and(|pile| {
                pile.lanes.next(own(offer).as_deref(), |lane| rooms.has(agent, offer, lane)).is_some()
            })
        };
        let able = offers
            .iter()
            .filter(|offer| waiting(piles, self.rooms.get(&offer.tenant).unwrap_or(&nothing), offer))
            .map(|offer| offer.tenant);
        let tenant = turns.tenants.first(able)?;
        let room = self.rooms.get_mut(&tenant).unwrap_or(&mut nothing);
        let mut picks: Vec<Pick> = Vec::new();
        let mut weight = 1;
        for _ in 0..max.clamp(1, MOST_CLAIMED) {
            let of_tenant = offers.iter().enumerate().filter(|(_, offer)| offer.tenant == tenant);
            let able: Vec<(usize, AppId)> =
                of_tenant.filter(|(_, offer)| waiting(piles, room, offer)).map(|(at, offer)| (at, offer.app)).collect();
            let Some(app) = turns.apps.first(able.iter().map(|(_, app)| *app)) else { break };
            // Within an app its capabilities take turns: the one with the fewest rows so far.
            let taken = |at: usize| picks.iter().filter(|pick| pick.offer == at).map(|pick| pick.quota).sum::<u32>();
            let places = able.iter().filter(|(_, of)| *of == app).map(|(at, _)| *at);
            let Some((at, offer)) = places.min_by_key(|at| taken(*at)).and_then(|at| Some((at, offers.get(at)?)))
            else {
                break;
            };
            let pile = piles.get_mut(&app).and_then(|piles| piles.get_mut(&offer.capability));
            let Some(pile) = pile else { break };
            let Some((lane, from)) = pile.lanes.take(own(offer).as_deref(), |lane| room.has(agent, offer, lane)) else {
                break;
            };
            room.take(agent, offer, &lane);
            turns.apps.serve(app, pile.weights.app);
            weight = pile.weights.tenant;
            match picks.iter_mut().find(|pick| pick.offer == at && pick.lane == lane) {
                Some(pick) => pick.quota += 1,
                None => picks.push(Pick { offer: at, lane, from, quota: 1 }),
            }
        }
        turns.tenants.serve(tenant, weight);
        (!picks.is_empty()).then_some(Turn { tenant, picks })
    }

    /// What became of a pick: how many rows were taken, and where the last of them stood.
    pub fn settle(&mut self, offer: &ClaimOffer, pick: &Pick, taken: u32, last: Option<DateTime<Utc>>) {
        if let Some(pile) = self.piles.get_mut(&offer.app).and_then(|piles| piles.get_mut(&offer.capability)) {
            pile.lanes.settle(&pick.lane, pick.quota, taken, last);
        }
    }

    fn pile(&self, offer: &ClaimOffer) -> Option<&Pile> {
        self.piles.get(&offer.app)?.get(&offer.capability)
    }

    fn pile_mut(&mut self, app: AppId, capability: &str) -> &mut Pile {
        let piles = self.piles.entry(app).or_default();
        if !piles.contains_key(capability) {
            self.count += 1;
        }
        piles.entry(capability.to_owned()).or_default()
    }

    /// Forgets what nobody asked about for a minute, when there is much.
    fn make_room(&mut self, now: u64) {
        if self.count < MOST_PILES {
            return;
        }
        for piles in self.piles.values_mut() {
            piles.retain(|_, pile| {
                let last = pile.looked_at.into_iter().chain(pile.looked_lanes.values().copied()).max();
                last.is_some_and(|at| now.saturating_sub(at) < 60 * LOOK_MILLIS)
            });
        }
        self.piles.retain(|_, piles| !piles.is_empty());
        self.count = self.piles.values().map(BTreeMap::len).sum();
    }
}

/// The only lane of an offer without others' requests.
fn own(offer: &ClaimOffer) -> Option<String> {
    (!offer.others).then(|| lane(offer.user))
}

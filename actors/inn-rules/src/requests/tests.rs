//! The queue's rules against tables and against a simple model.

mod machine;
mod model;
mod schema;

use chrono::{DateTime, TimeDelta, TimeZone as _, Utc};
use inn_protocol::AgentId;
use inn_protocol::request::RequestState;

use super::{Change, Facts};

fn agent(letter: char) -> AgentId {
    AgentId::parse(&letter.to_string().repeat(43)).unwrap()
}

fn at(seconds: i64) -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 11, 30, 12, 0, 0).unwrap() + TimeDelta::seconds(seconds)
}

fn waiting() -> Facts {
    Facts {
        state: RequestState::Submitted,
        holder: None,
        epoch: 0,
        lease_seconds: 60,
        lease_until: None,
        attempt: 0,
        attempts: 3,
        next_at: None,
    }
}

/// The row after a change.
fn after(facts: &Facts, change: &Change) -> Facts {
    Facts {
        state: change.state,
        holder: change.holder.clone(),
        epoch: change.epoch,
        lease_until: change.lease_until,
        attempt: change.attempt,
        next_at: change.next_at,
        ..facts.clone()
    }
}

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
        acknowledged: true,
        lease_seconds: 60,
        lease_until: None,
        hard_seconds: 3_600,
        hard_until: None,
        questions: 0,
        asked_at: None,
        attempt: 0,
        attempts: 3,
        next_at: None,
    }
}

/// The row after a change made at `now`.
fn after_at(facts: &Facts, change: &Change, now: DateTime<Utc>) -> Facts {
    let asked_at = match (&change.question, &change.answer) {
        (Some(_), _) => Some(now),
        (None, Some(_)) => None,
        (None, None) => facts.asked_at,
    };
    Facts {
        state: change.state,
        holder: change.holder.clone(),
        epoch: change.epoch,
        acknowledged: change.acknowledged,
        lease_until: change.lease_until,
        hard_until: change.hard_until,
        questions: facts.questions + usize::from(change.question.is_some()),
        asked_at,
        attempt: change.attempt,
        next_at: change.next_at,
        ..facts.clone()
    }
}

fn after(facts: &Facts, change: &Change) -> Facts {
    after_at(facts, change, at(0))
}

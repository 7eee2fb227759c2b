//! The rules of jobs against tables and against a simple model.

mod machine;
mod model;
mod sight;

use chrono::{DateTime, TimeDelta, TimeZone as _, Utc};
use inn_protocol::job::JobState;

use super::Facts;

fn at(seconds: i64) -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 11, 30, 12, 0, 0).unwrap() + TimeDelta::seconds(seconds)
}

fn queued() -> Facts {
    Facts {
        state: JobState::Queued,
        node: None,
        epoch: 0,
        lease_until: None,
        next_at: Some(at(0)),
        deadline: at(3_600),
        attempt: 0,
        attempts: 3,
        cancel_requested: false,
        taken_on: false,
    }
}

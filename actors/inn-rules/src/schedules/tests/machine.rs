//! One firing from its time to its end.

use chrono::{DateTime, TimeDelta, Utc};
use inn_protocol::schedule::{Busy, FiringState};
use proptest::prelude::*;

use super::at;
use crate::schedules::{Ahead, AheadKind, Begin, Change, Facts, Settled, begin, expire, settle, withdraw};

const NOON: &str = "2027-01-05T12:00:00Z";

fn due() -> Facts {
    Facts {
        state: FiringState::Due,
        epoch: 0,
        attempt: 0,
        attempts: 3,
        start_at: at(NOON),
        look_at: at(NOON),
        asked: false,
    }
}

fn after(facts: &Facts, change: &Change) -> Facts {
    let Change { state, epoch, attempt, look_at, asked, .. } = *change;
    Facts { state, epoch, attempt, look_at, asked, ..*facts }
}

fn started(now: DateTime<Utc>) -> Facts {
    match begin(&due(), None, Busy::Skip, now) {
        Some(Begin::Start(change)) => after(&due(), &change),
        other => panic!("{other:?}"),
    }
}

fn seconds(count: i64) -> TimeDelta {
    TimeDelta::seconds(count)
}

#[test]
fn it_starts_at_its_time_and_not_before() {
    assert_eq!(begin(&due(), None, Busy::Skip, at(NOON) - seconds(1)), None);
    let started = started(at(NOON));
    assert_eq!((started.state, started.epoch, started.attempt), (FiringState::Started, 1, 1));
    assert_eq!(begin(&started, None, Busy::Skip, at(NOON)), None, "once");
}

#[test]
fn a_run_that_is_still_going_skips_queues_or_gives_way() {
    let ahead = |kind| Some(Ahead { started_at: at(NOON) - seconds(600), kind });
    let state = |busy, kind| begin(&due(), ahead(kind), busy, at(NOON));
    for kind in [AheadKind::Operation, AheadKind::Request] {
        assert!(matches!(state(Busy::Skip, kind), Some(Begin::Skip(change)) if change.state == FiringState::Skipped));
        assert!(matches!(state(Busy::Queue, kind), Some(Begin::Wait(change)) if change.state == FiringState::Due));
    }
    assert!(matches!(state(Busy::Replace, AheadKind::Request), Some(Begin::Replace(_))));
    // What an operation commits cannot be taken back: it is waited for.
    assert!(matches!(state(Busy::Replace, AheadKind::Operation), Some(Begin::Wait(_))));
    // One that began after this one's time is a missed one that is being made up for.
    let later = Some(Ahead { started_at: at(NOON) + seconds(1), kind: AheadKind::Request });
    assert!(matches!(begin(&due(), later, Busy::Skip, at(NOON) + seconds(2)), Some(Begin::Wait(_))));
}

#[test]
fn what_may_pass_by_itself_is_tried_again_with_longer_pauses_until_tries_are_used_up() {
    let (mut facts, mut now) = (due(), at(NOON));
    for (attempt, pause) in [(1, 2), (2, 4)] {
        let Some(Begin::Start(change)) = begin(&facts, None, Busy::Skip, now) else { panic!("{facts:?}") };
        facts = after(&facts, &change);
        let change = settle(&facts, facts.epoch, Settled::Again("overloaded".to_owned()), now).unwrap();
        assert_eq!((change.state, change.attempt, change.look_at - now), (FiringState::Due, attempt, seconds(pause)));
        facts = after(&facts, &change);
        assert_eq!(begin(&facts, None, Busy::Skip, now), None, "not before the pause is over");
        now = facts.look_at;
    }
    let Some(Begin::Start(change)) = begin(&facts, None, Busy::Skip, now) else { panic!("{facts:?}") };
    facts = after(&facts, &change);
    let change = settle(&facts, facts.epoch, Settled::Again("overloaded".to_owned()), now).unwrap();
    assert_eq!(change.state, FiringState::Failed);
    assert_eq!(change.reason.as_deref(), Some("attempts_exhausted: overloaded"));
}

#[test]
fn a_node_that_dies_is_noticed_within_a_minute_and_its_late_news_do_not_count() {
    let first = started(at(NOON));
    assert_eq!(expire(&first, at(NOON) + seconds(59)), None);
    let change = expire(&first, at(NOON) + seconds(60)).unwrap();
    let back = after(&first, &change);
    assert_eq!(back.state, FiringState::Due);
    let Some(Begin::Start(change)) = begin(&back, None, Busy::Skip, back.look_at) else { panic!("{back:?}") };
    let second = after(&back, &change);
    assert_eq!(settle(&second, first.epoch, Settled::Done, second.look_at), None);
    assert!(settle(&second, second.epoch, Settled::Done, second.look_at).is_some());
}

#[test]
fn a_request_lasts_as_long_as_agents_have() {
    let run = started(at(NOON));
    let change = settle(&run, 1, Settled::Asked, at(NOON)).unwrap();
    assert!(change.asked && change.state == FiringState::Started);
    assert!(change.look_at - at(NOON) > TimeDelta::days(7), "requests give up by themselves after seven");
    let asked = after(&run, &change);
    let lost = expire(&asked, asked.look_at).unwrap();
    assert_eq!(lost.state, FiringState::Failed, "it is not asked for a second time");
}

#[test]
fn what_has_started_is_not_withdrawn_and_what_has_ended_stays() {
    assert_eq!(withdraw(&due(), "paused").unwrap().state, FiringState::Skipped);
    let run = started(at(NOON));
    assert_eq!(withdraw(&run, "paused"), None);
    for how in [Settled::Done, Settled::Failed("no".to_owned()), Settled::Replaced] {
        let ended = after(&run, &settle(&run, 1, how, at(NOON)).unwrap());
        assert!(ended.state.is_terminal());
        assert_eq!(settle(&ended, 1, Settled::Done, at(NOON)), None);
        assert_eq!(withdraw(&ended, "paused"), None);
        assert_eq!(expire(&ended, at(NOON) + TimeDelta::days(9)), None);
        assert_eq!(begin(&ended, None, Busy::Skip, at(NOON) + TimeDelta::days(9)), None);
    }
}

#[test]
fn reasons_are_cut() {
    let run = started(at(NOON));
    let long = "x".repeat(10_000);
    let change = settle(&run, 1, Settled::Failed(long), at(NOON)).unwrap();
    assert_eq!(change.reason.unwrap().chars().count(), 500);
}

proptest! {
    /// Whatever nodes do and whenever they die: every firing ends, and at most `attempts` starts are made.
    #[test]
    fn every_firing_ends(steps in prop::collection::vec((0_u8..5, 1_i64..200), 1..200), attempts in 1_u32..6) {
        let mut facts = Facts { attempts, ..due() };
        let (mut now, mut starts) = (at(NOON), 0);
        for (step, passes) in steps {
            now += seconds(passes);
            if facts.state.is_terminal() {
                break;
            }
            let change = match step {
                0 => expire(&facts, now),
                1 => settle(&facts, facts.epoch, Settled::Again("later".to_owned()), now),
                2 => settle(&facts, facts.epoch - 1, Settled::Done, now),
                _ => match begin(&facts, None, Busy::Queue, now) {
                    Some(Begin::Start(change)) => {
                        starts += 1;
                        Some(change)
                    }
                    _ => None,
                },
            };
            if let Some(change) = change {
                prop_assert!(change.epoch >= facts.epoch && change.attempt <= attempts);
                facts = after(&facts, &change);
            }
        }
        prop_assert!(starts <= attempts);
        // From anywhere, time alone brings it to an end.
        for _ in 0..=2 * attempts {
            now += seconds(400);
            if let Some(Begin::Start(change)) = begin(&facts, None, Busy::Queue, now) {
                facts = after(&facts, &change);
            }
            now += seconds(400);
            if let Some(change) = expire(&facts, now) {
                facts = after(&facts, &change);
            }
        }
        prop_assert!(facts.state.is_terminal(), "{:?}", facts);
    }
}

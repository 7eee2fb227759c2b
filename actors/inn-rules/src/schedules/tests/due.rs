//! What is due, and what is made up for, one policy after the other.

use chrono::{DateTime, TimeDelta, Utc};
use inn_protocol::ScheduleId;
use inn_protocol::schedule::{Missed, Policies};
use proptest::prelude::*;

use super::{at, timing, with};
use crate::schedules::{Planned, plan};

fn planned(cadence: &str, policies: Policies, next: &str, now: &str) -> Planned {
    plan(&with(cadence, "UTC", policies), ScheduleId::new(), at(next), at(now))
}

/// The turns that run and those that are only noted, as clock times.
fn told(planned: &Planned) -> Vec<String> {
    let time = |at: DateTime<Utc>| at.format("%d %H:%M").to_string();
    let turn = |turn: &crate::schedules::Turn| {
        let missed = turn.missed_from.map(|from| format!(" (from {})", time(from))).unwrap_or_default();
        format!("{} {}{missed}", if turn.runs { "runs" } else { "noted" }, time(turn.nominal_at))
    };
    planned.turns.iter().map(turn).collect()
}

#[test]
fn a_time_that_is_noticed_at_once_runs_whatever_the_policy() {
    for missed in [Missed::None, Missed::Last, Missed::All] {
        let policies = Policies { missed, ..Policies::default() };
        let planned = planned("0 9 * * *", policies, "2027-01-05T09:00:00Z", "2027-01-05T09:00:01Z");
        assert_eq!(told(&planned), ["runs 05 09:00"], "{missed:?}");
        assert_eq!(planned.next_at, Some(at("2027-01-06T09:00:00Z")));
    }
}

#[test]
fn after_a_night_off_none_last_or_all_up_to_n_are_made_up_for() {
    let night = |policies| told(&planned("hourly", policies, "2027-01-05T20:00:00Z", "2027-01-06T06:30:00Z"));
    let none = Policies { missed: Missed::None, ..Policies::default() };
    assert_eq!(night(none), ["noted 06 06:00 (from 05 20:00)"]);
    assert_eq!(night(Policies::default()), ["runs 06 06:00 (from 05 20:00)"]);
    let all = |missed_most| Policies { missed: Missed::All, missed_most, ..Policies::default() };
    assert_eq!(night(all(3)), ["runs 06 04:00 (from 05 20:00)", "runs 06 05:00", "runs 06 06:00"]);
    assert_eq!(night(all(100)).len(), 11);
    let short = Policies { missed_window_seconds: 2 * 3_600, ..all(100) };
    assert_eq!(night(short), ["runs 06 05:00 (from 05 20:00)", "runs 06 06:00"], "no further back than the window");
}

#[test]
fn without_making_up_a_time_that_has_just_come_still_runs() {
    let none = Policies { missed: Missed::None, ..Policies::default() };
    let planned = planned("hourly", none, "2027-01-05T20:00:00Z", "2027-01-06T06:00:30Z");
    assert_eq!(told(&planned), ["runs 06 06:00 (from 05 20:00)"]);
}

#[test]
fn jitter_is_the_same_on_every_node_and_keeps_the_order() {
    let policies = Policies { jitter_seconds: 3_600, missed: Missed::All, missed_most: 100, ..Policies::default() };
    let timing = with("every 1m", "UTC", policies);
    let id = ScheduleId::new();
    let [one, other] = [(); 2].map(|()| plan(&timing, id, at("2027-01-05T20:00:00Z"), at("2027-01-05T21:00:30Z")));
    assert_eq!(one, other);
    assert!(one.turns.windows(2).all(|pair| pair[0].start_at < pair[1].start_at));
    assert!(one.turns.iter().all(|turn| turn.start_at >= turn.nominal_at));
    assert!(one.turns.iter().any(|turn| turn.start_at > turn.nominal_at));
    let elsewhere = plan(&timing, ScheduleId::new(), at("2027-01-05T20:00:00Z"), at("2027-01-05T21:00:30Z"));
    assert_ne!(one.turns, elsewhere.turns, "schedules of one minute do not all start together");
}

#[test]
fn ten_years_off_cost_no_more_than_what_is_made_up_for() {
    let all = Policies { missed: Missed::All, missed_most: 100, missed_window_seconds: 604_800, ..Policies::default() };
    let timing = with("every 1s", "UTC", all);
    let planned = plan(&timing, ScheduleId::new(), at("2017-01-01T00:00:00Z"), at("2027-01-01T00:00:00Z"));
    assert_eq!(planned.turns.len(), 100);
}

proptest! {
    /// However the looks fall, a schedule that makes up for everything fires each of its times once and in order.
    #[test]
    fn no_time_is_lost_doubled_or_disordered(minutes in 1_i64..120, looks in prop::collection::vec(1_i64..7_200, 1..40)) {
        let all = Policies { missed: Missed::All, missed_most: 100, missed_window_seconds: 604_800, ..Policies::default() };
        let timing = with(&format!("every {minutes}m"), "UTC", all);
        let (id, start) = (ScheduleId::new(), at("2027-03-01T00:00:00Z"));
        let (mut next, mut now, mut fired) = (timing.next(start).unwrap(), start, Vec::new());
        for look in looks {
            now += TimeDelta::seconds(look);
            if next <= now {
                let planned = plan(&timing, id, next, now);
                // As many as one look makes up for; what was more is said to be passed over.
                let due = timing.firings(next - TimeDelta::milliseconds(1)).take_while(|at| *at <= now).count();
                prop_assert_eq!(planned.turns.len(), due.min(100));
                prop_assert_eq!(planned.turns[0].missed_from.is_some(), due > 100);
                fired.extend(planned.turns.iter().map(|turn| turn.nominal_at));
                next = planned.next_at.unwrap();
                prop_assert!(next > now);
            }
        }
        prop_assert!(fired.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", fired);
        let due = timing.firings(start).take_while(|at| *at <= now).count();
        // Two hours between two looks are at most 120 times.
        prop_assert!(fired.len() == due || minutes == 1, "{} of {due}", fired.len());
    }
}

#[test]
fn a_cadence_without_another_time_ends() {
    let once = timing("0 0 29 2 *", "UTC");
    assert_eq!(once.next(at("2027-01-01T00:00:00Z")), Some(at("2028-02-29T00:00:00Z")));
}

//! Against `croner`, which reads the same five fields and knows clock changes: every zone, ten years of them.
//!
//! No expression is compared where both may be right: where the hour is restricted and the minutes step (the oracle runs in both
//! passes of a repeated hour, ours take the policy there), where every hour counts (one that is there in part gets a turn
//! of ours), and where several hours are named (it drops one in a gap that ours shifts). The oracle moves a time the clock jumps
//! over to the end of the jump and takes the first of two, as our defaults do.

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::{TZ_VARIANTS, Tz};
use croner::Cron;

use super::{at, timing};

/// Times that fall on changes somewhere, and everyday ones.
const EXPRESSIONS: &[&str] = &[
    "30 2 * * *",
    "0 0 * * *",
    "30 1 * * 0",
    "0 3 * * *",
    "15 2 29 3,10 *",
    "59 23 31 12 *",
    "0 9 * * 1-5",
    "5 1 1-7 * *",
];

/// Of these, so many are asked about each change; which ones goes round.
const EACH: usize = 2;
/// The oracle has no answer, or a wrong one, for jumps of three hours, which nobody else ever made.
const BEYOND: &[Tz] = &[Tz::Antarctica__Casey];

/// Days around every change of the zone's clock from 2017 to 2027.
fn changes(zone: Tz) -> Vec<DateTime<Utc>> {
    use chrono::{Offset as _, TimeZone as _};
    let offset = |at: DateTime<Utc>| zone.offset_from_utc_datetime(&at.naive_utc()).fix();
    let (mut day, end) = (at("2017-01-01T00:00:00Z"), at("2027-12-31T00:00:00Z"));
    let mut found = Vec::new();
    while day < end {
        let next = day + TimeDelta::days(1);
        if offset(day) != offset(next) {
            found.push(day - TimeDelta::days(1));
        }
        day = next;
    }
    found
}

#[test]
fn firings_around_every_clock_change_are_those_of_an_independent_reader() {
    let mut asked = 0;
    for zone in TZ_VARIANTS.iter().copied().filter(|zone| !BEYOND.contains(zone)) {
        for start in changes(zone).into_iter().chain([at("2026-05-20T00:00:00Z")]) {
            let end = start + TimeDelta::days(4);
            for expression in EXPRESSIONS.iter().cycle().skip(asked % EXPRESSIONS.len()).take(EACH) {
                let ours: Vec<_> = timing(expression, zone.name()).firings(start).take_while(|at| *at <= end).collect();
                assert!(
                    ours.windows(2).all(|pair| pair[0] < pair[1]),
                    "{expression} in {zone} after {start}: {ours:?}"
                );
                let oracle: Cron = expression.parse().unwrap();
                let mut expected: Vec<_> = oracle
                    .iter_after(start.with_timezone(&zone))
                    .map(|at| at.to_utc())
                    .take_while(|at| *at <= end)
                    .collect();
                expected.dedup();
                assert_eq!(ours, expected, "{expression} in {zone} after {start}");
            }
            asked += 1;
        }
    }
    assert!(asked > 2_000, "{asked}");
}

#[test]
fn in_a_zone_without_changes_two_years_are_the_same() {
    for expression in
        ["*/7 * * * *", "5 4 */3 * *", "0 0 13 * 5", "0 12 * jan-mar mon", "0 0 29 2 *", "10-50/20 6,18 * * *"]
    {
        let start = at("2026-01-01T00:00:00Z");
        let oracle: Cron = expression.parse().unwrap();
        let theirs: Vec<_> = oracle.iter_after(start).take(2_000).take_while(|at| *at < at_end()).collect();
        let ours: Vec<_> =
            timing(expression, "UTC").firings(start).take(2_000).take_while(|at| *at < at_end()).collect();
        assert_eq!(ours, theirs, "{expression}");
    }
}

fn at_end() -> DateTime<Utc> {
    at("2028-03-01T00:00:00Z")
}

//! Days on which the clock changes, one policy after the other.

use inn_protocol::schedule::{Gap, Overlap};

use super::{at, clock, shown, timing, with};

#[test]
fn a_time_the_clock_jumps_over_fires_right_after_or_not_at_all() {
    let shift = timing("30 2 * * *", "America/New_York");
    assert_eq!(shown(&shift, "2027-03-13T12:00:00Z", 2), ["03-14 03:00-0400", "03-15 02:30-0400"]);
    let skip = with("30 2 * * *", "America/New_York", clock(Gap::Skip, Overlap::First));
    assert_eq!(shown(&skip, "2027-03-13T12:00:00Z", 1), ["03-15 02:30-0400"]);
}

#[test]
fn several_times_in_one_jump_fire_once() {
    let twice = timing("0,30 2 * * *", "America/New_York");
    assert_eq!(shown(&twice, "2027-03-13T12:00:00Z", 3), ["03-14 03:00-0400", "03-15 02:00-0400", "03-15 02:30-0400"]);
    let with_three = timing("0 2,3 * * *", "America/New_York");
    assert_eq!(shown(&with_three, "2027-03-13T12:00:00Z", 2), ["03-14 03:00-0400", "03-15 02:00-0400"]);
}

#[test]
fn a_time_the_clock_shows_twice_fires_as_the_policy_says() {
    let after = "2026-10-31T12:00:00Z";
    let cases = [
        (Overlap::First, vec!["11-01 01:30-0400", "11-02 01:30-0500"]),
        (Overlap::Last, vec!["11-01 01:30-0500", "11-02 01:30-0500"]),
        (Overlap::Both, vec!["11-01 01:30-0400", "11-01 01:30-0500"]),
    ];
    for (overlap, expected) in cases {
        let timing = with("30 1 * * *", "America/New_York", clock(Gap::Shift, overlap));
        assert_eq!(shown(&timing, after, 2), expected, "{overlap:?}");
    }
}

#[test]
fn both_passes_of_a_repeated_hour_stay_in_order() {
    let both = with("0,30 1 * * *", "America/New_York", clock(Gap::Shift, Overlap::Both));
    let expected = ["11-01 01:00-0400", "11-01 01:30-0400", "11-01 01:00-0500", "11-01 01:30-0500"];
    assert_eq!(shown(&both, "2026-10-31T12:00:00Z", 4), expected);
    // Asked from the middle, it goes on from there.
    assert_eq!(shown(&both, "2026-11-01T05:30:00Z", 2), ["11-01 01:00-0500", "11-01 01:30-0500"]);
    let last = with("0,30 1 * * *", "America/New_York", clock(Gap::Shift, Overlap::Last));
    assert_eq!(shown(&last, "2026-11-01T05:10:00Z", 3), ["11-01 01:00-0500", "11-01 01:30-0500", "11-02 01:00-0500"]);
}

#[test]
fn an_open_hour_follows_elapsed_time() {
    for overlap in [Overlap::First, Overlap::Last, Overlap::Both] {
        let every = with("*/30 * * * *", "America/New_York", clock(Gap::Shift, overlap));
        let autumn =
            ["11-01 01:00-0400", "11-01 01:30-0400", "11-01 01:00-0500", "11-01 01:30-0500", "11-01 02:00-0500"];
        assert_eq!(shown(&every, "2026-11-01T04:59:00Z", 5), autumn);
        assert_eq!(
            shown(&every, "2027-03-14T06:29:00Z", 3),
            ["03-14 01:30-0500", "03-14 03:00-0400", "03-14 03:30-0400"]
        );
    }
}

#[test]
fn the_hour_that_is_there_in_part_gets_its_turn() {
    let hourly = timing("hourly", "Australia/Lord_Howe");
    // 2026-10-04: from 02:00 to 02:30.
    assert_eq!(shown(&hourly, "2026-10-03T14:00:00Z", 3), ["10-04 01:00+1030", "10-04 02:30+1100", "10-04 03:00+1100"]);
}

#[test]
fn sao_paulo_without_a_midnight_fires_at_one_and_not_a_year_later() {
    let sundays = timing("0 0 * * 0", "America/Sao_Paulo");
    assert_eq!(shown(&sundays, "2018-11-01T00:00:00Z", 2), ["11-04 01:00-0200", "11-11 00:00-0200"]);
    let fourth = timing("0 0 4 11 *", "America/Sao_Paulo");
    assert_eq!(fourth.next(at("2018-11-01T00:00:00Z")), Some(at("2018-11-04T03:00:00Z")));
    let either = timing("0 0 4 * 0", "America/Sao_Paulo");
    assert_eq!(shown(&either, "2018-11-01T00:00:00Z", 2), ["11-04 01:00-0200", "11-11 00:00-0200"]);
}

#[test]
fn elapsed_time_knows_no_clock_change() {
    for zone in ["UTC", "America/New_York", "Australia/Lord_Howe"] {
        let every = timing("every 7h", zone);
        let times: Vec<_> = every.firings(at("2026-10-31T00:00:00Z")).take(40).collect();
        assert!(times.windows(2).all(|pair| (pair[1] - pair[0]).num_hours() == 7));
        assert_eq!(times[0].timestamp() % (7 * 3_600), 0, "counted from 1970, so a redeploy changes nothing");
    }
}

#[test]
fn a_moment_between_two_seconds_loses_nothing() {
    let daily = timing("daily 09:00", "Europe/Berlin");
    assert_eq!(daily.next(at("2026-12-01T07:59:59.999Z")), Some(at("2026-12-01T08:00:00Z")));
    assert_eq!(daily.next(at("2026-12-01T08:00:00Z")), Some(at("2026-12-02T08:00:00Z")));
    assert_eq!(daily.next(at("2026-12-01T08:00:00.001Z")), Some(at("2026-12-02T08:00:00Z")));
}

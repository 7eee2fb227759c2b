//! What a preview shows.

use inn_protocol::schedule::{Gap, Overlap};

use super::{at, clock, timing, with};
use crate::schedules::{PREVIEW_MOST, preview};

#[test]
fn a_preview_shows_local_time_and_marks_the_days_of_a_change() {
    let shown = preview(&timing("30 2 * * *", "Europe/Berlin"), at("2027-03-26T12:00:00Z"), 3);
    let locals: Vec<&str> = shown.iter().map(|one| one.local.as_str()).collect();
    assert_eq!(locals, ["2027-03-27T02:30:00+01:00", "2027-03-28T03:00:00+02:00", "2027-03-29T02:30:00+02:00"]);
    assert_eq!(shown.iter().map(|one| one.clock_change).collect::<Vec<_>>(), [false, true, false]);
    assert!(shown[1].note.as_ref().unwrap().contains("jumps over 02:30"));
    assert!(shown.iter().all(|one| one.fires));
}

#[test]
fn a_preview_shows_what_does_not_fire() {
    let shown =
        preview(&with("30 2 * * *", "Europe/Berlin", clock(Gap::Skip, Overlap::First)), at("2027-03-27T12:00:00Z"), 2);
    assert_eq!(shown.iter().map(|one| one.fires).collect::<Vec<_>>(), [false, true]);
    assert!(shown[0].note.as_ref().unwrap().contains("does not fire"));
}

#[test]
fn a_change_at_midnight_marks_the_day_it_begins() {
    let shown = preview(&timing("0 12 * * *", "America/Sao_Paulo"), at("2018-11-02T20:00:00Z"), 3);
    assert_eq!(shown.iter().map(|one| one.clock_change).collect::<Vec<_>>(), [false, true, false]);
    let repeated = preview(&timing("30 1 * * *", "America/New_York"), at("2026-10-31T12:00:00Z"), 1);
    assert!(repeated[0].note.as_ref().unwrap().contains("twice"));
}

#[test]
fn a_preview_has_an_end() {
    assert_eq!(preview(&timing("every 1s", "UTC"), at("2026-01-01T00:00:00Z"), 10_000).len(), PREVIEW_MOST);
}

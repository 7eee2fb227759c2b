//! The requesters of one capability, served round the ring.

use std::collections::BTreeMap;
use std::ops::Bound;

use chrono::{DateTime, Utc};

use super::Found;

/// Lanes that are known at a time; looks find the others when these are served.
const MOST_LANES: usize = 1_000;

#[derive(Debug, Default)]
pub(super) struct Lanes {
    known: BTreeMap<String, Lane>,
    /// The lane that was served last, and how often in a row.
    last: String,
    served: u32,
    /// Where the next look begins; empty when one look sees them all.
    look_after: String,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Lane {
    /// Rows that wait and that nobody of this node is after, as far as is known.
    waiting: u32,
    /// Of these, the ones that came since somebody was sent here last.
    fresh: u32,
    from: DateTime<Utc>,
    weight: u32,
}

impl Lanes {
    pub(super) fn all_known(&self) -> bool {
        self.look_after.is_empty()
    }

    pub(super) fn look_after(&self) -> &str {
        &self.look_after
    }

    pub(super) fn found(&mut self, after: &str, found: Vec<Found>, complete: bool) {
        if complete {
            self.known.clear();
            self.look_after.clear();
        } else {
            // Round the ring from `after` to the last one found: what was known between is replaced.
            let last = found.last().map(|found| found.lane.clone()).unwrap_or_default();
            let wrapped = last.as_str() <= after;
            self.known.retain(|lane, _| {
                let lane = lane.as_str();
                !if wrapped { lane > after || lane <= last.as_str() } else { lane > after && lane <= last.as_str() }
            });
            if self.known.len() > MOST_LANES {
                self.known.clear();
            }
            self.look_after = last;
        }
        for found in found {
            self.put(found);
        }
    }

    pub(super) fn found_one(&mut self, lane: &str, found: Option<Found>) {
        match found {
            Some(found) => self.put(found),
            None => _ = self.known.remove(lane),
        }
    }

    fn put(&mut self, found: Found) {
        let lane = Lane { waiting: found.waiting, fresh: 0, from: found.from, weight: found.weight.max(1) };
        self.known.insert(found.lane, lane);
    }

    pub(super) fn waits(&mut self, lane: &str, from: DateTime<Utc>) {
        if let Some(known) = self.known.get_mut(lane) {
            known.waiting += 1;
            known.fresh += 1;
            known.from = known.from.min(from);
        } else if self.known.len() <= MOST_LANES {
            self.known.insert(lane.to_owned(), Lane { waiting: 1, fresh: 1, from, weight: 1 });
        }
    }

    /// The lane whose turn it is: the only one, or the next round the ring (the last one again while its weight lasts).
    pub(super) fn next(&self, only: Option<&str>, able: impl Fn(&str) -> bool) -> Option<&str> {
        let able = |(lane, known): &(&String, &Lane)| known.waiting > 0 && able(lane);
        if let Some(only) = only {
            return self.known.get_key_value(only).filter(able).map(|(lane, _)| lane.as_str());
        }
        let again = self.known.get_key_value(&self.last).filter(|(_, known)| self.served < known.weight).filter(able);
        let after = (Bound::Excluded(self.last.as_str()), Bound::Unbounded);
        let before = (Bound::Unbounded, Bound::Included(self.last.as_str()));
        let mut ring = self.known.range::<str, _>(after).chain(self.known.range::<str, _>(before));
        again.or_else(|| ring.find(able)).map(|(lane, _)| lane.as_str())
    }

    /// Keeps one row of the lane whose turn it is. Answers the lane and where its rows begin.
    pub(super) fn take(&mut self, only: Option<&str>, able: impl Fn(&str) -> bool) -> Option<(String, DateTime<Utc>)> {
        let lane = self.next(only, able)?.to_owned();
        let known = self.known.get_mut(&lane)?;
        known.waiting -= 1;
        known.fresh = known.fresh.min(known.waiting);
        let from = known.from;
        if self.last == lane {
            self.served += 1;
        } else {
            (self.last, self.served) = (lane.clone(), 1);
        }
        Some((lane, from))
    }

    pub(super) fn settle(&mut self, lane: &str, quota: u32, taken: u32, last: Option<DateTime<Utc>>) {
        let Some(known) = self.known.get_mut(lane) else { return };
        if let (Some(last), true) = (last, known.fresh == 0) {
            known.from = known.from.max(last);
        }
        // Fewer than were thought to be there: the rest is gone, too, but what has come since.
        if taken < quota {
            known.waiting = known.waiting.min(known.fresh);
        }
        if known.waiting == 0 {
            self.known.remove(lane);
        }
    }
}

//! Runs cases against both sides, makes small what differs, and writes down what was found.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use futures_util::StreamExt as _;
use futures_util::stream;

use super::accepted;
use super::ask::{Answer, Ask, difference};
use super::category::Category;
use super::filter::Filter;
use super::world::{self, World};

/// Questions under way at once. Enough to keep both sides busy; PocketBase lets visitors wait for empty lists.
const AT_ONCE: usize = 24;
/// Differences of one category that are made small and told; the rest is counted.
const TOLD: usize = 60;

#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) category: Category,
    pub(crate) ask: Ask,
    /// The filter in `ask`, where it can be made smaller.
    pub(crate) filter: Option<Filter>,
}

impl Case {
    pub(crate) fn new(category: Category, ask: Ask) -> Self {
        Self { category, ask, filter: None }
    }
}

#[derive(Debug)]
struct Found {
    case: Case,
    what: String,
    theirs: Answer,
    ours: Answer,
}

#[derive(Default)]
struct Tally {
    cases: usize,
    accepted: BTreeMap<&'static str, usize>,
    found: Vec<Found>,
}

/// What came of one suite.
pub(crate) struct Report {
    name: &'static str,
    seed: u64,
    tallies: BTreeMap<Category, Tally>,
    /// What one needs to know to understand the differences.
    remarks: String,
}

impl Report {
    pub(crate) fn new(name: &'static str, seed: u64) -> Self {
        Self { name, seed, tallies: BTreeMap::new(), remarks: String::new() }
    }

    /// Stands at the end of the report.
    pub(crate) fn remark(&mut self, text: &str) {
        self.remarks.push_str(text);
        self.remarks.push('\n');
    }

    /// Of the file it is written to, and of the app.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Nothing could be compared, since our side would not even begin.
    pub(crate) fn refused(self, why: &str) {
        let text = format!("{}, seed {}\n\nnothing was compared: {why}\n", self.name, self.seed);
        world::write_report(self.name, &text);
        panic!("{text}");
    }

    /// Asks all of them, in no order.
    pub(crate) async fn run(&mut self, world: &World, cases: Vec<Case>) {
        let answers = stream::iter(cases).map(|case| async move {
            let (theirs, ours) = world.ask(&case.ask).await;
            (case, theirs, ours)
        });
        let mut answers = answers.buffer_unordered(AT_ONCE);
        while let Some((case, theirs, ours)) = answers.next().await {
            self.note(case, theirs, ours);
        }
    }

    /// Each story is a few questions in order; stories do not touch each other. A story ends where the sides part.
    pub(crate) async fn tell(&mut self, world: &World, stories: Vec<Vec<Case>>) {
        let told = stream::iter(stories).map(|story| async move {
            let mut heard = Vec::new();
            for case in story {
                let (theirs, ours) = world.ask(&case.ask).await;
                let parted = difference(&theirs, &ours).is_some();
                heard.push((case, theirs, ours));
                if parted {
                    break;
                }
            }
            heard
        });
        let mut told = told.buffer_unordered(AT_ONCE);
        while let Some(heard) = told.next().await {
            for (case, theirs, ours) in heard {
                self.note(case, theirs, ours);
            }
        }
    }

    /// Counts one case with what both have answered.
    pub(crate) fn note(&mut self, case: Case, theirs: Answer, ours: Answer) {
        let tally = self.tallies.entry(case.category).or_default();
        tally.cases += 1;
        let Some(what) = difference(&theirs, &ours) else { return };
        match accepted::reason(&case.ask, &theirs, &ours) {
            Some(name) => *tally.accepted.entry(name).or_default() += 1,
            None => tally.found.push(Found { case, what, theirs, ours }),
        }
    }

    /// Makes the filters small that differ. Before anything is written, which would make other answers of the same filters.
    pub(crate) async fn shrink(&mut self, world: &World) {
        for tally in self.tallies.values_mut() {
            tally.found.sort_by_key(|found| found.case.ask.shown().len());
            for found in tally.found.iter_mut().take(TOLD) {
                shrink(world, found).await;
            }
        }
    }

    /// Makes the differences small, writes them to `differential/<suite>.txt` where cargo builds, and fails when there is one.
    pub(crate) async fn finish(mut self, world: &World) {
        self.shrink(world).await;
        let text = self.text();
        world::write_report(self.name, &text);
        let broken: Vec<Category> =
            self.tallies.iter().filter(|(_, tally)| !tally.found.is_empty()).map(|(category, _)| *category).collect();
        assert!(broken.is_empty(), "differences from PocketBase in {broken:?}:\n{text}");
    }

    fn text(&self) -> String {
        let mut text = format!("{}, seed {}\n\n", self.name, self.seed);
        for (category, tally) in &self.tallies {
            let accepted: usize = tally.accepted.values().sum();
            let (cases, found) = (tally.cases, tally.found.len());
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "{:<20} {cases:>6} cases {found:>6} different {accepted:>6} accepted",
                format!("{category:?}")
            );
            for (name, count) in &tally.accepted {
                let _ = writeln!(text, "{:<27} {count} x {name}", "");
            }
        }
        for (category, tally) in self.tallies.iter().filter(|(_, tally)| !tally.found.is_empty()) {
            let _ = writeln!(text, "\n== {category:?}: {} of {}", tally.found.len(), tally.cases);
            let mut told: BTreeMap<String, usize> = BTreeMap::new();
            for found in tally.found.iter().take(TOLD) {
                let (theirs, ours) = (found.theirs.shown(), found.ours.shown());
                // The same thing in other words is told three times, not thirty.
                let kind = plain(&format!("{} {} {}", found.what, found.theirs.status, ours));
                let count = told.entry(kind).or_default();
                *count += 1;
                if *count <= 3 {
                    let asked = found.case.ask.shown();
                    let _ = writeln!(
                        text,
                        "\n{asked}\n    {}\n    PocketBase: {theirs}\n    ours:       {ours}",
                        found.what
                    );
                }
            }
        }
        if !self.remarks.is_empty() {
            let _ = write!(text, "\n{}", self.remarks);
        }
        text
    }
}

/// Without names and numbers, so that two sentences of one kind are the same text.
fn plain(text: &str) -> String {
    let unnamed: String = text.split('`').step_by(2).collect();
    unnamed.chars().filter(|sign| !sign.is_ascii_digit()).take(120).collect()
}

/// Takes the first smaller filter that still differs, again and again.
async fn shrink(world: &World, found: &mut Found) {
    let Some(mut filter) = found.case.filter.take() else { return };
    let mut tries = 0;
    'smaller: loop {
        for smaller in filter.smaller() {
            tries += 1;
            if tries > 150 {
                return;
            }
            let ask = found.case.ask.filtered(&smaller.to_string());
            let (theirs, ours) = world.ask(&ask).await;
            // A filter that both refuse, or that one refuses for a new reason, explains nothing.
            let Some(what) = difference(&theirs, &ours).filter(|_| theirs.status == found.theirs.status) else {
                continue;
            };
            if accepted::reason(&ask, &theirs, &ours).is_none() {
                found.case.ask = ask;
                (found.what, found.theirs, found.ours) = (what, theirs, ours);
                filter = smaller;
                continue 'smaller;
            }
        }
        return;
    }
}

//! The table: Markdown, a line as soon as it is known.

use std::io::Write;
use std::time::Duration;

use crate::face::Case;
use crate::load::Tally;

pub(crate) const HEAD: &str = "\
| case | caller | conns | per s | p50 ms | p99 ms | server CPU ms a call | client CPU ms | others' CPU | rate ÷ PocketBase | CPU ÷ PocketBase | target |
|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|";

/// One measured line.
pub(crate) struct Row {
    pub(crate) case: &'static str,
    pub(crate) caller: &'static str,
    pub(crate) connections: usize,
    pub(crate) tally: Tally,
    /// Has a database of its own, whose CPU is told apart.
    pub(crate) database: bool,
    /// Least ratio of rates to PocketBase.
    pub(crate) target: Option<f64>,
}

/// What PocketBase did with the same calls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rival {
    per_second: f64,
    cpu: f64,
}

impl Rival {
    pub(crate) fn of(tally: &Tally) -> Option<Self> {
        (tally.failure.is_none() && tally.done > 0)
            .then(|| Self { per_second: tally.per_second(), cpu: tally.each(tally.cpu.server + tally.cpu.database) })
    }
}

impl Row {
    /// Prints the line; answers whether it failed or missed its target.
    pub(crate) fn print(mut self, rival: Option<Rival>, out: &mut dyn Write) -> std::io::Result<Verdict> {
        let Self { case, caller, connections, database, target, .. } = self;
        if let Some(failure) = &self.tally.failure {
            let failure = failure.replace(['|', '\n'], " ");
            writeln!(
                out,
                "| {case} | {caller} | {connections} | **failed** after {} | | | | | | | | {failure} |",
                self.tally.done
            )?;
            return Ok(Verdict::Failed);
        }
        let (p50, p99) = (self.tally.percentile(50), self.tally.percentile(99));
        let tally = &self.tally;
        let each = |cpu: Duration| tally.each(cpu);
        let cpu = if database {
            format!("{:.3} + {:.3} db", each(tally.cpu.server), each(tally.cpu.database))
        } else {
            format!("{:.3}", each(tally.cpu.server))
        };
        let ratio = rival.map(|rival| tally.per_second() / rival.per_second);
        let of_cpu = rival.map(|rival| each(tally.cpu.server + tally.cpu.database) / rival.cpu);
        let times = |ratio: Option<f64>| ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}×"));
        let verdict = match (ratio, target) {
            (Some(ratio), Some(target)) if ratio >= target => Verdict::Met,
            (Some(_), Some(_)) => Verdict::Missed,
            _ => Verdict::None,
        };
        let target = target.map_or_else(String::new, |target| format!("≥ {target}× {}", verdict.word()));
        writeln!(
            out,
            "| {case} | {caller} | {connections} | {:.0} | {p50:.2} | {p99:.2} | {cpu} | {:.3} | {:.0} % | {} | {} | {target} |",
            tally.per_second(),
            each(tally.cpu.client),
            tally.cpu.others() * 100.0,
            times(ratio),
            times(of_cpu),
        )?;
        out.flush()?;
        Ok(verdict)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    None,
    Met,
    Missed,
    Failed,
}

impl Verdict {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "**missed**",
            Self::Failed => "**failed**",
            Self::None => "(nothing to compare with)",
        }
    }
}

/// A figure with an upper limit.
pub(crate) fn at_most(value: f64, limit: f64) -> &'static str {
    if value <= limit { Verdict::Met.word() } else { Verdict::Missed.word() }
}

/// Least ratio of rates to PocketBase's, which does not wait for its disk: with one connection only where ours does not
/// either.
pub(crate) fn target(case: Case, connections: usize, durable: bool) -> Option<f64> {
    match (connections, case) {
        (..16, _) if durable => None,
        (..16, _) => Some(if case.is_write() { 0.5 } else { 0.8 }),
        (_, Case::List | Case::Skip) => Some(10.0),
        (_, Case::AnyLabel) => Some(15.0),
        (_, Case::EveryLabel) => Some(20.0),
        (_, Case::Update) => Some(1.5),
        (16..64, Case::View) => Some(2.0),
        (16..64, Case::Create) => Some(1.2),
        (_, Case::View) => Some(1.0),
        (_, Case::Create) => Some(if durable { 0.8 } else { 1.0 }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(done: usize) -> Tally {
        Tally { done, elapsed: Duration::from_secs(1), ..Tally::default() }
    }

    fn print(row: Row, rival: Option<Rival>) -> (Verdict, String) {
        let mut out = Vec::new();
        let verdict = row.print(rival, &mut out).unwrap();
        (verdict, String::from_utf8(out).unwrap())
    }

    fn row(tally: Tally) -> Row {
        let target = target(Case::Create, 64, true);
        Row { case: "create", caller: "signed agent", connections: 16, tally, database: true, target }
    }

    #[test]
    fn a_target_is_met_or_missed_against_the_rival_of_the_same_run() {
        let rival = Rival::of(&tally(1000));
        for (done, verdict) in [(800, Verdict::Met), (799, Verdict::Missed)] {
            let (found, line) = print(row(tally(done)), rival);
            assert_eq!(found, verdict, "{line}");
            assert_eq!(line.matches('|').count(), HEAD.lines().next().unwrap().matches('|').count());
        }
        assert_eq!(print(row(tally(1)), None).0, Verdict::None);
        assert_eq!((target(Case::List, 1, true), target(Case::List, 1, false)), (None, Some(0.8)));
    }

    #[test]
    fn a_refused_call_fails_the_row_and_says_why() {
        let failed = Tally { failure: Some("status 503: {\n|".to_owned()), ..tally(5) };
        let (verdict, line) = print(row(failed), Rival::of(&tally(1000)));
        assert_eq!(verdict, Verdict::Failed);
        assert!(line.contains("status 503") && line.lines().count() == 1, "{line}");
        assert_eq!(line.matches('|').count(), HEAD.lines().next().unwrap().matches('|').count());
        assert!(Rival::of(&Tally { failure: Some(String::new()), ..tally(9) }).is_none());
    }
}

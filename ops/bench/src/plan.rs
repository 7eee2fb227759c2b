//! What is measured in which order.

use std::io::Write;
use std::time::Duration;

use crate::claims::Claims;
use crate::face::{Case, Face, Stock};
use crate::inn::{Callers, MOST_OPEN};
use crate::load::{Job, Supply, Tally, slice};
use crate::report::{Rival, Row, Verdict, target};

/// Two slices a row: the sides take turns, so that a change on the machine meets both.
const SLICES: u32 = 2;
/// No row prepares more calls: they are all in memory.
const MOST_CALLS: usize = 200_000;
const POCKETBASE: &str = "PocketBase, nobody";

pub(crate) struct Plan<'a> {
    pub(crate) connections: &'a [usize],
    /// Measured time of a row.
    pub(crate) time: Duration,
    pub(crate) out: &'a mut dyn Write,
    /// Cards made so far, on both sides together: no two have one title.
    pub(crate) made: usize,
    /// Cards that Innkeeper said it made.
    pub(crate) created: usize,
    pub(crate) met: usize,
    pub(crate) missed: usize,
    pub(crate) failed: usize,
}

/// A row under way.
struct Subject<'f> {
    caller: &'static str,
    face: &'f Face,
    stock: &'f Stock,
    tally: Tally,
    /// Calls a second, from the warm-up.
    pace: f64,
}

impl Plan<'_> {
    /// One case: every caller and, when it is there, PocketBase, taking turns, at each number of connections.
    pub(crate) async fn records(
        &mut self,
        case: Case,
        durable: bool,
        ours: &[(&'static str, &Face)],
        stock: &Stock,
        theirs: Option<(&Face, &Stock)>,
    ) -> anyhow::Result<()> {
        for &connections in self.connections {
            let subject = |caller, face, stock| Subject { caller, face, stock, tally: Tally::default(), pace: 0.0 };
            let mut subjects: Vec<_> = ours.iter().map(|(caller, face)| subject(caller, face, stock)).collect();
            subjects.extend(theirs.map(|(face, stock)| subject(POCKETBASE, face, stock)));
            for subject in &mut subjects {
                let warm = self.run(case, subject, connections, 0.3, 5_000).await?;
                subject.pace = warm.per_second();
            }
            for _ in 0..SLICES {
                for subject in &mut subjects {
                    let seconds = self.time.as_secs_f64() / f64::from(SLICES);
                    // A third more than the pace of the warm-up, which may have been a bad moment.
                    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                    let calls = (subject.pace * seconds * 1.8) as usize + 20 * connections;
                    let tally = self.run(case, subject, connections, seconds, calls).await?;
                    subject.tally.add(tally);
                }
            }
            let rival = subjects.iter().find(|subject| subject.caller == POCKETBASE);
            let rival = rival.and_then(|subject| Rival::of(&subject.tally));
            for Subject { caller, tally, .. } in subjects {
                let own = caller != POCKETBASE;
                let least = if own { target(case, connections, durable) } else { None };
                let row = Row { case: name(case, durable), caller, connections, tally, database: own, target: least };
                let verdict = row.print(rival.filter(|_| own), self.out)?;
                self.count(verdict);
            }
        }
        Ok(())
    }

    /// Claim and complete, refilling the queue between slices.
    pub(crate) async fn claims(
        &mut self,
        callers: &Callers,
        board: &str,
        durable: bool,
        batch: usize,
    ) -> anyhow::Result<()> {
        for &connections in self.connections {
            let mut tally = Tally::default();
            // A full queue does not last the whole time, so there are several fills.
            for _ in 0..8 {
                if tally.elapsed >= self.time || tally.failure.is_some() {
                    break;
                }
                let claims = Claims::fill(callers, board, MOST_OPEN, connections, batch).await?;
                let left = self.time.saturating_sub(tally.elapsed);
                tally.add(slice(callers.key.target, connections, left, claims.clone()).await?);
                // The next fill needs an empty queue; this is not measured.
                drain(callers, claims).await?;
            }
            let case = match (batch, durable) {
                (1, true) => "claim + complete",
                (1, false) => "claim + complete, async commit",
                (_, true) => "claim + complete, 100 a call",
                (_, false) => "claim + complete, 100 a call, async commit",
            };
            let row = Row { case, caller: "signed agent (key)", connections, tally, database: true, target: None };
            let verdict = row.print(None, self.out)?;
            self.count(verdict);
        }
        Ok(())
    }

    async fn run(
        &mut self,
        case: Case,
        subject: &Subject<'_>,
        connections: usize,
        seconds: f64,
        calls: usize,
    ) -> anyhow::Result<Tally> {
        let calls: Vec<_> = (0..calls.min(MOST_CALLS))
            .map(|number| subject.face.outgoing(case, subject.stock, self.made + number))
            .collect();
        self.made += calls.len();
        let supply = Supply::new(subject.face.prepare(&calls)?);
        let tally = slice(subject.face.target, connections, Duration::from_secs_f64(seconds), supply).await?;
        if case == Case::Create && subject.caller != POCKETBASE {
            self.created += tally.done;
        }
        Ok(tally)
    }

    fn count(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Met => self.met += 1,
            Verdict::Missed => self.missed += 1,
            Verdict::Failed => self.failed += 1,
            Verdict::None => {}
        }
    }
}

async fn drain<J: Job>(callers: &Callers, claims: J) -> anyhow::Result<()> {
    slice(callers.key.target, 8, Duration::from_secs(30), claims).await.map(drop)
}

fn name(case: Case, durable: bool) -> &'static str {
    match (case, durable) {
        (Case::View, _) => "view by id",
        (Case::List, _) => "list, filter + sort",
        (Case::Skip, _) => "the same, skipTotal",
        (Case::AnyLabel, _) => "list, `labels.name ?=`",
        (Case::EveryLabel, _) => "list, `labels.name =` (match all)",
        (Case::Update, true) => "update",
        (Case::Update, false) => "update, async commit",
        (Case::Create, true) => "create",
        (Case::Create, false) => "create, async commit",
    }
}

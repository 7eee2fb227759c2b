//! Which transactions somebody has seen: PostgreSQL's `pg_snapshot`.

use std::fmt;
use std::str::FromStr;

/// More transactions than any database lets run at one time.
const MOST_RUNNING: usize = 4096;

/// All transactions below `xmin`, none from `xmax` on, and of those between all but the running ones.
///
/// Numbers of transactions are not their commit order: one that began early may commit late. So "everything after this
/// number" would miss changes, and "everything that was not in this snapshot" does not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snapshot {
    pub(super) xmin: u64,
    pub(super) xmax: u64,
    /// In order, each within `xmin..xmax`.
    pub(super) running: Vec<u64>,
}

impl Snapshot {
    /// `None` when the parts contradict each other.
    pub(super) fn of(xmin: u64, xmax: u64, running: Vec<u64>) -> Option<Self> {
        let in_order = running.is_sorted_by(|a, b| a < b) && running.len() <= MOST_RUNNING;
        let within = running.iter().all(|id| (xmin..xmax).contains(id));
        (xmin <= xmax && in_order && within).then_some(Self { xmin, xmax, running })
    }

    /// Was this transaction committed, or given up, when the snapshot was taken?
    pub fn sees(&self, transaction: u64) -> bool {
        transaction < self.xmin || (transaction < self.xmax && self.running.binary_search(&transaction).is_err())
    }
}

impl FromStr for Snapshot {
    type Err = ();

    /// `xmin:xmax:running,…`, as PostgreSQL writes it.
    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.splitn(3, ':');
        let mut number = || parts.next().and_then(|part| part.parse().ok()).ok_or(());
        let (xmin, xmax) = (number()?, number()?);
        let running = parts.next().ok_or(())?;
        let running = running.split(',').filter(|id| !id.is_empty()).map(str::parse).collect::<Result<_, _>>();
        Self::of(xmin, xmax, running.map_err(|_| ())?).ok_or(())
    }
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:", self.xmin, self.xmax)?;
        for (place, id) in self.running.iter().enumerate() {
            write!(f, "{}{id}", if place > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}

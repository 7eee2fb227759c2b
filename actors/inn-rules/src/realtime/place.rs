//! Where in the stream of changes a client is: everything in `seen`, and of what `upto` has beyond it everything before
//! one change, and of that change the topics up to one.

use super::Snapshot;

/// See the module. What comes next is: the rest of `upto` in the order of the changes, then what is not in `upto`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub seen: Snapshot,
    pub upto: Snapshot,
    /// Number of the last change that was told.
    pub change: i64,
    /// [`super::Topic::order`] of the last topic it was told under; a client hears of one change once a topic.
    pub topic: u64,
    /// When, in seconds since 1970: changes are not kept for ever.
    pub at: i64,
}

impl Place {
    /// With nothing of a change told yet.
    pub fn at_snapshot(snapshot: Snapshot, at: i64) -> Self {
        Self { seen: snapshot.clone(), upto: snapshot, change: i64::MAX, topic: u64::MAX, at }
    }

    /// Short, because every event carries one.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(48);
        let mut number = |mut value: u64| {
            while value >= 0x80 {
                bytes.push(u8::try_from(value & 0x7f).unwrap_or(0) | 0x80);
                value >>= 7;
            }
            bytes.push(u8::try_from(value).unwrap_or(0));
        };
        number(self.at.unsigned_abs());
        for snapshot in [&self.seen, &self.upto] {
            number(snapshot.xmin);
            number(snapshot.xmax - snapshot.xmin);
            number(u64::try_from(snapshot.running.len()).unwrap_or(u64::MAX));
            let mut before = snapshot.xmin;
            for id in &snapshot.running {
                number(id - before);
                before = *id;
            }
        }
        number(self.change.unsigned_abs());
        number(self.topic);
        bytes
    }

    /// `None` for anything that [`Self::to_bytes`] did not make.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.iter();
        let mut number = || {
            let mut value = 0_u64;
            for shift in (0..64).step_by(7) {
                let byte = *rest.next()?;
                let part = u64::from(byte & 0x7f);
                if part.leading_zeros() < shift {
                    return None;
                }
                value |= part << shift;
                if byte < 0x80 {
                    return Some(value);
                }
            }
            None
        };
        let at = i64::try_from(number()?).ok()?;
        let mut snapshot = || {
            let xmin = number()?;
            let xmax = xmin.checked_add(number()?)?;
            let count = number()?;
            let mut running = Vec::new();
            let mut before = xmin;
            for _ in 0..count {
                before = before.checked_add(number()?)?;
                running.push(before);
            }
            Snapshot::of(xmin, xmax, running)
        };
        let (seen, upto) = (snapshot()?, snapshot()?);
        let (change, topic) = (i64::try_from(number()?).ok()?, number()?);
        rest.next().is_none().then_some(Self { seen, upto, change, topic, at })
    }
}

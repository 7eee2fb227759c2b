//! Which statement texts are worth preparing.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use parking_lot::Mutex;

/// Texts remembered at most; then counting starts anew.
const REMEMBERED: usize = 4096;
/// Sightings before a text is prepared: preparing costs a second round trip and memory on both sides.
const HOT: u8 = 3;

/// Counts statement texts by hash. Two texts with one hash only mean that one is prepared early.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    seen: Mutex<HashMap<u64, u8>>,
}

impl Shapes {
    /// Counts this sighting and says whether the text comes often enough to be prepared.
    pub(crate) fn is_hot(&self, sql: &str) -> bool {
        let mut hasher = DefaultHasher::new();
        sql.hash(&mut hasher);
        let mut seen = self.seen.lock();
        if seen.len() >= REMEMBERED {
            seen.clear();
        }
        let count = seen.entry(hasher.finish()).or_insert(0);
        *count = count.saturating_add(1);
        *count >= HOT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_becomes_hot_at_its_third_sighting() {
        let shapes = Shapes::default();
        assert_eq!([1, 2, 3, 4].map(|_| shapes.is_hot("SELECT 1")), [false, false, true, true]);
        assert!(!shapes.is_hot("SELECT 2"));
    }

    #[test]
    fn a_flood_of_texts_does_not_grow_the_memory() {
        let shapes = Shapes::default();
        for number in 0..3 * REMEMBERED {
            shapes.is_hot(&number.to_string());
        }
        assert!(shapes.seen.lock().len() <= REMEMBERED);
    }
}

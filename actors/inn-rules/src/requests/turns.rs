//! Whose turn it is: start-time fair queueing over keys that come and go.

use std::collections::HashMap;
use std::hash::Hash;

/// What one serving of weight 1 costs. Divides well by the weights people give.
const STRIDE: u64 = 27_720;
/// Keys that are remembered; all of them are forgotten when there are more, which costs one round of memory.
const MOST_KEYS: usize = 1_000;

/// Remembers how much each key was served lately. A key that had nothing to be served saves up nothing.
#[derive(Debug, Clone)]
pub struct Turns<K> {
    /// Where each key's next serving begins.
    next: HashMap<K, u64>,
    /// Where the last serving began.
    now: u64,
}

impl<K> Default for Turns<K> {
    fn default() -> Self {
        Self { next: HashMap::new(), now: 0 }
    }
}

impl<K: Hash + Eq + Copy> Turns<K> {
    /// The first of these whose turn it is; of equals, the one that stands first.
    pub fn first(&self, keys: impl IntoIterator<Item = K>) -> Option<K> {
        keys.into_iter().min_by_key(|key| self.begins(key))
    }

    /// One serving of a key with this weight (at least 1): twice the weight, twice the servings.
    pub fn serve(&mut self, key: K, weight: u32) {
        if self.next.len() >= MOST_KEYS && !self.next.contains_key(&key) {
            self.next.clear();
        }
        let begins = self.begins(&key);
        self.next.insert(key, begins + STRIDE / u64::from(weight.max(1)));
        self.now = self.now.max(begins);
    }

    fn begins(&self, key: &K) -> u64 {
        self.next.get(key).copied().unwrap_or_default().max(self.now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn serve(turns: &mut Turns<usize>, weights: &[u32], keys: &[usize]) -> usize {
        let key = turns.first(keys.iter().copied()).expect("a key");
        turns.serve(key, weights[key]);
        key
    }

    #[test]
    fn twice_the_weight_is_served_twice_as_often() {
        let mut turns = Turns::default();
        let served: Vec<usize> = (0..9).map(|_| serve(&mut turns, &[2, 1], &[0, 1])).collect();
        assert_eq!(served.iter().filter(|key| **key == 0).count(), 6, "{served:?}");
    }

    proptest! {
        #[test]
        fn all_that_always_wait_get_their_share(weights in prop::collection::vec(1_u32..10, 1..6), rounds in 1_usize..20) {
            let mut turns = Turns::default();
            let keys: Vec<usize> = (0..weights.len()).collect();
            let total: usize = weights.iter().map(|weight| *weight as usize).sum();
            let mut counts = vec![0_usize; weights.len()];
            for _ in 0..total * rounds {
                counts[serve(&mut turns, &weights, &keys)] += 1;
            }
            for (count, weight) in counts.iter().zip(&weights) {
                let due = *weight as usize * rounds;
                prop_assert!(count.abs_diff(due) <= 2, "{counts:?} for {weights:?} in {rounds} rounds");
            }
        }

        #[test]
        fn who_comes_is_served_within_one_round_however_long_others_were_alone(alone in 0_usize..500, others in 1_usize..6) {
            let weights = vec![1; others + 1];
            let (mut turns, before, new) = (Turns::default(), (0..others).collect::<Vec<_>>(), others);
            for _ in 0..alone {
                serve(&mut turns, &weights, &before);
            }
            let all: Vec<usize> = (0..=others).collect();
            let served: Vec<usize> = (0..=others).map(|_| serve(&mut turns, &weights, &all)).collect();
            prop_assert_eq!(served.iter().filter(|key| **key == new).count(), 1, "{:?}", served);
        }
    }
}

//! The data: rows like those of the reference measurement of PocketBase, the same on both sides.

use serde_json::{Value, json};

/// What the agent is granted.
pub(crate) const SCOPES: &[&str] =
    &["data:cards:read", "data:cards:write", "data:labels:read", "data:lists:read", "queue:summarise-board"];

/// Lists, labels: as many as the reference had.
pub(crate) const LISTS: usize = 10;
pub(crate) const LABELS: usize = 8;

const WORDS: &[&str] = &["alpha", "beta", "gamma", "delta", "fix", "write", "review", "ship"];
const PRIORITIES: &[&str] = &["", "low", "normal", "high", "urgent"];

/// Card number `number`. Always the same one, so that two servers hold the same rows.
pub(crate) fn card(number: usize, list: &str, labels: &[String]) -> Value {
    let mut dice = Dice(number as u64);
    let words: Vec<&str> = (0..4).map(|_| dice.pick(WORDS)).collect();
    let chosen: Vec<&String> = labels.iter().filter(|_| dice.roll(4) == 0).take(3).collect();
    json!({
        "title": format!("{} {number}", words.join(" ")),
        "description": "A card that says as much as cards usually do. ".repeat(5).get(..200),
        "list": list,
        "priority": dice.pick(PRIORITIES),
        "due_date": format!("2026-{:02}-{:02} 12:00:00.000Z", 1 + dice.roll(12), 1 + dice.roll(28)),
        "position": number + 1,
        "archived": dice.roll(5) == 0,
        "labels": chosen,
        "checklist": [{"text": "one", "done": false}],
    })
}

/// A small card, as a program adds it.
pub(crate) fn new_card(number: usize, list: &str, label: &str) -> Value {
    json!({
        "title": format!("new card {number}"),
        "description": "A card that says as much as cards usually do. ".repeat(3).get(..100),
        "list": list,
        "position": number + 1,
        "labels": [label],
    })
}

/// Which of so many lists card number `number` is in.
pub(crate) fn list_of(number: usize) -> usize {
    usize::try_from(Dice(number as u64 ^ 0x5eed).roll(LISTS as u64)).unwrap_or_default()
}

/// `SplitMix64` (Steele, Lea, Flood 2014): reproducible, and good enough to spread rows.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) % sides
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        let place = usize::try_from(self.roll(from.len() as u64)).unwrap_or_default();
        from.get(place).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_reproducible_and_spread() {
        assert_eq!(card(7, "l", &[]), card(7, "l", &[]));
        let mut per_list = [0; LISTS];
        (0..10_000).for_each(|number| per_list[list_of(number)] += 1);
        assert!(per_list.iter().all(|count| (850..1150).contains(count)), "{per_list:?}");
        let open = (0..10_000).filter(|number| card(*number, "l", &[])["archived"] == json!(false)).count();
        assert!((7_700..8_300).contains(&open), "{open}");
    }
}

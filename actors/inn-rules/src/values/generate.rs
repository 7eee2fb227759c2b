//! Texts made from random bytes the caller brings.

use inn_protocol::model::{Collection, FieldKind};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind};

const ID_ALPHABET: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";
const ID_LENGTH: usize = 15;

/// A record id: 15 characters of `[a-z0-9]`. Bring 16 random bytes; with fewer it carries less chance, never another
/// form.
pub fn record_id(random: &[u8]) -> String {
    let mut pool = Pool::new(random);
    (0..ID_LENGTH).map(|_| pool.pick(ID_ALPHABET)).collect()
}

/// The id of a new record of this collection: what its `id` field says, else [`record_id`].
pub fn new_id(collection: &Collection, random: &[u8]) -> String {
    let own = collection.field("id").and_then(|field| match &field.kind {
        FieldKind::Text { autogenerate_pattern, .. } if autogenerate_pattern != DEFAULT_ID => {
            Some(autogenerate_pattern)
        }
        _ => None,
    });
    let made = own.and_then(|pattern| autogenerate(pattern, random)).filter(|id| !id.is_empty());
    made.unwrap_or_else(|| record_id(random))
}

const DEFAULT_ID: &str = "[a-z0-9]{15}";

/// A text for a field's `autogeneratePattern`: whatever the regular expression matches, with at most [`MOST_MORE`] repeats
/// more than it asks for. `None` for one that cannot be read, has anchors (as PocketBase has it), or makes more than
/// 255 bytes. The more bytes are brought, the more chance is in it.
pub fn autogenerate(pattern: &str, random: &[u8]) -> Option<String> {
    let parsed = ParserBuilder::new().nest_limit(20).build().parse(pattern).ok()?;
    // Bounds what `{n}` within `{n}` can ask for before anything is made.
    if parsed.properties().minimum_len()? > MAX_GENERATED {
        return None;
    }
    let mut making = Making { pool: Pool::new(random), out: String::new(), steps: 0 };
    making.add(&parsed)?;
    Some(making.out)
}

const MAX_GENERATED: usize = 255;
const MAX_STEPS: usize = 2_000;
/// For `*`, `+` and `{n,}`.
const MOST_MORE: u32 = 4;

struct Making<'r> {
    pool: Pool<'r>,
    out: String,
    steps: usize,
}

impl Making<'_> {
    fn add(&mut self, part: &Hir) -> Option<()> {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return None;
        }
        match part.kind() {
            HirKind::Empty => {}
            HirKind::Literal(literal) => self.out.push_str(std::str::from_utf8(&literal.0).ok()?),
            HirKind::Class(Class::Unicode(class)) => {
                let c = self.member(class)?;
                self.out.push(c);
            }
            HirKind::Class(Class::Bytes(_)) | HirKind::Look(_) => return None,
            HirKind::Repetition(repeat) => {
                let most = repeat.max.unwrap_or_else(|| repeat.min.saturating_add(MOST_MORE));
                // What may be left out is left out once the text is long enough.
                let most = if self.out.len() > MAX_GENERATED / 2 { repeat.min } else { most };
                let more = self.pool.index(usize::try_from(most.saturating_sub(repeat.min)).ok()?.saturating_add(1));
                for _ in 0..usize::try_from(repeat.min).ok()?.saturating_add(more) {
                    self.add(&repeat.sub)?;
                }
            }
            HirKind::Capture(capture) => self.add(&capture.sub)?,
            HirKind::Concat(parts) => parts.iter().try_for_each(|part| self.add(part))?,
            HirKind::Alternation(ways) => {
                let way = self.pool.index(ways.len());
                self.add(ways.get(way)?)?;
            }
        }
        (self.out.len() <= MAX_GENERATED).then_some(())
    }

    /// One of the class's characters; a printable one of ASCII, if it has any.
    fn member(&mut self, class: &ClassUnicode) -> Option<char> {
        let mut printable = class.clone();
        printable.intersect(&ClassUnicode::new([ClassUnicodeRange::new(' ', '~')]));
        let class = if printable.ranges().is_empty() { class } else { &printable };
        let count = |range: &ClassUnicodeRange| u32::from(range.end()) - u32::from(range.start()) + 1;
        let all: u32 = class.ranges().iter().map(count).sum();
        let mut place = u32::try_from(self.pool.index(usize::try_from(all).ok()?)).ok()?;
        for range in class.ranges() {
            if place < count(range) {
                return char::from_u32(u32::from(range.start()) + place);
            }
            place -= count(range);
        }
        None
    }
}

/// Random bytes, folded into one number that is consumed digit by digit, so that 16 bytes are enough for an id
/// (36^15 < 2^78) and picks stay even.
struct Pool<'a> {
    bytes: std::slice::Iter<'a, u8>,
    left: u128,
    size: u128,
}

impl<'a> Pool<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes: bytes.iter(), left: 0, size: 1 }
    }

    fn pick(&mut self, alphabet: &[u8]) -> char {
        let index = self.index(alphabet.len());
        alphabet.get(index).map_or('0', |b| char::from(*b))
    }

    /// A number below `count`.
    fn index(&mut self, count: usize) -> usize {
        // Kept far larger than the alphabet: the bias of one pick stays below 2^-40.
        while self.size < 1 << 48 {
            let Some(byte) = self.bytes.next() else { break };
            self.left = (self.left << 8) | u128::from(*byte);
            self.size <<= 8;
        }
        let count = count.max(1) as u128;
        let index = usize::try_from(self.left % count).unwrap_or(0);
        self.left /= count;
        self.size = (self.size / count).max(1);
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_15_lower_case_letters_and_digits_and_every_byte_counts() {
        let id = record_id(&[7; 16]);
        assert_eq!(id.len(), 15);
        assert!(id.bytes().all(|b| ID_ALPHABET.contains(&b)));
        for index in 0..10 {
            let mut other = [7; 16];
            other[index] ^= 1;
            assert_ne!(record_id(&other), id, "byte {index}");
        }
        assert_eq!(record_id(&[]).len(), 15);
    }

    #[test]
    fn a_pattern_gives_a_text_that_fits_it() {
        for pattern in [
            "[a-z0-9]{15}",
            "INV-[0-9]{6}",
            "[a-zA-Z0-9_]{50}",
            "\\d{3}x+",
            "a\\-[A-F]",
            "user[0-9]{2,4}",
            "(ab|cd)[0-9]+",
            "a?b*c+",
            "(a(b|c){2}){2}",
            "[^a]{3}",
            ".",
            "\\w{4}\\S",
            "[[:alpha:]]{3}",
            "x{2}|y",
            "é",
            "",
        ] {
            let fits = regex::Regex::new(&format!("^(?:{pattern})$")).unwrap();
            for seed in 0..50_u8 {
                let random: Vec<u8> = (0..=255_u8).map(|byte| byte.wrapping_mul(31).wrapping_add(seed)).collect();
                let text = autogenerate(pattern, &random).unwrap();
                assert!(fits.is_match(&text), "{pattern} {text:?}");
            }
        }
        let random: Vec<u8> = (0..=255).collect();
        for pattern in
            ["^abc$", "a{1000}", "((a{9}){9}){9}", "[", "\\p", "(?=a)", "(a{0,1000}){200}b{100}", "\\bx", "[z-a]"]
        {
            let made = autogenerate(pattern, &random);
            assert!(made.is_none_or(|text| text.len() <= MAX_GENERATED), "{pattern}");
        }
        for pattern in ["^abc$", "a{1000}", "[", "\\bx"] {
            assert_eq!(autogenerate(pattern, &random), None, "{pattern}");
        }
    }

    #[test]
    fn repeats_and_ways_are_left_to_chance() {
        let seen: std::collections::HashSet<String> =
            (0..100_u8).filter_map(|seed| autogenerate("(a|b){1,3}", &inn_protocol::Digest::of(&[seed]).0)).collect();
        assert!(seen.len() > 6, "{seen:?}");
    }

    #[test]
    fn a_new_id_is_what_the_collection_says() {
        let collection = |pattern: &str| -> Collection {
            serde_json::from_value(serde_json::json!({"id": "c", "name": "c", "type": "base", "fields": [
                {"id": "f", "name": "id", "type": "text", "autogeneratePattern": pattern, "primaryKey": true},
            ]}))
            .unwrap()
        };
        let random: Vec<u8> = (0..64).collect();
        assert_eq!(new_id(&collection("[a-z0-9]{15}"), &random), record_id(&random));
        assert_eq!(new_id(&collection(""), &random).len(), 15);
        let short = new_id(&collection("[0-9]{5}"), &random);
        assert!(short.len() == 5 && short.bytes().all(|b| b.is_ascii_digit()), "{short}");
    }
}

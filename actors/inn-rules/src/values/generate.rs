//! Texts made from random bytes the caller brings.

const ID_ALPHABET: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";
const ID_LENGTH: usize = 15;

/// A record id: 15 characters of `[a-z0-9]`. Bring 16 random bytes; with fewer it carries less chance, never another
/// form.
pub fn record_id(random: &[u8]) -> String {
    let mut pool = Pool::new(random);
    (0..ID_LENGTH).map(|_| pool.pick(ID_ALPHABET)).collect()
}

/// A text for a field's `autogeneratePattern`: literals and classes like `[a-z0-9]`, `\d`, `\w`, each with `{n}`,
/// `{n,m}` (n is taken), `+` or `?` (once). `None` for any other pattern; at most 255 characters.
pub fn autogenerate(pattern: &str, random: &[u8]) -> Option<String> {
    let mut pool = Pool::new(random);
    let mut out = String::new();
    let mut rest = pattern.chars().peekable();
    while let Some(c) = rest.next() {
        let class: Vec<u8> = match c {
            '[' => class(&mut rest)?,
            '\\' => match rest.next()? {
                'd' => (b'0'..=b'9').collect(),
                'w' => (b'0'..=b'9').chain(b'A'..=b'Z').chain(*b"_").chain(b'a'..=b'z').collect(),
                other if other.is_ascii_punctuation() => vec![u8::try_from(other).ok()?],
                _ => return None,
            },
            '^' | '$' | '(' | ')' | '|' | '.' | '*' | '+' | '?' | '{' | '}' | ']' => return None,
            literal => vec![u8::try_from(literal).ok().filter(u8::is_ascii)?],
        };
        let count = count(&mut rest)?;
        if out.len() + count > MAX_GENERATED {
            return None;
        }
        out.extend((0..count).map(|_| pool.pick(&class)));
    }
    Some(out)
}

const MAX_GENERATED: usize = 255;

type Rest<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn class(rest: &mut Rest<'_>) -> Option<Vec<u8>> {
    let mut members = Vec::new();
    loop {
        let first = match rest.next()? {
            ']' => break,
            '^' if members.is_empty() => return None,
            '\\' => rest.next().filter(char::is_ascii_punctuation)?,
            other => other,
        };
        let first = u8::try_from(first).ok().filter(u8::is_ascii)?;
        let mut ahead = rest.clone();
        match (ahead.next(), ahead.next()) {
            (Some('-'), Some(last)) if last != ']' => {
                let last = u8::try_from(last).ok().filter(|last| last.is_ascii() && *last >= first)?;
                members.extend(first..=last);
                *rest = ahead;
            }
            _ => members.push(first),
        }
    }
    (!members.is_empty()).then_some(members)
}

fn count(rest: &mut Rest<'_>) -> Option<usize> {
    match rest.peek() {
        Some('+' | '?') => {
            rest.next();
            Some(1)
        }
        Some('*') => None,
        Some('{') => {
            rest.next();
            let inside: String = rest.take_while(|c| *c != '}').collect();
            inside.split(',').next()?.parse().ok()
        }
        _ => Some(1),
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
        // Kept far larger than the alphabet: the bias of one pick stays below 2^-40.
        while self.size < 1 << 48 {
            let Some(byte) = self.bytes.next() else { break };
            self.left = (self.left << 8) | u128::from(*byte);
            self.size <<= 8;
        }
        let count = alphabet.len() as u128;
        let index = usize::try_from(self.left % count).unwrap_or(0);
        self.left /= count;
        self.size = (self.size / count).max(1);
        alphabet.get(index).map_or('0', |b| char::from(*b))
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
        let random: Vec<u8> = (0..=255).collect();
        for pattern in ["[a-z0-9]{15}", "INV-[0-9]{6}", "[a-zA-Z0-9_]{50}", "\\d{3}x+", "a\\-[A-F]", "user[0-9]{2,4}"] {
            let text = autogenerate(pattern, &random).unwrap();
            assert!(regex::Regex::new(&format!("^{pattern}$")).unwrap().is_match(&text), "{pattern} {text}");
        }
        for pattern in ["a|b", "(a)", "[^a]", ".", "[z-a]", "a{1000}", "[", "\\p", "a*", "é"] {
            assert_eq!(autogenerate(pattern, &random), None, "{pattern}");
        }
    }
}

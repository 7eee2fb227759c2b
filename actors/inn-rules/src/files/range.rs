//! `Range` of a download (RFC 9110 section 14), as PocketBase reads it.

/// Most parts of one answer: each is read by itself. Whoever asks for more gets the whole file.
const MOST_PARTS: usize = 64;

/// Which bytes to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Span {
    Whole,
    Part(Part),
    /// Several, in the order in which they were asked for; they may overlap. Together not more than the file.
    Parts(Vec<Part>),
    /// Nothing of it is there, or it cannot be read: 416.
    Outside,
}

/// Some bytes of a file; never none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    pub first: u64,
    pub count: u64,
}

impl Part {
    /// As `Content-Range` names it.
    pub fn named(self, size: u64) -> String {
        format!("bytes {}-{}/{size}", self.first, self.first.saturating_add(self.count).saturating_sub(1))
    }
}

/// Reads the header for a file of `size` bytes. Of several ranges those count that are there; if they are more than the file
/// itself, it is sent whole.
pub fn span(header: &str, size: u64) -> Span {
    let Some(ranges) = header.trim().strip_prefix("bytes=") else { return Span::Outside };
    let mut parts = Vec::new();
    let mut beyond = false;
    for range in ranges.split(',').map(str::trim).filter(|range| !range.is_empty()) {
        match part(range, size) {
            Found::Part(part) if parts.len() < MOST_PARTS => parts.push(part),
            Found::Part(_) => return Span::Whole,
            Found::Beyond => beyond = true,
            Found::Wrong => return Span::Outside,
        }
    }
    let total = parts.iter().fold(0_u64, |total, part| total.saturating_add(part.count));
    match parts.as_slice() {
        // Some clients ask for a range of everything; of nothing there is none.
        [] if beyond && size > 0 => Span::Outside,
        [] => Span::Whole,
        _ if total > size => Span::Whole,
        [part] => Span::Part(*part),
        _ => Span::Parts(parts),
    }
}

enum Found {
    Part(Part),
    /// Well written, but the file has no such byte.
    Beyond,
    Wrong,
}

fn part(range: &str, size: u64) -> Found {
    let Some((first, last)) = range.split_once('-') else { return Found::Wrong };
    match (number(first.trim()), number(last.trim())) {
        (Number::None, Number::Some(count)) => match count.min(size) {
            0 => Found::Beyond,
            count => Found::Part(Part { first: size - count, count }),
        },
        (Number::Some(first), Number::None | Number::Some(_)) if first >= size => Found::Beyond,
        (Number::Some(first), Number::None) => Found::Part(Part { first, count: size - first }),
        (Number::Some(first), Number::Some(last)) if last >= first => {
            Found::Part(Part { first, count: last.min(size - 1) - first + 1 })
        }
        _ => Found::Wrong,
    }
}

enum Number {
    None,
    Some(u64),
    Wrong,
}

fn number(text: &str) -> Number {
    if text.is_empty() {
        return Number::None;
    }
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return Number::Wrong;
    }
    // More digits than a file can have bytes.
    Number::Some(text.parse().unwrap_or(u64::MAX))
}

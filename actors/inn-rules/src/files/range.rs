//! `Range` of a download (RFC 9110 section 14).

/// Which bytes to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    Whole,
    /// First byte, and how many; never none.
    Part(u64, u64),
    /// Nothing of it is there, or it cannot be read: 416.
    Outside,
}

/// Reads the header for a file of `size` bytes. Several ranges at once are answered with the whole file, which the RFC
/// allows.
pub fn span(header: &str, size: u64) -> Span {
    let Some(ranges) = header.trim().strip_prefix("bytes=") else { return Span::Outside };
    let mut all = ranges.split(',').map(str::trim).filter(|range| !range.is_empty());
    let (Some(range), None) = (all.next(), all.next()) else { return Span::Whole };
    let Some((first, last)) = range.split_once('-') else { return Span::Outside };
    match (number(first.trim()), number(last.trim())) {
        (Number::None, Number::Some(count)) => {
            let count = count.min(size);
            if count == 0 { Span::Outside } else { Span::Part(size - count, count) }
        }
        (Number::Some(first), _) if first >= size => Span::Outside,
        (Number::Some(first), Number::None) => Span::Part(first, size - first),
        (Number::Some(first), Number::Some(last)) if last >= first => Span::Part(first, last.min(size - 1) - first + 1),
        _ => Span::Outside,
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

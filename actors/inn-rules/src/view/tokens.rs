//! The words of a view's query.

/// Longest query, in bytes.
const MAX_QUERY: usize = 8_000;
const MAX_TOKENS: usize = 2_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// A bare word, which may be a keyword.
    Word(String),
    /// A name in double quotes, backticks or brackets.
    Name(String),
    Text(String),
    Number(String),
    Symbol(&'static str),
}

/// One word and where it stands in the text.
#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Longest first.
const SYMBOLS: [&str; 20] =
    ["==", "!=", "<>", "<=", ">=", "||", "(", ")", ",", ".", "=", "<", ">", "+", "-", "*", "/", "%", ";", "~"];

pub(super) fn tokens(text: &str) -> Result<Vec<Token>, String> {
    if text.len() > MAX_QUERY {
        return Err(format!("a view's query has at most {MAX_QUERY} bytes"));
    }
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let skipped = skipped(rest)?;
        if skipped > 0 {
            at += skipped;
            continue;
        }
        let (kind, length) = token(rest)?;
        found.push(Token { kind, start: at, end: at + length });
        at += length;
        if found.len() > MAX_TOKENS {
            return Err(format!("a view's query has at most {MAX_TOKENS} words"));
        }
    }
    Ok(found)
}

/// Bytes of blanks or of one comment at the start.
fn skipped(rest: &str) -> Result<usize, String> {
    if rest.starts_with("--") {
        return Ok(rest.find('\n').unwrap_or(rest.len()));
    }
    if let Some(comment) = rest.strip_prefix("/*") {
        let end = comment.find("*/").ok_or("a comment in a view's query does not end")?;
        return Ok(end + 4);
    }
    Ok(rest.len() - rest.trim_start().len())
}

fn token(rest: &str) -> Result<(Kind, usize), String> {
    let first = rest.chars().next().unwrap_or_default();
    if let Some((open, close)) =
        [('\'', '\''), ('"', '"'), ('`', '`'), ('[', ']')].into_iter().find(|(o, _)| *o == first)
    {
        let (text, length) = quoted(rest, close)?;
        return Ok((if open == '\'' { Kind::Text(text) } else { Kind::Name(text) }, length));
    }
    if first.is_ascii_alphabetic() || first == '_' {
        let length = rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        return Ok((Kind::Word(rest.get(..length).unwrap_or_default().to_owned()), length));
    }
    let second_is_digit = rest.as_bytes().get(1).is_some_and(u8::is_ascii_digit);
    if first.is_ascii_digit() || first == '.' && second_is_digit {
        let length = rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'.').count();
        let text = rest.get(..length).unwrap_or_default();
        let fits = text.bytes().all(|b| b.is_ascii_digit() || b == b'.') && text.matches('.').count() <= 1;
        return if fits {
            Ok((Kind::Number(text.to_owned()), length))
        } else {
            Err(format!("`{text}` is no number a view can use"))
        };
    }
    match SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol)) {
        Some(symbol) => Ok((Kind::Symbol(symbol), symbol.len())),
        None => Err(format!("`{first}` has no meaning in a view's query")),
    }
}

/// The text up to the closing quote, which is written twice inside, and the bytes it took.
fn quoted(rest: &str, close: char) -> Result<(String, usize), String> {
    let mut text = String::new();
    let mut chars = rest.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c == '\0' {
            return Err("a view's query cannot hold U+0000".to_owned());
        }
        if c != close {
            text.push(c);
        } else if close != ']' && chars.peek().is_some_and(|(_, next)| *next == close) {
            text.push(c);
            chars.next();
        } else {
            return Ok((text, at + c.len_utf8()));
        }
    }
    Err("a quote in a view's query does not end".to_owned())
}

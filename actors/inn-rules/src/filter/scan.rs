//! Tokens (section A.2, the 0.39.7 dialect of text escapes).

use super::ast::{Join, Sign, Term, TermKind};
use super::error::FilterError;
use super::expr::Op;

/// Calls inside calls, the outer one included.
const MAX_CALL_DEPTH: usize = 3;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// White space or a comment.
    Blank,
    Operand(Term),
    Sign(Sign),
    Join(Join),
    /// `( … )`: the bytes between the parentheses.
    Group {
        from: usize,
        to: usize,
    },
}

/// Reads a stretch of the text, token by token.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scanner<'a> {
    text: &'a str,
    pub(super) at: usize,
    end: usize,
}

impl<'a> Scanner<'a> {
    pub(super) const fn new(text: &'a str, at: usize, end: usize) -> Self {
        Self { text, at, end }
    }

    fn peek(&self) -> Option<u8> {
        if self.at < self.end { self.text.as_bytes().get(self.at).copied() } else { None }
    }

    fn since(&self, from: usize) -> &'a str {
        self.text.get(from..self.at).unwrap_or_default()
    }

    fn take_while(&mut self, wanted: impl Fn(u8) -> bool) -> &'a str {
        let from = self.at;
        while self.peek().is_some_and(&wanted) {
            self.at += 1;
        }
        self.since(from)
    }

    /// The next token, or `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Token>, FilterError> {
        let at = self.at;
        let Some(byte) = self.peek() else { return Ok(None) };
        let token = match byte {
            b' ' | b'\t' | b'\n' => {
                self.take_while(is_blank);
                Token::Blank
            }
            b'/' => self.comment()?,
            b'(' => self.group()?,
            b'=' | b'?' | b'!' | b'>' | b'<' | b'~' => {
                let run = self.take_while(|b| b"=?!><~".contains(&b));
                Token::Sign(sign(run).ok_or_else(|| FilterError::invalid(at, format!("`{run}` is not an operator")))?)
            }
            b'&' | b'|' => match self.take_while(|b| b"&|".contains(&b)) {
                "&&" => Token::Join(Join::And),
                "||" => Token::Join(Join::Or),
                run => return Err(FilterError::invalid(at, format!("`{run}` is not `&&` or `||`"))),
            },
            _ => Token::Operand(self.operand(0)?),
        };
        Ok(Some(token))
    }

    fn comment(&mut self) -> Result<Token, FilterError> {
        let at = self.at;
        self.at += 1;
        if self.peek() != Some(b'/') {
            return Err(FilterError::invalid(at, "a single `/`; comments start with `//`"));
        }
        self.take_while(|b| b != b'\n');
        Ok(Token::Blank)
    }

    /// Finds the closing parenthesis as PocketBase does: on the raw text, respecting quotes but not comments.
    fn group(&mut self) -> Result<Token, FilterError> {
        let open = self.at;
        let mut depth = 0_usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'(' => depth += 1,
                b')' => depth -= 1,
                b'\'' | b'"' => {
                    self.quoted()?;
                    continue;
                }
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Ok(Token::Group { from: open + 1, to: self.at - 1 });
            }
        }
        Err(FilterError::invalid(open, "this parenthesis is never closed"))
    }

    fn operand(&mut self, depth: usize) -> Result<Term, FilterError> {
        let at = self.at;
        let kind = match self.peek() {
            Some(b'\'' | b'"') => TermKind::Text(self.quoted()?),
            Some(b'-' | b'0'..=b'9') => TermKind::Number(self.number()?),
            Some(b'@' | b'_' | b'#' | b'a'..=b'z' | b'A'..=b'Z') => self.identifier_or_call(depth)?,
            _ => {
                let found = self.text.get(at..self.end).and_then(|rest| rest.chars().next());
                let reason =
                    found.map_or("the filter ends here".to_owned(), |c| format!("unexpected `{}`", c.escape_default()));
                return Err(FilterError::invalid(at, reason));
            }
        };
        Ok(Term { at, kind })
    }

    /// The closing quote is the next same one whose previous byte is not a backslash, and only a backslash before
    /// that quote disappears. So no text can end in a backslash: that is the pinned dialect.
    fn quoted(&mut self) -> Result<String, FilterError> {
        let open = self.at;
        let Some(quote) = self.peek() else { return Err(FilterError::invalid(open, "expected a text")) };
        self.at += 1;
        let from = self.at;
        let mut before = quote;
        while let Some(byte) = self.peek() {
            if byte == quote && before != b'\\' {
                let raw = self.since(from);
                self.at += 1;
                let quote = char::from(quote);
                return Ok(raw.replace(&format!("\\{quote}"), quote.encode_utf8(&mut [0; 4])));
            }
            before = byte;
            self.at += 1;
        }
        Err(FilterError::invalid(open, "this text is never closed"))
    }

    fn number(&mut self) -> Result<f64, FilterError> {
        let at = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        self.take_while(|b| b.is_ascii_digit() || b == b'.');
        let text = self.since(at);
        let wrong = || FilterError::invalid(at, format!("`{text}` is not a number"));
        if text == "-" || text.ends_with('.') || text.matches('.').count() > 1 {
            return Err(wrong());
        }
        text.parse().map_err(|_| wrong())
    }

    fn identifier_or_call(&mut self, depth: usize) -> Result<TermKind, FilterError> {
        let at = self.at;
        self.at += 1;
        self.take_while(|b| b.is_ascii_alphanumeric() || b"_.:".contains(&b));
        let name = self.since(at);
        if name.ends_with(['.', ':']) || matches!(name, "@" | "_" | "#") {
            return Err(FilterError::invalid(at, format!("`{name}` is not a name")));
        }
        let name = name.to_owned();
        if self.peek() != Some(b'(') {
            return Ok(TermKind::Identifier(name));
        }
        if depth >= MAX_CALL_DEPTH {
            return Err(FilterError::invalid(at, format!("more than {MAX_CALL_DEPTH} calls inside each other")));
        }
        self.at += 1;
        Ok(TermKind::Call { args: self.arguments(depth + 1)?, name })
    }

    /// Comma separated up to the closing parenthesis; a comma may trail.
    fn arguments(&mut self, depth: usize) -> Result<Vec<Term>, FilterError> {
        let mut args = Vec::new();
        let mut expects_value = true;
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\n') => {
                    self.take_while(is_blank);
                }
                Some(b'/') => {
                    self.comment()?;
                }
                Some(b')') => {
                    self.at += 1;
                    return Ok(args);
                }
                Some(b',') if !expects_value => {
                    self.at += 1;
                    expects_value = true;
                }
                Some(_) if expects_value => {
                    args.push(self.operand(depth)?);
                    expects_value = false;
                }
                _ => return Err(FilterError::invalid(self.at, "expected `,` or `)`")),
            }
        }
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n')
}

fn sign(run: &str) -> Option<Sign> {
    let (any, plain) = match run.strip_prefix('?') {
        Some(rest) => (true, rest),
        None => (false, run),
    };
    let op = match plain {
        "=" => Op::Eq,
        "!=" => Op::Ne,
        ">" => Op::Gt,
        ">=" => Op::Ge,
        "<" => Op::Lt,
        "<=" => Op::Le,
        "~" => Op::Like,
        "!~" => Op::NotLike,
        _ => return None,
    };
    Some(Sign { op, any })
}

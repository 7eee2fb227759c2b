//! LIKE (section A.9): ASCII case-insensitive, `%` any run, `_` one character, backslash escapes.

/// The text of a number literal on the right of `~`: the shortest decimal, never an exponent (`1`, not `1.0`; -0 is
/// `-0`).
pub fn literal_text(number: f64) -> String {
    number.to_string()
}

/// The pattern a literal on the right of `~` stands for. With an unescaped `%` it is used as it is; otherwise its
/// special characters are escaped (unless they already are) and it may match anywhere.
/// `None`: the pattern ends in a lone backslash and matches nothing.
pub fn literal_pattern(text: &str) -> Option<String> {
    let pattern = wrapped(text);
    valid(&pattern).then_some(pattern)
}

/// What PocketBase makes of every value that is bound on the right of `~`.
pub(super) fn wrapped(text: &str) -> String {
    if has_open_percent(text) { text.to_owned() } else { format!("%{}%", escape(text)) }
}

/// The pattern of a value that is not a literal: contained anywhere, its own wildcards active.
pub(super) fn column_pattern(value: &str) -> String {
    format!("%{value}%")
}

fn has_open_percent(text: &str) -> bool {
    let mut escaped = false;
    text.chars().any(|c| {
        let open = c == '%' && !escaped;
        escaped = c == '\\' && !escaped;
        open
    })
}

/// Escapes `\ % _` from the right; one that has a backslash before it is left alone together with that backslash.
fn escape(text: &str) -> String {
    let mut reversed = Vec::with_capacity(text.len() + 8);
    let mut rest = text.chars().rev().peekable();
    while let Some(c) = rest.next() {
        reversed.push(c);
        if matches!(c, '\\' | '%' | '_') {
            if rest.peek() == Some(&'\\') {
                rest.next();
            }
            reversed.push('\\');
        }
    }
    reversed.into_iter().rev().collect()
}

fn valid(pattern: &str) -> bool {
    pattern.chars().rev().take_while(|c| *c == '\\').count() % 2 == 0
}

/// Does the pattern match the whole text? Linear in text times pattern at worst, with no recursion.
pub(super) fn is_like(text: &str, pattern: &str) -> bool {
    let Some(pattern) = tokens(pattern) else { return false };
    let text: Vec<char> = text.chars().collect();
    let (mut t, mut p) = (0_usize, 0_usize);
    // Where to resume when a run after `%` fails: one character further than last time.
    let mut retry: Option<(usize, usize)> = None;
    while let Some(&c) = text.get(t) {
        match pattern.get(p) {
            Some(Wild::Run) => {
                retry = Some((t, p));
                p += 1;
            }
            Some(wild) if wild.takes(c) => {
                t += 1;
                p += 1;
            }
            _ => match &mut retry {
                Some((from, run)) => {
                    *from += 1;
                    t = *from;
                    p = *run + 1;
                }
                None => return false,
            },
        }
    }
    pattern.get(p..).is_none_or(|rest| rest.iter().all(|wild| *wild == Wild::Run))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wild {
    Run,
    One,
    Char(char),
}

impl Wild {
    fn takes(self, c: char) -> bool {
        match self {
            Self::Run => false,
            Self::One => true,
            Self::Char(wanted) => wanted.eq_ignore_ascii_case(&c),
        }
    }
}

fn tokens(pattern: &str) -> Option<Vec<Wild>> {
    let mut chars = pattern.chars();
    let mut wilds = Vec::with_capacity(pattern.len());
    while let Some(c) = chars.next() {
        wilds.push(match c {
            '%' => Wild::Run,
            '_' => Wild::One,
            '\\' => Wild::Char(chars.next()?),
            c => Wild::Char(c),
        });
    }
    Some(wilds)
}

//! `:excerpt(max,withEllipsis?)`: the plain text of a value, cut to a length.

use serde_json::Value;

/// Elements that do not separate words.
const INLINE: &[&str] = &[
    "a", "abbr", "acronym", "b", "bdo", "big", "br", "button", "cite", "code", "em", "i", "label", "q", "small",
    "span", "strong", "strike", "sub", "sup", "time",
];
/// Elements whose content is not text.
const SKIPPED: &[&str] = &["style", "script", "iframe", "applet", "object", "svg", "img", "form", "template", "head"];

/// Longest excerpt that can be asked for, in characters.
const MAX_LENGTH: usize = 1_000_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Excerpt {
    /// In characters.
    max: usize,
    ellipsis: bool,
}

impl Excerpt {
    /// `excerpt(max)` or `excerpt(max,true)`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let args = text.trim().strip_prefix("excerpt")?.trim_start().strip_prefix('(')?.strip_suffix(')')?;
        let mut args = args.split(',').map(str::trim);
        let max = args.next()?.parse().ok().filter(|max| (1..=MAX_LENGTH).contains(max))?;
        let ellipsis = match args.next() {
            None | Some("" | "0" | "f" | "F" | "false" | "FALSE" | "False") => false,
            Some("1" | "t" | "T" | "true" | "TRUE" | "True") => true,
            Some(_) => return None,
        };
        args.next().is_none().then_some(Self { max, ellipsis })
    }

    pub(super) fn of(&self, value: &Value) -> String {
        let source = match value {
            Value::String(text) => text.as_str(),
            Value::Number(_) | Value::Bool(_) => &value.to_string(),
            _ => "",
        };
        let text = plain(source, self.max);
        let text = text.trim();
        if text.chars().count() <= self.max {
            return text.to_owned();
        }
        let cut: String = text.chars().take(self.max).collect();
        format!("{}{}", cut.trim(), if self.ellipsis { "..." } else { "" })
    }
}

/// Text without tags: blocks become blanks, white space is collapsed. Stops soon after `max` characters.
fn plain(source: &str, max: usize) -> String {
    let mut out = Collapsed::default();
    let mut rest = source;
    // One more than can be shown and one more for a blank that is trimmed: enough to know that something was cut.
    while !rest.is_empty() && out.chars <= max + 1 {
        let (text, tag) = rest.find('<').and_then(|at| rest.split_at_checked(at)).unwrap_or((rest, ""));
        decode(text, &mut out);
        rest = match Tag::read(tag) {
            None if tag.is_empty() => "",
            // A lone `<` is text.
            None => {
                out.push('<');
                tag.strip_prefix('<').unwrap_or_default()
            }
            Some(read) => {
                if !INLINE.contains(&read.name.as_str()) {
                    out.push(' ');
                }
                if !read.closing && SKIPPED.contains(&read.name.as_str()) {
                    after_element(read.after, &read.name)
                } else {
                    read.after
                }
            }
        };
    }
    out.text
}

#[derive(Default)]
struct Collapsed {
    text: String,
    chars: usize,
}

impl Collapsed {
    fn push(&mut self, c: char) {
        let c = if c.is_whitespace() && c != '\u{a0}' { ' ' } else { c };
        if c == ' ' && (self.text.is_empty() || self.text.ends_with(' ')) {
            return;
        }
        self.text.push(c);
        self.chars += 1;
    }
}

struct Tag<'a> {
    name: String,
    closing: bool,
    after: &'a str,
}

impl<'a> Tag<'a> {
    /// A tag, comment or declaration at the start of `text`; one without an end reaches to the end of the text.
    fn read(text: &'a str) -> Option<Self> {
        let inner = text.strip_prefix('<')?;
        if let Some(comment) = inner.strip_prefix("!--") {
            let after = comment.split_once("-->").map_or("", |(_, after)| after);
            return Some(Self { name: "span".to_owned(), closing: false, after });
        }
        let (closing, named) = inner.strip_prefix('/').map_or((false, inner), |rest| (true, rest));
        if !named.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '!' | '?')) {
            return None;
        }
        let name: String = named.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
        Some(Self { name: name.to_ascii_lowercase(), closing, after: after_tag(named) })
    }
}

/// Behind the `>` that ends a tag; quotes hide one.
fn after_tag(text: &str) -> &str {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, '>') => return text.get(at + 1..).unwrap_or_default(),
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            _ => {}
        }
    }
    ""
}

/// Behind the element's closing tag.
fn after_element<'a>(text: &'a str, name: &str) -> &'a str {
    if name == "img" {
        return text;
    }
    let mut rest = text;
    while let Some((_, tag)) = rest.split_once("</") {
        let closes = tag.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name));
        if closes {
            return tag.split_once('>').map_or("", |(_, after)| after);
        }
        rest = tag;
    }
    ""
}

/// Character references: the named ones of XML and the blank, and numeric ones. Others stay as written.
fn decode(text: &str, out: &mut Collapsed) {
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let after = rest.get(c.len_utf8()..).unwrap_or_default();
        // Looked for close by only, or a text of ampersands would cost its length squared.
        let end = (c == '&').then(|| after.bytes().take(11).position(|b| b == b';')).flatten();
        let reference = end.and_then(|end| Some((after.get(..end)?, after.get(end + 1..)?)));
        let decoded = reference.and_then(|(name, after)| Some((referenced(name)?, after)));
        let (c, after) = decoded.unwrap_or((c, after));
        out.push(c);
        rest = after;
    }
}

fn referenced(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        "nbsp" => Some('\u{a0}'),
        _ => {
            let digits = name.strip_prefix('#')?;
            let code = match digits.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => digits.parse().ok()?,
            };
            char::from_u32(code).filter(|c| *c != '\0')
        }
    }
}

//! The words of an HTML mail, for programs and people that read no HTML.

use std::fmt::Write as _;

/// Tags away, links kept after their words, white space settled. Not a parser: the mails are ours or an app author's.
pub(crate) fn plain(html: &str) -> String {
    let mut out = String::new();
    let mut rest = html;
    let mut link = None;
    while let Some((text, after)) = rest.split_once('<') {
        push_words(&mut out, text);
        let Some((tag, after)) = after.split_once('>') else {
            // Never closed, so it is none.
            out.push('<');
            rest = after;
            break;
        };
        let name: String = tag.trim_start_matches('/').chars().take_while(char::is_ascii_alphanumeric).collect();
        match (name.to_ascii_lowercase().as_str(), tag.starts_with('/')) {
            ("a", false) => link = attribute(tag, "href"),
            ("a", true) => {
                if let Some(link) = link.take() {
                    let _ = write!(out, " ({})", unescaped(link));
                }
            }
            ("br" | "li", false) => out.push('\n'),
            ("p" | "div" | "h1" | "h2" | "h3" | "tr" | "ul", true) => out.push_str("\n\n"),
            ("style" | "script", false) => {
                rest =
                    after.split_once("</").map_or("", |(_, after)| after.split_once('>').map_or("", |(_, rest)| rest));
                continue;
            }
            _ => {}
        }
        rest = after;
    }
    push_words(&mut out, rest);
    let lines: Vec<&str> = out.lines().map(str::trim).collect();
    let mut text = String::new();
    for line in lines {
        if !(line.is_empty() && (text.is_empty() || text.ends_with("\n\n"))) {
            text.push_str(line);
            text.push('\n');
        }
    }
    text.trim_end().to_owned()
}

fn push_words(out: &mut String, text: &str) {
    let starts = text.starts_with(char::is_whitespace);
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.is_empty() {
        if starts && !out.ends_with(['\n', ' ']) {
            out.push(' ');
        }
        return;
    }
    if starts && !out.ends_with(['\n', ' ']) {
        out.push(' ');
    }
    out.push_str(&unescaped(&words.join(" ")));
    if text.ends_with(char::is_whitespace) {
        out.push(' ');
    }
}

fn attribute<'t>(tag: &'t str, name: &str) -> Option<&'t str> {
    let (_, value) = tag.split_once(&format!("{name}="))?;
    let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    value.get(1..)?.split_once(quote).map(|(value, _)| value)
}

fn unescaped(text: &str) -> String {
    let named = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&#x27;", "'"), ("&amp;", "&")];
    named.iter().fold(text.to_owned(), |text, (entity, character)| text.replace(entity, character))
}

//! Formats of texts: email addresses, URLs and the patterns of fields.

use std::cell::RefCell;
use std::collections::HashMap;

use regex::{Regex, RegexBuilder};

/// Why a field's pattern cannot be used, for the deploy that brings it. Patterns are RE2 (no look-around, no
/// back-references), so they match in linear time.
pub fn pattern_problem(pattern: &str) -> Option<String> {
    compile(pattern).err()
}

const MAX_PATTERN_BYTES: usize = 1000;
/// Bytes of the compiled program, as against patterns like `(a{1000}){1000}`.
const MAX_COMPILED: usize = 1 << 20;

fn compile(pattern: &str) -> Result<Regex, String> {
    if pattern.len() > MAX_PATTERN_BYTES {
        return Err(format!("a pattern has at most {MAX_PATTERN_BYTES} bytes"));
    }
    let built = RegexBuilder::new(pattern).size_limit(MAX_COMPILED).dfa_size_limit(MAX_COMPILED).nest_limit(50).build();
    built.map_err(|error| error.to_string())
}

/// Does the text match somewhere? A pattern that cannot be compiled lets nothing through.
pub(super) fn fits(pattern: &str, text: &str) -> bool {
    // The pattern of every id; not worth a regular expression.
    if pattern == "^[a-z0-9]+$" {
        return !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    }
    COMPILED.with_borrow_mut(|compiled| {
        if compiled.len() >= MAX_REMEMBERED && !compiled.contains_key(pattern) {
            compiled.clear();
        }
        let entry = compiled.entry(pattern.to_owned()).or_insert_with(|| compile(pattern).ok());
        entry.as_ref().is_some_and(|regex| regex.is_match(text))
    })
}

const MAX_REMEMBERED: usize = 256;

thread_local! {
    /// Compiling costs a hundred times what matching does. The same pattern always gives the same answer, so
    /// remembering it decides nothing.
    static COMPILED: RefCell<HashMap<String, Option<Regex>>> = RefCell::new(HashMap::new());
}

/// `local@domain.tld`: the domain needs a dot.
pub(super) fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let local_ok = (1..=64).contains(&local.len())
        && local.split('.').all(|part| !part.is_empty() && part.chars().all(is_local_character));
    text.len() <= 254 && local_ok && domain.contains('.') && is_domain(domain)
}

fn is_local_character(c: char) -> bool {
    c.is_alphanumeric() || !c.is_ascii() && !c.is_control() && !c.is_whitespace() || "!#$%&'*+-/=?^_`{|}~".contains(c)
}

/// The domain of a valid address.
pub(super) fn email_domain(text: &str) -> &str {
    text.rsplit_once('@').map_or("", |(_, domain)| domain)
}

/// An absolute URL of a scheme that names a place. `javascript:` and `data:` are none.
pub(super) fn is_url(text: &str) -> bool {
    if text.len() > 2083 || text.chars().any(|c| c.is_whitespace() || c.is_control() || "<>\"\\^`{|}".contains(c)) {
        return false;
    }
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    match scheme.to_ascii_lowercase().as_str() {
        "mailto" => is_email(rest.split_once('?').map_or(rest, |(address, _)| address)),
        "http" | "https" | "ftp" | "ftps" | "ws" | "wss" | "tcp" | "udp" => {
            rest.starts_with("//") && url_host(text).is_some_and(is_host)
        }
        _ => false,
    }
}

/// The host of an absolute URL, without user and port.
pub(super) fn url_host(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    if host.starts_with('[') {
        return host.split_once(']').filter(|(_, port)| port.is_empty() || is_port(port)).map(|(v6, _)| v6);
    }
    match host.find(':') {
        Some(colon) => {
            let (name, port) = host.split_at_checked(colon)?;
            is_port(port).then_some(name)
        }
        None => Some(host),
    }
}

fn is_port(port: &str) -> bool {
    port.strip_prefix(':').is_some_and(|digits| (1..=5).contains(&digits.len()) && digits.parse::<u16>().is_ok())
}

fn is_host(host: &str) -> bool {
    match host.strip_prefix('[') {
        Some(v6) => v6.parse::<std::net::Ipv6Addr>().is_ok(),
        None => is_domain(host),
    }
}

fn is_domain(domain: &str) -> bool {
    domain.len() <= 253
        && domain.split('.').all(|label| {
            (1..=63).contains(&label.len())
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_email_address_needs_a_dot_in_its_domain() {
        for good in ["a@b.co", "USER@Example.org", "a.b+c@x-y.example", "é@exämple.org"] {
            assert!(is_email(good), "{good}");
        }
        for bad in
            ["a@b", "@b.co", "a@", "a", " a@b.co", "a@b.co ", "a..b@c.de", "a@-b.co", "a@b..co", "a b@c.de", "a@b.co\n"]
        {
            assert!(!is_email(bad), "{bad}");
        }
    }

    #[test]
    fn a_url_needs_a_scheme_that_names_a_place() {
        for good in ["https://a.b/c?d#e", "ftp://a.b", "http://localhost:80", "mailto:a@b.co", "http://[::1]:8080/x"] {
            assert!(is_url(good), "{good}");
        }
        for bad in [
            "x.y",
            "//a.b",
            "javascript:alert(1)",
            "data:text/html,x",
            "http://",
            "http:a.b",
            "http://a b",
            "http://a:99999",
        ] {
            assert!(!is_url(bad), "{bad}");
        }
    }

    #[test]
    fn a_pattern_is_bounded_and_an_unusable_one_lets_nothing_through() {
        assert_eq!(pattern_problem("^[a-z]+$"), None);
        assert!(fits("b+", "abc"), "patterns are not anchored");
        for bad in ["(", "(?=a)", "(a{1000}){1000}", &"a".repeat(2000)] {
            assert!(pattern_problem(bad).is_some(), "{bad}");
            assert!(!fits(bad, "a"));
        }
    }
}

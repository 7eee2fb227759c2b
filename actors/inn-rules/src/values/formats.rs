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

/// What PocketBase takes for a URL: maybe a scheme, maybe a user, a host that may be a bare name with a dot, maybe a port
/// and a path. `mailto:a@b.co` and `tel:123` fit that form too; `javascript:` and `data:` do not.
pub(super) fn is_url(text: &str) -> bool {
    let characters = text.chars().count();
    if text.len() <= 3 || characters >= 2083 || text.starts_with('.') || text.chars().any(|c| c.is_ascii_control()) {
        return false;
    }
    let (has_scheme, rest) = text.split_once("://").map_or((text.contains(':'), text), |(_, rest)| (true, rest));
    if rest.starts_with('.') || !has_scheme && !text.contains('.') || !escapes_are_whole(text) {
        return false;
    }
    URL.with(|url| {
        let found = url.as_ref().and_then(|url| url.captures(text));
        found.is_some_and(|found| found.name("v6").is_none_or(|v6| v6.as_str().parse::<std::net::Ipv6Addr>().is_ok()))
    })
}

/// `%` is followed by two hex digits everywhere.
fn escapes_are_whole(text: &str) -> bool {
    text.split('%')
        .skip(1)
        .all(|after| after.as_bytes().get(..2).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)))
}

thread_local! {
    static URL: Option<Regex> = {
        const SCHEME: &str = "(?:(?:ftp|tcp|udp|wss?|https?)://)?";
        const USER: &str = r"(?:\S+@)?";
        // Addresses of groups (224 to 239) are no hosts.
        const V4: &str = r"(?:[1-9][0-9]?|1[0-9]{2}|2[01][0-9]|22[0-3]|24[0-9]|25[0-5])(?:\.(?:[0-9]{1,2}|1[0-9]{2}|2[0-4][0-9]|25[0-5])){3}";
        const V6: &str = r"\[(?<v6>[0-9a-fA-F:.]+)\]";
        // Runs of letters and digits with one or two hyphens between them, and maybe one more label of letters.
        const LAST: &str = r"(?:[a-zA-Z0-9\x{a1}-\x{ffff}]+-?-?)*[a-zA-Z0-9\x{a1}-\x{ffff}]+(?:\.[a-zA-Z\x{a1}-\x{ffff}]+)?";
        // In front of it, in ASCII only: a label that may hold underscores, then labels behind dots and hyphens.
        const FRONT: &str = r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9_-]+)?[a-zA-Z0-9](?:[-.][a-zA-Z0-9]+)*|www\.|[a-zA-Z0-9]+(?:[-_.]?[a-zA-Z0-9])*[a-zA-Z0-9]\.[a-zA-Z0-9]+)?";
        const AFTER: &str = r"\.?(?::[0-9]{1,5})?(?:[/?#]\S*)?";
        Regex::new(&format!("^{SCHEME}{USER}(?:{V4}|{V6}|{FRONT}{LAST}){AFTER}$")).ok()
    };
}

/// The host of a URL with its port, as the lists of domains know it. Without a scheme there is none.
pub(super) fn url_host(text: &str) -> &str {
    let Some((_, rest)) = text.split_once("://") else { return "" };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
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
    fn a_url_is_what_pocketbase_takes_for_one() {
        for good in [
            "https://a.b/c?d#e",
            "ftp://a.b",
            "http://localhost:80",
            "mailto:a@b.co",
            "http://[::1]:8080/x",
            "tel:123",
            "a@b.co",
            "example.com",
            "http://a:99999",
            "http://a_b.com",
            "https://é.com",
        ] {
            assert!(is_url(good), "{good}");
        }
        for bad in [
            "x.y",
            "//a.b",
            "javascript:alert(1)",
            "data:text/html,x",
            "http://",
            "http://a b",
            "HTTP://A.B",
            "http://.com",
            "http://a.b/%zz",
            "localhost",
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

//! Reading a setting from text and writing it back. The text is the same in the file, the environment and a flag.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use inn_mail::Tls;
use url::Url;

use super::LogFormat;

/// What was expected instead; the caller adds where the text came from.
pub(super) type Parsed<T> = Result<T, String>;

pub(super) fn whole<T: TryFrom<u64>>(text: &str, least: u64, most: u64) -> Parsed<T> {
    let number = text.parse::<u64>().ok().filter(|number| (least..=most).contains(number));
    number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| format!("a whole number from {least} to {most}"))
}

pub(super) fn seconds(text: &str, least: u64, most: u64) -> Parsed<Duration> {
    let expected = |_| format!("a whole number of seconds from {least} to {most}");
    whole(text, least, most).map(Duration::from_secs).map_err(expected)
}

pub(super) fn truth(text: &str) -> Parsed<bool> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("true or false".to_owned()),
    }
}

pub(super) fn path(text: &str) -> Parsed<PathBuf> {
    if text.is_empty() { Err("a path".to_owned()) } else { Ok(PathBuf::from(text)) }
}

/// Printable characters without blanks.
pub(super) fn plain(text: &str) -> Parsed<String> {
    let fine = (1..=256).contains(&text.len()) && text.chars().all(|c| c.is_ascii_graphic());
    if fine { Ok(text.to_owned()) } else { Err("1 to 256 printable characters without blanks".to_owned()) }
}

/// The same rule as for every other person's address.
pub(super) fn email(text: &str) -> Parsed<String> {
    let parts =
        text.split_once('@').is_some_and(|(name, host)| !name.is_empty() && !host.is_empty() && !host.contains('@'));
    let fine = parts && text.len() <= 254 && !text.chars().any(|c| c.is_whitespace() || c.is_control());
    if fine { Ok(text.to_owned()) } else { Err("an email address".to_owned()) }
}

/// The same rule as for every other tenant.
pub(super) fn slug(text: &str) -> Parsed<String> {
    if label(text) {
        Ok(text.to_owned())
    } else {
        Err("1 to 63 lower-case letters, digits and inner hyphens".to_owned())
    }
}

/// One DNS label.
fn label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !label.starts_with('-')
        && !label.ends_with('-')
}

pub(super) fn address(text: &str) -> Parsed<SocketAddr> {
    text.parse().map_err(|_| "an IP address and a port, such as 127.0.0.1:8090 or [::1]:0".to_owned())
}

/// A bare origin: whatever follows the host would end up in the middle of links.
pub(super) fn origin(text: &str) -> Parsed<Url> {
    let url = Url::parse(text).ok().filter(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.path() == "/"
            && url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none()
    });
    url.ok_or_else(|| "http:// or https://, a host and perhaps a port, and nothing after them".to_owned())
}

pub(super) fn endpoint(text: &str) -> Parsed<Url> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    url.ok_or_else(|| "the http:// or https:// address of an OTLP collector".to_owned())
}

pub(super) fn domain(text: &str) -> Parsed<String> {
    let (name, port) = text.split_once(':').map_or((text, None), |(name, port)| (name, Some(port)));
    let fine = name.len() <= 200 && name.split('.').all(label) && port.is_none_or(|port| port.parse::<u16>().is_ok());
    if fine {
        Ok(text.to_owned())
    } else {
        Err("a lower-case domain, with a port when it is not the scheme's".to_owned())
    }
}

pub(super) fn database(text: &str) -> Parsed<String> {
    let fine = ["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme));
    if fine { Ok(text.to_owned()) } else { Err("postgres://user:password@host:port/database".to_owned()) }
}

pub(super) fn redis(text: &str) -> Parsed<String> {
    let fine = Url::parse(text).is_ok_and(|url| url.scheme() == "redis" && url.has_host());
    if fine { Ok(text.to_owned()) } else { Err("redis://[user:password@]host[:port][/db]".to_owned()) }
}

pub(super) fn directives(text: &str) -> Parsed<String> {
    let fine = !text.trim().is_empty() && text.parse::<tracing_subscriber::filter::Targets>().is_ok();
    if fine { Ok(text.to_owned()) } else { Err("levels, such as info or warn,inn_store=debug".to_owned()) }
}

pub(super) fn format(text: &str) -> Parsed<LogFormat> {
    match text {
        "human" => Ok(LogFormat::Human),
        "json" => Ok(LogFormat::Json),
        _ => Err("human or json".to_owned()),
    }
}

pub(super) fn tls(text: &str) -> Parsed<Tls> {
    match text {
        "starttls" => Ok(Tls::StartTls),
        "implicit" => Ok(Tls::Implicit),
        "none" => Ok(Tls::None),
        _ => Err("expected starttls, implicit or none".to_owned()),
    }
}

/// A setting as text; empty when it is not set.
pub(super) trait Show {
    fn show(&self) -> String;
}

macro_rules! show_as_displayed {
    ($($kind:ty),*) => {
        $(impl Show for $kind {
            fn show(&self) -> String {
                self.to_string()
            }
        })*
    };
}

show_as_displayed!(u16, u32, u64, i64, usize, bool, String, SocketAddr);

impl Show for Url {
    fn show(&self) -> String {
        self.as_str().trim_end_matches('/').to_owned()
    }
}

impl Show for PathBuf {
    fn show(&self) -> String {
        self.display().to_string()
    }
}

impl Show for Duration {
    fn show(&self) -> String {
        self.as_secs().to_string()
    }
}

impl Show for Tls {
    fn show(&self) -> String {
        match self {
            Self::StartTls => "starttls",
            Self::Implicit => "implicit",
            Self::None => "none",
        }
        .to_owned()
    }
}

impl Show for LogFormat {
    fn show(&self) -> String {
        match self {
            Self::Human => "human".to_owned(),
            Self::Json => "json".to_owned(),
        }
    }
}

impl<T: Show> Show for Option<T> {
    fn show(&self) -> String {
        self.as_ref().map(Show::show).unwrap_or_default()
    }
}

//! From the host name to a place: platform, app, or nowhere (which stops DNS rebinding).

use inn_protocol::call::Place;

use crate::state::HttpConfig;

/// Names under which a loopback host may be addressed besides its configured URL.
const LOOPBACK_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Where a `Host` header leads; `None` for a host that is not ours.
pub fn place(config: &HttpConfig, host: &str) -> Option<Place> {
    let host = host.to_ascii_lowercase();
    if let Some(slug) = host.strip_suffix(&config.apps_domain).and_then(|rest| rest.strip_suffix('.'))
        && is_slug(slug)
    {
        return Some(Place::App { slug: slug.to_owned(), own_origin: true });
    }
    is_platform(config, &host).then_some(Place::Platform)
}

fn is_platform(config: &HttpConfig, host: &str) -> bool {
    let url = &config.platform_url;
    let (name, port) = split_port(host);
    let default = if url.scheme() == "https" { 443 } else { 80 };
    let port = port.unwrap_or(default);
    if port != url.port_or_known_default().unwrap_or(default) {
        return false;
    }
    url.host_str().is_some_and(|own| own.eq_ignore_ascii_case(name))
        || (config.loopback && LOOPBACK_NAMES.contains(&name))
}

fn split_port(host: &str) -> (&str, Option<u16>) {
    match host.rsplit_once(':') {
        Some((name, port)) if !name.is_empty() && !port.contains(']') => (name, port.parse().ok()),
        _ => (host, None),
    }
}

/// One DNS label: lower-case letters, digits and inner hyphens, at most 40 characters.
pub fn is_slug(text: &str) -> bool {
    (1..=40).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(url: &str, apps: &str, loopback: bool) -> HttpConfig {
        HttpConfig {
            platform_url: url.parse().unwrap(),
            apps_domain: apps.to_owned(),
            loopback,
            max_body: 1,
            batch_requests: 1,
            max_bundle: 1,
            max_upload: 1,
            app_file_bytes: 0,
            session_hours: 1,
            token_minutes: 15,
            rates: crate::rates::RateLimits::default(),
        }
    }

    #[test]
    fn a_label_below_the_apps_domain_is_an_app_and_nothing_deeper() {
        let config = config("http://localhost:8090", "localhost:8090", true);
        let app = |slug: &str| Some(Place::App { slug: slug.to_owned(), own_origin: true });
        assert_eq!(place(&config, "kanban.localhost:8090"), app("kanban"));
        assert_eq!(place(&config, "KANBAN.localhost:8090"), app("kanban"));
        for host in
            ["a.kanban.localhost:8090", "kanban.localhost", "kanban.localhost:80", "evil.example", "-a.localhost:8090"]
        {
            assert_eq!(place(&config, host), None, "{host}");
        }
    }

    #[test]
    fn the_platform_answers_to_its_own_names_only() {
        let local = config("http://localhost:8090", "localhost:8090", true);
        for host in ["localhost:8090", "127.0.0.1:8090", "[::1]:8090"] {
            assert_eq!(place(&local, host), Some(Place::Platform), "{host}");
        }
        assert_eq!(place(&local, "localhost:9999"), None);
        let public = config("https://inn.example", "apps.example", false);
        assert_eq!(place(&public, "inn.example"), Some(Place::Platform));
        assert_eq!(
            place(&public, "kanban.apps.example"),
            Some(Place::App { slug: "kanban".to_owned(), own_origin: true })
        );
        assert_eq!(place(&public, "127.0.0.1"), None);
    }
}

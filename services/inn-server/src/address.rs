//! Where the platform and its apps are reached, worked out from settings and the bound listener.

use std::net::SocketAddr;

use inn_http::HttpConfig;
use inn_http::rates::RateLimits;
use url::Url;

use crate::config::{SettingError, Settings};

/// The names of one running platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Addresses {
    pub(crate) platform: Url,
    /// With a port when it is not the scheme's own.
    pub(crate) apps_domain: String,
    /// Bound to loopback and reached by a loopback name: whoever calls sits at this machine.
    pub(crate) loopback: bool,
}

impl Addresses {
    /// Refuses what would hand out links that lead elsewhere: off loopback somebody has to say the public address.
    pub(crate) fn of(settings: &Settings, bound: SocketAddr) -> Result<Self, SettingError> {
        let local = bound.ip().is_loopback();
        let platform = match &settings.http.public_url {
            Some(url) => url.clone(),
            None if local => localhost(bound.port())?,
            None => {
                let why = "is not a loopback address, so it must be said where people and agents reach the platform";
                let what =
                    format!("INN_PUBLIC_URL (--public-url) is missing: {bound} {why}, such as https://inn.example");
                return Err(SettingError(what));
            }
        };
        // A proxy on this machine that serves a public name makes strangers look local.
        let loopback = local && is_loopback_name(&platform);
        let apps_domain = settings.http.apps_domain.clone().unwrap_or_else(|| default_domain(&platform, loopback));
        let label =
            authority(&platform).strip_suffix(&apps_domain).and_then(|rest| rest.strip_suffix('.')).map(str::to_owned);
        if let Some(label) = label.filter(|label| !label.contains('.')) {
            let what = format!(
                "INN_APPS_DOMAIN (--apps-domain) {apps_domain} would make {platform} the origin of an app called {label}; \
                 choose another domain for apps"
            );
            return Err(SettingError(what));
        }
        Ok(Self { platform, apps_domain, loopback })
    }

    /// What the HTTP edge needs to know.
    pub(crate) fn http_config(&self, settings: &Settings) -> HttpConfig {
        HttpConfig {
            platform_url: self.platform.clone(),
            apps_domain: self.apps_domain.clone(),
            loopback: self.loopback,
            max_body: settings.http.max_body,
            batch_requests: settings.http.batch_requests,
            max_bundle: settings.http.max_bundle,
            max_upload: settings.files.max_upload,
            app_file_bytes: settings.files.app_bytes,
            session_hours: settings.people.session_hours,
            token_minutes: settings.people.token_minutes,
            rates: RateLimits {
                auth: settings.rates.auth,
                data: settings.rates.data,
                operations: settings.rates.operations,
                queue: settings.rates.queue,
            },
        }
    }

    /// Host and port of the platform, as clients put them into `Host`.
    pub(crate) fn authority(&self) -> String {
        authority(&self.platform)
    }

    /// The platform's URL, without a slash at its end.
    pub(crate) fn platform_text(&self) -> &str {
        self.platform.as_str().trim_end_matches('/')
    }
}

fn localhost(port: u16) -> Result<Url, SettingError> {
    Url::parse(&format!("http://localhost:{port}"))
        .map_err(|error| SettingError(format!("http://localhost:{port}: {error}")))
}

fn is_loopback_name(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

fn default_domain(platform: &Url, loopback: bool) -> String {
    // A literal address has no labels below it.
    let named = matches!(platform.host(), Some(url::Host::Domain(_)));
    match (loopback, named) {
        (true, true) => authority(platform),
        (true, false) => platform.port().map_or_else(|| "localhost".to_owned(), |port| format!("localhost:{port}")),
        (false, _) => format!("apps.{}", authority(platform)),
    }
}

fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(bound: &str, public: Option<&str>, apps: Option<&str>) -> Result<Addresses, SettingError> {
        let mut settings = Settings::default();
        settings.http.public_url = public.map(|url| url.parse().unwrap());
        settings.http.apps_domain = apps.map(str::to_owned);
        Addresses::of(&settings, bound.parse().unwrap())
    }

    #[test]
    fn names_follow_from_the_listener_on_loopback_and_from_settings_elsewhere() {
        for (bound, public, apps, platform, domain, loopback) in [
            ("127.0.0.1:8090", None, None, "http://localhost:8090", "localhost:8090", true),
            ("[::1]:4000", None, None, "http://localhost:4000", "localhost:4000", true),
            ("127.0.0.1:80", None, None, "http://localhost", "localhost", true),
            ("127.0.0.1:81", Some("http://127.0.0.1:81"), None, "http://127.0.0.1:81", "localhost:81", true),
            ("0.0.0.0:80", Some("https://inn.example"), None, "https://inn.example", "apps.inn.example", false),
            (
                "0.0.0.0:80",
                Some("https://inn.example"),
                Some("agents.test"),
                "https://inn.example",
                "agents.test",
                false,
            ),
            // A proxy beside it: not loopback for whoever calls.
            ("127.0.0.1:80", Some("https://inn.example"), None, "https://inn.example", "apps.inn.example", false),
        ] {
            let found = addresses(bound, public, apps).unwrap();
            let told = (found.platform_text(), found.apps_domain.as_str(), found.loopback);
            assert_eq!(told, (platform, domain, loopback), "{bound} {public:?} {apps:?}");
        }
    }

    #[test]
    fn off_loopback_the_public_address_must_be_said() {
        for bound in ["0.0.0.0:8080", "[::]:8080", "192.0.2.1:80"] {
            let refused = addresses(bound, None, None).unwrap_err().0;
            assert!(refused.contains("INN_PUBLIC_URL"), "{refused}");
        }
    }

    #[test]
    fn the_platform_is_never_an_apps_origin() {
        let refused = addresses("0.0.0.0:80", Some("https://inn.example.com"), Some("example.com")).unwrap_err().0;
        assert!(refused.contains("an app called inn"), "{refused}");
        assert!(addresses("0.0.0.0:80", Some("https://inn.example.com"), Some("inn.example.com")).is_ok());
        assert!(addresses("0.0.0.0:80", Some("https://a.inn.example.com"), Some("example.com")).is_ok());
    }
}

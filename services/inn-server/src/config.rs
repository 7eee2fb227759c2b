//! Settings: one struct a concern, one table for everything that can be said about each of them.
//!
//! A value comes from, each before the next: the default, the file (`--config`, `INN_CONFIG`), the environment, a flag.
//! [`table::SETTINGS`] is the only list: file keys, variables, flags and the page `ops/guide/settings.md` follow it.

mod flags;
mod sources;
mod table;
#[cfg(test)]
mod tests;
mod value;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use inn_mail::Tls;
use url::Url;

pub use flags::Flags;
pub use sources::{SettingError, Sources};
pub use table::{SETTINGS, Setting};

/// Everything that can be set.
#[derive(Clone)]
pub struct Settings {
    pub data: DataSettings,
    pub blobs: BlobSettings,
    pub files: FileSettings,
    pub http: ListenSettings,
    pub people: PeopleSettings,
    pub mail: MailSettings,
    pub rates: RateSettings,
    pub limits: LimitSettings,
    pub realtime: RealtimeSettings,
    pub database: DatabaseSettings,
    pub redis: RedisSettings,
    pub log: LogSettings,
    pub telemetry: TelemetrySettings,
}

/// What lies on this machine's disk.
#[derive(Clone)]
pub struct DataSettings {
    /// Keys, blobs, agent token files and the embedded database.
    pub dir: PathBuf,
    /// Platform keys made elsewhere; without it they are made in the data directory.
    pub keys_dir: Option<PathBuf>,
    /// Blobs that several nodes share; without it they lie in the data directory.
    pub blobs_dir: Option<PathBuf>,
}

impl DataSettings {
    /// Where the platform keys lie.
    pub fn keys(&self) -> PathBuf {
        self.keys_dir.clone().unwrap_or_else(|| self.dir.join("keys"))
    }

    /// Bundles and files of pages, by digest: the one thing on disk that all nodes must share.
    pub fn blobs(&self) -> PathBuf {
        self.blobs_dir.clone().unwrap_or_else(|| self.dir.join("blobs"))
    }

    /// One agent token file an app, named by its slug.
    pub fn tokens(&self) -> PathBuf {
        self.dir.join("tokens")
    }
}

/// An S3-compatible store for blobs and files; without a bucket they lie in a directory.
#[derive(Clone)]
pub struct BlobSettings {
    pub s3_bucket: Option<String>,
    /// Everything of ours lies below this.
    pub s3_prefix: Option<String>,
    /// `None`: Amazon's own for the region.
    pub s3_endpoint: Option<Url>,
    pub s3_region: String,
    /// Secret.
    pub s3_access_key: Option<String>,
    /// Secret.
    pub s3_secret_key: Option<String>,
}

/// Files of records.
#[derive(Clone)]
pub struct FileSettings {
    /// Largest form; an app's own fields may set a lower limit.
    pub max_upload: u64,
    /// What the files of one app may take together; 0 is no limit.
    pub app_bytes: u64,
    /// Forms received at one time.
    pub uploads: usize,
    /// Pictures opened at one time to make thumbs.
    pub thumb_workers: usize,
}

/// The listener and what it puts up with.
#[derive(Clone)]
pub struct ListenSettings {
    /// Port 0 takes any free one.
    pub listen: SocketAddr,
    /// Where people and agents reach the platform. On loopback it follows from the listener.
    pub public_url: Option<Url>,
    /// Apps live one label below this.
    pub apps_domain: Option<String>,
    /// Threads that serve HTTP; 0 is one a core.
    pub workers: usize,
    /// Connections one worker keeps open at a time.
    pub max_connections: usize,
    /// From the first byte of a request to the end of its headers.
    pub request_timeout: Duration,
    /// An idle connection is closed after this long.
    pub keep_alive: Duration,
    pub max_body: usize,
    /// Writes of one batch; 0 switches batches off.
    pub batch_requests: usize,
    pub max_bundle: usize,
    /// How long calls under way may take to end when the platform stops.
    pub shutdown: Duration,
    /// Threads of the runtime that owns the connections to the database, Redis and others.
    pub io_threads: usize,
}

#[derive(Clone)]
pub struct PeopleSettings {
    pub session_hours: i64,
    /// Lifetime of an agent's token.
    pub token_minutes: i64,
    /// Who founds an empty platform; `None` is nobody, except for `inn up`.
    pub owner: Option<String>,
    /// Read only when a platform is founded.
    pub owner_password_file: Option<PathBuf>,
    /// Slug of the tenant that is founded.
    pub owner_tenant: String,
}

/// The mail server; without a host mail is shown on loopback and refused elsewhere.
#[derive(Clone)]
pub struct MailSettings {
    pub smtp_host: Option<String>,
    pub smtp_port: u16,
    pub smtp_tls: Tls,
    pub smtp_user: Option<String>,
    /// Read once at start.
    pub smtp_password_file: Option<PathBuf>,
    /// Address mails come from.
    pub from: Option<String>,
}

/// Calls a minute and caller; 0 is no limit.
#[derive(Clone)]
pub struct RateSettings {
    pub auth: u32,
    pub data: u32,
    pub operations: u32,
    pub queue: u32,
}

/// Calls under way at one time on this node.
#[derive(Clone)]
pub struct LimitSettings {
    pub node: usize,
    pub tenant: usize,
    pub app: usize,
    /// Threads that app actors are spread over.
    pub app_threads: usize,
}

/// Streams of events on this node.
#[derive(Clone)]
pub struct RealtimeSettings {
    pub connections: usize,
    /// Of one app.
    pub app_connections: usize,
    /// Of one caller on one app.
    pub caller_connections: usize,
    /// Events that may wait for one slow client.
    pub buffer: usize,
    /// A stream without an event ends after this long.
    pub idle: Duration,
}

#[derive(Clone)]
pub struct DatabaseSettings {
    /// Secret: may hold a password. `inn up` runs a database of its own and takes none.
    pub url: Option<String>,
    pub pool_size: usize,
    pub acquire_timeout: Duration,
    pub statement_timeout: Duration,
    pub synchronous_commit: bool,
}

#[derive(Clone)]
pub struct RedisSettings {
    /// Secret: may hold a password.
    pub url: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Human,
    Json,
}

#[derive(Clone)]
pub struct LogSettings {
    /// `tracing-subscriber` directives.
    pub filter: String,
    pub format: LogFormat,
}

#[derive(Clone)]
pub struct TelemetrySettings {
    /// OTLP over HTTP; traces go to `<endpoint>/v1/traces`. Without it none are made.
    pub otlp_endpoint: Option<Url>,
}

const MIB: usize = 1024 * 1024;

impl Default for Settings {
    fn default() -> Self {
        let rates = inn_http::rates::RateLimits::default();
        let limits = inn_actors::AdmissionLimits::default();
        let realtime = inn_http::RealtimeLimits::default();
        Self {
            data: DataSettings { dir: PathBuf::from("./.inn"), keys_dir: None, blobs_dir: None },
            blobs: BlobSettings {
                s3_bucket: None,
                s3_prefix: None,
                s3_endpoint: None,
                s3_region: "us-east-1".to_owned(),
                s3_access_key: None,
                s3_secret_key: None,
            },
            files: FileSettings { max_upload: 128 << 20, app_bytes: 10 << 30, uploads: 16, thumb_workers: 1 },
            http: ListenSettings {
                listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8090),
                public_url: None,
                apps_domain: None,
                workers: 0,
                max_connections: 4096,
                request_timeout: Duration::from_secs(10),
                keep_alive: Duration::from_secs(30),
                max_body: 2 * MIB,
                batch_requests: 50,
                max_bundle: 64 * MIB,
                shutdown: Duration::from_secs(10),
                io_threads: 2,
            },
            mail: MailSettings {
                smtp_host: None,
                smtp_port: 587,
                smtp_tls: Tls::StartTls,
                smtp_user: None,
                smtp_password_file: None,
                from: None,
            },
            people: PeopleSettings {
                session_hours: 12,
                token_minutes: 15,
                owner: None,
                owner_password_file: None,
                owner_tenant: "home".to_owned(),
            },
            rates: RateSettings {
                auth: rates.auth,
                data: rates.data,
                operations: rates.operations,
                queue: rates.queue,
            },
            limits: LimitSettings { node: limits.node, tenant: limits.tenant, app: limits.app, app_threads: 2 },
            realtime: RealtimeSettings {
                connections: realtime.connections,
                app_connections: realtime.app_connections,
                caller_connections: realtime.caller_connections,
                buffer: realtime.buffer,
                idle: realtime.idle,
            },
            database: DatabaseSettings {
                url: None,
                // Small on purpose: on two cores 16 connections cost the database a third more CPU for the same work
                // (ops/bench). Give three per core of the database server.
                pool_size: 8,
                acquire_timeout: Duration::from_secs(5),
                statement_timeout: Duration::from_secs(30),
                synchronous_commit: true,
            },
            redis: RedisSettings { url: None },
            log: LogSettings { filter: "info".to_owned(), format: LogFormat::Human },
            telemetry: TelemetrySettings { otlp_endpoint: None },
        }
    }
}

/// Key by key, secrets hidden.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(SETTINGS.iter().map(|setting| (setting.key, setting.show(self)))).finish()
    }
}

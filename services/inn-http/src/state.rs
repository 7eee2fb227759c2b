//! What every handler can reach.

use std::sync::Arc;

use inn_actors::Gateway;
use inn_grants::token::RootKeys;
use inn_ports::{Blobs, Bus, Mail, Objects, Store};
use serde_json::Value;
use url::Url;

use crate::app::{JobStreams, Realtime};
use crate::rates::Rates;

/// Settings of the HTTP edge.
#[derive(Debug, Clone)]
pub struct HttpConfig {
    /// Where people and agents reach the platform, without trailing slash: `http://localhost:8090`.
    pub platform_url: Url,
    /// Apps live one label below this domain; with a port when it is not the scheme's default: `localhost:8090`.
    pub apps_domain: String,
    /// The listener is bound to loopback.
    pub loopback: bool,
    /// Largest body in bytes, unless a route says otherwise.
    pub max_body: usize,
    /// Writes of one batch; 0 switches batches off.
    pub batch_requests: usize,
    /// Largest bundle in bytes.
    pub max_bundle: usize,
    /// Largest form with files in bytes; the collection's own limit counts when it is lower.
    pub max_upload: u64,
    /// What the files of one app may take together, in bytes; 0 is no limit.
    pub app_file_bytes: u64,
    /// Sessions last this long.
    pub session_hours: i64,
    /// Tokens last this long, in minutes (DESIGN section 5: 15).
    pub token_minutes: i64,
    pub rates: crate::rates::RateLimits,
}

impl HttpConfig {
    /// The origin of an app.
    pub fn app_origin(&self, slug: &str) -> String {
        format!("{}://{slug}.{}", self.platform_url.scheme(), self.apps_domain)
    }

    /// Scheme, host and port of the platform, as browsers send it in `Origin`.
    pub fn platform_origin(&self) -> String {
        self.platform_url.origin().ascii_serialization()
    }

    /// The platform's URL with a path (which starts with `/`).
    pub fn platform(&self, path: &str) -> String {
        format!("{}{path}", self.platform_url.as_str().trim_end_matches('/'))
    }
}

/// Keys of the platform, as far as the edge needs them.
pub struct EdgeKeys {
    /// Mints tokens.
    pub root: Arc<RootKeys>,
    /// What `/v1/keys` answers: public keys only, old ones included.
    pub published: Value,
}

/// Answers liveness of the parts (`/readyz`) and renders `/metrics`; the server wires it.
pub trait Vitals: Send + Sync {
    /// Draining: readiness goes false before anything stops.
    fn draining(&self) -> bool;
    /// Prometheus text.
    fn metrics(&self) -> String;
}

pub struct HttpState {
    pub gateway: Gateway,
    pub store: Arc<dyn Store>,
    pub blobs: Arc<dyn Blobs>,
    /// Files of records.
    pub objects: Arc<dyn Objects>,
    /// Forms received at one time.
    pub uploads: Arc<tokio::sync::Semaphore>,
    pub bus: Arc<dyn Bus>,
    pub realtime: Arc<Realtime>,
    pub job_streams: Arc<JobStreams>,
    pub keys: EdgeKeys,
    pub config: HttpConfig,
    /// Mails of apps to their own users.
    pub mail: Arc<dyn Mail>,
    /// Mails that are on their way at one time.
    pub mails: Arc<tokio::sync::Semaphore>,
    /// Shared with the gateway, which counts verified callers.
    pub rates: Arc<Rates>,
    pub vitals: Arc<dyn Vitals>,
    /// CPU-heavy work (argon2, unpacking a bundle) runs here, a few at a time.
    pub blocking: tokio::sync::Semaphore,
    /// Bodies above the usual size in memory at one time.
    pub large_bodies: Arc<tokio::sync::Semaphore>,
    pub io: tokio::runtime::Handle,
}

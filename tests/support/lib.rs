//! What the integration tests are written with: hosts, callers, calls, snapshots.
//!
//! [`TestHost::start`] gives a test a platform of its own: a real server on a free port, on a private database cloned from
//! a template in which two tenants, their people and the kanban demo exist already.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "support of tests, compiled for nothing else: what fails here fails the test that asked"
)]

pub mod agent;
pub mod bundle;
pub mod call;
pub mod drawer;
pub mod host;
pub mod kanban;
pub mod letters;
pub mod pocketbase;
pub mod poll;
pub mod redis;
pub mod snapshot;
pub mod stream;
mod template;

pub use agent::{AgentClient, Consent};
pub use call::{Call, Door, Papers, Reply, Signing};
pub use host::{Person, TestHost};
pub use inn_mail::Tls;
pub use inn_server::Settings;
pub use letters::mail_server;
pub use poll::until;
pub use redis::Redis;
pub use stream::Stream;

/// Where cargo puts what it builds; `ops/test` lays the programs of strangers there too.
pub fn built() -> std::path::PathBuf {
    // The test binary lies in `<built>/<profile>/deps`.
    let binary = std::env::current_exe().expect("a path of the test binary");
    let built = binary.ancestors().nth(3).expect("a folder three levels up");
    built.to_owned()
}

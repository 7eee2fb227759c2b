//! The server and command line of Innkeeper: the only crate that sees both the inside and the adapters.
//!
//! [`Platform::start`] runs a whole platform, or one node of it, inside a process; the binary `inn` is a thin shell over
//! [`cli::main`].

mod address;
mod calls;
pub mod cli;
pub mod config;
pub mod doctor;
mod founding;
pub mod keys;
mod loops;
mod mail;
pub mod migrate;
mod platform;
mod scratch;
pub mod serve;
mod signals;
pub mod telemetry;
mod tls;
mod tokens;
pub mod up;
mod vitals;

pub use config::Settings;
pub use platform::{AppFacts, Facts, Platform, Role, Welcome};
pub use up::UpOptions;

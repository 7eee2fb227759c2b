//! Verbs that talk to a running platform.

use std::process::ExitCode;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum ClientVerb {}

pub fn run(verb: &ClientVerb) -> ExitCode {
    match *verb {}
}

//! `inn serve`: one node on a given database. Several on the same database are one platform.

use std::io::Write;

use crate::config::{Flags, Sources};
use crate::{Platform, Role};

#[derive(Debug, clap::Args)]
pub struct ServeArgs {
    /// Bring the database up to date first, and found an empty platform for --owner; without it a database that is
    /// behind is refused
    #[arg(long)]
    migrate: bool,
    #[command(flatten)]
    settings: Flags,
}

/// Runs until a signal ends it.
pub fn run(args: &ServeArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let settings = Sources::of_process(&args.settings).settings()?;
    let telemetry = crate::telemetry::start(&settings)?;
    let role = Role::Serve { migrate: args.migrate };
    let ended = Platform::start_until(settings, role, crate::signals::watch()?).and_then(|platform| {
        writeln!(out, "Innkeeper answers at {}", platform.url())?;
        out.flush()?;
        platform.wait()
    });
    telemetry.finish();
    ended
}

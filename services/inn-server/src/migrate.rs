//! `inn migrate`: brings a database up to what this version needs. Any number of them at once is one.

use std::io::Write;

use serde_json::json;

use crate::config::{Flags, SettingError, Sources};

#[derive(Debug, clap::Args)]
pub struct MigrateArgs {
    /// Only tell what would be applied; exit code 1 when there is something
    #[arg(long)]
    check: bool,
    /// Answer in JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: Flags,
}

/// Answers whether the database is up to date now.
pub fn run(args: &MigrateArgs, out: &mut dyn Write) -> anyhow::Result<bool> {
    let settings = Sources::of_process(&args.settings).settings()?;
    let telemetry = crate::telemetry::start(&settings)?;
    let url = settings.database.url.as_deref().ok_or_else(|| {
        let what = "DATABASE_URL is missing: `inn migrate` needs the address of a PostgreSQL database (`inn up` migrates its own)";
        SettingError(what.to_owned())
    })?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (names, word) = if args.check {
        (runtime.block_on(inn_store::pending(url))?, "pending")
    } else {
        (runtime.block_on(inn_store::migrate(url))?, "applied")
    };
    if args.json {
        writeln!(out, "{}", json!({ word: names }))?;
    } else if names.is_empty() {
        writeln!(out, "The database is up to date.")?;
    } else {
        names.iter().try_for_each(|name| writeln!(out, "{word}: {name}"))?;
    }
    telemetry.finish();
    Ok(!args.check || names.is_empty())
}

//! `inn up`: a whole platform on this machine, without any configuration.

pub(crate) mod database;
pub(crate) mod demo;
pub(crate) mod home;
pub(crate) mod keeper;
pub(crate) mod lock;
mod ready;

use std::fmt;
use std::io::Write;
use std::path::PathBuf;

use crate::config::{Flags, PeopleSettings, Settings, Sources};
use crate::founding::read_password;
use crate::{Facts, Platform, Role};

/// The owner of a new platform, when nobody says otherwise.
const OWNER: &str = "owner@localhost";

/// What `inn up` does beyond serving.
#[derive(Clone, Default)]
pub struct UpOptions {
    /// Email of the first owner. On data that has one already it only says whose sign-in link is printed.
    pub owner: Option<String>,
    /// The first owner's password; made up and printed once when there is none.
    pub password: Option<String>,
    /// Installs the demo apps.
    pub demo: bool,
}

impl fmt::Debug for UpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpOptions").field("owner", &self.owner).field("demo", &self.demo).finish_non_exhaustive()
    }
}

#[derive(Debug, clap::Args)]
pub struct UpArgs {
    /// Leave the demo apps out
    #[arg(long)]
    no_demo: bool,
    /// Written once everything answers: where, process ids, owner, apps (JSON)
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    #[command(flatten)]
    settings: Flags,
}

/// Runs until a signal ends it.
pub fn run(args: &UpArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut settings = Sources::of_process(&args.settings).settings()?;
    if settings.database.url.take().is_some() {
        tracing::debug!("`inn up` runs a database of its own; DATABASE_URL is left alone");
    }
    let options = options(args, &settings.people)?;
    let telemetry = crate::telemetry::start(&settings)?;
    if let Some(path) = &args.ready_file {
        ready::remove(path)?;
    }
    let ended = live(args, &settings, options, out);
    telemetry.finish();
    ended
}

fn live(args: &UpArgs, settings: &Settings, options: UpOptions, out: &mut dyn Write) -> anyhow::Result<()> {
    let platform = Platform::start_until(settings.clone(), Role::Up(options), crate::signals::watch()?)?;
    welcome(&platform, out)?;
    if let Some(path) = &args.ready_file {
        ready::write(path, platform.facts())?;
    }
    while let Some(postgres_pid) = platform.database_restarted() {
        if let Some(path) = &args.ready_file {
            ready::write(path, &Facts { postgres_pid: Some(postgres_pid), ..platform.facts().clone() })?;
        }
    }
    let ended = platform.wait();
    if let Some(path) = &args.ready_file {
        // Nothing answers any more: whoever waits for the file must not find the old one.
        ready::remove(path)?;
    }
    ended
}

fn options(args: &UpArgs, people: &PeopleSettings) -> anyhow::Result<UpOptions> {
    let password = people.owner_password_file.as_deref().map(read_password).transpose()?;
    Ok(UpOptions { owner: people.owner.clone(), password, demo: !args.no_demo })
}

/// What a person wants to know; the secrets are told here and nowhere else.
fn welcome(platform: &Platform, out: &mut dyn Write) -> std::io::Result<()> {
    let facts = platform.facts();
    writeln!(out, "Innkeeper answers at {}", facts.platform)?;
    for app in &facts.apps {
        writeln!(out, "  {:<12} {}", app.slug, app.origin)?;
    }
    if let Some(owner) = &facts.owner {
        writeln!(out, "Owner        {owner}")?;
    }
    if let Some(password) = &platform.welcome().password {
        writeln!(out, "Password     {password}   (printed this once; keep it)")?;
    }
    if let Some(link) = &platform.welcome().link {
        writeln!(out, "Sign in      {link}   (works once, within 15 minutes; later with the password)")?;
    }
    writeln!(out, "Stop it with Ctrl-C.")?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        let options = UpOptions { password: Some("hunter2hunter2".to_owned()), ..UpOptions::default() };
        assert!(!format!("{options:?}").contains("hunter2"));
    }
}

//! `inn up`: a whole platform on this machine, without any configuration.

pub(crate) mod database;
pub(crate) mod demo;
pub(crate) mod home;
pub(crate) mod lock;
mod ready;

use std::fmt;
use std::io::Write;
use std::path::PathBuf;

use anyhow::Context as _;
use inn_grants::password;

use crate::config::{Flags, SettingError, Settings, Sources};
use crate::{Platform, Role};

/// The owner of a new platform, when nobody says otherwise.
const OWNER: &str = "owner@localhost";
/// A password is a line, not a book.
const LARGEST_PASSWORD_FILE: u64 = 4096;

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
    /// Email of the first owner [default: owner@localhost]
    #[arg(long, value_name = "EMAIL")]
    owner: Option<String>,
    /// File with the first owner's password; without it one is made up and printed once
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
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
    let options = options(args)?;
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
    let ended = platform.wait();
    if let Some(path) = &args.ready_file {
        // Nothing answers any more: whoever waits for the file must not find the old one.
        ready::remove(path)?;
    }
    ended
}

fn options(args: &UpArgs) -> anyhow::Result<UpOptions> {
    let password = args.password_file.as_ref().map(read_password).transpose()?;
    Ok(UpOptions { owner: args.owner.clone(), password, demo: !args.no_demo })
}

fn read_password(path: &PathBuf) -> anyhow::Result<String> {
    let file = || format!("--password-file {}", path.display());
    let size = std::fs::metadata(path).with_context(file)?.len();
    if size > LARGEST_PASSWORD_FILE {
        return Err(SettingError(format!("{}: has {size} bytes, which is no password", file())).into());
    }
    let text = std::fs::read_to_string(path).with_context(file)?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    if line.contains('\n') {
        return Err(SettingError(format!("{}: must hold the password alone, on one line", file())).into());
    }
    password::check_password(line).map_err(|refusal| SettingError(format!("{}: {}", file(), refusal.message)))?;
    Ok(line.to_owned())
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

    fn password_of(text: &str) -> anyhow::Result<String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("password");
        std::fs::write(&path, text).unwrap();
        read_password(&path)
    }

    #[test]
    fn a_password_file_holds_one_line() {
        for (text, password) in [
            ("correct horse\n", "correct horse"),
            ("correct horse", "correct horse"),
            ("correct horse\r\n", "correct horse"),
            (" correct horse \n", " correct horse "),
        ] {
            assert_eq!(password_of(text).unwrap(), password);
        }
        for text in ["short\n", "", "correct horse\nbattery staple\n", &"x".repeat(5000)] {
            let refused = password_of(text).unwrap_err();
            assert!(refused.is::<SettingError>() && refused.to_string().contains("--password-file"), "{refused}");
        }
        assert!(read_password(&PathBuf::from("/nowhere/password")).is_err());
    }

    #[test]
    fn a_password_is_never_shown() {
        let options = UpOptions { password: Some("hunter2hunter2".to_owned()), ..UpOptions::default() };
        assert!(!format!("{options:?}").contains("hunter2"));
    }
}

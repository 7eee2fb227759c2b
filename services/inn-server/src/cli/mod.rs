//! The command line. Data on standard output, talk on standard error; exit code 0 done, 1 refused, 2 usage, 3 unreachable.

pub mod client_verbs;
mod keys;

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::config::SettingError;
use crate::doctor::{self, DoctorArgs};
use crate::migrate::{self, MigrateArgs};
use crate::serve::{self, ServeArgs};
use crate::up::{self, UpArgs};

/// A home for agent apps.
#[derive(Debug, Parser)]
#[command(name = "inn", version, about, max_term_width = 120)]
pub struct Cli {
    #[command(subcommand)]
    pub verb: Verb,
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run a whole platform on this machine, with a database of its own
    Up(Box<UpArgs>),
    /// Run one node on a given database (`DATABASE_URL`)
    Serve(Box<ServeArgs>),
    /// Bring a database up to what this version needs
    Migrate(Box<MigrateArgs>),
    /// Say what is wrong with this machine or set-up, and what to do
    Doctor(Box<DoctorArgs>),
    /// Look at the platform's keys and rotate them
    Keys(Box<keys::KeysArgs>),
    // Everything that talks to a running platform.
    #[command(flatten)]
    Client(client_verbs::ClientVerb),
}

/// What the binary does.
pub fn main() -> ExitCode {
    match Cli::try_parse() {
        Ok(cli) => run(cli.verb),
        Err(error) => {
            // Help and version too: clap knows which stream each belongs on.
            let printed = error.print().is_ok();
            ExitCode::from(if printed { u8::try_from(error.exit_code()).unwrap_or(2) } else { 1 })
        }
    }
}

/// Runs one verb.
pub fn run(verb: Verb) -> ExitCode {
    let mut out = std::io::stdout();
    let ended = match verb {
        Verb::Up(args) => up::run(&args, &mut out).map(|()| true),
        Verb::Serve(args) => serve::run(&args, &mut out).map(|()| true),
        Verb::Migrate(args) => migrate::run(&args, &mut out),
        Verb::Doctor(args) => doctor::run(&args, &mut out),
        Verb::Keys(args) => keys::run(&args, &mut out).map(|()| true),
        Verb::Client(verb) => return client_verbs::run(&verb),
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            // Nobody is left to tell when even this stream is closed.
            writeln!(std::io::stderr(), "inn: {error:#}").ok();
            ExitCode::from(exit_code(&error))
        }
    }
}

fn exit_code(error: &anyhow::Error) -> u8 {
    if error.chain().any(<dyn std::error::Error>::is::<SettingError>) {
        return 2;
    }
    let unreachable = |cause: &(dyn std::error::Error + 'static)| {
        matches!(cause.downcast_ref(), Some(inn_store::SetupError::Unreachable(_)))
    };
    if error.chain().any(unreachable) { 3 } else { 1 }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn exit_codes_tell_usage_from_unreachable_from_refused() {
        let context = |error: anyhow::Error| error.context("while starting");
        assert_eq!(exit_code(&context(SettingError("x".to_owned()).into())), 2);
        assert_eq!(exit_code(&context(inn_store::SetupError::Unreachable("x".to_owned()).into())), 3);
        assert_eq!(exit_code(&context(inn_store::SetupError::Migration("x".to_owned()).into())), 1);
        assert_eq!(exit_code(&anyhow::anyhow!("x")), 1);
    }

    #[test]
    fn settings_stand_before_or_after_a_nouns_verb() {
        for line in [
            &["inn", "keys", "ls", "--data", "d"][..],
            &["inn", "keys", "--data", "d", "ls", "--json"],
            &["inn", "keys", "rotate", "token", "--data", "d"],
            &["inn", "keys", "rotate", "--data", "d", "token"],
        ] {
            let Verb::Keys(keys) = Cli::try_parse_from(line).unwrap().verb else { panic!("{line:?}") };
            let given: Vec<_> = keys.flags().values().map(|(setting, text)| (setting.key, text)).collect();
            assert_eq!(given, [("data.dir", "d")], "{line:?}");
        }
    }

    #[test]
    fn a_wrong_flag_is_usage() {
        for line in
            [&["inn", "up", "--listne", "x"][..], &["inn"], &["inn", "nonsense"], &["inn", "keys", "rotate", "door"]]
        {
            assert_eq!(Cli::try_parse_from(line).unwrap_err().exit_code(), 2, "{line:?}");
        }
        assert!(
            Cli::try_parse_from([
                "inn",
                "up",
                "--data",
                "d",
                "--listen",
                "127.0.0.1:0",
                "--owner",
                "a@b.c",
                "--password-file",
                "p",
                "--no-demo",
                "--ready-file",
                "r"
            ])
            .is_ok()
        );
    }
}

//! One flag for each setting, made from the table.

use std::fmt;
use std::path::PathBuf;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use super::{SETTINGS, Setting};

const CONFIG: &str = "config";

/// What the command line says about settings. Flatten it into a verb's arguments.
#[derive(Clone, Default)]
pub struct Flags {
    /// `--config FILE`.
    pub config: Option<PathBuf>,
    values: Vec<(&'static Setting, String)>,
}

impl Flags {
    /// The settings that were given, in the order of the table.
    pub fn values(&self) -> impl Iterator<Item = (&'static Setting, &str)> {
        self.values.iter().map(|(setting, text)| (*setting, text.as_str()))
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |(setting, text): (&Setting, &str)| {
            (setting.flag, if setting.secret { "(hidden)".to_owned() } else { text.to_owned() })
        };
        f.debug_map().entries(self.values().map(shown)).finish()
    }
}

impl Args for Flags {
    fn augment_args(command: Command) -> Command {
        let config = Arg::new(CONFIG)
            .long(CONFIG)
            .value_name("FILE")
            .help("Settings file (TOML); INN_CONFIG names one too")
            .help_heading("Settings")
            .global(true);
        let one = |setting: &'static Setting| {
            let help = format!("{} [{}]", setting.help.trim_end_matches('.'), setting.env);
            let arg = Arg::new(setting.key).long(setting.flag).value_name(setting.value).help(help);
            // Before and after the verb of a noun: `inn keys ls --data DIR`.
            arg.help_heading("Settings").global(true)
        };
        command.arg(config).args(SETTINGS.iter().map(one))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |setting: &'static Setting| Some((setting, matches.get_one::<String>(setting.key)?.clone()));
        Ok(Self {
            config: matches.get_one::<String>(CONFIG).map(PathBuf::from),
            values: SETTINGS.iter().filter_map(given).collect(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

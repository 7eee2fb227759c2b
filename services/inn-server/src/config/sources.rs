//! Where settings come from, and what is said when one is wrong.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Flags, SETTINGS, Setting, Settings};

/// Names the settings file in the environment.
pub(crate) const CONFIG_ENV: &str = "INN_CONFIG";
/// What the verbs that talk to a platform read, and what they set for the programs they run.
const CLIENT_ENV: [&str; 9] = [
    "INN_AGENT",
    "INN_APP_URL",
    "INN_BIN",
    "INN_CONFIG_DIR",
    "INN_EMAIL",
    "INN_PASSWORD",
    "INN_PASSWORD_FILE",
    "INN_TENANT",
    "INN_URL",
];
/// A settings file is a page, not a data set.
const LARGEST_FILE: u64 = 256 * 1024;

/// A setting that cannot be used; the text says which, where it came from and what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SettingError(pub String);

/// Everything settings are read from, as it was at start.
#[derive(Default)]
pub struct Sources<'a> {
    /// The environment; only names of the table count.
    pub env: BTreeMap<String, String>,
    pub flags: Option<&'a Flags>,
}

impl<'a> Sources<'a> {
    /// The process's own environment and these flags.
    pub fn of_process(flags: &'a Flags) -> Self {
        // A variable that is not UTF-8 is none of ours.
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self { env: std::env::vars_os().filter_map(text).collect(), flags: Some(flags) }
    }

    /// The file, when one is named.
    pub fn file(&self) -> Option<PathBuf> {
        let flag = self.flags.and_then(|flags| flags.config.clone());
        flag.or_else(|| self.env.get(CONFIG_ENV).filter(|path| !path.is_empty()).map(PathBuf::from))
    }

    /// Reads them all: defaults, then the file, then the environment, then flags.
    pub fn settings(&self) -> Result<Settings, SettingError> {
        let mut settings = Settings::default();
        if let Some(path) = self.file() {
            apply_file(&mut settings, &path)?;
        }
        for setting in SETTINGS {
            // Empty is how container platforms say "not set".
            if let Some(text) = self.env.get(setting.env).filter(|text| !text.is_empty()) {
                apply(&mut settings, setting, setting.env, text)?;
            }
        }
        for (setting, text) in self.flags.into_iter().flat_map(Flags::values) {
            apply(&mut settings, setting, &format!("--{}", setting.flag), text)?;
        }
        Ok(settings)
    }

    /// Variables that look like ours and are not: usually a slip of the finger.
    pub fn unknown_variables(&self) -> Vec<&str> {
        let known = |name: &str| {
            name == CONFIG_ENV || CLIENT_ENV.contains(&name) || SETTINGS.iter().any(|setting| setting.env == name)
        };
        self.env.keys().map(String::as_str).filter(|name| name.starts_with("INN_") && !known(name)).collect()
    }
}

fn apply(settings: &mut Settings, setting: &Setting, source: &str, text: &str) -> Result<(), SettingError> {
    setting.set(settings, text).map_err(|expected| {
        let got = if setting.secret { String::new() } else { format!(", got {text:?}") };
        SettingError(format!("{source}: expected {expected}{got}"))
    })
}

fn apply_file(settings: &mut Settings, path: &Path) -> Result<(), SettingError> {
    let shown = path.display();
    let wrong = |what: String| SettingError(format!("settings file {shown}: {what}"));
    let size = std::fs::metadata(path).map_err(|error| wrong(error.to_string()))?.len();
    if size > LARGEST_FILE {
        return Err(wrong(format!("has {size} bytes; {LARGEST_FILE} are the most")));
    }
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    // Only place and message: the parser's full report quotes the line, which may hold a password.
    let root: toml::Table = toml::from_str(&text).map_err(|error: toml::de::Error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        wrong(format!("line {}: {}", before.matches('\n').count() + 1, error.message()))
    })?;
    for (group, entries) in &root {
        let toml::Value::Table(entries) = entries else {
            return Err(wrong(format!("`{group}` stands outside a table; {}", known_tables())));
        };
        for (name, value) in entries {
            let key = format!("{group}.{name}");
            let setting =
                Setting::find(&key).ok_or_else(|| wrong(format!("unknown setting `{key}`; {}", known_keys(group))))?;
            let source = format!("settings file {shown}: {key}");
            apply(
                settings,
                setting,
                &source,
                &scalar(value).ok_or_else(|| wrong(format!("`{key}` must be a text, a number, true or false")))?,
            )?;
        }
    }
    Ok(())
}

fn scalar(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Boolean(truth) => Some(truth.to_string()),
        _ => None,
    }
}

fn known_tables() -> String {
    let mut tables: Vec<_> = SETTINGS.iter().filter_map(|setting| setting.key.split('.').next()).collect();
    tables.dedup();
    format!("the tables are {}", tables.join(", "))
}

fn known_keys(group: &str) -> String {
    let keys: Vec<_> =
        SETTINGS.iter().map(|setting| setting.key).filter(|key| key.split('.').next() == Some(group)).collect();
    if keys.is_empty() { known_tables() } else { format!("known are {}", keys.join(", ")) }
}

use std::collections::BTreeMap;
use std::io::Write as _;

use clap::{Args as _, FromArgMatches as _};

use super::*;

/// Another valid value than the default, for each setting.
fn other(setting: &Setting) -> String {
    match setting.value {
        "DIR" => "/srv/other".to_owned(),
        "ADDR:PORT" => "127.0.0.1:7777".to_owned(),
        "DOMAIN" => "apps.example:7777".to_owned(),
        "BOOL" => "false".to_owned(),
        "LEVELS" => "warn,inn_store=debug".to_owned(),
        "FORMAT" => "json".to_owned(),
        "URL" => match setting.key {
            "database.url" => "postgres://inn:hunter2hunter2@db/inn".to_owned(),
            "redis.url" => "redis://:hunter2hunter2@cache/0".to_owned(),
            _ => "https://inn.example:7777".to_owned(),
        },
        "COUNT" | "SECONDS" | "HOURS" | "MINUTES" => "7".to_owned(),
        "EMAIL" => "ada@example.org".to_owned(),
        "FILE" => "/run/secrets/password".to_owned(),
        "SLUG" => "acme".to_owned(),
        "PORT" => "2525".to_owned(),
        "TLS" => "none".to_owned(),
        "NAME" => "eu-1".to_owned(),
        "KEY" => "hunter2hunter2".to_owned(),
        "BYTES" => "65536".to_owned(),
        other => panic!("no test value for {other}"),
    }
}

/// A plain look at a value, secrets included.
fn raw(setting: &Setting, settings: &Settings) -> String {
    match setting.key {
        "database.url" => settings.database.url.clone().unwrap_or_default(),
        "redis.url" => settings.redis.url.clone().unwrap_or_default(),
        "blobs.s3-access-key" => settings.blobs.s3_access_key.clone().unwrap_or_default(),
        "blobs.s3-secret-key" => settings.blobs.s3_secret_key.clone().unwrap_or_default(),
        _ => setting.show(settings),
    }
}

fn flags(arguments: &[String]) -> Flags {
    let command = Flags::augment_args(clap::Command::new("test").no_binary_name(true));
    Flags::from_arg_matches(&command.get_matches_from(arguments)).unwrap()
}

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn from_file(text: &str) -> Result<Settings, SettingError> {
    let file = file(text);
    let env = BTreeMap::from([("INN_CONFIG".to_owned(), file.path().display().to_string())]);
    Sources { env, flags: None }.settings()
}

fn toml_line(setting: &Setting, value: &str) -> String {
    let (group, key) = setting.key.split_once('.').unwrap();
    let bare = value.parse::<u64>().is_ok() || value.parse::<bool>().is_ok();
    let value = if bare { value.to_owned() } else { format!("{value:?}") };
    format!("[{group}]\n{key} = {value}\n")
}

#[test]
fn every_setting_can_be_set_by_file_environment_and_flag() {
    for setting in SETTINGS {
        let wanted = other(setting);
        assert_ne!(raw(setting, &Settings::default()), wanted, "{}", setting.key);
        let by_file = from_file(&toml_line(setting, &wanted)).unwrap();
        assert_eq!(raw(setting, &by_file), wanted, "{} in the file", setting.key);
        let env = BTreeMap::from([(setting.env.to_owned(), wanted.clone())]);
        let by_env = Sources { env, flags: None }.settings().unwrap();
        assert_eq!(raw(setting, &by_env), wanted, "{}", setting.env);
        let flags = flags(&[format!("--{}", setting.flag), wanted.clone()]);
        let by_flag = Sources { env: BTreeMap::new(), flags: Some(&flags) }.settings().unwrap();
        assert_eq!(raw(setting, &by_flag), wanted, "--{}", setting.flag);
        for others in SETTINGS.iter().filter(|other| other.key != setting.key) {
            assert_eq!(
                raw(others, &by_flag),
                raw(others, &Settings::default()),
                "{} moved {}",
                setting.key,
                others.key
            );
        }
    }
}

#[test]
fn a_flag_beats_the_environment_which_beats_the_file_which_beats_the_default() {
    let file = file("[http]\nlisten = \"127.0.0.1:1\"\nworkers = 1\nmax-connections = 1\n");
    let flags = flags(&["--listen".to_owned(), "127.0.0.1:3".to_owned()]);
    let env = BTreeMap::from([
        ("INN_CONFIG".to_owned(), file.path().display().to_string()),
        ("INN_LISTEN".to_owned(), "127.0.0.1:2".to_owned()),
        ("INN_WORKERS".to_owned(), "2".to_owned()),
        ("INN_MAX_CONNECTIONS".to_owned(), String::new()),
    ]);
    let settings = Sources { env, flags: Some(&flags) }.settings().unwrap();
    assert_eq!((settings.http.listen.port(), settings.http.workers), (3, 2));
    assert_eq!(settings.http.max_connections, 1, "an empty variable is not set");
    assert_eq!(settings.http.io_threads, 2);
}

#[test]
fn a_config_flag_beats_the_variable() {
    let file = file("[http]\nworkers = 5\n");
    let flags = flags(&["--config".to_owned(), file.path().display().to_string()]);
    let env = BTreeMap::from([("INN_CONFIG".to_owned(), "/nowhere.toml".to_owned())]);
    assert_eq!(Sources { env, flags: Some(&flags) }.settings().unwrap().http.workers, 5);
}

#[test]
fn an_unknown_key_of_the_file_is_refused_by_name() {
    let refused = from_file("[http]\nlistne = \"127.0.0.1:1\"\n").unwrap_err().0;
    assert!(refused.contains("`http.listne`") && refused.contains("http.listen"), "{refused}");
    let refused = from_file("[htpt]\nlisten = \"127.0.0.1:1\"\n").unwrap_err().0;
    assert!(refused.contains("`htpt.listen`") && refused.contains("http"), "{refused}");
    let refused = from_file("listen = \"127.0.0.1:1\"\n").unwrap_err().0;
    assert!(refused.contains("`listen`"), "{refused}");
}

#[test]
fn a_file_that_cannot_be_read_is_refused_with_its_line() {
    let refused = from_file("[http]\nworkers = 1\nworkers = \n").unwrap_err().0;
    assert!(refused.contains("line 3"), "{refused}");
    let env = BTreeMap::from([("INN_CONFIG".to_owned(), "/nowhere/inn.toml".to_owned())]);
    let refused = Sources { env, flags: None }.settings().unwrap_err().0;
    assert!(refused.contains("/nowhere/inn.toml"), "{refused}");
    assert!(from_file("[http]\nworkers = [1]\n").unwrap_err().0.contains("`http.workers`"));
}

#[test]
fn a_wrong_value_is_refused_with_its_source_and_what_was_expected() {
    for (key, value, expected) in [
        ("http.listen", "localhost:80", "IP address"),
        ("http.public-url", "https://inn.example/app", "nothing after"),
        ("http.public-url", "ftp://inn.example", "http"),
        ("http.public-url", "https://a:b@inn.example", "nothing after"),
        ("http.apps-domain", "Apps.example", "lower-case"),
        ("http.apps-domain", "apps..example", "lower-case"),
        ("http.workers", "many", "whole number"),
        ("http.workers", "-1", "whole number"),
        ("http.max-body-bytes", "10", "from 1024"),
        ("http.batch-requests", "1001", "to 1000"),
        ("http.max-bundle-bytes", "999999999999", "to 67108864"),
        ("http.keep-alive-seconds", "0", "from 1"),
        ("people.token-minutes", "61", "to 60"),
        ("mail.smtp-port", "0", "from 1"),
        ("mail.smtp-tls", "ssl", "starttls"),
        ("mail.from", "nobody", "email"),
        ("people.owner", "ada", "email"),
        ("people.owner", "ada@example.org, bob@example.org", "email"),
        ("people.owner-tenant", "Acme", "lower-case"),
        ("people.owner-tenant", "-acme", "lower-case"),
        ("database.url", "mysql://x", "postgres://"),
        ("database.synchronous-commit", "yes", "true or false"),
        ("redis.url", "http://x", "redis://"),
        ("blobs.s3-bucket", "a b", "without blanks"),
        ("blobs.s3-endpoint", "https://s3.example/bucket", "nothing after"),
        ("files.max-upload-bytes", "10", "from 1024"),
        ("files.uploads", "0", "from 1"),
        ("files.thumb-workers", "65", "to 64"),
        ("log.format", "xml", "human or json"),
        ("log.filter", "inn=loud", "levels"),
        ("telemetry.otlp-endpoint", "collector:4318", "http"),
    ] {
        let setting = Setting::find(key).unwrap();
        let env = BTreeMap::from([(setting.env.to_owned(), value.to_owned())]);
        let refused = Sources { env, flags: None }.settings().unwrap_err().0;
        assert!(refused.starts_with(setting.env) && refused.contains(expected), "{key}: {refused}");
    }
}

#[test]
fn secrets_are_never_shown() {
    let mut settings = Settings::default();
    for setting in SETTINGS.iter().filter(|setting| setting.secret) {
        setting.set(&mut settings, &other(setting)).unwrap();
        let flags = flags(&[format!("--{}", setting.flag), other(setting)]);
        assert!(!format!("{flags:?}").contains("hunter2"), "{}", setting.flag);
        // No address of anything, and no key: those have no blanks.
        let env = BTreeMap::from([(setting.env.to_owned(), "hunter2 hunter2".to_owned())]);
        assert!(!Sources { env, flags: None }.settings().unwrap_err().0.contains("hunter2"), "{}", setting.env);
    }
    let shown = format!("{settings:?}");
    assert!(!shown.contains("hunter2") && shown.contains("(hidden)"), "{shown}");
    let refused = from_file("[database]\nurl = postgres://u:hunter2hunter2@h/d\n").unwrap_err().0;
    assert!(!refused.contains("hunter2"), "{refused}");
    let names: Vec<_> = SETTINGS.iter().filter(|setting| setting.secret).map(|setting| setting.key).collect();
    assert_eq!(names, ["blobs.s3-access-key", "blobs.s3-secret-key", "database.url", "redis.url"]);
}

#[test]
fn slips_of_the_finger_in_the_environment_are_found() {
    let env = BTreeMap::from([
        ("INN_LISTNE".to_owned(), "x".to_owned()),
        ("INN_LISTEN".to_owned(), "127.0.0.1:1".to_owned()),
        ("INN_CONFIG".to_owned(), String::new()),
        ("HOME".to_owned(), "/root".to_owned()),
    ]);
    assert_eq!(Sources { env, flags: None }.unknown_variables(), ["INN_LISTNE"]);
}

#[test]
fn names_are_unique() {
    for pick in [|s: &Setting| s.key, |s: &Setting| s.env, |s: &Setting| s.flag] {
        let mut names: Vec<_> = SETTINGS.iter().map(pick).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SETTINGS.len());
    }
}

/// `ops/guide/settings.md`: one table row a setting, in the same order, with the same names, default and sentence.
#[test]
fn the_guide_lists_every_setting_and_no_other() {
    let guide = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../ops/guide/settings.md")).unwrap();
    let rows: Vec<_> = guide.lines().filter(|line| line.starts_with("| `")).collect();
    let wanted: Vec<_> = SETTINGS.iter().map(guide_row).collect();
    for (row, wanted) in rows.iter().zip(&wanted) {
        assert_eq!(row, wanted, "the guide differs from the code");
    }
    assert_eq!(rows.len(), wanted.len(), "rows in the guide; all of them:\n{}", wanted.join("\n"));
}

fn guide_row(setting: &Setting) -> String {
    let default = setting.show(&Settings::default());
    let default = if default.is_empty() { "-".to_owned() } else { format!("`{default}`") };
    format!(
        "| `{}` | `{}` | `--{} {}` | {default} | {} |",
        setting.key, setting.env, setting.flag, setting.value, setting.help
    )
}

#[test]
fn blobs_lie_in_the_data_directory_unless_nodes_share_them_elsewhere() {
    let set = |pairs: &[(&str, &str)]| {
        let env = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Sources { env, flags: None }.settings().unwrap().data
    };
    let own = set(&[("INN_DATA", "/srv/one")]);
    assert_eq!(own.blobs(), PathBuf::from("/srv/one/blobs"));
    let shared = set(&[("INN_DATA", "/srv/one"), ("INN_BLOBS_DIR", "/mnt/blobs")]);
    assert_eq!(shared.blobs(), PathBuf::from("/mnt/blobs"));
    assert_eq!(shared.keys(), PathBuf::from("/srv/one/keys"), "nothing else moves");
}

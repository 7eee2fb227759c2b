//! `inn migrate`: brings a database up to what this version needs, and founds an empty platform when an owner is named.
//! Any number of them at once is one.

use std::io::Write;

use serde_json::{Value, json};

use crate::config::{Flags, SettingError, Settings, Sources};
use crate::founding::{self, Founding};
use crate::scratch::Scratch;

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
    let ended = migrate(args, &settings, out);
    telemetry.finish();
    ended
}

fn migrate(args: &MigrateArgs, settings: &Settings, out: &mut dyn Write) -> anyhow::Result<bool> {
    let url = settings.database.url.as_deref().ok_or_else(|| {
        let what = "DATABASE_URL is missing: `inn migrate` needs the address of a PostgreSQL database (`inn up` migrates its own)";
        SettingError(what.to_owned())
    })?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let (names, word) = if args.check {
        (runtime.block_on(inn_store::pending(url))?, "pending")
    } else {
        (runtime.block_on(inn_store::migrate(url))?, "applied")
    };
    if !args.json {
        if names.is_empty() {
            writeln!(out, "The database is up to date.")?;
        }
        names.iter().try_for_each(|name| writeln!(out, "{word}: {name}"))?;
    }
    let founding = if args.check {
        Founding::NoOwner
    } else {
        runtime.block_on(async {
            // Opening the store for nothing would be one more thing that can fail.
            if settings.people.owner.is_none() && settings.people.owner_password_file.is_none() {
                return Ok(Founding::NoOwner);
            }
            let scratch = Scratch::open(url, runtime.handle()).await?;
            founding::as_set(&scratch.store, &settings.people).await
        })?
    };
    if args.json {
        let mut answer = json!({ word: names });
        if let (Some(told), Some(members)) = (as_json(&founding), answer.as_object_mut()) {
            members.insert("founding".to_owned(), told);
        }
        writeln!(out, "{answer}")?;
    } else {
        tell(&founding, out)?;
    }
    out.flush()?;
    Ok(!args.check || names.is_empty())
}

fn tell(founding: &Founding, out: &mut dyn Write) -> std::io::Result<()> {
    match founding {
        Founding::NoOwner => Ok(()),
        Founding::Done { owner, tenant } => writeln!(out, "Founded: tenant {tenant}, owner {owner}."),
        Founding::Before { .. } => {
            writeln!(out, "The platform was founded before and is left alone: nobody was added, no password changed.")
        }
    }
}

fn as_json(founding: &Founding) -> Option<Value> {
    match founding {
        Founding::NoOwner => None,
        Founding::Done { owner, tenant } => Some(json!({ "founded": true, "owner": owner, "tenant": tenant })),
        Founding::Before { owner } => Some(json!({ "founded": false, "owner": owner })),
    }
}

#[cfg(test)]
mod tests {
    use inn_embedded::EmbeddedPostgres;
    use inn_grants::password;
    use inn_ports::People as _;

    use super::*;

    /// What is said, or why not.
    fn said(settings: &Settings, check: bool, json: bool) -> anyhow::Result<(bool, String)> {
        let mut out = Vec::new();
        let args = MigrateArgs { check, json, settings: Flags::default() };
        let well = migrate(&args, settings, &mut out)?;
        Ok((well, String::from_utf8(out)?))
    }

    #[test]
    fn an_empty_platform_is_founded_once_and_then_left_alone() {
        let server = EmbeddedPostgres::temporary().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("password");
        let mut settings = Settings::default();
        settings.database.url = Some(server.url("postgres"));
        settings.people.owner = Some("ada@example.org".to_owned());
        settings.people.owner_tenant = "acme".to_owned();

        let (well, text) = said(&settings, true, false).unwrap();
        assert!(!well && text.contains("pending: ") && !text.contains("ounded"), "{text}");
        // The schema is there from here on; founding waits for what is missing.
        let refused = said(&settings, false, false).unwrap_err();
        assert!(refused.is::<SettingError>() && refused.to_string().contains("INN_OWNER_PASSWORD_FILE"), "{refused}");
        settings.people.owner_password_file = Some(file.clone());
        assert!(format!("{:#}", said(&settings, false, false).unwrap_err()).contains("--password-file"));
        std::fs::write(&file, "short\n").unwrap();
        assert!(said(&settings, false, false).unwrap_err().is::<SettingError>(), "the rules of passwords hold");
        std::fs::write(&file, "correct horse\n").unwrap();

        let (well, text) = said(&settings, false, false).unwrap();
        assert!(well && text.ends_with("Founded: tenant acme, owner ada@example.org.\n"), "{text}");
        std::fs::write(&file, "another password\n").unwrap();
        let (_, text) = said(&settings, false, false).unwrap();
        assert!(text.ends_with("left alone: nobody was added, no password changed.\n"), "{text}");
        std::fs::remove_file(&file).unwrap();
        let (_, text) = said(&settings, false, true).unwrap();
        let told: Value = serde_json::from_str(&text).unwrap();
        let wanted = json!({"applied": [], "founding": {"founded": false, "owner": "ada@example.org"}});
        assert_eq!(told, wanted, "a file that is not needed need not be there");

        std::fs::write(&file, "correct horse\n").unwrap();
        settings.people.owner = Some("eve@example.org".to_owned());
        let (_, text) = said(&settings, false, false).unwrap();
        assert!(text.contains("founded before"), "{text}");
        settings.people.owner = None;
        assert!(said(&settings, false, false).unwrap_err().to_string().contains("INN_OWNER (--owner) is missing"));
        settings.people.owner_password_file = None;
        assert_eq!(said(&settings, false, false).unwrap().1, "The database is up to date.\n");

        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.block_on(async {
            let scratch = Scratch::open(&server.url("postgres"), runtime.handle()).await.unwrap();
            let ada = scratch.store.user_secret("ada@example.org").await.unwrap().unwrap();
            assert!(password::verify("correct horse", &ada.password));
            assert_eq!(ada.tenants[0].slug, "acme");
            assert!(scratch.store.user_secret("eve@example.org").await.unwrap().is_none());
        });
    }
}

//! `inn keys`: the platform's key files.

use std::io::Write;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::config::{Flags, Sources};
use crate::keys::{Kind, rotate};
use crate::platform::open_keys;

#[derive(Debug, Args)]
pub struct KeysArgs {
    #[command(subcommand)]
    verb: KeysVerb,
    /// Answer in JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(flatten)]
    settings: Flags,
}

#[derive(Debug, Subcommand)]
enum KeysVerb {
    /// Show the public keys, the ones of old keys included
    Ls,
    /// Make the next key; the old one stays for verifying. Restart the nodes afterwards
    Rotate { kind: Kind },
}

impl KeysArgs {
    #[cfg(test)]
    pub(super) fn flags(&self) -> &Flags {
        &self.settings
    }
}

pub(super) fn run(args: &KeysArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let settings = Sources::of_process(&args.settings).settings()?;
    let dir = settings.data.keys();
    match args.verb {
        KeysVerb::Ls => {
            let published = open_keys(&settings.data)?.published();
            if args.json {
                writeln!(out, "{published}")?;
                return Ok(());
            }
            for key in published.get("keys").and_then(Value::as_array).into_iter().flatten() {
                let member = |name: &str| {
                    key.get(name).map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
                };
                let member = |name: &str| member(name).unwrap_or_default();
                writeln!(out, "{:<9} {:<3} {}", member("use"), member("id"), member("kid"))?;
            }
        }
        KeysVerb::Rotate { kind } => {
            let id = rotate(&dir, kind)?;
            if args.json {
                writeln!(out, "{}", json!({ "use": kind.as_str(), "id": id, "directory": dir }))?;
            } else {
                writeln!(
                    out,
                    "{} key {id} made in {}. Restart the nodes to sign with it.",
                    kind.as_str(),
                    dir.display()
                )?;
            }
        }
    }
    Ok(())
}

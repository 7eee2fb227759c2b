//! `inn doctor`: what is wrong, and what to do about it. Changes nothing.

mod checks;
mod postgres;
mod redis;

use std::io::Write;

use serde::Serialize;
use serde_json::json;

use crate::config::{Flags, Sources};

#[derive(Debug, clap::Args)]
pub struct DoctorArgs {
    /// Answer in JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: Flags,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    Ok,
    /// Works, and somebody should look at it.
    Warn,
    /// Does not work.
    Fail,
}

impl State {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// One line of the diagnosis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    pub name: &'static str,
    pub state: State,
    /// What was found.
    pub found: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl Check {
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, state: State::Ok, found: found.into(), advice: None }
    }

    fn warn(name: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { name, state: State::Warn, found: found.into(), advice: Some(advice.into()) }
    }

    fn fail(name: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { name, state: State::Fail, found: found.into(), advice: Some(advice.into()) }
    }
}

/// Answers whether nothing failed.
pub fn run(args: &DoctorArgs, out: &mut dyn Write) -> anyhow::Result<bool> {
    crate::tls::install();
    let sources = Sources::of_process(&args.settings);
    let checks = match sources.settings() {
        Ok(settings) => {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
            let mut checks = checks::local(&sources, &settings);
            checks.extend(runtime.block_on(checks::remote(&settings, runtime.handle())));
            checks
        }
        Err(error) => vec![Check::fail(
            "settings",
            error.to_string(),
            "Correct this setting; ops/guide/settings.md lists all of them",
        )],
    };
    let well = checks.iter().all(|check| check.state < State::Fail);
    if args.json {
        writeln!(out, "{}", json!({ "ok": well, "checks": checks }))?;
    } else {
        print(&checks, out)?;
    }
    out.flush()?;
    Ok(well)
}

fn print(checks: &[Check], out: &mut dyn Write) -> std::io::Result<()> {
    for check in checks {
        writeln!(out, "{:<5} {:<15} {}", check.state.as_str(), check.name, check.found)?;
        if let Some(advice) = &check.advice {
            writeln!(out, "{:<5} {:<15} -> {advice}", "", "")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_and_the_next_what_to_do() {
        let mut out = Vec::new();
        print(&[Check::ok("a", "fine"), Check::fail("b", "broken", "Mend it")], &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text,
            "ok    a               fine\nfail  b               broken\n                      -> Mend it\n"
        );
    }

    #[test]
    fn json_has_state_finding_and_advice() {
        let text = serde_json::to_value(Check::warn("clock", "off", "Set it")).unwrap();
        assert_eq!(text, json!({"name": "clock", "state": "warn", "found": "off", "advice": "Set it"}));
        assert_eq!(
            serde_json::to_value(Check::ok("clock", "on")).unwrap(),
            json!({"name": "clock", "state": "ok", "found": "on"})
        );
    }
}

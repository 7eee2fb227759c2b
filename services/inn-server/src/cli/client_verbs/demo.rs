//! `inn demo`: the whole main job, against a running platform, with real processes. It asserts what it claims.

mod stage;
mod story;

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use serde_json::json;

use super::context::{Common, Context};
use super::error::{CliError, CliResult};
use super::out::Out;

/// Plays the whole main job: deploy, an agent's grant, signed calls, work from the queue, the register, revocation
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  inn demo --url http://localhost:8090 --email owner@localhost
  inn demo --url http://localhost:8090 --email owner@localhost --password-file owner.txt --json

It signs in as an owner, since only one may deploy and consent; without a password it uses this machine's session, which
must not be older than five minutes. Each run has an app, an agent and a key of its own and leaves the app there to look
at. With --json one line a step: step, name, ok, receipt, ms. The exit code is 0 only when every step passed.")]
pub struct Demo {
    #[command(flatten)]
    pub(crate) common: Common,
    /// An owner's email; without it who this machine is signed in as
    #[arg(long, env = "INN_EMAIL")]
    email: Option<String>,
    /// File whose first line is the owner's password; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Take the app out of service at the end
    #[arg(long)]
    clean: bool,
}

pub(crate) async fn run(args: Demo) -> CliResult<()> {
    let context = Context::new(&args.common)?;
    let mut report = Report { out: context.out, step: 0 };
    let stage = stage::Stage::open(&context, args.email, args.password_file.as_deref()).await?;
    story::play(stage, &mut report, args.clean).await
}

/// What a step proved.
struct Done {
    /// Id of the call whose receipt stands for the step.
    receipt: Option<String>,
    said: String,
}

/// Prints each step as it ends.
struct Report {
    out: Out,
    step: u32,
}

impl Report {
    /// Plays one step and prints it. A step that fails ends the demo.
    async fn step<T>(&mut self, name: &'static str, play: impl Future<Output = CliResult<(Done, T)>>) -> CliResult<T> {
        self.step += 1;
        let begun = Instant::now();
        let ended = play.await;
        let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let step = self.step;
        match ended {
            Ok((done, carried)) => {
                let document = json!({"step": step, "name": name, "ok": true, "receipt": done.receipt, "ms": ms, "said": done.said});
                self.out.answer(&document, |_| {
                    let receipt = done.receipt.as_deref().map(|id| format!("\n    receipt {id}")).unwrap_or_default();
                    format!("{step:>2}. {name} ({ms} ms)\n    {}{receipt}", done.said.replace('\n', "\n    "))
                });
                Ok(carried)
            }
            Err(error) => {
                let document =
                    json!({"step": step, "name": name, "ok": false, "receipt": null, "ms": ms, "error": error.text()});
                self.out.answer(&document, |_| {
                    format!("{step:>2}. {name} FAILED ({ms} ms)\n    {}", error.text().replace('\n', "\n    "))
                });
                Err(CliError::SaidWith(error.exit()))
            }
        }
    }
}

/// A claim of the demo that did not hold.
fn broken(what: impl Into<String>) -> CliError {
    CliError::local("demo_failed", what)
}

fn ensure(holds: bool, what: impl FnOnce() -> String) -> CliResult<()> {
    if holds { Ok(()) } else { Err(broken(what())) }
}

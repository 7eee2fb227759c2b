//! `inn job`

mod bar;

use std::time::Duration;

use clap::{Args, Subcommand};
use inn_client::{AppFace, Person};
use serde_json::Value;

use super::context::{Common, Context};
use super::error::{CliError, CliResult};
use super::out::{Out, items, text};
pub(crate) use bar::Bar;

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  inn run kanban board.sum-up --p board=abc123def456ghi     starts a job and follows it
  inn job ls kanban --state running
  inn job show kanban job_… --follow
  inn job logs kanban job_… --follow
  inn job cancel kanban job_…
  inn job retry kanban job_… --follow

Following ends with the job: code 0 when it completed, 1 when it failed or was canceled. Ctrl-C stops following, not the job.")]
pub struct JobArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    verb: JobVerb,
}

#[derive(Debug, Clone, Subcommand)]
enum JobVerb {
    /// Jobs of an app, newest first
    Ls {
        app: String,
        /// queued, running, waiting, completed, failed or canceled
        #[arg(long)]
        state: Option<String>,
    },
    /// One job, with its attempts
    Show {
        app: String,
        id: String,
        /// Show how far it is until it ends
        #[arg(long, short)]
        follow: bool,
    },
    /// Cancel a job
    Cancel {
        app: String,
        id: String,
        #[arg(long)]
        reason: Option<String>,
    },
    /// Do a job that failed or was canceled again, as a new one
    Retry {
        app: String,
        id: String,
        /// Show how far it is until it ends
        #[arg(long, short)]
        follow: bool,
    },
    /// What a job said, oldest first
    Logs {
        app: String,
        id: String,
        /// Go on until it ends
        #[arg(long, short)]
        follow: bool,
        /// Only lines after this number
        #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(i64).range(0..))]
        after: i64,
    },
}

/// Between two looks: short at first, for jobs that end soon.
const FIRST_LOOK: Duration = Duration::from_millis(200);
const LAST_LOOK: Duration = Duration::from_secs(2);

pub(crate) async fn run(args: JobArgs) -> CliResult<()> {
    let context = Context::new(&args.common)?;
    let out = context.out;
    let person = context.person()?;
    match args.verb {
        JobVerb::Ls { app, state } => {
            let answer = person.jobs(&app, state.as_deref()).await?.json()?;
            let columns = [
                ("id", "/id"),
                ("operation", "/operation"),
                ("state", "/state"),
                ("started by", "/requesterLabel"),
                ("attempt", "/attempt"),
                ("progress", "/progress/percent"),
                ("error", "/error/message"),
            ];
            out.table(&answer, &columns, "No jobs.");
            Ok(())
        }
        JobVerb::Show { app, id, follow: false } => {
            let answer = person.job(&app, &id).await?.json()?;
            out.answer(&answer, |job| serde_json::to_string_pretty(job).unwrap_or_default());
            Ok(())
        }
        JobVerb::Show { app, id, follow: true } => {
            let job = until_ended(out, "/state", || async { Ok(person.job(&app, &id).await?.json()?) }).await?;
            ended(out, "/state", &job)
        }
        JobVerb::Cancel { app, id, reason } => {
            let answer = person.cancel_job(&app, &id, reason.as_deref()).await?.json()?;
            out.answer(&answer, |job| match job.get("cancelRequested") {
                Some(Value::Bool(true)) if text(job, "/state") == "running" => {
                    format!("{} is told to stop", text(job, "/id"))
                }
                _ => line(job),
            });
            Ok(())
        }
        JobVerb::Retry { app, id, follow } => {
            let again = person.retry_job(&app, &id).await?.json()?;
            if !follow {
                out.answer(&again, line);
                return Ok(());
            }
            let id = text(&again, "/id");
            out.say(format!("Job: {id}"));
            let job = until_ended(out, "/state", || async { Ok(person.job(&app, &id).await?.json()?) }).await?;
            ended(out, "/state", &job)
        }
        JobVerb::Logs { app, id, follow, after } => logs(out, &person, (&app, &id), follow, after).await,
    }
}

fn line(job: &Value) -> String {
    format!("{} {}", text(job, "/id"), text(job, "/state"))
}

/// Follows the job an operation answered with, as whoever ran it.
pub(crate) async fn follow(out: Out, face: &AppFace, id: &str) -> CliResult<()> {
    let job = until_ended(out, "/status", || async { Ok(face.job(id).await?.json()?) }).await?;
    ended(out, "/status", &job)
}

/// Looks again and again, and shows how far it is. `word` is where the job's state stands.
async fn until_ended<F>(out: Out, word: &str, look: impl Fn() -> F) -> CliResult<Value>
where
    F: Future<Output = CliResult<Value>>,
{
    let mut bar = Bar::new(out);
    let mut pause = FIRST_LOOK;
    loop {
        let job = match look().await {
            Ok(job) => job,
            Err(error) => {
                bar.clear();
                return Err(error);
            }
        };
        let state = text(&job, word);
        if is_end(&state) {
            bar.clear();
            return Ok(job);
        }
        bar.show(&state, &job);
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LAST_LOOK);
    }
}

fn is_end(state: &str) -> bool {
    matches!(state, "completed" | "failed" | "canceled")
}

/// The result of a job that completed, or why there is none. With `--json` the job itself, either way.
fn ended(out: Out, word: &str, job: &Value) -> CliResult<()> {
    let state = text(job, word);
    let completed = state == "completed";
    if out.is_json() {
        out.data(job);
    } else if completed {
        let result = job.get("result").cloned().unwrap_or_default();
        out.line(serde_json::to_string_pretty(&result).unwrap_or_default());
    } else {
        let (code, message) = (text(job, "/error/code"), text(job, "/error/message"));
        out.say(format!("inn: the job {state} ({code}): {message}"));
    }
    if completed { Ok(()) } else { Err(CliError::Said) }
}

/// One line of the log on one line, as JSON with `--json`.
async fn logs(out: Out, person: &Person, (app, id): (&str, &str), follow: bool, after: i64) -> CliResult<()> {
    let mut seen = after;
    let mut pause = FIRST_LOOK;
    loop {
        // Looked at before its lines: whatever it says afterwards it says before the next look.
        let job = person.job(app, id).await?.json()?;
        let lines = person.job_logs(app, id, seen).await?.json()?;
        let told = items(&lines);
        for line in told {
            seen = line.get("seq").and_then(Value::as_i64).unwrap_or(seen);
            if out.is_json() {
                out.data(line);
            } else {
                out.line(shown(line));
            }
        }
        if told.is_empty() && (!follow || is_end(&text(&job, "/state"))) {
            return Ok(());
        }
        if told.is_empty() {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LAST_LOOK);
        } else {
            pause = FIRST_LOOK;
        }
    }
}

fn shown(line: &Value) -> String {
    let percent =
        line.get("percent").and_then(Value::as_u64).map(|percent| format!("{percent} % ")).unwrap_or_default();
    let words = Out::one_line(&text(line, "/text"));
    format!("{}  {:<8}  {percent}{words}", text(line, "/at"), text(line, "/kind"))
}

/// What an operation answered that goes on as a job.
pub(crate) fn job_of(document: &Value) -> Option<&str> {
    document.get("jobId").and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_of_a_log_stays_one_line() {
        let line =
            json!({"seq": 1, "at": "2026-01-01T00:00:00Z", "kind": "progress", "text": "a\nb\u{1b}", "percent": 4});
        assert_eq!(shown(&line), "2026-01-01T00:00:00Z  progress  4 % a b\u{fffd}");
    }
}

//! `inn request`

use std::time::Duration;

use clap::{Args, Subcommand};
use inn_client::new_idempotency_key;
use serde_json::{Value, json};

use super::context::{Common, Context};
use super::error::{CliError, CliResult};
use super::out::text;

#[derive(Debug, Clone, Args)]
#[command(after_help = "As a person:
  inn request ask kanban summarise-board '{\"board\":\"abc123def456ghi\"}'
  inn request ls kanban --state submitted
  inn request cancel kanban req_…
  inn request answer kanban req_… '\"the red one\"'
  inn request ls kanban --state failed          dead letters, with the reason
  inn request replay kanban req_…

As an agent, by hand (`inn agent work` does all of it):
  inn request claim --agent bot --capability summarise-board --wait 20
  inn request ask-back req_… --epoch 1 --question 'Which board?' --wait 3600
  inn request complete req_… --epoch 1 --result '{\"summary\":\"…\"}'")]
pub struct RequestArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    verb: RequestVerb,
}

/// Between two looks for an answer.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Args)]
struct Hold {
    /// req_…
    id: String,
    /// The claim's epoch, as `claim` printed it
    #[arg(long)]
    epoch: i64,
    /// Which agent of this machine holds it
    #[arg(long, env = "INN_AGENT")]
    agent: Option<String>,
}

#[derive(Debug, Clone, Subcommand)]
enum RequestVerb {
    /// Requests of an app
    Ls {
        app: String,
        /// submitted, working, input-required, completed, failed or canceled
        #[arg(long)]
        state: Option<String>,
    },
    /// One request, with its questions and past attempts
    Show { app: String, id: String },
    /// Ask agents for work
    Ask {
        app: String,
        capability: String,
        /// JSON, as the capability's input schema wants it; `-` reads standard input
        #[arg(default_value = "{}")]
        payload: String,
    },
    /// What a request waits for
    Why { app: String, id: String },
    /// Weights and caps of the queue
    Limits,
    /// Set weight and cap of an app, a capability, a person, an agent or a tenant; without either, they are gone
    Limit {
        /// tenant, app, capability, person or agent
        kind: String,
        /// Tenant's slug, app's slug, `app/capability`, e-mail address or name, agent's id
        subject: String,
        /// 1 to 100: how often it is served among its like
        #[arg(long)]
        weight: Option<u32>,
        /// Requests held at one time; 0 pauses it
        #[arg(long)]
        most: Option<u32>,
    },
    /// Cancel a request
    Cancel {
        app: String,
        id: String,
        #[arg(long)]
        reason: Option<String>,
    },
    /// Cancel up to 1,000 open requests of an app
    CancelAll {
        app: String,
        /// Only of this kind
        #[arg(long)]
        capability: Option<String>,
        /// Only those that are submitted, working or input-required
        #[arg(long)]
        state: Option<String>,
        /// Only those asked at least so many seconds ago
        #[arg(long, value_name = "SECONDS")]
        older_than: Option<u32>,
        #[arg(long)]
        reason: Option<String>,
    },
    /// Answer the question of the agent that holds a request
    Answer {
        app: String,
        id: String,
        /// JSON; `-` reads standard input. Text that is not JSON is taken as text
        answer: String,
    },
    /// Take a request from the agent that holds it, back into the queue
    TakeBack {
        app: String,
        id: String,
        #[arg(long)]
        reason: Option<String>,
    },
    /// End a request as failed
    End {
        app: String,
        id: String,
        #[arg(long)]
        reason: Option<String>,
    },
    /// Do a request that failed or was canceled again, as a new one
    Replay { app: String, id: String },
    /// Claim waiting requests as an agent
    Claim {
        #[arg(long, env = "INN_AGENT")]
        agent: Option<String>,
        /// Only of this app (repeat it)
        #[arg(long = "app")]
        apps: Vec<String>,
        /// Only of this kind (repeat it)
        #[arg(long = "capability")]
        capabilities: Vec<String>,
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
        max: u32,
        /// Seconds to wait for one
        #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=30))]
        wait: u32,
    },
    /// Keep the lease of a claim
    Heartbeat(Hold),
    /// Say how far it is
    Progress {
        #[command(flatten)]
        hold: Hold,
        #[arg(long)]
        step: String,
        #[arg(long, value_parser = clap::value_parser!(u8).range(0..=100))]
        percent: u8,
    },
    /// Ask the requester something; prints the answer with --wait
    AskBack {
        #[command(flatten)]
        hold: Hold,
        #[arg(long)]
        question: String,
        /// Seconds to wait for the answer, keeping the claim meanwhile
        #[arg(long, default_value_t = 0)]
        wait: u64,
    },
    /// Give the result
    Complete {
        #[command(flatten)]
        hold: Hold,
        /// JSON, as the capability's result schema wants it; `-` reads standard input
        #[arg(long)]
        result: String,
    },
    /// Give up this attempt
    Fail {
        #[command(flatten)]
        hold: Hold,
        #[arg(long)]
        reason: String,
    },
    /// Give it back to the queue
    Release {
        #[command(flatten)]
        hold: Hold,
        #[arg(long, default_value = "")]
        reason: String,
    },
}

pub(crate) async fn run(args: RequestArgs) -> CliResult<()> {
    let context = Context::new(&args.common)?;
    let out = context.out;
    let line = |request: &Value| {
        let state = match text(request, "/state") {
            state if state.is_empty() => text(request, "/status"),
            state => state,
        };
        format!("{} {state}", text(request, "/id"))
    };
    let answer = match args.verb {
        RequestVerb::Ls { app, state } => {
            let mut answer = context.person()?.requests(Some(&app), state.as_deref()).await?.json()?;
            if !out.is_json() {
                forget_progress(&mut answer);
            }
            let columns = [
                ("id", "/id"),
                ("app", "/appSlug"),
                ("capability", "/capability"),
                ("state", "/state"),
                ("asked by", "/requesterLabel"),
                ("progress", "/progress/step"),
                ("reason", "/reason"),
            ];
            out.table(&answer, &columns, "No requests.");
            return Ok(());
        }
        RequestVerb::Show { app, id } => {
            let answer = context.person()?.request(&app, &id).await?.json()?;
            out.answer(&answer, |request| serde_json::to_string_pretty(request).unwrap_or_default());
            return Ok(());
        }
        RequestVerb::Why { app, id } => {
            let answer = context.person()?.request_why(&app, &id).await?.json()?;
            out.answer(&answer, |answer| {
                let reasons = answer.get("waitsFor").and_then(Value::as_array);
                let lines = reasons.into_iter().flatten().map(|reason| match text(reason, "/fix") {
                    fix if fix.is_empty() => text(reason, "/sentence"),
                    fix => format!("{}\n  {fix}", text(reason, "/sentence")),
                });
                let lines = lines.collect::<Vec<_>>().join("\n");
                if lines.is_empty() { format!("It has ended: {}.", text(answer, "/state")) } else { lines }
            });
            return Ok(());
        }
        RequestVerb::Limits => {
            let answer = context.person()?.queue_limits().await?.json()?;
            let columns =
                [("kind", "/kind"), ("app", "/appSlug"), ("name", "/name"), ("weight", "/weight"), ("most", "/most")];
            out.table(&answer, &columns, "Everything has weight 1 and no cap.");
            return Ok(());
        }
        RequestVerb::Limit { kind, subject, weight, most } => {
            let (app, subject) = match kind.as_str() {
                "app" => (Some(subject.as_str()), ""),
                "capability" => {
                    let (app, name) = subject.split_once('/').unwrap_or(("", &subject));
                    (Some(app).filter(|app| !app.is_empty()), name)
                }
                _ => (None, subject.as_str()),
            };
            let limit = json!({"kind": kind, "app": app, "subject": subject, "weight": weight, "most": most});
            let answer = context.person()?.set_queue_limit(&limit).await?.json()?;
            out.answer(&answer, |receipt| text(receipt, "/sentence"));
            return Ok(());
        }
        RequestVerb::Ask { app, capability, payload } => {
            let payload = document(&payload, "the payload")?;
            let key = new_idempotency_key();
            context.person()?.app(&app).ask(&capability, &payload, Some(&key)).await?
        }
        RequestVerb::Cancel { app, id, reason } => {
            context.person()?.cancel_request(&app, &id, reason.as_deref()).await?
        }
        RequestVerb::CancelAll { app, capability, state, older_than, reason } => {
            let filter = json!({
                "app": app, "capability": capability, "state": state, "olderThanSeconds": older_than,
                "reason": reason.unwrap_or_default(),
            });
            let answer = context.person()?.cancel_requests(&filter).await?.json()?;
            out.answer(&answer, |answer| {
                let more = answer.get("more").and_then(Value::as_bool).unwrap_or_default();
                let rest = if more { "; there may be more, run it again" } else { "" };
                format!("{} canceled{rest}", text(answer, "/canceled"))
            });
            return Ok(());
        }
        RequestVerb::Answer { app, id, answer } => {
            let answer = document(&answer, "the answer").or_else(|error| match answer.as_str() {
                "-" => Err(error),
                text => Ok(text.into()),
            })?;
            context.person()?.answer_request(&app, &id, &answer).await?
        }
        RequestVerb::TakeBack { app, id, reason } => {
            context.person()?.take_back_request(&app, &id, reason.as_deref()).await?
        }
        RequestVerb::End { app, id, reason } => context.person()?.end_request(&app, &id, reason.as_deref()).await?,
        RequestVerb::Replay { app, id } => context.person()?.replay_request(&app, &id).await?,
        RequestVerb::Claim { agent, apps, capabilities, max, wait } => {
            let agent = context.agent(&context.agent_file(agent.as_deref())?)?;
            let mut claimed = agent.claim(&apps, &capabilities, max, wait).await?;
            for request in &mut claimed {
                // A person types slower than a claim waits for its first word.
                let epoch = request.get("epoch").and_then(Value::as_i64).unwrap_or_default();
                *request = agent.heartbeat(&text(request, "/id"), epoch).await?.json()?;
            }
            let answer = json!({"items": claimed});
            let columns = [
                ("id", "/id"),
                ("app", "/appSlug"),
                ("capability", "/capability"),
                ("epoch", "/epoch"),
                ("payload", "/payload"),
            ];
            out.table(&answer, &columns, "Nothing to claim.");
            return Ok(());
        }
        RequestVerb::Heartbeat(hold) => held(&context, &hold)?.heartbeat(&hold.id, hold.epoch).await?,
        RequestVerb::Progress { hold, step, percent } => {
            held(&context, &hold)?.progress(&hold.id, hold.epoch, &step, percent).await?
        }
        RequestVerb::AskBack { hold, question, wait } => {
            let agent = held(&context, &hold)?;
            let asked = agent.ask_back(&hold.id, hold.epoch, &question).await?;
            if wait == 0 {
                asked
            } else {
                let answer = answered(&agent, &hold, Duration::from_secs(wait)).await?;
                out.answer(&answer, |answer| answer.as_str().map_or_else(|| answer.to_string(), str::to_owned));
                return Ok(());
            }
        }
        RequestVerb::Complete { hold, result } => {
            let result = document(&result, "the result")?;
            held(&context, &hold)?.complete(&hold.id, hold.epoch, &result).await?
        }
        RequestVerb::Fail { hold, reason } => held(&context, &hold)?.fail(&hold.id, hold.epoch, &reason).await?,
        RequestVerb::Release { hold, reason } => held(&context, &hold)?.release(&hold.id, hold.epoch, &reason).await?,
    };
    out.answer(&answer.json()?, line);
    Ok(())
}

/// Keeps the claim until the requester has answered.
async fn answered(agent: &inn_client::Agent, hold: &Hold, most: Duration) -> CliResult<Value> {
    let until = tokio::time::Instant::now() + most;
    loop {
        let request = agent.heartbeat(&hold.id, hold.epoch).await?.json()?;
        let last = request.get("questions").and_then(Value::as_array).and_then(|questions| questions.last());
        if let Some(answer) = last.and_then(|question| question.get("answer")) {
            return Ok(answer.clone());
        }
        if tokio::time::Instant::now() >= until {
            let message = format!("nobody has answered within {} s; the request still waits for it", most.as_secs());
            return Err(CliError::local("not_answered", message));
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// How far work had got says nothing any more once it has ended.
fn forget_progress(answer: &mut Value) {
    let list = answer.get_mut("items").and_then(Value::as_array_mut);
    for request in list.into_iter().flatten() {
        let over = matches!(text(request, "/state").as_str(), "completed" | "failed" | "canceled");
        if let (true, Some(request)) = (over, request.as_object_mut()) {
            request.remove("progress");
        }
    }
}

fn held(context: &Context, hold: &Hold) -> CliResult<inn_client::Agent> {
    context.agent(&context.agent_file(hold.agent.as_deref())?)
}

/// JSON from the command line, or from standard input for `-`.
pub(crate) fn document(given: &str, what: &str) -> CliResult<Value> {
    let read;
    let json = if given == "-" {
        read = std::io::read_to_string(std::io::stdin())
            .map_err(|error| CliError::io("standard input cannot be read", &error))?;
        &read
    } else {
        given
    };
    serde_json::from_str(json).map_err(|error| CliError::Usage(format!("{what} is not JSON: {error}")))
}

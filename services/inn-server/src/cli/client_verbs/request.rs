//! `inn request`

use clap::{Args, Subcommand};
use inn_client::new_idempotency_key;
use serde_json::Value;

use super::context::{Common, Context};
use super::error::{CliError, CliResult};
use super::out::text;

#[derive(Debug, Clone, Args)]
#[command(after_help = "As a person:
  inn request ask kanban summarise-board '{\"board\":\"abc123def456ghi\"}'
  inn request ls kanban --state submitted
  inn request cancel kanban req_…

As an agent, by hand (`inn agent work` does all of it):
  inn request claim --agent bot --capability summarise-board --wait 20
  inn request complete req_… --epoch 1 --result '{\"summary\":\"…\"}'")]
pub struct RequestArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    verb: RequestVerb,
}

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
        /// submitted, working, completed, failed or canceled
        #[arg(long)]
        state: Option<String>,
    },
    /// One request
    Show { app: String, id: String },
    /// Ask agents for work
    Ask {
        app: String,
        capability: String,
        /// JSON, as the capability's input schema wants it; `-` reads standard input
        #[arg(default_value = "{}")]
        payload: String,
    },
    /// Cancel a request
    Cancel {
        app: String,
        id: String,
        #[arg(long)]
        reason: Option<String>,
    },
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
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=50))]
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
        RequestVerb::Ask { app, capability, payload } => {
            let payload = document(&payload, "the payload")?;
            let key = new_idempotency_key();
            context.person()?.app(&app).ask(&capability, &payload, Some(&key)).await?
        }
        RequestVerb::Cancel { app, id, reason } => {
            context.person()?.cancel_request(&app, &id, reason.as_deref()).await?
        }
        RequestVerb::Claim { agent, apps, capabilities, max, wait } => {
            let agent = context.agent(&context.agent_file(agent.as_deref())?)?;
            let claimed = agent.claim(&apps, &capabilities, max, wait).await?;
            let answer = serde_json::json!({"items": claimed});
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

//! `inn run`

use clap::Args;
use inn_client::new_idempotency_key;
use serde_json::Value;

use super::context::{Common, Context};
use super::data::coerce;
use super::error::{CliError, CliResult};
use super::job;
use super::out::{items, text};

/// Runs an operation of an app
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  inn run kanban cards.list-urgent
  inn run kanban cards.move --p id=abc123def456ghi --p list=xyz123def456ghi
  inn run kanban board.sum-up --p board=abc123def456ghi     a job, followed until it ends
  inn run kanban cards.add --agent bot --p title=\"Eat chicken\" --p list=xyz123def456ghi

`inn app show APP` and `inn data APP schema` say which operations there are.")]
pub struct Run {
    #[command(flatten)]
    pub(crate) common: Common,
    app: String,
    operation: String,
    /// A param (repeat it)
    #[arg(long = "p", visible_alias = "param", value_name = "NAME=VALUE")]
    params: Vec<String>,
    /// Run it as this agent instead of yourself
    #[arg(long, env = "INN_AGENT")]
    agent: Option<String>,
    /// Of an operation that goes on as a job: answer with the job instead of following it
    #[arg(long)]
    no_wait: bool,
    /// Makes repeating safe: what ran once under a key does not run twice
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
}

pub(crate) async fn run(args: Run) -> CliResult<()> {
    let context = Context::new(&args.common)?;
    let face = context.face(&args.app, args.agent.as_deref()).await?;
    let describe = face.describe().await?.json()?;
    let operations = describe.get("operations").map(items).unwrap_or_default();
    let Some(operation) = operations.iter().find(|one| text(one, "/name") == args.operation) else {
        let known: Vec<_> = operations.iter().map(|one| text(one, "/name")).collect();
        let message = format!("{} has no operation {}. It has: {}.", args.app, args.operation, known.join(", "));
        return Err(CliError::local("unknown_operation", message));
    };
    let mut pairs = Vec::new();
    for param in &args.params {
        let (name, value) = param
            .split_once('=')
            .ok_or_else(|| CliError::Usage(format!("--p {param} has no value: write --p {param}=VALUE")))?;
        pairs.push((name.to_owned(), value.to_owned()));
    }
    let params = coerce::params(operation.get("params").unwrap_or(&Value::Null), &pairs)?;
    let key = args.idempotency_key.unwrap_or_else(new_idempotency_key);
    let answer = face.run(&args.operation, &Value::Object(params), Some(&key)).await?;
    let receipt = answer.header("innkeeper-receipt").map(str::to_owned);
    let document = answer.json()?;
    if let Some(receipt) = &receipt {
        context.out.say(format!("Receipt: {receipt}"));
    }
    if let Some(id) = job::job_of(&document).filter(|_| !args.no_wait) {
        for warning in document.get("warnings").map(items).unwrap_or_default() {
            context.out.say(format!("Warning: {} should be {}", text(warning, "/field"), text(warning, "/expected")));
        }
        context.out.say(format!("Job: {id}. Ctrl-C stops following it, not the job."));
        return job::follow(context.out, &face, id).await;
    }
    if document.get("items").is_some_and(|list| items(list).is_empty()) && !context.out.is_json() {
        context.out.say("No records.");
        return Ok(());
    }
    context.out.answer(&document, |document| match document.get("items") {
        Some(_) => items(document).iter().map(Value::to_string).collect::<Vec<_>>().join("\n"),
        None => serde_json::to_string_pretty(document).unwrap_or_default(),
    });
    Ok(())
}

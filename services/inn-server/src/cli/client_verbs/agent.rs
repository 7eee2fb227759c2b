//! `inn agent`: keys of one's own, and what can be done with them.

mod curl;
mod token;
mod work;

use clap::{Args, Subcommand};
use inn_client::AgentKey;
use serde_json::json;

use super::context::{Common, Context};
use super::error::{CliError, CliResult};
use super::out::{Out, text};
use super::profile::{AgentFile, Profile};

#[derive(Debug, Clone, Args)]
#[command(after_help = "From nothing to work:
  inn agent new bot
  inn agent register bot
  inn grant request --agent bot --app kanban --scope queue:summarise-board --wait
  inn agent work --agent bot --capability summarise-board -- ./agent.sh

A key never leaves this machine; its file is readable by you alone.")]
pub struct AgentArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    verb: AgentVerb,
}

#[derive(Debug, Clone, Subcommand)]
enum AgentVerb {
    /// Make a key pair; its thumbprint is the agent's id
    New {
        /// Name on this machine
        name: String,
    },
    /// Make the key known to the platform; gives no rights
    Register {
        /// Which agent of this machine
        name: Option<String>,
        /// The name it gives itself, shown as claimed; without it the name on this machine
        #[arg(long)]
        claimed_name: Option<String>,
    },
    /// Agents of this machine; with --granted, agents with grants in your tenant
    Ls {
        #[arg(long)]
        granted: bool,
    },
    /// Which kinds of work of which apps the agent may claim
    Link {
        #[arg(long, env = "INN_AGENT")]
        agent: Option<String>,
    },
    /// Take a token for a grant, or narrow one for a helper's key
    Token(token::TokenArgs),
    /// Send any HTTP request, signed
    Curl(curl::CurlArgs),
    /// Claim requests in a loop and let a program do them
    Work(work::WorkArgs),
}

pub(crate) async fn run(args: AgentArgs) -> CliResult<()> {
    match args.verb {
        AgentVerb::New { name } => new(&Profile::open()?, Out::new(args.common.json), &name),
        AgentVerb::Register { name, claimed_name } => register(&Context::new(&args.common)?, name, claimed_name).await,
        AgentVerb::Ls { granted: true } => {
            let context = Context::new(&args.common)?;
            let answer = context.person()?.agents().await?.json()?;
            let columns = [("id", "/id"), ("calls itself", "/name"), ("registered", "/registeredAt")];
            context.out.table(&answer, &columns, "No agent has a grant here.");
            Ok(())
        }
        AgentVerb::Ls { granted: false } => list(&Profile::open()?, Out::new(args.common.json)),
        AgentVerb::Link { agent } => link(&Context::new(&args.common)?, agent.as_deref()).await,
        AgentVerb::Token(token) => token::run(&Context::new(&args.common)?, token).await,
        AgentVerb::Curl(curl) => curl::run(args.common, curl).await,
        AgentVerb::Work(work) => work::run(&Context::new(&args.common)?, work).await,
    }
}

fn new(profile: &Profile, out: Out, name: &str) -> CliResult<()> {
    let file = AgentFile::new(name, &AgentKey::from_seed(rand::random()))?;
    if profile.has_agent(name) {
        let message = format!("There is an agent called {name} already; its key is kept. Choose another name.");
        return Err(CliError::local("conflict", message));
    }
    profile.keep_agent(&file)?;
    out.say(format!("Made a key for {name} in {}.", profile.folder().display()));
    let answer = json!({"name": file.name, "id": file.id, "publicKey": file.key()?.public().to_base64url()});
    out.answer(&answer, |_| file.id.clone());
    Ok(())
}

async fn register(context: &Context, name: Option<String>, claimed: Option<String>) -> CliResult<()> {
    let mut file = context.agent_file(name.as_deref())?;
    let agent = context.agent(&file)?;
    let answer = agent.register(claimed.as_deref().unwrap_or(&file.name)).await?.json()?;
    file.registered(context.client.platform());
    context.profile.keep_agent(&file)?;
    context.out.say(format!(
        "{} is registered at {}. That gives it no rights: ask with `inn grant request`.",
        file.name,
        context.client.platform()
    ));
    context.out.answer(&answer, |answer| text(answer, "/id"));
    Ok(())
}

fn list(profile: &Profile, out: Out) -> CliResult<()> {
    let mut agents = Vec::new();
    for name in profile.agent_names()? {
        let file = profile.agent(Some(&name))?;
        agents.push(json!({"name": file.name, "id": file.id}));
    }
    let columns = [("name", "/name"), ("id", "/id")];
    out.table(&json!({"items": agents}), &columns, "No agents on this machine. `inn agent new NAME` makes one.");
    Ok(())
}

async fn link(context: &Context, agent: Option<&str>) -> CliResult<()> {
    let mut file = context.agent_file(agent)?;
    let agent = context.agent(&file)?;
    let mut items = Vec::new();
    for app in file.apps(context.client.platform()) {
        let outcome = match context.grant_for(&mut file, &agent, &app).await {
            Ok(grant) => agent.new_token(&grant).await.map_err(CliError::from),
            Err(error) => Err(error),
        };
        items.push(match outcome {
            Ok(token) => {
                let capabilities: Vec<&str> =
                    token.scopes.iter().filter_map(|scope| scope.strip_prefix("queue:")).collect();
                json!({"app": app, "grant": token.grant, "capabilities": capabilities, "scopes": token.scopes})
            }
            // An app that refuses is part of the answer; a platform that is away is not.
            Err(error @ CliError::Client(_)) if error.exit() != 1 => return Err(error),
            Err(error) => json!({"app": app, "grant": null, "capabilities": [], "why": error.text().lines().next()}),
        });
    }
    context.keep_tokens(&file, &agent);
    let columns = [("app", "/app"), ("may claim", "/capabilities"), ("grant", "/grant"), ("why not", "/why")];
    let empty = "It has asked for no grant here. `inn grant request --app APP --scope queue:CAPABILITY` does.";
    context.out.table(&json!({"items": items}), &columns, empty);
    Ok(())
}

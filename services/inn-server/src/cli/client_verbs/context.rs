//! What most verbs need: the platform, a way to speak, and somebody to be.

use clap::Args;
use inn_client::{Agent, AppFace, Client, Person};
use serde_json::Value;

use super::error::{CliError, CliResult};
use super::out::Out;
use super::profile::{AgentFile, Profile};

/// Options of every verb that talks to a platform.
#[derive(Debug, Clone, Args)]
pub(crate) struct Common {
    /// Address of the platform; without it the one of the last sign-in
    #[arg(long, env = "INN_URL", value_name = "URL", global = true)]
    pub(crate) url: Option<String>,
    /// Answer with JSON on standard output
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) out: Out,
    pub(crate) profile: Profile,
}

impl Context {
    pub(crate) fn new(common: &Common) -> CliResult<Self> {
        let profile = Profile::open()?;
        let url = match common.url.clone().filter(|url| !url.is_empty()) {
            Some(url) => url,
            None => profile.last_platform()?.ok_or_else(|| {
                CliError::Usage(
                    "which platform? Name it with --url http://localhost:8090 or INN_URL, or sign in first (`inn login`)".to_owned(),
                )
            })?,
        };
        Ok(Self { client: Client::new(&url)?, out: Out::new(common.json), profile })
    }

    /// The person this machine is signed in as.
    pub(crate) fn person(&self) -> CliResult<Person> {
        let platform = self.client.platform();
        let token = self.profile.session(platform)?.ok_or_else(|| {
            CliError::local(
                "unauthenticated",
                format!("This machine is not signed in at {platform}. Run `inn login --url {platform}`."),
            )
        })?;
        Ok(self.client.person(&token))
    }

    /// One of this machine's agents: the named one, or the only one there is.
    pub(crate) fn agent_file(&self, name: Option<&str>) -> CliResult<AgentFile> {
        self.profile.agent(name)
    }

    /// An agent with the tokens it has kept.
    pub(crate) fn agent(&self, file: &AgentFile) -> CliResult<Agent> {
        let tokens = self.profile.tokens(&file.name, self.client.platform())?;
        Ok(self.client.agent(file.key()?).with_tokens(tokens))
    }

    /// Keeps the tokens for the next process. Not being able to only costs a call, so it is no error.
    pub(crate) fn keep_tokens(&self, file: &AgentFile, agent: &Agent) {
        if let Err(error) = self.profile.keep_tokens(&file.name, self.client.platform(), agent.tokens()) {
            self.out.say(format!("inn: the agent's tokens could not be kept: {}", error.text()));
        }
    }

    /// An app, as the person or as one of this machine's agents.
    pub(crate) async fn face(&self, slug: &str, agent: Option<&str>) -> CliResult<AppFace> {
        let Some(name) = agent else { return Ok(self.person()?.app(slug)) };
        let mut file = self.agent_file(Some(name))?;
        let agent = self.agent(&file)?;
        let grant = self.grant_for(&mut file, &agent, slug).await?;
        agent.token(&grant).await?;
        self.keep_tokens(&file, &agent);
        Ok(agent.app(slug, &grant))
    }

    /// The grant an agent has on an app: the newest of its own requests that was approved.
    pub(crate) async fn grant_for(&self, file: &mut AgentFile, agent: &Agent, slug: &str) -> CliResult<String> {
        let platform = self.client.platform().to_owned();
        let mut waiting = None;
        let mut ended = None;
        for asked in file.asked(&platform, slug) {
            if let Some(grant) = asked.grant {
                return Ok(grant);
            }
            let answer = agent.grant_request(&asked.id).await?.json()?;
            let status = answer.get("status").and_then(Value::as_str).unwrap_or_default();
            match answer.get("grant").and_then(grant_id) {
                Some(grant) => {
                    file.granted(&platform, &asked.id, &grant);
                    self.profile.keep_agent(file)?;
                    return Ok(grant);
                }
                None if status == "pending" => waiting = waiting.or(Some(asked.id)),
                None => ended = ended.or(Some(format!("{} was {status}", asked.id))),
            }
        }
        let name = &file.name;
        Err(CliError::local(
            "no_grant",
            match (waiting, ended) {
                (Some(id), _) => format!(
                    "The person has not decided on {id} yet. `inn grant approve {id} --all` does, in the person's name."
                ),
                (None, Some(ended)) => format!(
                    "The agent {name} has no grant on {slug}: {ended}. Ask again with `inn grant request --agent {name} --app {slug} --scope …`."
                ),
                (None, None) => format!(
                    "The agent {name} has asked for no grant on {slug}. Ask with `inn grant request --agent {name} --app {slug} --scope …`."
                ),
            },
        ))
    }
}

/// A grant's id, whether the answer has the id or the grant.
fn grant_id(value: &Value) -> Option<String> {
    value.as_str().or_else(|| value.get("id").and_then(Value::as_str)).map(str::to_owned)
}

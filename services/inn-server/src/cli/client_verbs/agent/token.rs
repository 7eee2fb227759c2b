//! `inn agent token`

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta};
use clap::Args;
use inn_protocol::AgentId;
use inn_protocol::scope::Scope;
use serde_json::json;

use super::super::context::Context;
use super::super::error::{CliError, CliResult};

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  inn agent token --agent bot --app kanban
  inn agent token --agent bot --app kanban --delegate helper --scope data:cards:read --minutes 5 > helper.json
  inn agent curl --agent helper --handed-over helper.json --app kanban /api/collections/cards/records

A token is no use without the key that signs with it. One handed over to a helper is narrower, ends sooner, and works
only with the helper's own key.")]
pub(super) struct TokenArgs {
    #[arg(long, env = "INN_AGENT")]
    agent: Option<String>,
    /// The app; the agent's grant on it is used
    #[arg(long, required_unless_present = "grant")]
    app: Option<String>,
    /// Or the grant itself
    #[arg(long, value_name = "grt_…")]
    grant: Option<String>,
    /// Narrow it and hand it over to this helper: an agent of this machine, or an id
    #[arg(long, value_name = "HELPER")]
    delegate: Option<String>,
    /// With --delegate: keep only this scope (repeat it, or separate with commas)
    #[arg(long = "scope", value_name = "SCOPE", value_delimiter = ',', requires = "delegate")]
    scopes: Vec<Scope>,
    /// With --delegate: minutes until it ends
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=15))]
    minutes: u32,
}

pub(super) async fn run(context: &Context, args: TokenArgs) -> CliResult<()> {
    let mut file = context.agent_file(args.agent.as_deref())?;
    let agent = context.agent(&file)?;
    let grant = match (args.grant, args.app) {
        (Some(grant), _) => grant,
        (None, Some(app)) => context.grant_for(&mut file, &agent, &app).await?,
        (None, None) => return Err(CliError::Usage("a token for what? Name --app or --grant".to_owned())),
    };
    let token = agent.new_token(&grant).await?;
    context.keep_tokens(&file, &agent);
    let Some(helper) = args.delegate else {
        let answer = serde_json::to_value(&token).unwrap_or_default();
        context.out.say(format!("Good until {} for {}.", token.expires_at, token.scopes.join(", ")));
        context.out.answer(&answer, |_| token.token.clone());
        return Ok(());
    };
    let helper = helper_id(context, &helper)?;
    let ends = context.client.now() + TimeDelta::minutes(i64::from(args.minutes)).num_seconds();
    let ends = DateTime::from_timestamp(ends, 0).unwrap_or(token.expires_at).min(token.expires_at);
    let scopes = (!args.scopes.is_empty()).then(|| args.scopes.into_iter().collect::<BTreeSet<_>>());
    let (narrow, delegation) = agent.delegate(&token.token, &helper, scopes, ends)?;
    context.out.say(format!("Good until {ends}, signed by {helper} only."));
    context.out.data(&json!({
        "token": narrow,
        "delegation": delegation,
        "helper": helper,
        "grant": grant,
        "expiresAt": ends,
    }));
    Ok(())
}

fn helper_id(context: &Context, helper: &str) -> CliResult<AgentId> {
    let id = match context.profile.agent(Some(helper)) {
        Ok(file) => file.id,
        Err(_) => helper.to_owned(),
    };
    AgentId::parse(&id).ok_or_else(|| {
        CliError::Usage(format!("`{helper}` is neither an agent of this machine nor an agent's id of 43 characters"))
    })
}

//! `inn grant`

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::context::{Common, Context};
use super::error::{CliError, CliResult};
use super::out::{Out, items, text};
use super::secret;

/// How often a waiting agent looks whether its person has decided.
const LOOK_EVERY: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Args)]
#[command(after_help = "The way of a grant:
  inn grant request --agent bot --app kanban --scope data:cards:read --scope queue:summarise-board --wait
  inn grant approve grq_… --scope data:cards:read          the person, after looking at it
  inn grant revoke grt_…                                   and it is over

Scopes: op:<operation>, data:<entity>:read, data:<entity>:write, queue:<capability>.
`inn app show APP` lists those of an app in sentences.")]
pub struct GrantArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    verb: GrantVerb,
}

#[derive(Debug, Clone, Subcommand)]
enum GrantVerb {
    /// An agent of this machine asks for a grant; prints the link and the code for its person
    Request(RequestGrant),
    /// Grants; with --pending, requests that wait for a decision
    Ls {
        /// Requests that wait for a decision
        #[arg(long)]
        pending: bool,
        /// Only this agent's (its id, or its name on this machine)
        #[arg(long)]
        agent: Option<String>,
    },
    /// One grant (grt_…) or grant request (grq_…) in sentences
    Show { id: String },
    /// Consent to all or part of a request; asks for your password
    Approve(Approve),
    /// Say no to a request
    Refuse {
        /// grq_…
        id: String,
    },
    /// Revoke a grant; prints what that stopped
    Revoke {
        /// grt_…
        id: String,
    },
    /// Why a call is or is not allowed, leg by leg
    Explain(Explain),
}

#[derive(Debug, Clone, Args)]
struct RequestGrant {
    /// Which agent of this machine asks
    #[arg(long, env = "INN_AGENT")]
    agent: Option<String>,
    #[arg(long)]
    app: String,
    /// A scope (repeat it, or separate with commas)
    #[arg(long = "scope", value_name = "SCOPE", required = true, value_delimiter = ',')]
    scopes: Vec<String>,
    /// Why, in a sentence for the person
    #[arg(long, default_value = "")]
    reason: String,
    /// Wait until the person has decided
    #[arg(long)]
    wait: bool,
}

#[derive(Debug, Clone, Args)]
struct Approve {
    /// grq_…
    id: String,
    /// Consent to this scope only (repeat it, or separate with commas)
    #[arg(long = "scope", value_name = "SCOPE", value_delimiter = ',', conflicts_with = "all")]
    scopes: Vec<String>,
    /// Consent to everything that was asked for
    #[arg(long)]
    all: bool,
    /// The agent may also claim requests of other members and of the app's users
    #[arg(long)]
    others: bool,
    /// The agent may use its token without signing; less safe
    #[arg(long)]
    plain_token: bool,
    /// The record of the app's users the agent acts as, for apps with their own sign-in; only owners name one
    #[arg(long, value_name = "ID", conflicts_with = "app_token_file")]
    app_record: Option<String>,
    /// File whose first line is a token of your own sign-in to the app: the agent acts as you there
    #[arg(long, value_name = "FILE")]
    app_token_file: Option<PathBuf>,
    /// The short code the agent showed; checked before anything is granted
    #[arg(long)]
    code: Option<String>,
    /// File whose first line is your password
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  inn grant explain --app kanban --action records.create --entity cards --grant grt_…
  inn grant explain --app kanban --action operations.run --operation cards.move")]
struct Explain {
    #[arg(long)]
    app: String,
    /// As the register names it: records.list, records.create, operations.run, requests.ask …
    #[arg(long)]
    action: String,
    #[arg(long)]
    entity: Option<String>,
    #[arg(long)]
    operation: Option<String>,
    #[arg(long)]
    capability: Option<String>,
    /// Ask for this grant's agent instead of yourself
    #[arg(long)]
    grant: Option<String>,
}

pub(crate) async fn run(args: GrantArgs) -> CliResult<()> {
    let context = Context::new(&args.common)?;
    let out = context.out;
    match args.verb {
        GrantVerb::Request(args) => request(&context, args).await?,
        GrantVerb::Ls { pending: true, agent } => {
            let mut answer = context.person()?.grant_requests().await?.json()?;
            if let Some(agent) = agent {
                let id = agent_id(&context, &agent);
                if let Some(Value::Array(list)) = answer.get_mut("items") {
                    list.retain(|one| text(one, "/agent") == id);
                }
            }
            let columns = [
                ("id", "/id"),
                ("app", "/appSlug"),
                ("agent calls itself", "/agentName"),
                ("code", "/code"),
                ("asks for", "/asksFor"),
            ];
            if !out.is_json() {
                summarise(&mut answer);
            }
            out.table(&answer, &columns, "Nothing waits for a decision.");
        }
        GrantVerb::Ls { pending: false, agent } => {
            let agent = agent.map(|agent| agent_id(&context, &agent));
            let answer = context.person()?.grants(agent.as_deref()).await?.json()?;
            // What it allows takes more than a line: `inn grant show` says it in sentences.
            let columns = [
                ("id", "/id"),
                ("app", "/appSlug"),
                ("agent calls itself", "/agentName"),
                ("for", "/userEmail"),
                ("revoked", "/revokedAt"),
            ];
            out.table(&answer, &columns, "No grants.");
        }
        GrantVerb::Show { id } => {
            let person = context.person()?;
            let answer =
                if id.starts_with("grq_") { person.grant_request(&id).await? } else { person.grant(&id).await? };
            out.answer(&answer.json()?, show);
        }
        GrantVerb::Approve(args) => approve(&context, args).await?,
        GrantVerb::Refuse { id } => {
            let answer = context.person()?.refuse(&id).await?.json()?;
            out.answer(&answer, |_| format!("Refused {id}."));
        }
        GrantVerb::Revoke { id } => {
            let answer = context.person()?.revoke(&id).await?.json()?;
            out.answer(&answer, |answer| {
                format!(
                    "Revoked {id} at {}. Tokens stopped: {}. Claims stopped: {} (their requests are back in the queue).",
                    text(answer, "/revokedAt"),
                    text(answer, "/tokensEnded"),
                    text(answer, "/claimsFenced"),
                )
            });
        }
        GrantVerb::Explain(args) => explain(&context, &args).await?,
    }
    Ok(())
}

/// An agent's id from its name on this machine; anything else is taken for an id.
fn agent_id(context: &Context, agent: &str) -> String {
    context.profile.agent(Some(agent)).map_or_else(|_| agent.to_owned(), |file| file.id)
}

/// What a request asks for takes more than a line: `inn grant show` says it in sentences.
fn summarise(answer: &mut Value) {
    for request in answer.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten() {
        let count = request.get("scopes").and_then(Value::as_array).map_or(0, Vec::len);
        let word = if count == 1 { "1 scope".to_owned() } else { format!("{count} scopes") };
        if let Some(request) = request.as_object_mut() {
            request.insert("asksFor".to_owned(), word.into());
        }
    }
}

async fn request(context: &Context, args: RequestGrant) -> CliResult<()> {
    let (platform, out) = (context.client.platform().to_owned(), context.out);
    for scope in &args.scopes {
        if scope.parse::<inn_protocol::scope::Scope>().is_err() {
            let what = format!(
                "`{scope}` is no scope: op:<operation>, data:<entity>:read, data:<entity>:write or queue:<capability>"
            );
            return Err(CliError::Usage(what));
        }
    }
    let mut file = context.agent_file(args.agent.as_deref())?;
    let agent = context.agent(&file)?;
    if !file.is_registered(&platform) {
        agent.register(&file.name).await?;
        file.registered(&platform);
        context.profile.keep_agent(&file)?;
    }
    let answer = agent.request_grant(&args.app, &args.scopes, &args.reason).await?.json()?;
    let id = text(&answer, "/id");
    file.add_asked(&platform, &id, &args.app);
    context.profile.keep_agent(&file)?;
    out.say(format!(
        "Show this to the person {} is to act for. The code must be the same on both sides.\n  link: {}\n  code: {}\n  or:   inn grant approve {id} --all   (or --scope … for a part)",
        file.name,
        text(&answer, "/link"),
        text(&answer, "/code"),
    ));
    if !args.wait {
        out.answer(&answer, |_| id);
        return Ok(());
    }
    loop {
        let asked = agent.grant_request(&id).await?.json()?;
        match text(&asked, "/status").as_str() {
            "pending" => tokio::time::sleep(LOOK_EVERY).await,
            "approved" => {
                let grant = asked
                    .get("grant")
                    .map_or_else(String::new, |grant| grant.as_str().map_or_else(|| text(grant, "/id"), str::to_owned));
                file.granted(&platform, &id, &grant);
                context.profile.keep_agent(&file)?;
                out.answer(&asked, |_| grant);
                return Ok(());
            }
            other => {
                let message = format!("The grant request {id} was {other}.");
                return Err(CliError::local("not_granted", message));
            }
        }
    }
}

async fn approve(context: &Context, args: Approve) -> CliResult<()> {
    let (person, out) = (context.person()?, context.out);
    let asked = person.grant_request(&args.id).await?.json()?;
    out.say(show(&asked));
    if let Some(code) = &args.code
        && !code.eq_ignore_ascii_case(&text(&asked, "/code"))
    {
        let message =
            format!("The code of {} is not {code}: this is another agent's request. Nothing was granted.", args.id);
        return Err(CliError::local("wrong_code", message));
    }
    if args.scopes.is_empty() && !args.all {
        let what = "say what to consent to: --scope SCOPE for some of it, --all for everything listed above";
        return Err(CliError::Usage(what.to_owned()));
    }
    let password = secret::password(args.password_file.as_deref(), "Your password, to consent")?;
    let app_token = args.app_token_file.as_deref().map(secret::token).transpose()?;
    let mut consent = json!({"password": password});
    if let Some(consent) = consent.as_object_mut() {
        if !args.scopes.is_empty() {
            consent.insert("scopes".to_owned(), json!(args.scopes));
        }
        for (name, wanted) in [("othersRequests", args.others), ("plainToken", args.plain_token)] {
            if wanted {
                consent.insert(name.to_owned(), true.into());
            }
        }
        if let Some(record) = args.app_record {
            consent.insert("appRecord".to_owned(), record.into());
        }
        if let Some(token) = app_token {
            consent.insert("appToken".to_owned(), token.into());
        }
    }
    let answer = person.approve(&args.id, &consent).await?.json()?;
    let id = if answer.get("id").is_some() { "/id" } else { "/grant/id" };
    out.answer(&answer, |answer| text(answer, id));
    out.say("Granted. `inn grant revoke` ends it at any moment.");
    Ok(())
}

async fn explain(context: &Context, args: &Explain) -> CliResult<()> {
    let mut question = json!({"app": args.app, "action": args.action});
    if let Some(question) = question.as_object_mut() {
        for (name, value) in [
            ("entity", &args.entity),
            ("operation", &args.operation),
            ("capability", &args.capability),
            ("grant", &args.grant),
        ] {
            if let Some(value) = value {
                question.insert(name.to_owned(), value.clone().into());
            }
        }
    }
    let answer = context.person()?.explain(&question).await?.json()?;
    context.out.answer(&answer, |answer| {
        let allowed = answer.get("allowed").and_then(Value::as_bool).unwrap_or_default();
        let mut lines = vec![if allowed { "Allowed." } else { "Not allowed." }.to_owned()];
        for leg in answer.get("legs").map(items).unwrap_or_default() {
            let ok = leg.get("ok").and_then(Value::as_bool).unwrap_or_default();
            lines.push(format!(
                "  {:5}  {}  {}",
                text(leg, "/leg"),
                if ok { "yes" } else { "no " },
                text(leg, "/reason")
            ));
        }
        lines.join("\n")
    });
    Ok(())
}

fn show(grant: &Value) -> String {
    let status = match text(grant, "/status") {
        status if status.is_empty() => String::new(),
        status => format!(", {status}"),
    };
    let mut lines = vec![format!(
        "{}{status}: the agent that calls itself \"{}\" on {}",
        text(grant, "/id"),
        Out::one_line(&text(grant, "/agentName")),
        text(grant, "/appSlug"),
    )];
    for (name, pointer) in [
        ("agent id", "/agent"),
        ("for", "/userEmail"),
        ("code", "/code"),
        ("reason it gives", "/reason"),
        ("revoked", "/revokedAt"),
        ("grant", "/grant"),
        ("until", "/expiresAt"),
    ] {
        let value = Out::one_line(&text(grant, pointer));
        if !value.is_empty() {
            lines.push(format!("  {name}: {value}"));
        }
    }
    // Sentences are there as long as the app is.
    let scopes = grant.get("sentences").or_else(|| grant.get("scopes"));
    for scope in scopes.map(items).unwrap_or_default() {
        let name = scope.as_str().map_or_else(|| text(scope, "/scope"), str::to_owned);
        lines.push(format!("  - {name}  {}", text(scope, "/sentence")).trim_end().to_owned());
    }
    for (pointer, words) in [
        ("/othersRequests", "may claim requests of other people too"),
        ("/plainToken", "may use a token without signing (less safe)"),
    ] {
        if grant.pointer(pointer) == Some(&Value::Bool(true)) {
            lines.push(format!("  - {words}"));
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_of_pending_requests_counts_scopes_instead_of_printing_them() {
        let mut answer = json!({"items": [{"scopes": ["op:a"]}, {"scopes": ["op:a", "op:b"]}, {}]});
        summarise(&mut answer);
        let told: Vec<&str> =
            answer["items"].as_array().unwrap().iter().map(|item| item["asksFor"].as_str().unwrap()).collect();
        assert_eq!(told, ["1 scope", "2 scopes", "0 scopes"]);
    }
}

//! `inn agent curl`: any HTTP request, signed.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use inn_client::{Agent, Answer, Client, Outgoing, Papers};
use reqwest::Method;
use serde_json::Value;
use url::Url;

use super::super::context::{Common, Context};
use super::super::error::{CliError, CliResult};
use super::super::files;
use super::super::out::{clean, text};

/// Headers the signature is made of: they are set here and nowhere else.
const OWN_HEADERS: [&str; 8] = [
    "authorization",
    "signature",
    "signature-input",
    "content-digest",
    "innkeeper-token-digest",
    "innkeeper-delegation",
    "host",
    "content-length",
];

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  inn agent curl --app kanban '/api/collections/cards/records?perPage=5'
  inn agent curl http://localhost:8090/apps/kanban/api/_a2app/describe
  inn agent curl --app kanban /api/collections/cards/records -d '{\"title\":\"Eat chicken\",\"list\":\"…\"}'
  inn agent curl /v1/requests/claim -d '{\"max\":1}'

The body goes to standard output, nothing else does; the exit code is 1 when the call was refused. Below an app the
agent's token for it is shown too; on /v1 the key alone signs.")]
pub(super) struct CurlArgs {
    /// An address on the platform, or a path (below the app, with --app)
    target: String,
    #[arg(long, env = "INN_AGENT")]
    agent: Option<String>,
    /// The app the path is below
    #[arg(long)]
    app: Option<String>,
    /// The grant to act under, when it is not the newest one on the app
    #[arg(long, value_name = "grt_…")]
    grant: Option<String>,
    /// HTTP method; POST when there is a body, else GET
    #[arg(short = 'X', long, value_name = "METHOD")]
    request: Option<String>,
    /// Body; @FILE reads a file, @- standard input. JSON unless -H says otherwise
    #[arg(short, long, value_name = "BODY")]
    data: Option<String>,
    /// A header, as "Name: value" (repeat it)
    #[arg(short = 'H', long = "header", value_name = "HEADER")]
    headers: Vec<String>,
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// The claim a write is made under; `inn agent work` sets it for the programs it runs
    #[arg(long, env = "INN_CLAIM", value_name = "req_…;EPOCH")]
    claim: Option<String>,
    /// As a helper, with what `inn agent token --delegate` printed
    #[arg(long, value_name = "FILE", conflicts_with = "grant")]
    handed_over: Option<PathBuf>,
    /// Show status and headers on standard error
    #[arg(short, long)]
    include: bool,
    /// Longest time to wait for the answer, in seconds
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u64).range(1..=3600))]
    max_time: u64,
}

pub(super) async fn run(mut common: Common, args: CurlArgs) -> CliResult<()> {
    if common.url.is_none() && !is_app_host(&args.target) {
        common.url = origin(&args.target);
    }
    let context = Context::new(&common)?;
    let (path, slug) = place(&context.client, &args.target, args.app.as_deref())?;
    let outgoing = outgoing(&args, path)?;
    let mut file = context.agent_file(args.agent.as_deref())?;
    let agent = context.agent(&file)?;
    let way = match (&args.handed_over, args.grant, &slug) {
        (Some(file), _, _) => handed_over(&agent, file)?,
        (None, Some(grant), _) => Way::Grant(grant),
        (None, None, Some(slug)) => Way::Grant(context.grant_for(&mut file, &agent, slug).await?),
        (None, None, None) => Way::Papers(Box::new(agent.key_papers())),
    };
    let answer = send(&agent, &way, &outgoing).await?;
    context.keep_tokens(&file, &agent);
    if args.include {
        let mut lines = vec![format!("{} {}", answer.status, outgoing_name(&answer))];
        lines.extend(
            answer.headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap_or("(binary)"))),
        );
        context.out.say(clean(&lines.join("\n")));
    }
    context.out.raw(&answer.body);
    context.out.end_line(&answer.body);
    if answer.is_success() {
        return Ok(());
    }
    match answer.checked() {
        Err(error) => context.out.say(format!("inn: {}", clean(&CliError::from(error).text()))),
        Ok(_) => context.out.say("inn: the call was not done"),
    }
    Err(CliError::Said)
}

fn outgoing_name(answer: &Answer) -> String {
    clean(&answer.url)
}

enum Way {
    Grant(String),
    Papers(Box<Papers>),
}

/// Sends it, and once more when it was refused for its time or its token before it had any effect.
async fn send(agent: &Agent, way: &Way, outgoing: &Outgoing) -> CliResult<Answer> {
    let papers = async || match way {
        Way::Grant(grant) => agent.papers(grant).await,
        Way::Papers(papers) => Ok((**papers).clone()),
    };
    let answer = agent.client().call_once(outgoing, &papers().await?).await?;
    if answer.status != 401 {
        return Ok(answer);
    }
    let code = text(&answer.json().unwrap_or(Value::Null), "/code");
    match code.as_str() {
        "signature_expired" => {}
        "token_expired" | "token_revoked" => match way {
            Way::Grant(grant) => agent.tokens().forget(grant),
            Way::Papers(_) => return Ok(answer),
        },
        _ => return Ok(answer),
    }
    match papers().await {
        Ok(papers) => Ok(agent.client().call_once(outgoing, &papers).await?),
        // The first refusal is about the call that was asked for.
        Err(_) => Ok(answer),
    }
}

fn handed_over(agent: &Agent, file: &std::path::Path) -> CliResult<Way> {
    let none = || CliError::local("local_file", format!("There is no file {}.", file.display()));
    let given: Value = serde_json::from_str(&files::read(file)?.ok_or_else(none)?)
        .map_err(|error| CliError::local("local_file", format!("{} is not JSON: {error}.", file.display())))?;
    let (token, delegation) = (text(&given, "/token"), text(&given, "/delegation"));
    if token.is_empty() || delegation.is_empty() {
        let message =
            format!("{} lacks token or delegation: `inn agent token --delegate` writes both.", file.display());
        return Err(CliError::local("local_file", message));
    }
    Ok(Way::Papers(Box::new(agent.helper_papers(&token, &delegation))))
}

fn outgoing(args: &CurlArgs, path: String) -> CliResult<Outgoing> {
    let body = args.data.as_deref().map(body).transpose()?;
    let method = match &args.request {
        Some(method) => Method::from_bytes(method.to_ascii_uppercase().as_bytes())
            .map_err(|_| CliError::Usage(format!("`{method}` is no HTTP method")))?,
        None if body.is_some() => Method::POST,
        None => Method::GET,
    };
    let mut outgoing = Outgoing::new(method, path).timeout(Duration::from_secs(args.max_time));
    if let Some(claim) = &args.claim {
        outgoing = outgoing.header("innkeeper-claim", claim)?;
    }
    let mut has_type = false;
    for header in &args.headers {
        let (name, value) = header
            .split_once(':')
            .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim()))
            .ok_or_else(|| CliError::Usage(format!("`{header}` is no header: write \"Name: value\"")))?;
        if OWN_HEADERS.contains(&name.as_str()) {
            return Err(CliError::Usage(format!(
                "the header {name} belongs to the signature and is set by inn itself"
            )));
        }
        if name == "idempotency-key" {
            outgoing = outgoing.key(value);
            continue;
        }
        has_type |= name == "content-type";
        outgoing = outgoing.header(&name, value)?;
    }
    if let Some(body) = body {
        if !has_type {
            outgoing = outgoing.header("content-type", "application/json")?;
        }
        outgoing = outgoing.raw_body(body);
    }
    Ok(match &args.idempotency_key {
        Some(key) => outgoing.key(key.clone()),
        None => outgoing,
    })
}

fn body(given: &str) -> CliResult<Bytes> {
    match given.strip_prefix('@') {
        None => Ok(Bytes::from(given.to_owned())),
        Some("-") => {
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut std::io::stdin().lock(), &mut bytes)
                .map_err(|error| CliError::io("standard input cannot be read", &error))?;
            Ok(Bytes::from(bytes))
        }
        Some(file) => std::fs::read(file)
            .map(Bytes::from)
            .map_err(|error| CliError::io(format!("the body's file {file} cannot be read"), &error)),
    }
}

/// Path and query below the platform, and the app they are about.
fn place(client: &Client, target: &str, app: Option<&str>) -> CliResult<(String, Option<String>)> {
    let path = if target.starts_with('/') {
        match app {
            Some(app) if !target.starts_with("/apps/") => format!("/apps/{}{target}", inn_client::segment(app)),
            _ => target.to_owned(),
        }
    } else {
        below_platform(client.platform(), target)?
    };
    // Parsed as it will be sent, so that the path that is signed and the app that is named are the same.
    let sent = Url::parse(&format!("{}{path}", client.platform()))
        .map_err(|error| CliError::Usage(format!("`{target}` is no address: {error}")))?;
    let path = sent.query().map_or_else(|| sent.path().to_owned(), |query| format!("{}?{query}", sent.path()));
    let slug =
        sent.path().strip_prefix("/apps/").and_then(|rest| rest.split('/').next()).filter(|slug| !slug.is_empty());
    let slug = slug.map(str::to_owned).or_else(|| app.map(str::to_owned));
    Ok((path, slug))
}

/// The path of an absolute address. An app's own origin is taken to the app's path on the platform, since many resolvers
/// do not know `*.localhost`.
fn below_platform(platform: &str, target: &str) -> CliResult<String> {
    let elsewhere = || {
        CliError::Usage(format!(
            "{target} is not on {platform}: a signature is for one platform. Name another one with --url"
        ))
    };
    let url = Url::parse(target).map_err(|error| CliError::Usage(format!("`{target}` is no address: {error}")))?;
    let own = Url::parse(platform).map_err(|_| elsewhere())?;
    if url.scheme() != own.scheme() || url.port_or_known_default() != own.port_or_known_default() {
        return Err(elsewhere());
    }
    let rest = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
    let (host, own_host) = (url.host_str().unwrap_or_default(), own.host_str().unwrap_or_default());
    if host == own_host || (is_loopback(host) && is_loopback(own_host)) {
        return Ok(rest);
    }
    let apps_domain = if is_loopback(own_host) { "localhost" } else { own_host };
    match host.strip_suffix(apps_domain).and_then(|slug| slug.strip_suffix('.')) {
        Some(slug) if !slug.is_empty() && !slug.contains('.') => Ok(format!("/apps/{slug}{rest}")),
        _ => Err(elsewhere()),
    }
}

fn is_loopback(host: &str) -> bool {
    matches!(host, "localhost" | "127.0.0.1" | "[::1]")
}

fn is_app_host(target: &str) -> bool {
    Url::parse(target).is_ok_and(|url| url.host_str().is_some_and(|host| host.ends_with(".localhost")))
}

fn origin(target: &str) -> Option<String> {
    let url = Url::parse(target).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    Some(url.origin().ascii_serialization())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_an_address_ends_at_the_platforms_face() {
        let client = Client::new("http://localhost:8090").unwrap();
        let slug = |path: &str| Ok::<_, ()>((path.to_owned(), Some("kanban".to_owned())));
        for (target, app, expected) in [
            ("/api/x?a=1", Some("kanban"), slug("/apps/kanban/api/x?a=1")),
            ("/apps/kanban/api/x", None, slug("/apps/kanban/api/x")),
            ("/apps/kanban/api/x", Some("other"), slug("/apps/kanban/api/x")),
            ("http://localhost:8090/apps/kanban/api/x", None, slug("/apps/kanban/api/x")),
            ("http://127.0.0.1:8090/apps/kanban/api/x", None, slug("/apps/kanban/api/x")),
            ("http://kanban.localhost:8090/api/x?f=a%20b", None, slug("/apps/kanban/api/x?f=a%20b")),
            ("/v1/requests/claim", None, Ok(("/v1/requests/claim".to_owned(), None))),
        ] {
            assert_eq!(place(&client, target, app).map_err(drop), expected, "{target}");
        }
        for target in [
            "http://evil.example/x",
            "http://localhost:9999/x",
            "https://localhost:8090/x",
            "ftp://localhost:8090/",
            "x",
        ] {
            assert!(matches!(place(&client, target, None), Err(CliError::Usage(_))), "{target}");
        }
    }

    #[test]
    fn dots_in_a_path_cannot_lead_to_another_app() {
        let client = Client::new("http://localhost:8090").unwrap();
        let (path, slug) = place(&client, "/apps/kanban/../other/api/x", None).unwrap();
        assert_eq!((path.as_str(), slug.as_deref()), ("/apps/other/api/x", Some("other")));
    }
}

//! `inn deploy` and `inn app`

use std::path::PathBuf;

use bytes::Bytes;
use clap::{Args, Subcommand};
use serde_json::Value;

use super::bundle;
use super::context::{Common, Context};
use super::error::CliResult;
use super::out::{Out, items, text};

/// Deploys a bundle or an app's folder; an app that is there gets a new release
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  inn deploy ops/demo/kanban --slug kanban --capability summarise-board
  inn deploy kanban-1.0.0.agentapp --slug kanban --dry-run

A deploy is all or nothing: when it fails, the old release goes on serving. A change that loses data needs
--allow-destructive. A capability an app may ask agents for is only used after you consent to it with --capability.")]
pub struct Deploy {
    #[command(flatten)]
    pub(crate) common: Common,
    /// A bundle (.agentapp), the ZIP of a project, or a folder
    path: PathBuf,
    /// Name of the app on the platform; without it the id the app gives itself
    #[arg(long)]
    slug: Option<String>,
    /// Only say what would change
    #[arg(long)]
    dry_run: bool,
    /// Let it drop columns or collections that hold data
    #[arg(long)]
    allow_destructive: bool,
    /// Consent to a kind of work the app may ask agents for (repeat it, or separate with commas)
    #[arg(long = "capability", value_name = "NAME", value_delimiter = ',')]
    capabilities: Vec<String>,
}

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  inn app ls
  inn app show kanban
  inn app rollback kanban 3f5a…")]
pub struct AppArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    verb: AppVerb,
}

#[derive(Debug, Clone, Subcommand)]
enum AppVerb {
    /// Installed apps
    Ls,
    /// One app: address, scopes and capabilities in sentences
    Show { app: String },
    /// Releases of an app, failed ones with their reason
    Releases { app: String },
    /// Back to an earlier release, code and schema together
    Rollback {
        app: String,
        /// Digest of the release, as `inn app releases` prints it
        release: String,
    },
    /// A one-time address that opens the app signed in
    Open { app: String },
    /// Take an app out of service
    Rm { app: String },
}

pub(crate) async fn deploy(args: Deploy) -> CliResult<()> {
    let context = Context::new(&args.common)?;
    let person = context.person()?;
    let (bytes, opened) = bundle::open(&args.path)?;
    // What is wrong with the bundle itself is said here, before a byte is sent.
    let mut definition = inn_bundle::load(&opened, chrono::Utc::now())?;
    inn_rules::view::infer(&mut definition.model)?;
    let slug = args.slug.unwrap_or_else(|| slug_of(&opened.manifest.id));
    let capabilities = args.capabilities.join(",");
    let mut options = vec![("slug", slug.as_str())];
    for (name, wanted) in [("dryRun", args.dry_run), ("allowDestructive", args.allow_destructive)] {
        if wanted {
            options.push((name, "true"));
        }
    }
    if !capabilities.is_empty() {
        options.push(("capabilities", &capabilities));
    }
    context.out.say(format!(
        "Sending {} ({} bytes) to {} …",
        opened.manifest.id,
        bytes.len(),
        context.client.platform()
    ));
    let answer = person.deploy(Bytes::from(bytes), &options).await?.json()?;
    let done = |answer: &Value| {
        let flag = |name: &str| answer.get(name).and_then(Value::as_bool).unwrap_or_default();
        let changes = answer.get("changes").map(items).unwrap_or_default();
        let mut lines = vec![match (flag("dryRun"), flag("unchanged")) {
            (true, _) => format!("{slug} would become release {}:", text(answer, "/release")),
            (false, true) => format!("{slug} already is release {}; nothing changed.", text(answer, "/release")),
            (false, false) => format!("{slug} is release {}.", text(answer, "/release")),
        }];
        lines.extend(changes.iter().map(|change| format!("  {}", text(change, ""))));
        lines.push(format!("API: {}", context.client.app_url(&slug)));
        lines.join("\n")
    };
    if capabilities.is_empty() && !definition.capabilities.is_empty() {
        context.out.say("This app can ask agents for work once you consent, by deploying with --capability NAME or --capability '*':");
        for capability in &definition.capabilities {
            context.out.say(format!("  {}: {}", capability.name, capability.sentence));
        }
    }
    context.out.answer(&answer, done);
    Ok(())
}

/// A slug from the id an app gives itself: its last part, in the letters a host name may have.
fn slug_of(id: &str) -> String {
    let last = id.rsplit(['/', ':']).next().unwrap_or(id).to_ascii_lowercase();
    let mapped: String =
        last.chars().map(|c| if c.is_ascii_lowercase() || c.is_ascii_digit() { c } else { '-' }).collect();
    let short: String = mapped.trim_matches('-').chars().take(40).collect();
    let short = short.trim_matches('-');
    if short.is_empty() { "app".to_owned() } else { short.to_owned() }
}

pub(crate) async fn run(args: AppArgs) -> CliResult<()> {
    let context = Context::new(&args.common)?;
    let person = context.person()?;
    let out = context.out;
    match args.verb {
        AppVerb::Ls => {
            let answer = person.apps().await?.json()?;
            let columns = [
                ("slug", "/slug"),
                ("name", "/name"),
                ("version", "/version"),
                ("release", "/release"),
                ("deployed", "/deployedAt"),
            ];
            out.table(&answer, &columns, "No apps yet. `inn deploy DIR` brings one.");
        }
        AppVerb::Show { app } => {
            let answer = person.view_app(&app).await?.json()?;
            out.answer(&answer, show);
        }
        AppVerb::Releases { app } => {
            let answer = person.releases(&app).await?.json()?;
            releases(out, &answer);
        }
        AppVerb::Rollback { app, release } => {
            let answer = person.roll_back(&app, &release).await?.json()?;
            out.answer(&answer, |_| format!("{app} is back at release {release}."));
        }
        AppVerb::Open { app } => {
            let answer = person.hand_off(&app).await?.json()?;
            out.answer(&answer, |answer| text(answer, "/url"));
            out.say("The address works once, within a minute.");
        }
        AppVerb::Rm { app } => {
            let answer = person.remove_app(&app).await?.json()?;
            out.answer(&answer, |_| format!("{app} is out of service. Its name stays yours."));
        }
    }
    Ok(())
}

fn releases(out: Out, answer: &Value) {
    let columns = [
        ("release", "/release"),
        ("version", "/version"),
        ("active", "/active"),
        ("at", "/createdAt"),
        ("why it failed", "/failure"),
    ];
    out.table(answer, &columns, "No releases.");
}

fn show(app: &Value) -> String {
    let mut lines = vec![format!("{} ({} {})", text(app, "/slug"), text(app, "/name"), text(app, "/version"))];
    for (name, pointer) in [
        ("about", "/description"),
        ("release", "/release"),
        ("open at", "/origin"),
        ("API at", "/face"),
        ("sign-in", "/authMode"),
    ] {
        let value = text(app, pointer);
        if !value.is_empty() {
            lines.push(format!("  {name}: {value}"));
        }
    }
    let list = |name: &str| app.get(name).map(items).unwrap_or_default();
    lines.push("Scopes an agent can be granted:".to_owned());
    lines.extend(
        list("scopes").iter().map(|scope| format!("  {}  {}", text(scope, "/scope"), text(scope, "/sentence"))),
    );
    let capabilities = list("capabilities");
    if !capabilities.is_empty() {
        lines.push("Work it may ask agents for:".to_owned());
        lines.extend(capabilities.iter().map(|capability| {
            let consented = capability.get("consented").and_then(Value::as_bool).unwrap_or_default();
            let note = if consented { "" } else { " (not consented)" };
            format!("  {}  {}{note}", text(capability, "/name"), text(capability, "/sentence"))
        }));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::slug_of;

    #[test]
    fn a_slug_is_made_of_what_a_host_name_may_have() {
        for (id, slug) in [
            ("innkeeper-kanban", "innkeeper-kanban"),
            ("@me/My App", "my-app"),
            ("urn:app:Ledger_2", "ledger-2"),
            ("---", "app"),
            ("", "app"),
        ] {
            assert_eq!(slug_of(id), slug, "{id}");
        }
        let long = slug_of(&"a-".repeat(50));
        assert!(long.len() <= 40 && !long.ends_with('-'), "{long}");
    }
}

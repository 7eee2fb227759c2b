//! `inn login`, `logout`, `whoami`.

use std::path::PathBuf;

use clap::Args;
use inn_client::ClientError;
use serde_json::Value;

use super::context::{Common, Context};
use super::error::{CliError, CliResult};
use super::out::{items, text};
use super::secret;

/// Signs in with email and password and keeps the session on this machine
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  inn login --url http://localhost:8090
  inn login --url https://inn.example --email me@example.com --password-file ~/.inn-password

Without a terminal the password comes from --password-file, INN_PASSWORD_FILE or INN_PASSWORD.")]
pub struct Login {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Whom to sign in
    #[arg(long, env = "INN_EMAIL")]
    email: Option<String>,
    /// File whose first line is the password; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Tenant to work in, when you are a member of several
    #[arg(long, value_name = "SLUG")]
    tenant: Option<String>,
}

/// Ends the session and forgets it
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:
  inn logout --all      ends your sessions on every machine")]
pub struct Logout {
    #[command(flatten)]
    pub(crate) common: Common,
    /// End all your sessions, not only this one
    #[arg(long)]
    all: bool,
}

/// Says who this machine is signed in as, where, and in which tenant
#[derive(Debug, Clone, Args)]
pub struct Whoami {
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) async fn login(args: Login) -> CliResult<()> {
    let context = Context::new(&args.common)?;
    let email = match args.email {
        Some(email) => email,
        None => secret::line("Email")?,
    };
    let password = secret::password(args.password_file.as_deref(), "Password")?;
    let answer = context.client.sign_in(&email, &password, args.tenant.as_deref()).await?;
    let token = answer.get("token").and_then(Value::as_str).ok_or_else(|| missing(&context, "token"))?;
    context.profile.keep_session(context.client.platform(), &email, token)?;
    let session = answer.get("session").cloned().unwrap_or(Value::Null);
    context.out.say(format!(
        "Signed in at {} as {} ({} of {}).",
        context.client.platform(),
        text(&session, "/email"),
        text(&session, "/role"),
        text(&session, "/tenant/slug"),
    ));
    if context.out.is_json() {
        context.out.data(&session);
    }
    Ok(())
}

fn missing(context: &Context, what: &str) -> CliError {
    CliError::Client(ClientError::Protocol {
        url: context.client.platform().to_owned(),
        what: format!("the answer has no {what}"),
    })
}

pub(crate) async fn logout(args: Logout) -> CliResult<()> {
    let context = Context::new(&args.common)?;
    let ended = context.person()?.sign_out(args.all).await;
    // A session the platform does not know any more is as ended as can be.
    let answer = match ended {
        Err(error) if error.code() == Some("unauthenticated") => Value::Null,
        other => other?.json()?,
    };
    context.profile.forget_session(context.client.platform())?;
    context.out.say(format!("Signed out at {}.", context.client.platform()));
    if context.out.is_json() {
        context.out.data(&answer);
    }
    Ok(())
}

pub(crate) async fn whoami(args: Whoami) -> CliResult<()> {
    let context = Context::new(&args.common)?;
    let answer = context.person()?.session().await?.json()?;
    context.out.answer(&answer, |answer| {
        let tenants = answer.get("tenants").map(items).unwrap_or_default();
        let tenants: Vec<_> = tenants.iter().map(|tenant| text(tenant, "/slug")).collect();
        format!(
            "{} at {}, {} of {}; tenants: {}; until {}",
            text(answer, "/session/email"),
            context.client.platform(),
            text(answer, "/session/role"),
            text(answer, "/session/tenant/slug"),
            tenants.join(", "),
            text(answer, "/session/expiresAt"),
        )
    });
    Ok(())
}

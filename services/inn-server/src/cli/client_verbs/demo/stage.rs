//! Who plays, and where: an owner's session, a fresh app name, a folder for the agent's key.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use inn_client::{Answer, ClientError, Person};
use serde_json::Value;

use super::super::context::Context;
use super::super::error::{CliError, CliResult};
use super::super::out::text;
use super::super::profile::{AgentFile, Profile};
use super::super::secret;
use super::{broken, ensure};
use crate::up::demo::DEMO_APPS;

/// The worker of `ops/demo`, carried in the binary.
const AGENT_SCRIPT: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../ops/demo/agent.sh"));
/// The app the story is about.
const APP: &str = "kanban";
/// Name of the agent in its own folder.
pub(super) const AGENT: &str = "demo";

pub(super) struct Stage<'s> {
    pub(super) context: &'s Context,
    pub(super) owner: Person,
    /// The owner's password for consent, unless the session is fresh.
    pub(super) password: Option<String>,
    pub(super) slug: String,
    /// Configuration of the agent's own processes.
    pub(super) profile: Profile,
    pub(super) script: PathBuf,
    /// Removed with everything in it when the demo ends.
    folder: tempfile::TempDir,
}

impl<'s> Stage<'s> {
    pub(super) async fn open(context: &'s Context, email: Option<String>, file: Option<&Path>) -> CliResult<Self> {
        let (owner, password) = sign_in(context, email, file).await?;
        let failed = |error| CliError::io("a folder for the demo cannot be made", &error);
        let folder = tempfile::tempdir().map_err(failed)?;
        let script = folder.path().join("agent.sh");
        fs::write(&script, AGENT_SCRIPT).map_err(failed)?;
        fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).map_err(failed)?;
        let random: u32 = rand::random();
        Ok(Self {
            context,
            owner,
            password,
            slug: format!("demo-{random:08x}"),
            profile: Profile::at(folder.path().join("config")),
            script,
            folder,
        })
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The demo app as a bundle.
    pub(super) fn bundle() -> CliResult<(Vec<u8>, String)> {
        let app = DEMO_APPS.iter().find(|app| app.slug == APP);
        let app = app.ok_or_else(|| broken(format!("this binary carries no demo app called {APP}")))?;
        let (bytes, release) = app.pack()?;
        Ok((bytes, release.to_string()))
    }

    /// The agent with its key, and its file.
    pub(super) fn agent(&self) -> CliResult<(inn_client::Agent, AgentFile)> {
        let file = self.profile.agent(Some(AGENT))?;
        Ok((self.context.client.agent(file.key()?), file))
    }

    /// The receipt of a call, which must exist: its id and its sentence.
    pub(super) async fn receipt(&self, answer: &Answer) -> CliResult<(String, String)> {
        let call = answer.call().ok_or_else(|| broken(format!("{} named no call in its answer", answer.url)))?;
        let receipt = self.owner.receipt(call).await?.json()?;
        ensure(text(&receipt, "/id") == call, || format!("the receipt of {call} is another call's"))?;
        let sentence = text(&receipt, "/sentence");
        ensure(!sentence.is_empty(), || format!("the receipt of {call} says nothing"))?;
        Ok((call.to_owned(), sentence))
    }
}

async fn sign_in(context: &Context, email: Option<String>, file: Option<&Path>) -> CliResult<(Person, Option<String>)> {
    let kept = context.person().ok();
    let email = match (email, &kept) {
        (Some(email), _) => Some(email),
        (None, Some(person)) => match person.session().await {
            Ok(answer) => Some(text(&answer.json()?, "/session/email")),
            Err(error) if error.code() == Some("unauthenticated") => None,
            Err(error) => return Err(error.into()),
        },
        (None, None) => None,
    };
    let email = match email {
        Some(email) => email,
        None => secret::line("Email of an owner")?,
    };
    let password = match (secret::password(file, &format!("Password of {email}")), kept) {
        (Ok(password), _) => password,
        // A session that is fresh enough to consent needs no password.
        (Err(CliError::Usage(_)), Some(person)) if file.is_none() => return Ok((person, None)),
        (Err(error), _) => return Err(error),
    };
    let answer = context.client.sign_in(&email, &password, None).await?;
    let token = answer.get("token").and_then(Value::as_str).ok_or_else(|| broken("the sign-in answered no session"))?;
    let role = text(&answer, "/session/role");
    ensure(role == "owner", || format!("{email} is {role} here; the demo deploys and consents, which needs an owner"))?;
    Ok((context.client.person(token), Some(password)))
}

/// The refusal a call must have ended with, one of `codes`.
pub(super) fn refused(what: &str, ended: Result<Answer, ClientError>, codes: &[&str]) -> CliResult<String> {
    match ended {
        Err(ClientError::Refused(body)) if codes.contains(&body.code.as_str()) => Ok(body.code),
        Err(ClientError::Refused(body)) => {
            Err(broken(format!("{what} was refused with {} ({}), not {}", body.code, body.message, codes.join(" or "))))
        }
        Err(other) => Err(other.into()),
        Ok(answer) => Err(broken(format!("{what} was not refused: {} answered {}", answer.url, answer.status))),
    }
}

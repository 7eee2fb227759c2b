//! What this machine knows: sessions by platform, agents with their keys, the grants they asked for.

use std::collections::BTreeMap;
use std::env;
use std::fmt;
use std::path::{Path, PathBuf};

use inn_client::{AgentKey, Token, TokenCache};
use serde::{Deserialize, Serialize};

use super::error::{CliError, CliResult};
use super::files;

/// Folder of everything below, instead of `~/.config/innkeeper`.
pub(crate) const CONFIG_DIR: &str = "INN_CONFIG_DIR";
/// Most remembered grant requests of one agent on one platform.
const MAX_ASKED: usize = 200;

pub(crate) struct Profile {
    folder: PathBuf,
}

#[derive(Default, Serialize, Deserialize)]
struct Sessions {
    /// Platform of the last sign-in.
    #[serde(default)]
    last: Option<String>,
    #[serde(default)]
    sessions: BTreeMap<String, SessionEntry>,
}

#[derive(Serialize, Deserialize)]
struct SessionEntry {
    token: String,
    #[serde(default)]
    email: String,
}

/// One agent of this machine.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct AgentFile {
    pub(crate) name: String,
    /// Thumbprint of the key: the agent's id everywhere.
    pub(crate) id: String,
    /// PKCS#8 in PEM form, as `openssl pkey` reads it.
    key: String,
    #[serde(default)]
    platforms: BTreeMap<String, AgentAt>,
}

#[derive(Clone, Default, Serialize, Deserialize)]
struct AgentAt {
    #[serde(default)]
    registered: bool,
    /// Oldest first.
    #[serde(default)]
    asked: Vec<Asked>,
}

/// A grant request the agent made, and the grant that came of it.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Asked {
    pub(crate) id: String,
    pub(crate) app: String,
    #[serde(default)]
    pub(crate) grant: Option<String>,
}

impl fmt::Debug for AgentFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AgentFile({}, {})", self.name, self.id)
    }
}

impl AgentFile {
    pub(crate) fn new(name: &str, key: &AgentKey) -> CliResult<Self> {
        check_name(name)?;
        Ok(Self {
            name: name.to_owned(),
            id: key.public().thumbprint().to_string(),
            key: key.to_pkcs8_pem()?.as_str().to_owned(),
            platforms: BTreeMap::new(),
        })
    }

    pub(crate) fn key(&self) -> CliResult<AgentKey> {
        Ok(AgentKey::from_pkcs8_pem(&self.key)?)
    }

    pub(crate) fn is_registered(&self, platform: &str) -> bool {
        self.platforms.get(platform).is_some_and(|at| at.registered)
    }

    pub(crate) fn registered(&mut self, platform: &str) {
        self.platforms.entry(platform.to_owned()).or_default().registered = true;
    }

    pub(crate) fn add_asked(&mut self, platform: &str, id: &str, app: &str) {
        let asked = &mut self.platforms.entry(platform.to_owned()).or_default().asked;
        asked.push(Asked { id: id.to_owned(), app: app.to_owned(), grant: None });
        let surplus = asked.len().saturating_sub(MAX_ASKED);
        asked.drain(..surplus);
    }

    /// The grant requests for one app, newest first.
    pub(crate) fn asked(&self, platform: &str, app: &str) -> Vec<Asked> {
        let all = self.platforms.get(platform).map_or(&[][..], |at| at.asked.as_slice());
        all.iter().rev().filter(|asked| asked.app == app).cloned().collect()
    }

    /// The slugs of all apps a grant was asked for, in alphabetical order.
    pub(crate) fn apps(&self, platform: &str) -> Vec<String> {
        let all = self.platforms.get(platform).map_or(&[][..], |at| at.asked.as_slice());
        let mut apps: Vec<_> = all.iter().map(|asked| asked.app.clone()).collect();
        apps.sort();
        apps.dedup();
        apps
    }

    pub(crate) fn granted(&mut self, platform: &str, id: &str, grant: &str) {
        let asked = self.platforms.get_mut(platform).map(|at| &mut at.asked);
        if let Some(asked) = asked.into_iter().flatten().find(|asked| asked.id == id) {
            asked.grant = Some(grant.to_owned());
        }
    }
}

impl Profile {
    pub(crate) fn open() -> CliResult<Self> {
        let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let folder = set(CONFIG_DIR)
            .or_else(|| set("XDG_CONFIG_HOME").map(|folder| folder.join("innkeeper")))
            .or_else(|| set("HOME").map(|folder| folder.join(".config/innkeeper")));
        let none = || CliError::Usage(format!("there is no home folder to keep sessions in: set {CONFIG_DIR}"));
        folder.map(Self::at).ok_or_else(none)
    }

    pub(crate) fn at(folder: PathBuf) -> Self {
        Self { folder }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn sessions_file(&self) -> PathBuf {
        self.folder.join("sessions.json")
    }

    pub(crate) fn last_platform(&self) -> CliResult<Option<String>> {
        Ok(files::read_json::<Sessions>(&self.sessions_file())?.last)
    }

    /// The session token for a platform.
    pub(crate) fn session(&self, platform: &str) -> CliResult<Option<String>> {
        let mut sessions: Sessions = files::read_json(&self.sessions_file())?;
        Ok(sessions.sessions.remove(platform).map(|entry| entry.token))
    }

    pub(crate) fn keep_session(&self, platform: &str, email: &str, token: &str) -> CliResult<()> {
        let mut sessions: Sessions = files::read_json(&self.sessions_file())?;
        let entry = SessionEntry { token: token.to_owned(), email: email.to_owned() };
        sessions.sessions.insert(platform.to_owned(), entry);
        sessions.last = Some(platform.to_owned());
        files::write_json(&self.sessions_file(), &sessions)
    }

    pub(crate) fn forget_session(&self, platform: &str) -> CliResult<()> {
        let mut sessions: Sessions = files::read_json(&self.sessions_file())?;
        sessions.sessions.remove(platform);
        files::write_json(&self.sessions_file(), &sessions)
    }

    fn agents_folder(&self) -> PathBuf {
        self.folder.join("agents")
    }

    fn agent_file(&self, name: &str) -> PathBuf {
        self.agents_folder().join(format!("{name}.json"))
    }

    fn tokens_file(&self, name: &str) -> PathBuf {
        self.agents_folder().join(format!("{name}.tokens"))
    }

    /// Names of all agents, in alphabetical order.
    pub(crate) fn agent_names(&self) -> CliResult<Vec<String>> {
        let folder = self.agents_folder();
        if !folder.is_dir() {
            return Ok(Vec::new());
        }
        let failed = |error| CliError::io(format!("{} cannot be read", folder.display()), &error);
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            if let Some(name) = name.to_str().and_then(|name| name.strip_suffix(".json"))
                && check_name(name).is_ok()
            {
                names.push(name.to_owned());
            }
        }
        names.sort();
        Ok(names)
    }

    /// The named agent, or the only one.
    pub(crate) fn agent(&self, name: Option<&str>) -> CliResult<AgentFile> {
        let name = name.map_or_else(|| self.only_agent(), |name| Ok(name.to_owned()))?;
        check_name(&name)?;
        let path = self.agent_file(&name);
        let Some(text) = files::read(&path)? else {
            let known = self.agent_names()?.join(", ");
            let known = if known.is_empty() { "There is none yet.".to_owned() } else { format!("There are: {known}.") };
            let message =
                format!("This machine has no agent called {name}. {known} Make one with `inn agent new {name}`.");
            return Err(CliError::local("no_agent", message));
        };
        serde_json::from_str(&text)
            .map_err(|error| CliError::local("local_file", format!("{} is damaged ({error}).", path.display())))
    }

    fn only_agent(&self) -> CliResult<String> {
        match self.agent_names()?.as_slice() {
            [only] => Ok(only.clone()),
            [] => {
                let message = "This machine has no agent yet. Make one with `inn agent new NAME`.";
                Err(CliError::local("no_agent", message))
            }
            several => {
                let list = several.join(", ");
                Err(CliError::Usage(format!("which agent? There are {list}: name one with --agent or INN_AGENT")))
            }
        }
    }

    pub(crate) fn has_agent(&self, name: &str) -> bool {
        self.agent_file(name).exists()
    }

    pub(crate) fn keep_agent(&self, agent: &AgentFile) -> CliResult<()> {
        check_name(&agent.name)?;
        files::write_json(&self.agent_file(&agent.name), agent)
    }

    /// Tokens kept for an agent on a platform.
    pub(crate) fn tokens(&self, name: &str, platform: &str) -> CliResult<TokenCache> {
        let all: BTreeMap<String, Vec<Token>> = files::read_json(&self.tokens_file(name))?;
        let cache = TokenCache::default();
        for token in all.get(platform).into_iter().flatten() {
            cache.keep(token.clone());
        }
        Ok(cache)
    }

    pub(crate) fn keep_tokens(&self, name: &str, platform: &str, tokens: &TokenCache) -> CliResult<()> {
        let path = self.tokens_file(name);
        let mut all: BTreeMap<String, Vec<Token>> = files::read_json(&path)?;
        all.insert(platform.to_owned(), tokens.all());
        files::write_json(&path, &all)
    }
}

/// A name is also a file's: one word of letters, digits, `-` and `_`.
fn check_name(name: &str) -> CliResult<()> {
    let fits = (1..=40).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    if fits {
        return Ok(());
    }
    Err(CliError::Usage(format!(
        "`{name}` cannot be an agent's name here: 1 to 40 letters, digits, hyphens and underscores"
    )))
}

#[cfg(test)]
mod tests;

//! One line of the register, readable.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use inn_ports::Store;
use inn_protocol::caller::Person;
use inn_protocol::register::Entry;
use inn_protocol::{Refusal, TenantId};
use serde_json::Value;

use crate::stamp::Second;

/// Ids of the tenant's people, apps and agents with the names people know them by.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(crate) users: HashMap<String, String>,
    /// By id; the slug.
    pub(crate) apps: HashMap<String, String>,
    /// Agents' claimed names.
    pub(crate) agents: HashMap<String, String>,
}

impl Names {
    pub(crate) async fn of(store: &dyn Store, tenant: TenantId) -> Result<Self, Refusal> {
        let members = store.members(tenant).await?;
        let apps = store.apps(tenant).await?;
        let agents = store.agents(tenant).await?;
        Ok(Self {
            users: members.into_iter().map(|member| (member.user.to_string(), member.email)).collect(),
            apps: apps.into_iter().map(|app| (app.id.to_string(), app.slug)).collect(),
            agents: agents.into_iter().map(|agent| (agent.id.to_string(), agent.name)).collect(),
        })
    }
}

pub(crate) struct EntryLine {
    pub(crate) at: Second,
    pub(crate) call: String,
    /// The responsible person or what stands for one; already in words.
    pub(crate) who: String,
    /// An agent's name for itself, when an agent asked.
    pub(crate) agent: Option<String>,
    /// It used the agent token file: the name is ours, not its own.
    pub(crate) this_machine: bool,
    pub(crate) action: String,
    pub(crate) target: String,
    pub(crate) app: Option<String>,
    pub(crate) refused: Option<String>,
    pub(crate) seq: Option<i64>,
    /// Everything the entry holds.
    pub(crate) facts: Vec<(&'static str, String)>,
}

impl EntryLine {
    pub(crate) fn of(entry: &Entry, names: &Names) -> Self {
        let fact = |name: &str| entry.facts.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let known = |names: &HashMap<String, String>, id: String| names.get(&id).cloned().unwrap_or(id);
        let app = Some(fact("app")).filter(|id| !id.is_empty()).map(|id| known(&names.apps, id));
        let agent = Some(fact("agent")).filter(|id| !id.is_empty()).map(|id| known(&names.agents, id));
        let user = Some(fact("user")).filter(|id| !id.is_empty()).map(|id| known(&names.users, id));
        let who = match (fact("caller").as_str(), user) {
            (_, Some(user)) => user,
            ("visitor", _) => "somebody at this machine".to_owned(),
            ("platform", _) => "the platform".to_owned(),
            ("stranger", _) => "nobody known".to_owned(),
            ("app_user", _) => fact("appUser"),
            ("key", _) => "itself".to_owned(),
            (other, _) => other.to_owned(),
        };
        Self {
            at: Second(entry.at),
            call: entry.call.to_string(),
            who,
            agent,
            this_machine: fact("via") == "loopback_token",
            action: fact("action"),
            target: fact("target"),
            app,
            refused: entry.outcome.strip_prefix("refused:").map(str::to_owned),
            seq: entry.seq,
            facts: facts(entry),
        }
    }

    /// A line the console itself caused by showing pages to this person: true, but no news on the front page.
    pub(crate) fn is_own_look(entry: &Entry, person: &Person) -> bool {
        let is = |name: &str, text: &str| entry.facts.get(name).and_then(Value::as_str) == Some(text);
        let look = ["apps.list", "grants.list", "audit.search", "audit.verify", "grants.view-request"];
        is("caller", "person")
            && is("user", &person.user.to_string())
            && entry.outcome == "done"
            && look.iter().any(|action| is("action", action))
    }
}

/// In this order, with the words of the register.
const FACTS: [&str; 15] = [
    "caller",
    "appUser",
    "user",
    "agent",
    "helper",
    "claimedAgent",
    "via",
    "grant",
    "tenant",
    "app",
    "action",
    "target",
    "body",
    "signatureBase",
    "signature",
];

fn facts(entry: &Entry) -> Vec<(&'static str, String)> {
    let given = FACTS.iter().filter_map(|name| match entry.facts.get(*name)? {
        Value::Null => None,
        Value::String(text) if text.is_empty() => None,
        Value::String(text) => Some((*name, text.clone())),
        other => Some((*name, other.to_string())),
    });
    let mut facts: Vec<_> = given.collect();
    facts.push(("outcome", entry.outcome.clone()));
    if let Some(effect) = entry.effect {
        facts.push(("effect", effect.to_string()));
    }
    facts.push(("digest", entry.digest.to_string()));
    facts
}

//! `inn audit` and `inn receipt`

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use inn_client::Person;
use serde_json::Value;

use super::context::{Common, Context};
use super::error::{CliError, CliResult};
use super::out::{Out, items, text};

const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Entries fetched at a time.
const PAGE: &str = "100";

#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  inn audit tail --follow
  inn audit search --app kanban --outcome refused --since 2026-12-01T00:00:00Z
  inn audit verify
  inn audit head > head.json          keep it elsewhere, and later:
  inn audit verify --kept head.json   proves that nothing before it was changed or cut off")]
pub struct AuditArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    verb: AuditVerb,
}

#[derive(Debug, Clone, Subcommand)]
enum AuditVerb {
    /// The newest entries
    Tail {
        /// Go on as new ones come
        #[arg(short, long)]
        follow: bool,
        /// How many to begin with
        #[arg(short = 'n', long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=500))]
        limit: u32,
    },
    /// Entries that meet all conditions
    Search(Search),
    /// Recompute digests, chain and signed heads
    Verify {
        /// A head kept from before (`inn audit head`); the chain must still contain it
        #[arg(long, value_name = "FILE")]
        kept: Option<PathBuf>,
    },
    /// The newest signed head
    Head,
    /// Entries as JSON lines
    Export {
        /// Only entries before this one (as `next` of a search)
        #[arg(long)]
        before: Option<String>,
        #[arg(long)]
        limit: Option<u32>,
    },
}

#[derive(Debug, Clone, Args)]
struct Search {
    #[arg(long)]
    app: Option<String>,
    /// Id of the agent
    #[arg(long)]
    agent: Option<String>,
    #[arg(long)]
    grant: Option<String>,
    /// Id of the person
    #[arg(long)]
    user: Option<String>,
    /// records.create, operations.run, requests.claim, grants.revoke …
    #[arg(long)]
    action: Option<String>,
    /// done, refused, or refused:<code>
    #[arg(long)]
    outcome: Option<String>,
    /// RFC 3339 time
    #[arg(long)]
    since: Option<String>,
    /// Only entries before this one (as `next` of another search)
    #[arg(long)]
    before: Option<String>,
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=500))]
    limit: u32,
}

/// Shows the receipt of a call: what was done, in a sentence made from what was stored
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:
  inn receipt call_0192f6c0a1b27c3d8e4f5a6b7c8d9e0f")]
pub struct ReceiptArgs {
    #[command(flatten)]
    pub(crate) common: Common,
    /// call_…, as the header Innkeeper-Call and the register have it
    call: String,
}

pub(crate) async fn receipt(args: ReceiptArgs) -> CliResult<()> {
    let context = Context::new(&args.common)?;
    let answer = context.person()?.receipt(&args.call).await?.json()?;
    context.out.answer(&answer, |receipt| {
        let stored = receipt.get("stored").filter(|stored| stored.as_object().is_some_and(|stored| !stored.is_empty()));
        let stored = stored.and_then(|stored| serde_json::to_string_pretty(stored).ok());
        let head = format!(
            "{}\n{} {} {}",
            text(receipt, "/sentence"),
            text(receipt, "/at"),
            text(receipt, "/action"),
            text(receipt, "/id")
        );
        stored.map_or(head.clone(), |stored| format!("{head}\n{stored}"))
    });
    Ok(())
}

pub(crate) async fn run(args: AuditArgs) -> CliResult<()> {
    let context = Context::new(&args.common)?;
    let (person, out) = (context.person()?, context.out);
    match args.verb {
        AuditVerb::Tail { follow, limit } => tail(&person, out, follow, limit).await,
        AuditVerb::Search(search) => {
            let limit = search.limit.to_string();
            let conditions: Vec<(&str, &str)> = [
                ("app", search.app.as_deref()),
                ("agent", search.agent.as_deref()),
                ("grant", search.grant.as_deref()),
                ("user", search.user.as_deref()),
                ("action", search.action.as_deref()),
                ("outcome", search.outcome.as_deref()),
                ("since", search.since.as_deref()),
                ("before", search.before.as_deref()),
                ("limit", Some(&limit)),
            ]
            .into_iter()
            .filter_map(|(name, value)| value.map(|value| (name, value)))
            .collect();
            let answer = person.audit(&conditions).await?.json()?;
            out.answer(&answer, |answer| items(answer).iter().map(entry).collect::<Vec<_>>().join("\n"));
            if let (false, Some(next)) = (out.is_json(), answer.get("next").and_then(Value::as_str)) {
                out.say(format!("There are more: --before {next}"));
            }
            Ok(())
        }
        AuditVerb::Verify { kept } => verify(&person, out, kept).await,
        AuditVerb::Head => {
            let answer = person.audit_head().await?.json()?;
            out.data(&answer);
            Ok(())
        }
        AuditVerb::Export { before, limit } => {
            let limit = limit.map(|limit| limit.to_string());
            let conditions: Vec<(&str, &str)> = [("before", before.as_deref()), ("limit", limit.as_deref())]
                .into_iter()
                .filter_map(|(name, value)| value.map(|value| (name, value)))
                .collect();
            out.raw(&person.export_audit(&conditions).await?.body);
            Ok(())
        }
    }
}

async fn tail(person: &Person, out: Out, follow: bool, limit: u32) -> CliResult<()> {
    let limit = limit.to_string();
    let answer = person.audit(&[("limit", &limit)]).await?.json()?;
    let print = |one: &Value| if out.is_json() { out.data(one) } else { out.line(entry(one)) };
    let mut newest = items(&answer).first().map(|one| text(one, "/at"));
    items(&answer).iter().rev().for_each(print);
    let mut seen: HashSet<String> = items(&answer).iter().map(|one| text(one, "/call")).collect();
    if !follow {
        return Ok(());
    }
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let mut conditions = vec![("limit", PAGE)];
        if let Some(newest) = &newest {
            conditions.push(("since", newest));
        }
        let answer = person.audit(&conditions).await?.json()?;
        let fresh: Vec<_> = items(&answer).iter().rev().filter(|one| !seen.contains(&text(one, "/call"))).collect();
        for one in &fresh {
            print(one);
        }
        newest = fresh.last().map(|one| text(one, "/at")).or(newest.take());
        // Entries at the newest moment come again; older ones do not.
        seen = items(&answer).iter().map(|one| text(one, "/call")).collect();
    }
}

async fn verify(person: &Person, out: Out, kept: Option<PathBuf>) -> CliResult<()> {
    let kept = match kept {
        None => None,
        Some(file) => {
            let text = std::fs::read_to_string(&file)
                .map_err(|error| CliError::io(format!("{} cannot be read", file.display()), &error))?;
            let head: Value = serde_json::from_str(&text)
                .map_err(|error| CliError::Usage(format!("{} holds no head: {error}", file.display())))?;
            Some((super::out::text(&head, "/seq"), super::out::text(&head, "/head")))
        }
    };
    let kept = kept.as_ref().map(|(seq, head)| (seq.as_str(), head.as_str()));
    let answer = person.verify_audit(kept).await?.json()?;
    out.answer(&answer, |answer| {
        let problems = answer.get("problems").map(items).unwrap_or_default();
        let mut lines: Vec<String> = problems.iter().map(|problem| format!("  {}", text(problem, ""))).collect();
        let word = if answer.get("ok") == Some(&Value::Bool(true)) {
            "The register is whole"
        } else {
            "The register is NOT whole"
        };
        lines.insert(
            0,
            format!(
                "{word}: {} entries, {} sealed, {} signed heads.",
                text(answer, "/entries"),
                text(answer, "/sealed"),
                text(answer, "/heads")
            ),
        );
        lines.join("\n")
    });
    if answer.get("ok") == Some(&Value::Bool(true)) { Ok(()) } else { Err(CliError::Said) }
}

/// One entry on one line: when, how it ended, what, on what, by which call, who and for whom. Who comes last: it is the
/// longest by far.
fn entry(entry: &Value) -> String {
    let who = match (text(entry, "/facts/agent"), text(entry, "/facts/user")) {
        (agent, user) if agent.is_empty() && user.is_empty() => text(entry, "/facts/appUser"),
        (agent, user) if agent.is_empty() => user,
        (agent, user) if user.is_empty() => format!("agent {agent}"),
        (agent, user) => format!("agent {agent} for {user}"),
    };
    let line = format!(
        "{:27}  {:24}  {:18}  {:28}  {}  {}",
        text(entry, "/at"),
        text(entry, "/outcome"),
        text(entry, "/facts/action"),
        text(entry, "/facts/target"),
        text(entry, "/call"),
        if who.is_empty() { text(entry, "/facts/caller") } else { who },
    );
    Out::one_line(line.trim_end())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn entries_stand_below_each_other() {
        let entries = [
            json!({"at": "2026-12-01T04:13:47.197000Z", "outcome": "done", "call": "call_1",
                "facts": {"action": "records.list", "target": "cards", "agent": "kPrK", "user": "usr_1"}}),
            json!({"at": "2026-12-01T04:13:47Z", "outcome": "refused:scope_missing", "call": "call_2",
                "facts": {"action": "requests.claim", "target": "", "caller": "stranger"}}),
        ];
        let lines = entries.each_ref().map(entry);
        let columns = lines.each_ref().map(|line| line.find("call_"));
        assert!(columns[0].is_some() && columns[0] == columns[1], "{lines:#?}");
        assert!(lines[0].ends_with("call_1  agent kPrK for usr_1"), "{lines:#?}");
    }
}

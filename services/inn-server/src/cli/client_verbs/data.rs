//! `inn data`: an app's records from the command line, with words turned into what the app stores.

pub(crate) mod coerce;
mod compare;
mod dates;
mod parse;
mod refs;
mod schema;

use clap::Args;
use inn_client::{Answer, AppFace, Outgoing, new_idempotency_key};
use serde_json::{Map, Value, json};

use super::context::{Common, Context};
use super::error::{CliError, CliResult};
use super::out::{items, text};
use coerce::Coerced;
use parse::Parsed;
use schema::Entity;

const EXAMPLES: &str = "Examples:
  inn data kanban schema
  inn data kanban cards ls --filter 'priority=\"urgent\"' --sort -created
  inn data kanban cards get abc123def456ghi
  inn data kanban cards add --title \"Eat chicken\" --list \"To Do\" --due_date tomorrow
  inn data kanban cards set abc123def456ghi --due_date \"next friday\"
  inn data kanban cards rm abc123def456ghi

A field is written --name value, --name=value or name=value. Dates may be words (tomorrow, in 3 days, next friday),
a reference may be the label of the record it points to: one match is taken, several are listed and nothing is done.
ls takes --filter --sort --limit --page --expand --fields. Every verb takes --agent --url --json, writes also
--idempotency-key.";

/// Reads and writes the records of an app
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct DataArgs {
    /// Address of the platform; without it the one of the last sign-in
    #[arg(long, env = "INN_URL", value_name = "URL")]
    url: Option<String>,
    /// Answer with JSON on standard output
    #[arg(long)]
    json: bool,
    /// Do it as this agent instead of yourself
    #[arg(long, env = "INN_AGENT")]
    agent: Option<String>,
    app: String,
    /// An entity, or `schema` for what there is
    entity: String,
    /// ls, get ID, add, set ID or rm ID; then fields and options
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "VERB")]
    rest: Vec<String>,
}

impl DataArgs {
    pub(crate) fn json(&self) -> bool {
        self.json || self.rest.iter().any(|arg| arg == "--json")
    }
}

pub(crate) async fn run(args: DataArgs) -> CliResult<()> {
    if args.rest.iter().any(|arg| arg == "--help" || arg == "-h") {
        return Err(CliError::Usage(format!("inn data APP ENTITY ls|get|add|set|rm …\n\n{EXAMPLES}")));
    }
    let json = args.json();
    if args.entity == "schema" {
        let parsed = Parsed::new("schema", &args.rest)?;
        let common = Common { url: parsed.option("url").or(args.url), json };
        let context = Context::new(&common)?;
        let face = context.face(&args.app, parsed.option("agent").or(args.agent).as_deref()).await?;
        let describe = face.describe().await?.json()?;
        context.out.answer(&describe, schema::words);
        return Ok(());
    }
    let Some((verb, rest)) = args.rest.split_first() else {
        return Err(CliError::Usage(format!("what to do with {}? ls, get ID, add, set ID or rm ID", args.entity)));
    };
    let parsed = Parsed::new(verb, rest)?;
    let common = Common { url: parsed.option("url").or(args.url), json };
    let context = Context::new(&common)?;
    let face = context.face(&args.app, parsed.option("agent").or(args.agent).as_deref()).await?;
    let describe = face.describe().await?.json()?;
    let entity = schema::entity(&describe, &args.entity)?;
    let job = Job { context: &context, face, describe: &describe, entity, parsed };
    match verb.as_str() {
        "ls" | "list" => job.list().await,
        "get" | "show" => job.get().await,
        "add" | "create" => job.add().await,
        "set" | "update" => job.set().await,
        "rm" | "delete" => job.remove().await,
        other => Err(CliError::Usage(format!("`{other}` is no verb here: ls, get ID, add, set ID or rm ID"))),
    }
}

struct Job<'j> {
    context: &'j Context,
    face: AppFace,
    describe: &'j Value,
    entity: Entity,
    parsed: Parsed,
}

impl Job<'_> {
    async fn list(&self) -> CliResult<()> {
        self.parsed.ids(0)?;
        let options = ["filter", "sort", "page", "expand", "fields"];
        let chosen: Vec<_> = options.iter().filter_map(|name| Some((*name, self.parsed.option(name)?))).collect();
        let limit = self.parsed.option("limit").unwrap_or_else(|| "50".to_owned());
        let mut params: Vec<(&str, &str)> = chosen.iter().map(|(name, value)| (*name, value.as_str())).collect();
        params.push(("perPage", &limit));
        let answer = self.face.list(&self.entity.name, &params).await?.json()?;
        let columns = self.entity.columns();
        let columns: Vec<(&str, &str)> =
            columns.iter().map(|(name, pointer)| (name.as_str(), pointer.as_str())).collect();
        self.context.out.table(&answer, &columns, "No records.");
        let total = answer.get("totalItems").and_then(Value::as_i64).unwrap_or(-1);
        let shown = items(&answer).len();
        if total > i64::try_from(shown).unwrap_or(i64::MAX) {
            self.context.out.say(format!("{shown} of {total}; --page and --limit show more."));
        }
        Ok(())
    }

    async fn get(&self) -> CliResult<()> {
        let id = self.parsed.one_id()?;
        let answer = self.face.view(&self.entity.name, id).await?.json()?;
        self.context.out.answer(&answer, pretty);
        Ok(())
    }

    async fn add(&self) -> CliResult<()> {
        self.parsed.ids(0)?;
        let body = self.body().await?;
        let key = self.key();
        let answer = self.face.create(&self.entity.name, &Value::Object(body.clone()), Some(&key)).await?;
        self.written(&body, &answer).await
    }

    async fn set(&self) -> CliResult<()> {
        let id = self.parsed.one_id()?;
        let body = self.body().await?;
        if body.is_empty() {
            return Err(CliError::Usage("nothing to set: give at least one field, as --name value".to_owned()));
        }
        let key = self.key();
        let answer = self.face.update(&self.entity.name, id, &Value::Object(body.clone()), Some(&key)).await?;
        self.written(&body, &answer).await
    }

    async fn remove(&self) -> CliResult<()> {
        let id = self.parsed.one_id()?;
        let answer = self.face.delete(&self.entity.name, id, Some(&self.key())).await?;
        let sentence = self.sentence(&answer).await;
        self.context.out.say(sentence.unwrap_or_else(|| format!("Removed {id}.")));
        if self.context.out.is_json() {
            self.context.out.data(&json!({"ok": true, "id": id, "receipt": answer.call()}));
        }
        Ok(())
    }

    fn key(&self) -> String {
        self.parsed.option("idempotency-key").unwrap_or_else(new_idempotency_key)
    }

    /// The fields as the app stores them, references resolved.
    async fn body(&self) -> CliResult<Map<String, Value>> {
        let today = dates::today();
        let mut body = Map::new();
        for (name, value) in self.parsed.fields() {
            let field = self.entity.writable(name)?;
            let value = match coerce::field(field, value, today)? {
                Coerced::Value(value) => value,
                Coerced::Ref { entity, label } => {
                    refs::resolve(&self.face, self.describe, name, &entity, &label).await?.into()
                }
                Coerced::Refs { entity, labels } => {
                    let mut ids = Vec::new();
                    for label in &labels {
                        ids.push(Value::from(refs::resolve(&self.face, self.describe, name, &entity, label).await?));
                    }
                    Value::Array(ids)
                }
            };
            if body.insert(name.clone(), value).is_some() {
                return Err(CliError::Usage(format!("{name} is there twice: which one counts is not clear")));
            }
        }
        Ok(body)
    }

    /// Prints what was stored, after checking that it is what was sent.
    async fn written(&self, sent: &Map<String, Value>, answer: &Answer) -> CliResult<()> {
        let stored = answer.json()?;
        if let Some(sentence) = self.sentence(answer).await {
            self.context.out.say(sentence);
        }
        self.context.out.answer(&stored, |stored| text(stored, "/id"));
        let differences = compare::differences(&self.entity, sent, &stored);
        if differences.is_empty() {
            return Ok(());
        }
        Err(CliError::Local {
            code: "write_incomplete",
            message: "The write is incomplete: the app stored something else than was sent.".to_owned(),
            details: differences,
        })
    }

    /// What the receipt says was done. The write stands whether or not it can be read.
    async fn sentence(&self, answer: &Answer) -> Option<String> {
        let call = answer.header("innkeeper-receipt").and_then(|url| url.rsplit('/').next()).or(answer.call())?;
        let path = format!("/v1/receipts/{}", inn_client::segment(call));
        let receipt = self.face.call(&Outgoing::get(path)).await.ok()?.json().ok()?;
        let sentence = text(&receipt, "/sentence");
        (!sentence.is_empty()).then_some(sentence)
    }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

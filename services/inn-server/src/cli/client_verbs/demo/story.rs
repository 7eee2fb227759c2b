//! The ten steps. Each returns what it proved, and fails when something does not hold.

use std::process::Stdio;
use std::time::Duration;

use bytes::Bytes;
use inn_client::{Agent, AgentKey, Answer, AppFace, Outgoing, Papers, new_idempotency_key};
use serde_json::{Value, json};
use tokio::process::Command;

use super::super::error::{CliError, CliResult};
use super::super::out::{items, text};
use super::super::profile::{AgentFile, CONFIG_DIR};
use super::stage::{AGENT, Stage, refused};
use super::{Done, Report, broken, ensure};

const CAPABILITY: &str = "summarise-board";
const BOARD: &str = "Kitchen";
const CARD: &str = "Eat chicken";
/// What the agent asks for; the last one is what the owner leaves out.
const ASKED: [&str; 7] = [
    "data:boards:read",
    "data:lists:read",
    "data:cards:read",
    "data:cards:write",
    "op:cards.move",
    "queue:summarise-board",
    LEFT_OUT,
];
const LEFT_OUT: &str = "data:labels:write";
/// Longest time the worker may take for its one request.
const WORK: Duration = Duration::from_mins(2);

/// What is carried from step to step.
struct Board {
    id: String,
    to_do: String,
    done: String,
}

pub(super) async fn play(stage: Stage<'_>, report: &mut Report, clean: bool) -> CliResult<()> {
    let board = report.step("A bundle is packed and deployed", deploy(&stage)).await?;
    report.step("An agent makes a key pair and registers", register(&stage)).await?;
    let asked = report.step("The agent asks for a grant", ask_grant(&stage)).await?;
    let grant = report.step("The owner consents to part of it", consent(&stage, &asked)).await?;
    let (agent, _) = stage.agent()?;
    report
        .step("The agent reads, writes and runs an operation, each call signed", calls(&stage, &agent, &grant, &board))
        .await?;
    let request = report.step("The app's user asks for a summary of the board", ask(&stage, &board)).await?;
    report.step("A worker claims the request and writes the result back", work(&stage, &agent, &request)).await?;
    report.step("The owner reads the register", register_says(&stage, &agent, &grant)).await?;
    let held = report.step("The owner revokes the grant", revoke(&stage, &agent, &grant, &board)).await?;
    report
        .step(
            "Next call, held claim and next token are refused, and the register says so",
            after(&stage, &agent, &grant, &held),
        )
        .await?;
    finish(&stage, clean).await
}

async fn deploy(stage: &Stage<'_>) -> CliResult<(Done, Board)> {
    let (bytes, release) = Stage::bundle()?;
    let options = [("slug", stage.slug.as_str()), ("capabilities", CAPABILITY)];
    let answer = stage.owner.deploy(Bytes::from(bytes), &options).await?;
    let deployed = answer.json()?;
    let active = text(&deployed, "/release");
    ensure(active == release, || format!("release {active} was deployed, not {release}"))?;
    let (receipt, sentence) = stage.receipt(&answer).await?;

    let app = stage.owner.app(&stage.slug);
    let board = add(&app, "boards", &json!({"name": BOARD})).await?;
    let to_do = add(&app, "lists", &json!({"title": "To do", "board": board, "position": 1})).await?;
    let done = add(&app, "lists", &json!({"title": "Done", "board": board, "position": 2})).await?;
    add(&app, "cards", &json!({"title": "Buy rice", "list": to_do, "priority": "urgent"})).await?;
    let said = format!("{sentence}\nIts API answers at {}.", stage.context.client.app_url(&stage.slug));
    Ok((Done { receipt: Some(receipt), said }, Board { id: board, to_do, done }))
}

async fn add(app: &AppFace, entity: &str, body: &Value) -> CliResult<String> {
    let stored = app.create(entity, body, Some(&new_idempotency_key())).await?.json()?;
    match text(&stored, "/id") {
        id if id.is_empty() => Err(broken(format!("a record of {entity} was added without an id"))),
        id => Ok(id),
    }
}

async fn register(stage: &Stage<'_>) -> CliResult<(Done, ())> {
    let mut file = AgentFile::new(AGENT, &AgentKey::from_seed(rand::random()))?;
    stage.profile.keep_agent(&file)?;
    let (agent, _) = stage.agent()?;
    let answer = agent.register("Demo agent").await?;
    let id = text(&answer.json()?, "/id");
    ensure(id == agent.id().as_str(), || format!("the platform knows the agent as {id}, not by its thumbprint"))?;
    file.registered(stage.context.client.platform());
    stage.profile.keep_agent(&file)?;
    Ok((Done { receipt: call(&answer), said: format!("Agent {id}. That gives it no rights.") }, ()))
}

async fn ask_grant(stage: &Stage<'_>) -> CliResult<(Done, String)> {
    let (agent, mut file) = stage.agent()?;
    let scopes: Vec<String> = ASKED.map(str::to_owned).to_vec();
    let answer = agent.request_grant(&stage.slug, &scopes, "To keep the board tidy and sum it up.").await?;
    let asked = answer.json()?;
    let id = text(&asked, "/id");
    file.add_asked(stage.context.client.platform(), &id, &stage.slug);
    stage.profile.keep_agent(&file)?;
    let status = text(&agent.grant_request(&id).await?.json()?, "/status");
    ensure(status == "pending", || format!("the request is {status} before anybody decided"))?;
    let said =
        format!("{} scopes asked for; code {}, link {}", ASKED.len(), text(&asked, "/code"), text(&asked, "/link"));
    Ok((Done { receipt: call(&answer), said }, id))
}

async fn consent(stage: &Stage<'_>, asked: &str) -> CliResult<(Done, String)> {
    let chosen: Vec<&str> = ASKED.into_iter().filter(|scope| *scope != LEFT_OUT).collect();
    let mut consent = json!({"scopes": chosen});
    if let (Some(password), Some(consent)) = (&stage.password, consent.as_object_mut()) {
        consent.insert("password".to_owned(), password.clone().into());
    }
    let answer = stage.owner.approve(asked, &consent).await?;
    let grant = answer.json()?;
    let mut given: Vec<String> = grant.get("scopes").map(items).unwrap_or_default().iter().map(scope_name).collect();
    given.sort();
    let mut expected: Vec<String> = chosen.iter().map(|scope| (*scope).to_owned()).collect();
    expected.sort();
    ensure(given == expected, || format!("granted was {}, not what was consented to", given.join(", ")))?;
    let id = text(&grant, "/id");
    let (agent, _) = stage.agent()?;
    let seen = agent.grant_request(asked).await?.json()?;
    ensure(text(&seen, "/status") == "approved" && text(&seen, "/grant") == id, || {
        "the agent does not see that it was granted".to_owned()
    })?;
    let (receipt, sentence) = stage.receipt(&answer).await?;
    let said = format!("{sentence}\n{} of {} scopes; not {LEFT_OUT}.", given.len(), ASKED.len());
    Ok((Done { receipt: Some(receipt), said }, id))
}

fn scope_name(scope: &Value) -> String {
    scope.as_str().map_or_else(|| text(scope, "/scope"), str::to_owned)
}

async fn calls(stage: &Stage<'_>, agent: &Agent, grant: &str, board: &Board) -> CliResult<(Done, ())> {
    let token = agent.token(grant).await?;
    ensure(!token.scopes.iter().any(|scope| scope == LEFT_OUT), || format!("the token holds {LEFT_OUT}"))?;
    let app = agent.app(&stage.slug, grant);

    let lists = app.list("lists", &[("sort", "position")]).await?.json()?;
    ensure(items(&lists).len() == 2, || format!("{} lists were read instead of 2", items(&lists).len()))?;
    let body = json!({"title": CARD, "list": board.to_do, "due_date": "2027-07-30 00:00:00.000Z"});
    let added = app.create("cards", &body, Some(&new_idempotency_key())).await?;
    let card = text(&added.json()?, "/id");
    let (receipt, sentence) = stage.receipt(&added).await?;
    let moved = app.run("cards.move", &json!({"id": card, "list": board.done}), None).await?;
    let (_, moved_sentence) = stage.receipt(&moved).await?;
    let stored = app.view("cards", &card).await?.json()?;
    ensure(text(&stored, "/list") == board.done, || "the card is not where the operation put it".to_owned())?;

    let label = json!({"name": "spice", "board": board.id});
    refused("a write that was not consented to", app.create("labels", &label, None).await, &["insufficient_scope"])?;
    let archive = json!({"id": card});
    refused(
        "an operation that was not asked for",
        app.run("cards.archive", &archive, None).await,
        &["insufficient_scope"],
    )?;
    replay(stage, agent, grant).await?;
    let plain = Papers::Plain(token.token.into());
    let path = app.path("/api/collections/cards/records");
    let unsigned = stage.context.client.call(&Outgoing::get(path), &plain).await;
    refused("the token without a signature", unsigned, &["signature_required"])?;

    let said = format!(
        "{sentence}\n{moved_sentence}\nRefused: what was not consented to, the same call sent twice, the token without a signature."
    );
    Ok((Done { receipt: Some(receipt), said }, ()))
}

/// The very same signed call, sent twice: the second one must be refused.
async fn replay(stage: &Stage<'_>, agent: &Agent, grant: &str) -> CliResult<()> {
    let path = agent.app(&stage.slug, grant).path("/api/collections/cards/records?perPage=1");
    let prepared = stage.context.client.prepare(&Outgoing::get(path), &agent.papers(grant).await?)?;
    prepared.send().await?.checked()?;
    refused("the replayed call", prepared.send().await?.checked(), &["replayed_nonce"]).map(drop)
}

async fn ask(stage: &Stage<'_>, board: &Board) -> CliResult<(Done, String)> {
    let app = stage.owner.app(&stage.slug);
    let answer = app.ask(CAPABILITY, &json!({"board": board.id}), Some(&new_idempotency_key())).await?;
    let task = answer.json()?;
    let status = text(&task, "/status");
    ensure(status == "submitted", || format!("the request is {status} at once"))?;
    let (receipt, sentence) = stage.receipt(&answer).await?;
    let id = text(&task, "/id");
    Ok((Done { receipt: Some(receipt), said: format!("{sentence}\n{id} waits in the queue.") }, id))
}

async fn work(stage: &Stage<'_>, agent: &Agent, request: &str) -> CliResult<(Done, ())> {
    let own = std::env::current_exe().map_err(|error| CliError::io("the path of inn itself is not known", &error))?;
    let worker = Command::new(own)
        .args(["agent", "work", "--json", "--once", "--max-idle", "60", "--agent", AGENT, "--app", &stage.slug])
        .args(["--capability", CAPABILITY, "--"])
        .arg(&stage.script)
        .env(CONFIG_DIR, stage.profile.folder())
        .env("INN_URL", stage.context.client.platform())
        .current_dir(stage.folder())
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let ended =
        tokio::time::timeout(WORK, worker).await.map_err(|_| broken(format!("the worker did nothing for {WORK:?}")))?;
    let ended = ended.map_err(|error| CliError::io("the worker cannot be started", &error))?;
    let log = String::from_utf8_lossy(&ended.stderr);
    ensure(ended.status.success(), || format!("the worker ended with {}:\n{log}", ended.status))?;
    let line: Value = serde_json::from_slice(&ended.stdout).unwrap_or_default();
    ensure(text(&line, "/request") == request, || format!("the worker did something else: {line}\n{log}"))?;

    let task = stage.owner.app(&stage.slug).task(request).await?.json()?;
    let status = text(&task, "/status");
    ensure(status == "completed", || format!("the request is {status}"))?;
    let summary = text(&task, "/result/summary");
    ensure(summary.contains(BOARD) && summary.contains(CARD), || {
        format!("the summary is about something else: {summary}")
    })?;
    let receipt =
        entries(stage, &[("agent", agent.id().as_str()), ("action", "requests.complete"), ("outcome", "done")]).await?;
    let receipt = receipt.first().map(|entry| text(entry, "/call"));
    ensure(receipt.is_some(), || "the register has no entry for the result".to_owned())?;
    Ok((Done { receipt, said: format!("In the app now:\n{summary}") }, ()))
}

async fn register_says(stage: &Stage<'_>, agent: &Agent, grant: &str) -> CliResult<(Done, ())> {
    let id = agent.id();
    let all = entries(stage, &[("agent", id.as_str()), ("limit", "500")]).await?;
    for (action, outcome) in [
        ("records.list", "done"),
        ("records.create", "done"),
        ("operations.run", "done"),
        ("requests.claim", "done"),
        ("requests.complete", "done"),
        ("records.create", "refused:insufficient_scope"),
        ("operations.run", "refused:insufficient_scope"),
    ] {
        let found =
            all.iter().any(|entry| text(entry, "/facts/action") == action && text(entry, "/outcome") == outcome);
        ensure(found, || format!("the register has no entry {action} {outcome} of the agent"))?;
    }
    let signed = all.iter().find(|entry| text(entry, "/facts/action") == "records.create");
    let signed = signed
        .is_some_and(|entry| !text(entry, "/facts/signatureBase").is_empty() && text(entry, "/facts/grant") == grant);
    ensure(signed, || "an entry of the agent lacks its signature or its grant".to_owned())?;
    let answer = stage.owner.verify_audit(None).await?;
    let verified = answer.json()?;
    ensure(verified.get("ok") == Some(&Value::Bool(true)), || format!("the register does not verify: {verified}"))?;
    let said = format!(
        "{} entries of the agent, refused calls too, each with its signature. The register is whole: {} entries, {} sealed.",
        all.len(),
        text(&verified, "/entries"),
        text(&verified, "/sealed"),
    );
    Ok((Done { receipt: call(&answer), said }, ()))
}

async fn entries(stage: &Stage<'_>, conditions: &[(&str, &str)]) -> CliResult<Vec<Value>> {
    Ok(items(&stage.owner.audit(conditions).await?.json()?).to_vec())
}

/// A claim the agent holds while its grant is revoked, and a token it holds.
struct Held {
    request: String,
    epoch: i64,
    papers: Papers,
    revoked_at: String,
}

async fn revoke(stage: &Stage<'_>, agent: &Agent, grant: &str, board: &Board) -> CliResult<(Done, Held)> {
    let app = stage.owner.app(&stage.slug);
    app.ask(CAPABILITY, &json!({"board": board.id}), Some(&new_idempotency_key())).await?;
    let claimed = agent.claim(std::slice::from_ref(&stage.slug), &[CAPABILITY.to_owned()], 1, 10).await?;
    let held = claimed.first().ok_or_else(|| broken("a second request could not be claimed"))?;
    let (request, epoch) = (text(held, "/id"), held.get("epoch").and_then(Value::as_i64).unwrap_or_default());
    agent.heartbeat(&request, epoch).await?;
    let papers = agent.papers(grant).await?;

    let answer = stage.owner.revoke(grant).await?;
    let stopped = answer.json()?;
    let count = |name: &str| stopped.get(name).and_then(Value::as_i64).unwrap_or_default();
    ensure(count("claimsFenced") == 1, || format!("the revocation fenced {} claims, not 1", count("claimsFenced")))?;
    ensure(count("tokensEnded") >= 1, || "the revocation ended no token".to_owned())?;
    let (receipt, sentence) = stage.receipt(&answer).await?;
    let said =
        format!("{sentence}\nStopped: {} claim, {} unexpired tokens.", count("claimsFenced"), count("tokensEnded"));
    let held = Held { request, epoch, papers, revoked_at: text(&stopped, "/revokedAt") };
    Ok((Done { receipt: Some(receipt), said }, held))
}

async fn after(stage: &Stage<'_>, agent: &Agent, grant: &str, held: &Held) -> CliResult<(Done, ())> {
    let path = agent.app(&stage.slug, grant).path("/api/collections/cards/records");
    let call = stage.context.client.call(&Outgoing::get(path), &held.papers).await;
    let call = refused("the agent's next call", call, &["token_revoked"])?;
    let result = json!({"summary": "too late"});
    let lost = ["claim_lost", "insufficient_scope", "token_revoked"];
    let claim = refused("the held claim", agent.complete(&held.request, held.epoch, &result).await, &lost)?;
    let body = Outgoing::post("/v1/token", &json!({"grant": grant}));
    let token = refused("the next token", agent.call(&body).await, &["token_revoked", "not_found"])?;

    let id = agent.id();
    let since = entries(stage, &[("agent", id.as_str()), ("since", &held.revoked_at), ("limit", "500")]).await?;
    for (action, code) in [("records.list", &call), ("requests.complete", &claim), ("tokens.take", &token)] {
        let outcome = format!("refused:{code}");
        let found =
            since.iter().any(|entry| text(entry, "/facts/action") == action && text(entry, "/outcome") == outcome);
        ensure(found, || format!("the register does not say that {action} was {outcome}"))?;
    }
    let task = stage.owner.app(&stage.slug).task(&held.request).await?.json()?;
    ensure(text(&task, "/status") == "submitted", || {
        format!("the held request is {}, not back in the queue", text(&task, "/status"))
    })?;
    let canceled = stage.owner.cancel_request(&stage.slug, &held.request, Some("the demo is over")).await?;
    let said =
        format!("Next call: {call}. Held claim: {claim}. Next token: {token}. The request is back in the queue.");
    Ok((Done { receipt: call_of(&since, &canceled), said }, ()))
}

/// The refused call in the register, else the last call made.
fn call_of(entries: &[Value], answer: &Answer) -> Option<String> {
    let refused = entries.iter().find(|entry| text(entry, "/facts/action") == "records.list");
    refused.map(|entry| text(entry, "/call")).or_else(|| call(answer))
}

fn call(answer: &Answer) -> Option<String> {
    answer.call().map(str::to_owned)
}

async fn finish(stage: &Stage<'_>, clean: bool) -> CliResult<()> {
    let out = stage.context.out;
    if clean {
        stage.owner.remove_app(&stage.slug).await?;
        out.say(format!("Every step passed. {} is out of service again.", stage.slug));
    } else {
        out.say(format!(
            "Every step passed. The board is still there: inn app open {0}. It goes with: inn app rm {0}",
            stage.slug
        ));
    }
    Ok(())
}

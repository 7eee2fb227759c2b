//! `inn agent work`: any program becomes an agent.

mod lease;
mod output;
mod program;
mod task;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use inn_client::ClientError;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::super::context::Context;
use super::super::error::{CliError, CliResult};
use super::super::profile::CONFIG_DIR;
use program::Program;
use task::{Ending, Task};

/// Seconds one claim waits at the platform for something to come. Also the longest an idle worker takes to stop: a claim
/// on its way must be waited for, since the platform may still give it something.
const WAIT_SECONDS: u32 = 10;
/// Longest pause between attempts while the platform is away.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example:
  inn agent work --agent bot --app kanban --capability summarise-board -- ./agent.sh

The program is run once for each request:
  standard input   the request as JSON: id, app, capability, payload, attempt, requesterLabel …
  standard output  lines `progress: 40 reading cards`, then the result as JSON
  standard error   its log; the last line is the reason when it fails
  exit code        0 for done, anything else gives the request back as failed
  environment      INN_BIN, INN_URL, INN_APP_URL, INN_AGENT, INN_CONFIG_DIR: `\"$INN_BIN\" agent curl \"$INN_APP_URL/api/…\"`
                   INN_REQUEST, INN_EPOCH: `\"$INN_BIN\" request ask-back $INN_REQUEST --epoch $INN_EPOCH --question … --wait 600`

The lease is kept while it runs. When the claim is lost (the grant was revoked, the lease ran out) the program is
stopped. SIGTERM or Ctrl-C stops claiming (what a claim on its way still brings is given back, which may take 10 seconds)
and lets running programs finish for --grace seconds; what is not done by then, or at a second signal, goes back to the
queue.")]
pub(super) struct WorkArgs {
    #[arg(long, env = "INN_AGENT")]
    agent: Option<String>,
    /// Only this kind of work (repeat it)
    #[arg(long = "capability", value_name = "NAME")]
    capabilities: Vec<String>,
    /// Only of this app (repeat it)
    #[arg(long = "app", value_name = "SLUG")]
    apps: Vec<String>,
    /// Requests worked on at the same time
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=50))]
    concurrency: u32,
    /// Do one request and end; the exit code is 0 when it was completed
    #[arg(long)]
    once: bool,
    /// End when nothing came for this long, in seconds
    #[arg(long, value_name = "SECONDS")]
    max_idle: Option<u64>,
    /// Seconds a running program may take to finish after the first signal
    #[arg(long, default_value_t = 30, value_name = "SECONDS")]
    grace: u64,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    program: Vec<String>,
}

pub(super) async fn run(context: &Context, args: WorkArgs) -> CliResult<()> {
    let file = context.agent_file(args.agent.as_deref())?;
    let agent = context.agent(&file)?;
    let program = Program { argv: args.program.clone(), env: environment(context, &file.name)? };
    let worker = Worker {
        context,
        agent: agent.clone(),
        program: Arc::new(program),
        draining: CancellationToken::new(),
        stop: CancellationToken::new(),
        running: JoinSet::new(),
        idle_since: Instant::now(),
        all_completed: true,
        args,
    };
    worker.run().await
}

/// What the program finds in its environment, besides ours.
fn environment(context: &Context, agent: &str) -> CliResult<Vec<(&'static str, String)>> {
    let own = std::env::current_exe().map_err(|error| CliError::io("the path of inn itself is not known", &error))?;
    let folder =
        std::path::absolute(context.profile.folder()).unwrap_or_else(|_| PathBuf::from(context.profile.folder()));
    Ok(vec![
        ("INN_BIN", own.display().to_string()),
        ("INN_URL", context.client.platform().to_owned()),
        ("INN_AGENT", agent.to_owned()),
        (CONFIG_DIR, folder.display().to_string()),
    ])
}

struct Worker<'w> {
    context: &'w Context,
    args: WorkArgs,
    agent: inn_client::Agent,
    program: Arc<Program>,
    /// No more claims.
    draining: CancellationToken,
    /// Programs are stopped and their requests released.
    stop: CancellationToken,
    running: JoinSet<Ending>,
    idle_since: Instant,
    all_completed: bool,
}

impl Worker<'_> {
    async fn run(mut self) -> CliResult<()> {
        let signals =
            tokio::spawn(signals(self.draining.clone(), self.stop.clone(), Duration::from_secs(self.args.grace)));
        self.context.out.say(format!(
            "Working as {} at {}. Ctrl-C stops.",
            self.agent.id(),
            self.context.client.platform()
        ));
        let ended = self.claims().await;
        self.draining.cancel();
        while let Some(ending) = self.running.join_next().await {
            self.ended(ending);
        }
        signals.abort();
        ended?;
        if self.args.once && !self.all_completed { Err(CliError::Said) } else { Ok(()) }
    }

    /// Claims and starts until there is a reason to end.
    async fn claims(&mut self) -> CliResult<()> {
        let mut pause = Pause::default();
        let mut started = 0_u32;
        let most = if self.args.once { 1 } else { self.args.concurrency };
        loop {
            while let Some(ending) = self.running.try_join_next() {
                self.ended(ending);
            }
            if self.draining.is_cancelled() || (self.args.once && started > 0) {
                return Ok(());
            }
            let busy = u32::try_from(self.running.len()).unwrap_or(u32::MAX);
            if busy >= most {
                self.one_ended().await;
                continue;
            }
            match self.claim(most - busy).await {
                Ok(claimed) if claimed.is_empty() => {
                    pause.reset();
                    if self.idle_too_long() {
                        self.context.out.say("Nothing came; ending.");
                        return Ok(());
                    }
                }
                Ok(claimed) => {
                    pause.reset();
                    for request in claimed {
                        started += 1;
                        self.start(request);
                    }
                }
                Err(error) => {
                    let Some(wait) = pause.after(&error) else { return Err(error.into()) };
                    if pause.is_first() {
                        self.context.out.say(format!("Claiming does not work, trying on: {error}"));
                    }
                    tokio::select! {
                        () = tokio::time::sleep(wait) => {}
                        () = self.draining.cancelled() => return Ok(()),
                    }
                }
            }
        }
    }

    fn idle_too_long(&self) -> bool {
        let limit = self.args.max_idle.map(Duration::from_secs);
        self.running.is_empty() && limit.is_some_and(|limit| self.idle_since.elapsed() >= limit)
    }

    async fn one_ended(&mut self) {
        let draining = self.draining.clone();
        tokio::select! {
            Some(ending) = self.running.join_next() => self.ended(ending),
            () = draining.cancelled() => {}
        }
    }

    /// One claim. While it waits other requests may end; when the worker is to stop, what it brings is given back.
    async fn claim(&mut self, max: u32) -> Result<Vec<Value>, ClientError> {
        let idle_left =
            self.args.max_idle.map(|limit| limit.saturating_sub(self.idle_since.elapsed().as_secs()).max(1));
        let wait = idle_left.map_or(WAIT_SECONDS, |left| u32::try_from(left).unwrap_or(WAIT_SECONDS).min(WAIT_SECONDS));
        let claim = self.agent.claim(&self.args.apps, &self.args.capabilities, max, wait);
        tokio::pin!(claim);
        let draining = self.draining.clone();
        tokio::select! {
            claimed = &mut claim => return claimed,
            () = draining.cancelled() => {}
        }
        self.context.out.say("Stopping.");
        let stop = self.stop.clone();
        let last = tokio::select! {
            claimed = claim => claimed,
            () = stop.cancelled() => return Ok(Vec::new()),
        };
        if let Ok(claimed) = last {
            for request in &claimed {
                let task = Task::new(self.context, &self.agent, &self.program, request.clone(), self.stop.clone());
                if let Ok(task) = task {
                    task.give_back("the worker stops").await;
                }
            }
        }
        Ok(Vec::new())
    }

    fn start(&mut self, request: Value) {
        self.idle_since = Instant::now();
        match Task::new(self.context, &self.agent, &self.program, request, self.stop.clone()) {
            Ok(task) => drop(self.running.spawn(task.run())),
            Err(why) => {
                self.all_completed = false;
                self.context.out.say(format!("A claimed request is not understood: {why}. Its lease will run out."));
            }
        }
    }

    fn ended(&mut self, ending: Result<Ending, tokio::task::JoinError>) {
        self.idle_since = Instant::now();
        match ending {
            Ok(ending) => {
                self.all_completed &= ending.is_completed();
                self.context.out.answer(&ending.document(), |_| ending.words());
            }
            Err(error) => {
                self.all_completed = false;
                self.context.out.say(format!("A request's task broke: {error}. Its lease will run out."));
            }
        }
    }
}

/// The first signal stops claiming; the second one, or the end of the grace, stops programs.
async fn signals(draining: CancellationToken, stop: CancellationToken, grace: Duration) {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut terminate), Ok(mut interrupt)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return;
    };
    let mut next = async || {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    next().await;
    draining.cancel();
    let _ = tokio::time::timeout(grace, next()).await;
    stop.cancel();
}

/// How long to wait after a claim that failed; grows while it goes on failing.
#[derive(Default)]
struct Pause(u32);

impl Pause {
    /// True after the first failure in a row.
    fn is_first(&self) -> bool {
        self.0 == 1
    }

    fn reset(&mut self) {
        self.0 = 0;
    }

    /// `None` for a refusal that will not change by waiting.
    fn after(&mut self, error: &ClientError) -> Option<Duration> {
        let asked = match error {
            ClientError::Unreachable { .. } | ClientError::Protocol { .. } => None,
            ClientError::Refused(body) if body.retry == "after" => {
                Some(Duration::from_secs(body.retry_after_seconds.unwrap_or(1)))
            }
            ClientError::Refused(body) if body.retry == "same_key" || body.status >= 500 => None,
            ClientError::Refused(_) | ClientError::Invalid(_) => return None,
        };
        let doubled = Duration::from_secs(1).saturating_mul(1 << self.0.min(5)).min(LONGEST_PAUSE);
        self.0 = self.0.saturating_add(1);
        let spread: f64 = rand::random();
        Some(doubled.mul_f64(0.5 + spread / 2.0).max(asked.unwrap_or_default()).min(LONGEST_PAUSE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use inn_client::RefusalBody;

    fn refused(status: u16, code: &str, retry: &str) -> ClientError {
        let body = serde_json::json!({"code": code, "message": "m", "retry": retry, "retryAfterSeconds": 7});
        ClientError::Refused(Box::new(RefusalBody::read(status, body.to_string().as_bytes(), None).unwrap()))
    }

    #[test]
    fn a_platform_that_is_away_is_waited_for_longer_and_longer_but_not_for_ever() {
        let mut pause = Pause::default();
        let away = ClientError::Unreachable { url: String::new(), cause: String::new(), sent: false };
        let waits: Vec<_> = (0..10).map(|_| pause.after(&away).unwrap()).collect();
        assert!(waits[0] <= Duration::from_secs(1) && waits[9] >= Duration::from_secs(15) && waits[9] <= LONGEST_PAUSE);
        pause.reset();
        assert!(pause.after(&away).unwrap() <= Duration::from_secs(1));
    }

    #[test]
    fn a_refusal_that_waiting_does_not_change_ends_the_worker() {
        let mut pause = Pause::default();
        assert_eq!(pause.after(&refused(401, "unknown_agent", "no")), None);
        assert_eq!(pause.after(&refused(403, "insufficient_scope", "no")), None);
        assert!(pause.after(&refused(429, "rate_limited", "after")).unwrap() >= Duration::from_secs(7));
        assert!(pause.after(&refused(500, "internal", "no")).is_some());
    }
}

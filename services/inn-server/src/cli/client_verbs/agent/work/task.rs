//! One claimed request from its claim to its end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use inn_client::{Agent, Answer, ClientError};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::super::super::context::Context;
use super::super::super::out::{Out, text};
use super::lease::{self, Claim};
use super::output::{MAX_REASON, shorten};
use super::program::{Ended, Program};

/// Attempts to deliver an answer while the platform is away.
const DELIVERIES: u32 = 8;
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

pub(super) struct Task {
    claim: Claim,
    program: Arc<Program>,
    input: Value,
    slug: String,
    capability: String,
    app_url: String,
    stop: CancellationToken,
}

/// How a request ended, for whoever watches the worker.
#[derive(Debug)]
pub(super) struct Ending {
    request: String,
    app: String,
    capability: String,
    outcome: &'static str,
    detail: Option<String>,
    took: Duration,
}

impl Ending {
    pub(super) fn is_completed(&self) -> bool {
        self.outcome == "completed"
    }

    pub(super) fn document(&self) -> Value {
        json!({
            "request": self.request,
            "app": self.app,
            "capability": self.capability,
            "outcome": self.outcome,
            "detail": self.detail,
            "ms": u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX),
        })
    }

    pub(super) fn words(&self) -> String {
        let detail = self.detail.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default();
        let line = format!(
            "{} {} {} {} after {:.1} s{detail}",
            self.request,
            self.app,
            self.capability,
            self.outcome,
            self.took.as_secs_f64()
        );
        Out::one_line(&line)
    }
}

impl Task {
    /// Reads a claimed request. Says what is missing when it is not one.
    pub(super) fn new(
        context: &Context,
        agent: &Agent,
        program: &Arc<Program>,
        mut request: Value,
        stop: CancellationToken,
    ) -> Result<Self, String> {
        let need = |pointer: &str| match text(&request, pointer) {
            value if value.is_empty() => Err(format!("it has no {}", pointer.trim_start_matches('/'))),
            value => Ok(value),
        };
        let (id, slug, capability) = (need("/id")?, need("/appSlug")?, need("/capability")?);
        let epoch = request.get("epoch").and_then(Value::as_i64).ok_or("it has no epoch")?;
        let lease = request.get("leaseSeconds").and_then(Value::as_u64).unwrap_or(30).clamp(3, 86_400);
        if let Some(request) = request.as_object_mut() {
            // Programs know an app by its slug.
            request.insert("app".to_owned(), slug.clone().into());
        }
        Ok(Self {
            claim: Claim { agent: agent.clone(), request: id, epoch, lease: Duration::from_secs(lease) },
            program: Arc::clone(program),
            input: request,
            app_url: context.client.app_url(&slug),
            slug,
            capability,
            stop,
        })
    }

    /// Runs the program and tells the platform how it went.
    pub(super) async fn run(self) -> Ending {
        let begun = Instant::now();
        let (steps, progress) = watch::channel(None);
        let (done, lost) = (CancellationToken::new(), CancellationToken::new());
        let keeper = tokio::spawn(lease::keep(self.claim.clone(), progress, done.clone(), lost.clone()));
        let halt = CancellationToken::new();
        let watcher = tokio::spawn(either(self.stop.clone(), lost.clone(), halt.clone()));
        let tag: String = self.claim.request.chars().rev().take(6).collect::<Vec<_>>().into_iter().rev().collect();
        let epoch = self.claim.epoch.to_string();
        let claim = format!("{};{epoch}", self.claim.request);
        let env = [
            ("INN_APP_URL", self.app_url.as_str()),
            ("INN_REQUEST", self.claim.request.as_str()),
            ("INN_EPOCH", epoch.as_str()),
            ("INN_CLAIM", claim.as_str()),
        ];
        let ended = self.program.run(&self.input, &env, &tag, steps, &halt).await;
        watcher.abort();
        let (outcome, detail) = if lost.is_cancelled() { ("lost", None) } else { self.tell(ended).await };
        done.cancel();
        let why = keeper.await.ok().flatten();
        let detail = if outcome == "lost" { why.or(detail) } else { detail };
        Ending {
            request: self.claim.request,
            app: self.slug,
            capability: self.capability,
            outcome,
            detail,
            took: begun.elapsed(),
        }
    }

    /// Gives the request back undone.
    pub(super) async fn give_back(self, why: &str) {
        let _ = self.deliver(|| self.claim.agent.release(&self.claim.request, self.claim.epoch, why)).await;
    }

    async fn tell(&self, ended: Ended) -> (&'static str, Option<String>) {
        let Claim { agent, request, epoch, .. } = &self.claim;
        let (outcome, sent, detail) = match ended {
            Ended::Result(result) => match self.deliver(|| agent.complete(request, *epoch, &result)).await {
                // The result does not fit the capability's schema: another attempt may do better.
                Err(error) if matches!(&error, ClientError::Refused(body) if body.status == 400 || body.status == 413) =>
                {
                    let reason = shorten(&format!("the result was refused: {error}"), MAX_REASON);
                    ("failed", self.deliver(|| agent.fail(request, *epoch, &reason)).await, Some(reason))
                }
                sent => ("completed", sent, None),
            },
            Ended::Failed(reason) => {
                let reason = shorten(&reason, MAX_REASON);
                ("failed", self.deliver(|| agent.fail(request, *epoch, &reason)).await, Some(reason))
            }
            Ended::Stopped => {
                ("released", self.deliver(|| agent.release(request, *epoch, "the worker stops")).await, None)
            }
        };
        match sent {
            Ok(()) => (outcome, detail),
            Err(error) if lease::is_lost(&error) => ("lost", Some(error.to_string())),
            Err(error) => ("undelivered", Some(error.to_string())),
        }
    }

    /// Sends an answer until it is taken, refused, or the platform has been away for too long.
    async fn deliver<F>(&self, send: impl Fn() -> F) -> Result<(), ClientError>
    where
        F: Future<Output = Result<Answer, ClientError>>,
    {
        let mut pause = FIRST_PAUSE;
        let mut maybe_landed = false;
        let mut attempt = 1;
        loop {
            let Err(error) = send().await else { return Ok(()) };
            // An earlier attempt got no answer: the claim is over because that attempt was taken.
            if maybe_landed && matches!(error.code(), Some("claim_lost" | "not_claimable" | "duplicate_request")) {
                return Ok(());
            }
            let wait = match &error {
                ClientError::Unreachable { .. } | ClientError::Protocol { .. } => Some(pause),
                ClientError::Refused(body) if body.retry == "after" => {
                    Some(Duration::from_secs(body.retry_after_seconds.unwrap_or(1)).max(pause).min(LONGEST_PAUSE))
                }
                ClientError::Refused(body) if body.retry == "same_key" || body.code == "signature_expired" => {
                    Some(pause)
                }
                ClientError::Refused(_) | ClientError::Invalid(_) => None,
            };
            maybe_landed |= error.outcome_unknown();
            attempt += 1;
            let Some(wait) = wait.filter(|_| attempt <= DELIVERIES) else { return Err(error) };
            tokio::time::sleep(wait).await;
            pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
        }
    }
}

async fn either(one: CancellationToken, other: CancellationToken, then: CancellationToken) {
    tokio::select! {
        () = one.cancelled() => {}
        () = other.cancelled() => {}
    }
    then.cancel();
}

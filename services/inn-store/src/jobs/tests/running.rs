//! Jobs that services carry out: taken by one node at a time, settled once, taken up again when a node is lost.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use inn_ports::{Jobs, StoreError, StoreResult};
use inn_protocol::job::{Job, JobError, JobState, NewJob, NewUpstreamJob, Report, RunOutcome, StartedJob};
use inn_protocol::request::Progress;
use inn_protocol::{AppId, Code, Digest, JobId};
use inn_rules::jobs::LEASE_SECONDS;
use serde_json::json;

use super::{said, seen};
use crate::PgStore;
use crate::people::fixture::{World, code};

fn token() -> Digest {
    Digest::of(b"token")
}

fn new(world: &World) -> NewUpstreamJob {
    NewUpstreamJob {
        job: NewJob { id: JobId::new(), operation: "board.export".to_owned(), agent: None, retry_of: None },
        params: json!({ "board": "b1" }),
        token: token(),
        requester: Some(world.owner),
        requester_label: "Ada".to_owned(),
        attempts: 3,
        deadline_seconds: 3_600,
        max_open: 1_000,
    }
}

async fn started(world: &World) -> JobId {
    world.store.start_job(&world.call("operations.run"), &world.app, &new(world)).await.unwrap().id
}

async fn taken(store: &PgStore, node: &str) -> StartedJob {
    let mut jobs = store.take_jobs(node, 10).await.unwrap();
    assert_eq!(jobs.len(), 1);
    jobs.remove(0)
}

fn done() -> RunOutcome {
    RunOutcome::Completed(json!({ "file": "a.pdf" }))
}

/// Pretends that this moment of every open job has passed.
async fn past(world: &World, column: &str) {
    let text = format!("UPDATE inn.jobs SET {column} = now() - interval '1 second' WHERE ended_at IS NULL");
    world.admin.batch_execute(&text).await.unwrap();
}

#[tokio::test]
async fn a_job_is_taken_renewed_and_settled_with_an_entry() {
    let world = World::new().await;
    let job = started(&world).await;
    assert_eq!(seen(&world, job).await.state, JobState::Queued);
    let run = taken(&world.store, "a").await;
    assert_eq!((run.job.id, run.job.attempt, run.job.node.as_deref()), (job, 1, Some("a")));
    assert!(world.store.take_jobs("b", 10).await.unwrap().is_empty(), "it is one node's");
    assert!(!world.store.renew_job("a", job, run.job.epoch).await.unwrap());
    assert!(seen(&world, job).await.lease_until >= run.job.lease_until);
    let after = world.store.settle_job("a", job, run.job.epoch, &done()).await.unwrap();
    assert_eq!((after.state, after.result), (JobState::Completed, Some(json!({ "file": "a.pdf" }))));
    assert_eq!(said(&world, job).await, ["state queued", "state running", "state completed"]);
    assert_eq!((world.entries("operations.run").await, world.entries("jobs.settle").await), (1, 1));
    assert_eq!(code(world.store.settle_job("a", job, run.job.epoch, &done()).await), Code::ClaimLost);
    assert_eq!(world.entries("jobs.settle").await, 1, "an outcome counts once");
}

#[tokio::test]
async fn a_job_of_a_lost_node_is_back_within_its_lease_and_two_seconds_and_counts_once() {
    let world = World::new().await;
    let job = started(&world).await;
    // The first node says nothing more after this; the second one sweeps and looks every 200 ms.
    let first = taken(&world.store, "first").await;
    let lost = Instant::now();
    let other = world.db.store().await;
    let again = loop {
        other.sweep_jobs().await.unwrap();
        if let Some(again) = other.take_jobs("second", 10).await.unwrap().pop() {
            break again;
        }
        assert!(lost.elapsed() < Duration::from_secs(u64::from(LEASE_SECONDS) + 2), "lease + 2 s");
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    assert!(lost.elapsed() >= Duration::from_secs(u64::from(LEASE_SECONDS) - 1), "not before its lease ended");
    assert_eq!((again.job.id, again.job.attempt, again.job.epoch), (job, 2, first.job.epoch + 1));
    let late = world.store.settle_job("first", job, first.job.epoch, &RunOutcome::Completed(json!("late"))).await;
    assert_eq!(code(late), Code::ClaimLost);
    assert_eq!(code(world.store.renew_job("first", job, first.job.epoch).await.map(|_| ())), Code::ClaimLost);
    other.settle_job("second", job, again.job.epoch, &done()).await.unwrap();
    let ended = seen(&world, job).await;
    assert_eq!(ended.result, Some(json!({ "file": "a.pdf" })));
    assert_eq!((ended.past_attempts.len(), ended.past_attempts[0].how.as_str()), (1, "lease_lost"));
    assert_eq!(world.entries("jobs.settle").await, 1, "the effect is there once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_nodes_take_every_job_exactly_once() {
    let world = World::new().await;
    let mut all = BTreeSet::new();
    for _ in 0..40 {
        all.insert(started(&world).await);
    }
    let nodes: Vec<_> = (0..8)
        .map(|number| {
            let store = world.store.clone();
            tokio::spawn(async move {
                let mut taken = Vec::new();
                loop {
                    let jobs = store.take_jobs(&format!("node-{number}"), 3).await.unwrap();
                    if jobs.is_empty() {
                        return taken;
                    }
                    taken.extend(jobs.into_iter().map(|run| run.job.id));
                }
            })
        })
        .collect();
    let mut taken = Vec::new();
    for node in nodes {
        taken.extend(node.await.unwrap());
    }
    // A node that only met rows others were taking saw nothing; what it left is there for the next look.
    while let Some(run) = world.store.take_jobs("last", 1).await.unwrap().pop() {
        taken.push(run.job.id);
    }
    assert_eq!(taken.len(), 40, "none twice");
    assert_eq!(taken.into_iter().collect::<BTreeSet<_>>(), all);
}

#[tokio::test]
async fn an_upstream_that_goes_on_is_looked_at_under_its_own_name() {
    let world = World::new().await;
    let job = started(&world).await;
    let run = taken(&world.store, "a").await;
    let progress = Some(Progress { step: "half".to_owned(), percent: 50 });
    let waits = RunOutcome::Waiting { look_after: 5, progress, remote: Some("r-1".to_owned()) };
    let waiting = world.store.settle_job("a", job, run.job.epoch, &waits).await.unwrap();
    assert_eq!(waiting.state, JobState::Waiting);
    assert!(world.store.take_jobs("b", 10).await.unwrap().is_empty(), "not before it is due");
    past(&world, "next_at").await;
    let look = taken(&world.store, "b").await;
    assert_eq!((look.remote.as_deref(), look.job.attempt), (Some("r-1"), 1));
    past(&world, "lease_until").await;
    world.store.sweep_jobs().await.unwrap();
    let look = taken(&world.store, "c").await;
    assert_eq!((look.remote.as_deref(), look.job.attempt), (Some("r-1"), 1), "a lost look costs no attempt");
    let error = JobError { code: "gone".to_owned(), message: "unknown there".to_owned() };
    let failed = RunOutcome::Failed { error, again: true };
    world.store.settle_job("c", job, look.job.epoch, &failed).await.unwrap();
    past(&world, "next_at").await;
    let again = taken(&world.store, "a").await;
    assert_eq!((again.remote, again.job.attempt), (None, 2), "the next attempt starts anew");
}

#[tokio::test]
async fn a_cancel_reaches_the_node_when_it_renews_its_lease() {
    let world = World::new().await;
    let job = started(&world).await;
    let run = taken(&world.store, "a").await;
    let asked = world.store.cancel_job(&world.call("jobs.cancel"), world.app.id, job, "no longer").await.unwrap();
    assert_eq!((asked.state, asked.cancel_requested), (JobState::Running, true));
    assert!(world.store.renew_job("a", job, run.job.epoch).await.unwrap(), "told to stop");
    let error = JobError { code: "stopped".to_owned(), message: String::new() };
    let stopped = RunOutcome::Failed { error, again: true };
    assert_eq!(world.store.settle_job("a", job, run.job.epoch, &stopped).await.unwrap().state, JobState::Canceled);

    let queued = started(&world).await;
    let canceled = world.store.cancel_job(&world.call("jobs.cancel"), world.app.id, queued, "no").await.unwrap();
    assert_eq!(canceled.state, JobState::Canceled);
    assert!(world.store.take_jobs("a", 10).await.unwrap().is_empty());
}

async fn report(world: &World, app: AppId, job: JobId, token: &Digest, what: Report) -> StoreResult<Job> {
    world.store.report_job(&world.call("jobs.report"), app, job, token, &what).await
}

#[tokio::test]
async fn a_service_reports_with_the_jobs_own_token_until_it_has_ended() {
    let world = World::new().await;
    let (job, other) = (started(&world).await, started(&world).await);
    let app = world.app.id;
    let log = || Report::Log("opened the file".to_owned());
    assert_eq!(code(report(&world, app, job, &Digest::of(b"guess"), log()).await), Code::JobNotFound);
    assert_eq!(code(report(&world, AppId::new(), job, &token(), log()).await), Code::JobNotFound);
    assert_eq!(code(report(&world, app, JobId::new(), &token(), log()).await), Code::JobNotFound);
    report(&world, app, job, &token(), log()).await.unwrap();
    let progress = Progress { step: "page 3".to_owned(), percent: 30 };
    report(&world, app, job, &token(), Report::Progress(progress.clone())).await.unwrap();
    let ended = report(&world, app, job, &token(), Report::Complete(json!(7))).await.unwrap();
    assert_eq!((ended.state, ended.result, ended.progress), (JobState::Completed, Some(json!(7)), Some(progress)));
    assert_eq!(code(report(&world, app, job, &token(), log()).await), Code::Conflict);
    assert_eq!(said(&world, job).await, ["state queued", "log opened the file", "progress page 3", "state completed"]);
    assert_eq!(world.entries("jobs.report").await, 3);
    let error = JobError { code: "no_paper".to_owned(), message: "the tray is empty".to_owned() };
    let failed = report(&world, app, other, &token(), Report::Fail(error.clone())).await.unwrap();
    assert_eq!((failed.state, failed.error), (JobState::Failed, Some(error)));
}

#[tokio::test]
async fn what_nobody_takes_or_ends_in_time_is_counted_and_ends() {
    let world = World::new().await;
    let job = started(&world).await;
    assert_eq!(world.store.stuck_jobs().await.unwrap(), 0);
    world.admin.batch_execute("UPDATE inn.jobs SET next_at = now() - interval '2 minutes'").await.unwrap();
    assert_eq!(world.store.stuck_jobs().await.unwrap(), 1, "no node takes it");
    past(&world, "deadline").await;
    assert!(world.store.take_jobs("a", 10).await.unwrap().is_empty(), "its time is over");
    assert_eq!(world.store.sweep_jobs().await.unwrap(), [world.app.id]);
    let ended = seen(&world, job).await;
    assert_eq!((ended.state, ended.error.unwrap().code.as_str()), (JobState::Failed, "out_of_time"));
    assert_eq!((world.store.stuck_jobs().await.unwrap(), world.entries("jobs.sweep").await), (0, 1));

    let orphan = started(&world).await;
    world.admin.batch_execute("UPDATE inn.apps SET status = 'removed'").await.unwrap();
    assert!(world.store.take_jobs("a", 10).await.unwrap().is_empty());
    world.store.sweep_jobs().await.unwrap();
    assert_eq!(seen(&world, orphan).await.error.unwrap().code, "app_removed");
}

#[tokio::test]
async fn an_app_may_have_so_many_open_jobs_and_no_more() {
    let world = World::new().await;
    let limited = || NewUpstreamJob { max_open: 2, ..new(&world) };
    let start = |new: NewUpstreamJob| {
        let world = &world;
        async move { world.store.start_job(&world.call("operations.run"), &world.app, &new).await }
    };
    start(limited()).await.unwrap();
    let second = start(limited()).await.unwrap();
    assert_eq!(code(start(limited()).await), Code::RateLimited);
    world.store.cancel_job(&world.call("x"), world.app.id, second.id, "r").await.unwrap();
    start(limited()).await.unwrap();
    let nothing = world.store.settle_job("a", JobId::new(), 1, &done()).await;
    assert!(matches!(nothing, Err(StoreError::Refused(refusal)) if refusal.code == Code::ClaimLost));
}

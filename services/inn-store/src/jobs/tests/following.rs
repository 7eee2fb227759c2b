//! A job of an agent's stands where its request stands, whoever changes the request.

use inn_ports::{Grants, Jobs, Requests};
use inn_protocol::grant::Grant;
use inn_protocol::job::{Job, JobState};
use inn_protocol::request::{HoldCommand, OperateCommand, Progress, QueueRequest};
use inn_protocol::{Code, JobId};
use inn_rules::jobs::of_request;
use serde_json::json;

use super::{of_job, said, seen};
use crate::people::fixture::{World, code, offer};

struct Asked {
    world: World,
    grant: Grant,
    job: JobId,
    request: QueueRequest,
}

impl Asked {
    async fn new() -> Self {
        let world = World::new().await;
        let grant = world.queue_grant().await;
        let job = JobId::new();
        let request = world.asked(&of_job(&world, job)).await;
        Self { world, grant, job, request }
    }

    async fn claimed(&self) -> QueueRequest {
        self.world.claim(&self.grant.agent, &[offer(&self.grant)], 1).await.unwrap().remove(0)
    }

    async fn hold(&self, epoch: i64, command: HoldCommand) {
        let call = self.world.call("requests.hold");
        self.world.store.hold(&call, self.request.id, &self.world.agent, epoch, &command).await.unwrap();
        self.agree().await;
    }

    /// The rule and the database say the same of both.
    async fn agree(&self) -> Job {
        let job = seen(&self.world, self.job).await;
        let request = self.world.store.request(self.world.app.id, self.request.id).await.unwrap().unwrap();
        assert_eq!(job.state, of_request(request.state));
        assert_eq!((job.attempt, job.epoch, &job.result), (request.attempt, request.epoch, &request.result));
        assert_eq!(job.progress, request.progress);
        assert_eq!(job.past_attempts.len(), request.past_attempts.len());
        assert_eq!(self.world.store.stuck_jobs().await.unwrap(), 0);
        job
    }

    async fn past(&self, column: &str) {
        let text = format!("UPDATE inn.requests SET {column} = now() - interval '1 second'");
        self.world.admin.batch_execute(&text).await.unwrap();
    }

    async fn cancel(&self, reason: &str) -> inn_ports::StoreResult<Job> {
        let world = &self.world;
        world.store.cancel_job(&world.call("jobs.cancel"), world.app.id, self.job, reason).await
    }
}

#[tokio::test]
async fn a_job_goes_with_its_request_from_the_first_claim_to_the_result() {
    let asked = Asked::new().await;
    assert_eq!(asked.agree().await.state, JobState::Queued);
    let epoch = asked.claimed().await.epoch;
    assert_eq!(asked.agree().await.state, JobState::Running);
    asked.hold(epoch, HoldCommand::Heartbeat).await;
    asked.hold(epoch, HoldCommand::Progress(Progress { step: "reading".to_owned(), percent: 40 })).await;
    asked.hold(epoch, HoldCommand::Ask { question: "Which board?".to_owned() }).await;
    let waits = asked.agree().await;
    assert_eq!((waits.state, waits.question.as_deref()), (JobState::Waiting, Some("Which board?")));
    let answer = OperateCommand::Answer { answer: json!("the red one"), by: "Ada".to_owned() };
    let world = &asked.world;
    world.store.operate(&world.call("x"), world.app.id, asked.request.id, &answer).await.unwrap();
    assert_eq!(asked.agree().await.question, None);
    asked.hold(epoch, HoldCommand::Complete(json!({"summary": "fine"}))).await;
    let done = asked.agree().await;
    assert_eq!((done.state, done.result), (JobState::Completed, Some(json!({"summary": "fine"}))));
    let expected = [
        "state queued",
        "state running",
        "progress reading",
        "state waiting: Which board?",
        "state running",
        "state completed",
    ];
    assert_eq!(said(world, asked.job).await, expected);
}

#[tokio::test]
async fn attempts_that_fail_go_back_and_end_with_their_reason() {
    let asked = Asked::new().await;
    let epoch = asked.claimed().await.epoch;
    asked.hold(epoch, HoldCommand::Fail { reason: "the printer is on fire".to_owned() }).await;
    let again = asked.agree().await;
    assert_eq!((again.state, again.attempt), (JobState::Queued, 1));
    assert!(again.next_at > Some(again.created_at), "it waits out a pause");
    assert_eq!(again.past_attempts[0].how, "failed");
    asked.past("next_at").await;
    asked.world.store.sweep_requests().await.unwrap();
    asked.claimed().await;
    asked.past("lease_until").await;
    asked.world.store.sweep_requests().await.unwrap();
    let failed = asked.agree().await;
    let error = failed.error.unwrap();
    assert_eq!((failed.state, error.code.as_str()), (JobState::Failed, "attempts_exhausted"));
    assert_eq!(error.message, "not_acknowledged");
}

#[tokio::test]
async fn a_revoked_grant_gives_the_job_back_to_the_queue() {
    let asked = Asked::new().await;
    asked.claimed().await;
    asked.world.store.revoke(&asked.world.call("grants.revoke"), asked.world.tenant, asked.grant.id).await.unwrap();
    assert_eq!(asked.agree().await.state, JobState::Queued);
}

#[tokio::test]
async fn canceling_the_job_takes_its_request_back_and_the_other_way_round() {
    let asked = Asked::new().await;
    let world = &asked.world;
    let epoch = asked.claimed().await.epoch;
    let canceled = asked.cancel("no longer needed").await.unwrap();
    let error = canceled.error.unwrap();
    assert_eq!((canceled.state, error.code.as_str()), (JobState::Canceled, "canceled"));
    assert_eq!(error.message, "no longer needed");
    asked.agree().await;
    let late = HoldCommand::Complete(json!(1));
    let late = world.store.hold(&world.call("x"), asked.request.id, &world.agent, epoch, &late).await;
    assert_eq!(code(late), Code::ClaimLost);
    assert_eq!(code(asked.cancel("again").await), Code::Conflict);
    assert_eq!(world.entries("jobs.cancel").await, 1, "the store writes what was done");

    let other = JobId::new();
    let request = world.asked(&of_job(world, other)).await;
    let reason = "canceled by its requester";
    world.store.cancel(&world.call("requests.cancel"), world.app.id, request.id, reason).await.unwrap();
    let job = seen(world, other).await;
    assert_eq!((job.state, job.error.unwrap().code.as_str()), (JobState::Canceled, "canceled"));
}

#[tokio::test]
async fn a_job_and_its_request_are_made_together_or_not_at_all() {
    let world = World::new().await;
    let job = JobId::new();
    world.admin.batch_execute("ALTER TABLE inn.job_lines ADD CONSTRAINT never CHECK (seq <> 1)").await.unwrap();
    world.store.ask(&world.call("operations.run"), &world.app, &of_job(&world, job)).await.unwrap_err();
    assert_eq!(world.count("SELECT count(*) FROM inn.requests").await, 0);
    assert_eq!(world.count("SELECT count(*) FROM inn.jobs").await, 0);
    assert_eq!(world.entries("operations.run").await, 0);
}

use inn_ports::{Grants, Requests, StoreError};
use inn_protocol::grant::Grant;
use inn_protocol::request::{HoldCommand, NewRequest, Progress, QueueRequest, RequestState};
use inn_protocol::{AgentId, Code, RequestId};
use serde_json::json;

use crate::people::fixture::{World, agent_number, code, offer, refusal};

struct Held {
    world: World,
    grant: Grant,
    request: QueueRequest,
}

impl Held {
    async fn new(new: impl Fn(&World) -> NewRequest) -> Self {
        let world = World::new().await;
        let grant = world.queue_grant().await;
        world.asked(&new(&world)).await;
        let request = claim(&world, &grant).await;
        Self { world, grant, request }
    }

    async fn say(&self, epoch: i64, command: HoldCommand) -> Result<QueueRequest, StoreError> {
        self.say_as(&self.world.agent, epoch, command).await
    }

    async fn say_as(&self, agent: &AgentId, epoch: i64, command: HoldCommand) -> Result<QueueRequest, StoreError> {
        self.world.store.hold(&self.world.call("requests.hold"), self.request.id, agent, epoch, &command).await
    }
}

async fn claim(world: &World, grant: &Grant) -> QueueRequest {
    world.claim(&grant.agent, &[offer(grant)], 1).await.unwrap().remove(0)
}

#[tokio::test]
async fn a_holder_beats_reports_and_completes() {
    let held = Held::new(World::request).await;
    let epoch = held.request.epoch;
    let beat = held.say(epoch, HoldCommand::Heartbeat).await.unwrap();
    assert!(beat.lease_until > held.request.lease_until);
    let progress = Progress { step: "reading".to_owned(), percent: 40 };
    let told = held.say(epoch, HoldCommand::Progress(progress.clone())).await.unwrap();
    assert_eq!(told.progress, Some(progress));
    let result = json!({ "summary": "all done", "n": [1, null] });
    let done = held.say(epoch, HoldCommand::Complete(result.clone())).await.unwrap();
    assert_eq!((done.state, done.result.as_ref(), done.lease_until), (RequestState::Completed, Some(&result), None));
    assert_eq!(done.holder, Some(held.world.agent.clone()), "who answered stays written");
    let seen = held.world.store.request(held.world.app.id, held.request.id).await.unwrap().unwrap();
    assert_eq!(seen.result, Some(result));
    assert_eq!(held.world.entries("requests.hold").await, 3);
    for command in
        [HoldCommand::Heartbeat, HoldCommand::Complete(json!(1)), HoldCommand::Release { reason: "x".into() }]
    {
        assert_eq!(code(held.say(epoch, command).await), Code::ClaimLost);
    }
}

#[tokio::test]
async fn an_old_epoch_and_another_agent_are_refused() {
    let held = Held::new(World::request).await;
    held.say(held.request.epoch, HoldCommand::Release { reason: "busy".to_owned() }).await.unwrap();
    let again = claim(&held.world, &held.grant).await;
    assert_eq!((again.attempt, again.epoch), (1, held.request.epoch + 1), "a released attempt does not count");
    for epoch in [held.request.epoch, 0, -1, i64::MAX] {
        assert_eq!(code(held.say(epoch, HoldCommand::Complete(json!(1))).await), Code::ClaimLost, "{epoch}");
    }
    let stranger = agent_number(3);
    let refused = held.say_as(&stranger, again.epoch, HoldCommand::Heartbeat).await;
    assert_eq!(code(refused), Code::NotFound, "what an agent never held, it does not know of");
    let unknown =
        held.world.store.hold(&held.world.call("x"), RequestId::new(), &stranger, 1, &HoldCommand::Heartbeat).await;
    assert_eq!(code(unknown), Code::NotFound);
    held.say(again.epoch, HoldCommand::Complete(json!(1))).await.unwrap();
}

#[tokio::test]
async fn a_failed_attempt_waits_and_the_last_one_ends_it() {
    let held = Held::new(|world| NewRequest { attempts: 2, ..world.request() }).await;
    let failed = held.say(held.request.epoch, HoldCommand::Fail { reason: "no network".to_owned() }).await.unwrap();
    assert_eq!((failed.state, failed.attempt, failed.holder.clone()), (RequestState::Submitted, 1, None));
    let waits = held.world.claim(&held.world.agent, &[offer(&held.grant)], 1).await.unwrap();
    assert!(waits.is_empty(), "the next attempt waits a little");
    assert!(held.world.claim(&held.world.agent, &[offer(&held.grant)], 1).await.unwrap().is_empty());
    held.world.admin.batch_execute("UPDATE inn.requests SET next_at = now(), ready = true").await.unwrap();
    let second = claim(&held.world, &held.grant).await;
    let ended = held.say(second.epoch, HoldCommand::Fail { reason: "still no network".to_owned() }).await.unwrap();
    assert_eq!(ended.state, RequestState::Failed);
    assert_eq!(ended.reason.as_deref(), Some("attempts_exhausted: still no network"));
}

#[tokio::test]
async fn who_held_it_once_may_still_look_and_nobody_else() {
    let held = Held::new(World::request).await;
    let other = agent_number(1);
    held.world.register(&other).await;
    let grant = held.world.granted(&other, held.world.owner, &["queue:summarise-board"], true).await;
    held.say(held.request.epoch, HoldCommand::Release { reason: "x".to_owned() }).await.unwrap();
    let looks = |agent: AgentId| {
        let held = &held;
        async move { held.world.store.held_request(&agent, held.request.id).await.unwrap() }
    };
    assert!(looks(other.clone()).await.is_none());
    let second = claim(&held.world, &grant).await;
    assert!(looks(other.clone()).await.is_some() && looks(held.world.agent.clone()).await.is_some());
    assert_eq!(code(held.say(held.request.epoch, HoldCommand::Heartbeat).await), Code::ClaimLost);
    held.say_as(&other, second.epoch, HoldCommand::Complete(json!({}))).await.unwrap();
    assert_eq!(looks(held.world.agent.clone()).await.unwrap().state, RequestState::Completed);
    assert!(looks(agent_number(2)).await.is_none());
}

#[tokio::test]
async fn a_claim_under_a_grant_that_is_marked_revoked_says_so() {
    let held = Held::new(World::request).await;
    // As a revocation of another node would look to a call that locked the request first.
    held.world.admin.batch_execute("UPDATE inn.grants SET revoked_at = now()").await.unwrap();
    let refused = refusal(held.say(held.request.epoch, HoldCommand::Heartbeat).await);
    assert_eq!((refused.code, refused.leg), (Code::ClaimLost, Some("grant")));
    assert!(refused.message.contains("revoked"), "{}", refused.message);
}

#[tokio::test]
async fn progress_out_of_bounds_is_refused() {
    let held = Held::new(World::request).await;
    for progress in [Progress { step: "x".repeat(201), percent: 1 }, Progress { step: "x".to_owned(), percent: 101 }] {
        let refused = held.say(held.request.epoch, HoldCommand::Progress(progress)).await;
        assert_eq!(code(refused), Code::InvalidParameter);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_answers_at_once_one_counts() {
    let held = Held::new(World::request).await;
    let answers: Vec<_> = (0..8)
        .map(|number| {
            let (store, call, agent) = (held.world.store.clone(), held.world.call("x"), held.world.agent.clone());
            let (id, epoch) = (held.request.id, held.request.epoch);
            tokio::spawn(
                async move { store.hold(&call, id, &agent, epoch, &HoldCommand::Complete(json!(number))).await },
            )
        })
        .collect();
    let mut counted = 0;
    for answer in answers {
        match answer.await.unwrap() {
            Ok(_) => counted += 1,
            Err(error) => assert_eq!(code::<()>(Err(error)), Code::ClaimLost),
        }
    }
    assert_eq!(counted, 1);
}

#[tokio::test]
async fn a_holder_whose_person_may_no_longer_answer_has_lost_the_claim() {
    let held = Held::new(World::request).await;
    let (world, epoch) = (&held.world, held.request.epoch);
    let takes_away = [
        ("UPDATE inn.members SET role = 'viewer'", "UPDATE inn.members SET role = 'editor'"),
        ("UPDATE inn.members SET removed_at = now()", "UPDATE inn.members SET removed_at = NULL"),
        ("UPDATE inn.users SET disabled_at = now()", "UPDATE inn.users SET disabled_at = NULL"),
    ];
    for (taken, given) in takes_away {
        world.admin.batch_execute(taken).await.unwrap();
        for command in [HoldCommand::Heartbeat, HoldCommand::Complete(json!({}))] {
            let refused = refusal(held.say(epoch, command).await);
            assert_eq!((refused.code, refused.leg), (Code::ClaimLost, Some("user")), "{taken}");
            assert!(refused.message.contains("may no longer answer requests"), "{}", refused.message);
        }
        world.admin.batch_execute(given).await.unwrap();
    }
    let done = held.say(epoch, HoldCommand::Complete(json!({}))).await.unwrap();
    assert_eq!(done.state, RequestState::Completed);
}

#[tokio::test]
async fn what_was_said_about_an_earlier_attempt_does_not_outlive_it() {
    let held = Held::new(World::request).await;
    let world = &held.world;
    let released = held.say(held.request.epoch, HoldCommand::Release { reason: "busy".to_owned() }).await.unwrap();
    assert_eq!(released.reason.as_deref(), Some("busy"), "while it waits, it says why");
    let again = claim(world, &held.grant).await;
    assert_eq!(again.reason, None, "a claim begins anew");
    // Revoked under the holder, claimed under another grant, completed.
    world.store.revoke(&world.call("x"), world.tenant, held.grant.id).await.unwrap();
    let fenced = world.store.request(world.app.id, held.request.id).await.unwrap().unwrap();
    assert!(fenced.reason.is_some_and(|reason| reason.contains("revoked")));
    let claimed = claim(world, &world.queue_grant().await).await;
    // As an earlier release of ours left it.
    world.admin.batch_execute("UPDATE inn.requests SET reason = 'grant_revoked'").await.unwrap();
    let done = held.say(claimed.epoch, HoldCommand::Complete(json!({}))).await.unwrap();
    assert_eq!((done.state, done.reason), (RequestState::Completed, None));
}

use inn_ports::{Requests, StoreError};
use inn_protocol::grant::Grant;
use inn_protocol::request::{
    AttemptEnd, CancelFilter, HoldCommand, NewRequest, OperateCommand, QueueRequest, RequestState,
};
use inn_protocol::{AppId, Code, RequestId};
use serde_json::json;

use crate::people::fixture::{World, code, offer, refusal};

async fn held(world: &World, grant: &Grant) -> QueueRequest {
    world.asked(&world.request()).await;
    let request = world.claim(&world.agent, &[offer(grant)], 1).await.unwrap().remove(0);
    say(world, &request, HoldCommand::Heartbeat).await.unwrap()
}

async fn say(world: &World, request: &QueueRequest, command: HoldCommand) -> Result<QueueRequest, StoreError> {
    world.store.hold(&world.call("requests.hold"), request.id, &world.agent, request.epoch, &command).await
}

async fn operate(world: &World, request: RequestId, command: OperateCommand) -> Result<QueueRequest, StoreError> {
    world.store.operate(&world.call("requests.operate"), world.app.id, request, &command).await
}

#[tokio::test]
async fn a_question_and_its_answer_stay_with_the_request_and_its_holder() {
    let world = World::new().await;
    let grant = world.queue_grant().await;
    let request = held(&world, &grant).await;
    let ask = || HoldCommand::Ask { question: "Which\0board?".to_owned() };
    let asked = say(&world, &request, ask()).await.unwrap();
    assert_eq!((asked.state, asked.epoch), (RequestState::InputRequired, request.epoch));
    assert!(asked.lease_until.unwrap() > request.lease_until.unwrap() + chrono::Duration::days(6));
    assert_eq!(code(say(&world, &request, ask()).await), Code::Conflict);
    world.store.sweep_requests().await.unwrap();
    assert_eq!(world.store.stuck().await.unwrap(), 0);

    // What the JSON of a person may hold, a column must keep.
    let answer = json!({ "\u{0}": ["the \u{0} one", 1e300, null] });
    let command = OperateCommand::Answer { answer: answer.clone(), by: "ada".to_owned() };
    let answered = operate(&world, request.id, command.clone()).await.unwrap();
    assert_eq!((answered.state, answered.holder.as_ref()), (RequestState::Working, Some(&world.agent)));
    assert_eq!(code(operate(&world, request.id, command).await), Code::Conflict);
    let beat = say(&world, &request, HoldCommand::Heartbeat).await.unwrap();
    let [question] = &beat.questions[..] else { panic!("{:?}", beat.questions) };
    assert_eq!((question.answer.as_ref(), question.answered_by.as_deref()), (Some(&answer), Some("ada")));
    assert!(question.answered_at >= Some(question.asked_at));
    say(&world, &request, HoldCommand::Complete(json!({ "summary": "x" }))).await.unwrap();
    assert_eq!(world.count("SELECT count(*) FROM inn.outbox WHERE topic = 'requests.asked-back'").await, 1);
    assert_eq!(world.count("SELECT count(*) FROM inn.outbox WHERE topic = 'requests.answered'").await, 1);
}

#[tokio::test]
async fn a_question_nobody_answers_ends_the_request() {
    let world = World::new().await;
    let grant = world.queue_grant().await;
    let request = held(&world, &grant).await;
    say(&world, &request, HoldCommand::Ask { question: "Well?".to_owned() }).await.unwrap();
    world.admin.batch_execute("UPDATE inn.requests SET lease_until = now() - interval '2 minutes'").await.unwrap();
    assert_eq!(world.store.stuck().await.unwrap(), 1, "nobody swept it");
    world.store.sweep_requests().await.unwrap();
    let ended = world.store.request(world.app.id, request.id).await.unwrap().unwrap();
    assert_eq!((ended.state, ended.past_attempts[0].how), (RequestState::Failed, AttemptEnd::NotAnswered));
}

#[tokio::test]
async fn what_is_taken_back_fences_its_holder_and_can_be_claimed_at_once() {
    let world = World::new().await;
    let grant = world.queue_grant().await;
    let request = held(&world, &grant).await;
    let take = || OperateCommand::Release { reason: "hangs".to_owned() };
    let back = operate(&world, request.id, take()).await.unwrap();
    assert_eq!((back.state, back.attempt, back.holder), (RequestState::Submitted, 0, None));
    assert_eq!((back.past_attempts.len(), back.past_attempts[0].how), (1, AttemptEnd::TakenBack));
    let lost = refusal(say(&world, &request, HoldCommand::Heartbeat).await);
    assert_eq!(lost.code, Code::ClaimLost);
    assert_eq!(lost.lost.map(|lost| (lost.state, lost.epoch)), Some((RequestState::Submitted, request.epoch)));
    let again = world.claim(&world.agent, &[offer(&grant)], 1).await.unwrap().remove(0);
    assert_eq!((again.id, again.epoch), (request.id, request.epoch + 1));
    let lost = refusal(say(&world, &request, HoldCommand::Heartbeat).await);
    assert_eq!(lost.lost.map(|lost| lost.epoch), Some(again.epoch), "the new epoch is told");
    assert_eq!(code(operate(&world, RequestId::new(), take()).await), Code::NotFound);
    let elsewhere = world.store.operate(&world.call("x"), AppId::new(), request.id, &take()).await;
    assert_eq!(code(elsewhere), Code::NotFound, "apps do not see each other's requests");
}

#[tokio::test]
async fn what_is_ended_by_hand_is_a_dead_letter_and_stays_one() {
    let world = World::new().await;
    let grant = world.queue_grant().await;
    let request = held(&world, &grant).await;
    let end = || OperateCommand::Fail { reason: "hopeless".to_owned() };
    let ended = operate(&world, request.id, end()).await.unwrap();
    assert_eq!((ended.state, ended.reason.as_deref()), (RequestState::Failed, Some("failed_by_hand: hopeless")));
    assert_eq!(code(operate(&world, request.id, end()).await), Code::Conflict);
    let again = NewRequest { replay_of: Some(request.id), priority: 1, ..world.request() };
    let again = world.asked(&again).await;
    assert_eq!((again.replay_of, again.priority), (Some(request.id), 1));
}

#[tokio::test]
async fn past_attempts_are_told_in_order_and_the_oldest_are_forgotten() {
    let world = World::new().await;
    let grant = world.queue_grant().await;
    world.asked(&world.request()).await;
    let rounds = QueueRequest::MOST_PAST + 3;
    for round in 0..rounds {
        let claimed = world.claim(&world.agent, &[offer(&grant)], 1).await.unwrap().remove(0);
        let release = HoldCommand::Release { reason: format!("round {round}") };
        say(&world, &claimed, release).await.unwrap();
    }
    let request = world.store.requests(world.app.id, None, None, 1).await.unwrap().remove(0);
    assert_eq!(request.past_attempts.len(), QueueRequest::MOST_PAST);
    let last = request.past_attempts.last().unwrap();
    assert_eq!((last.reason.as_deref(), last.epoch), (Some(format!("round {}", rounds - 1).as_str()), request.epoch));
    assert!(request.past_attempts.windows(2).all(|two| two[0].epoch < two[1].epoch));
}

#[tokio::test]
async fn a_claim_without_a_word_goes_back_and_says_so() {
    let world = World::new().await;
    let grant = world.queue_grant().await;
    world.asked(&world.request()).await;
    let claimed = world.claim(&world.agent, &[offer(&grant)], 1).await.unwrap().remove(0);
    world.admin.batch_execute("UPDATE inn.requests SET lease_until = now() - interval '1 ms'").await.unwrap();
    world.store.sweep_requests().await.unwrap();
    let back = world.store.request(world.app.id, claimed.id).await.unwrap().unwrap();
    assert_eq!((back.state, back.reason.as_deref()), (RequestState::Submitted, Some("not_acknowledged")));
    assert_eq!((back.past_attempts[0].how, &back.past_attempts[0].agent), (AttemptEnd::NotAcknowledged, &world.agent));
}

#[tokio::test]
async fn many_are_canceled_at_once_by_kind_state_and_age() {
    let world = World::new().await;
    let grant = world.queue_grant().await;
    let held = held(&world, &grant).await;
    for _ in 0..3 {
        world.asked(&world.request()).await;
    }
    let cancel = |filter: CancelFilter| {
        let world = &world;
        async move {
            world.store.cancel_many(&world.call("requests.cancel-many"), world.app.id, &filter, "tidy").await.unwrap()
        }
    };
    let other = CancelFilter { capability: Some("dig-a-hole".to_owned()), ..CancelFilter::default() };
    assert_eq!(cancel(other).await, (0, false));
    let old = CancelFilter { older_than_seconds: Some(3_600), ..CancelFilter::default() };
    assert_eq!(cancel(old).await, (0, false));
    let waiting = CancelFilter { state: Some(RequestState::Submitted), ..CancelFilter::default() };
    assert_eq!(cancel(waiting).await, (3, false));
    let elsewhere =
        world.store.cancel_many(&world.call("x"), AppId::new(), &CancelFilter::default(), "x").await.unwrap();
    assert_eq!(elsewhere, (0, false));
    assert_eq!(cancel(CancelFilter::default()).await, (1, false));
    assert_eq!(code(say(&world, &held, HoldCommand::Heartbeat).await), Code::ClaimLost);
}

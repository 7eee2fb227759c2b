//! What a holder asks back, and what members do over a holder's head.

use inn_tests::{Reply, kanban};
use serde_json::{Value, json};

use super::{Asked, asked, epoch};

impl Asked {
    /// One call of the owner about the request.
    async fn by_owner(&self, verb: &str, mut body: Value) -> Reply {
        body["app"] = kanban::SLUG.into();
        self.host.door().post(format!("/v1/requests/{}/{verb}", self.request), &body).by(&self.owner).send().await
    }

    /// One call of the agent about its claim.
    async fn by_agent(&self, claimed: &Value, verb: &str, mut body: Value) -> Reply {
        body["epoch"] = claimed["epoch"].clone();
        self.agent.queue(&format!("{}/{verb}", self.request), &body).send().await
    }

    async fn claimed(&self) -> Value {
        let claimed = self.agent.claim().await.expect("the request");
        assert_eq!(claimed["acknowledged"], false);
        let beat = self.by_agent(&claimed, "heartbeat", json!({})).await.expect(200);
        assert_eq!(beat["acknowledged"], true);
        claimed
    }
}

#[tokio::test]
async fn a_claim_its_agent_never_speaks_of_is_back_within_seconds() {
    let it = asked().await;
    it.agent.claim().await.expect("the request");
    let left = "SELECT extract(epoch FROM lease_until - clock_timestamp())::float8 FROM inn.requests";
    let seconds: f64 = it.host.sql().await.query_one(left, &[]).await.unwrap().get(0);
    assert!(seconds <= 15.0, "{seconds}");
    it.let_leases_end().await;
    let task = it.wait_for("submitted").await;
    // Counted: an agent that claims and says nothing would bounce it for ever.
    assert_eq!((&task["attempt"], &task["reason"]), (&json!(1), &json!("not_acknowledged")), "{task}");
}

#[tokio::test]
async fn an_agent_asks_back_and_the_same_agent_gets_the_answer() {
    let it = asked().await;
    let claimed = it.claimed().await;
    let question = json!({"question": "Which of the two lists?"});
    let asked = it.by_agent(&claimed, "ask", question.clone()).await.expect(200);
    assert_eq!((&asked["state"], &asked["epoch"]), (&json!("input-required"), &claimed["epoch"]));
    it.by_agent(&claimed, "ask", question).await.refused(409, "conflict");
    // The requester sees the question where it asked.
    let task = it.task().await;
    assert_eq!(
        (&task["status"], &task["ask"]),
        (&json!("input-required"), &json!("Which of the two lists?")),
        "{task}"
    );
    assert!(it.agent.claim().await.is_none(), "it is still held");

    it.by_owner("answer", json!({})).await.refused(400, "invalid_body");
    let answered = it.by_owner("answer", json!({"answer": {"list": "Doing"}})).await.expect(200);
    assert_eq!(answered["state"], "working");
    it.by_owner("answer", json!({"answer": "once more"})).await.refused(409, "conflict");
    let beat = it.by_agent(&claimed, "heartbeat", json!({})).await.expect(200);
    assert_eq!(beat["questions"][0]["answer"], json!({"list": "Doing"}), "{beat}");
    assert_eq!(beat["questions"][0]["answeredBy"], it.owner.email.as_str());
    it.by_agent(&claimed, "complete", json!({"result": {"summary": "Done."}})).await.expect(200);
}

#[tokio::test]
async fn the_user_of_the_app_answers_where_they_asked() {
    let it = asked().await;
    let claimed = it.claimed().await;
    it.by_agent(&claimed, "ask", json!({"question": "Which one?"})).await.expect(200);
    let path = format!("/apps/{}/api/_a2app/tasks/{}/answer", kanban::SLUG, it.request);
    let answer = |answer: Value| it.host.door().post(&path, &json!({"answer": answer}));
    answer(json!("x")).send().await.refused(401, "agent_token_required");
    answer(json!("x".repeat(70_000))).by(&it.owner).send().await.refused(400, "invalid_parameter");
    let task = answer(json!("The first.")).by(&it.owner).send().await.expect(200);
    assert_eq!((&task["status"], &task["ask"]), (&json!("working"), &Value::Null));
    assert_eq!(task["questions"][0]["answer"], "The first.");
}

#[tokio::test]
async fn what_a_member_takes_back_fences_its_agent_and_is_free_at_once() {
    let it = asked().await;
    let claimed = it.claimed().await;
    let back = it.by_owner("take-back", json!({"reason": "it hangs"})).await.expect(200);
    assert_eq!((&back["state"], &back["holder"]), (&json!("submitted"), &Value::Null));
    assert_eq!(back["pastAttempts"][0]["how"], "taken_back", "{back}");
    it.by_owner("take-back", json!({})).await.refused(409, "conflict");
    let lost = it.by_agent(&claimed, "heartbeat", json!({})).await.refused(409, "claim_lost");
    assert_eq!((&lost["lost"]["state"], &lost["lost"]["epoch"]), (&json!("submitted"), &claimed["epoch"]), "{lost}");
    let again = it.agent.claim().await.expect("it is free");
    assert_eq!(again["attempt"], 1, "an attempt that was taken away is not counted");
    let lost = it.by_agent(&claimed, "complete", json!({"result": {"summary": "late"}})).await;
    let lost = lost.refused(409, "claim_lost");
    assert_eq!((&lost["lost"]["state"], &lost["lost"]["epoch"]), (&json!("working"), &again["epoch"]), "{lost}");
    assert!(epoch(&again) > epoch(&claimed));
}

#[tokio::test]
async fn what_a_member_ends_is_a_dead_letter_that_can_be_replayed() {
    let it = asked().await;
    it.by_owner("replay", json!({})).await.refused(409, "conflict");
    let claimed = it.claimed().await;
    let ended = it.by_owner("end", json!({"reason": "wrong board"})).await.expect(200);
    assert_eq!((&ended["state"], &ended["reason"]), (&json!("failed"), &json!("failed_by_hand: wrong board")));
    it.by_agent(&claimed, "heartbeat", json!({})).await.refused(409, "claim_lost");
    it.by_owner("end", json!({})).await.refused(409, "conflict");
    let replayed = it.by_owner("replay", json!({})).await.expect(201);
    assert_eq!((&replayed["replayOf"], &replayed["state"]), (&json!(it.request), &json!("submitted")));
    assert_eq!(replayed["payload"], json!({"board": it.board}));
    assert_eq!(replayed["requesterLabel"], it.owner.email.as_str());
    assert_eq!(it.agent.claim().await.unwrap()["id"], replayed["id"]);
    assert_eq!(it.task().await["status"], "failed", "what has ended stays as it ended");
}

#[tokio::test]
async fn many_are_canceled_by_capability_state_and_age() {
    let it = asked().await;
    let claimed = it.claimed().await;
    for _ in 0..3 {
        kanban::ask(it.host.door(), &it.owner, &it.board).await;
    }
    let door = it.host.door();
    let cancel = |body: Value| door.post("/v1/requests/cancel", &body);
    let old = json!({"app": kanban::SLUG, "olderThanSeconds": 3600});
    let none = cancel(old).by(&it.owner).send().await.expect(200);
    assert_eq!(none, json!({"canceled": 0, "more": false}));
    let other = json!({"app": kanban::SLUG, "capability": "dig-a-hole"});
    assert_eq!(cancel(other).by(&it.owner).send().await.expect(200)["canceled"], 0);
    let waiting = json!({"app": kanban::SLUG, "state": "submitted", "reason": "spring cleaning"});
    cancel(waiting.clone()).by(&it.host.viewer().await).send().await.refused(403, "forbidden");
    assert_eq!(cancel(waiting).by(&it.owner).send().await.expect(200)["canceled"], 3);
    it.by_agent(&claimed, "heartbeat", json!({})).await.expect(200);
    let ended = json!({"app": kanban::SLUG, "state": "completed"});
    cancel(ended).by(&it.owner).send().await.refused(400, "invalid_parameter");
    assert_eq!(cancel(json!({"app": kanban::SLUG})).by(&it.owner).send().await.expect(200)["canceled"], 1);
    let lost = it.by_agent(&claimed, "heartbeat", json!({})).await.refused(409, "claim_lost");
    assert_eq!(lost["lost"]["state"], "canceled");
}

#[tokio::test]
async fn who_may_not_work_on_the_app_operates_nothing() {
    let it = asked().await;
    let claimed = it.claimed().await;
    let (viewer, rival) = (it.host.viewer().await, it.host.rival().await);
    for verb in ["answer", "take-back", "end", "replay"] {
        let path = format!("/v1/requests/{}/{verb}", it.request);
        let body =
            if verb == "answer" { json!({"app": kanban::SLUG, "answer": 1}) } else { json!({"app": kanban::SLUG}) };
        let send = || it.host.door().post(&path, &body);
        send().by(&viewer).send().await.refused(403, "forbidden");
        assert_eq!(send().by(&rival).send().await.status, 404);
        assert_eq!(send().send().await.status, 401);
    }
    it.by_agent(&claimed, "heartbeat", json!({})).await.expect(200);
}

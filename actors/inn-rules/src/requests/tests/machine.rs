use inn_protocol::Code;
use inn_protocol::request::{AttemptEnd, HoldCommand, OperateCommand, Progress, RequestState};
use serde_json::json;

use super::{after, after_at, agent, at, waiting};
use crate::requests::{
    ACKNOWLEDGE_SECONDS, ANSWER_SECONDS, Facts, back_off, cancel, claim, expire, fence, give_up, hold, operate,
    replayable,
};

/// Claimed at 0.
fn fresh() -> Facts {
    after(&waiting(), &claim(&waiting(), &agent('a'), at(0)).unwrap())
}

/// Claimed and acknowledged at 0.
fn held() -> Facts {
    after(&fresh(), &hold(&fresh(), &agent('a'), 1, &HoldCommand::Heartbeat, at(0)).unwrap())
}

/// Waits since 10 for an answer.
fn asking() -> Facts {
    let ask = HoldCommand::Ask { question: "Which board?".to_owned() };
    after_at(&held(), &hold(&held(), &agent('a'), 1, &ask, at(10)).unwrap(), at(10))
}

fn answer() -> OperateCommand {
    OperateCommand::Answer { answer: json!("the red one"), by: "ada".to_owned() }
}

fn fail() -> HoldCommand {
    HoldCommand::Fail { reason: "no model".to_owned() }
}

#[test]
fn a_claim_takes_a_short_lease_an_attempt_and_the_next_epoch_and_its_first_word_makes_the_lease_long() {
    let fresh = fresh();
    assert_eq!(fresh.lease_until, Some(at(i64::from(ACKNOWLEDGE_SECONDS))));
    assert_eq!((fresh.acknowledged, fresh.hard_until), (false, Some(at(3_600))));
    let brief = claim(&Facts { lease_seconds: 5, ..waiting() }, &agent('a'), at(0)).unwrap();
    assert_eq!(brief.lease_until, Some(at(5)), "never longer than the lease itself");
    let held = held();
    assert!(held.acknowledged);
    assert_eq!(held.state, RequestState::Working);
    assert_eq!((held.epoch, held.attempt), (1, 1));
    assert_eq!(held.holder, Some(agent('a')));
    assert_eq!(held.lease_until, Some(at(60)));
}

#[test]
fn only_what_waits_and_is_due_and_has_attempts_left_can_be_claimed() {
    let cases = [
        held(),
        Facts { state: RequestState::Completed, ..waiting() },
        Facts { next_at: Some(at(1)), ..waiting() },
        Facts { attempt: 3, ..waiting() },
        Facts { epoch: i64::MAX, ..waiting() },
    ];
    for facts in cases {
        assert_eq!(claim(&facts, &agent('b'), at(0)).unwrap_err().code, Code::NotClaimable, "{facts:?}");
    }
    assert!(claim(&Facts { next_at: Some(at(0)), ..waiting() }, &agent('b'), at(0)).is_ok());
}

#[test]
fn only_the_holder_of_the_current_epoch_may_speak() {
    let held = held();
    let requeued = Facts { state: RequestState::Submitted, holder: None, lease_until: None, ..held.clone() };
    let cases = [
        (held.clone(), 'a', 0, "an old epoch"),
        (held.clone(), 'a', 2, "an epoch that is not yet"),
        (held.clone(), 'b', 1, "another agent"),
        (requeued, 'a', 1, "expired and requeued"),
        (Facts { state: RequestState::Completed, ..held.clone() }, 'a', 1, "completed"),
        (Facts { state: RequestState::Failed, ..held.clone() }, 'a', 1, "failed"),
        (Facts { state: RequestState::Canceled, ..held }, 'a', 1, "canceled"),
    ];
    for (facts, by, epoch, why) in cases {
        for command in [HoldCommand::Heartbeat, HoldCommand::Complete(json!(1)), fail()] {
            let refusal = hold(&facts, &agent(by), epoch, &command, at(1)).unwrap_err();
            assert_eq!(refusal.code, Code::ClaimLost, "{why}");
        }
    }
}

#[test]
fn a_late_answer_counts_as_long_as_nobody_took_the_request_back() {
    let change = hold(&held(), &agent('a'), 1, &HoldCommand::Complete(json!({"text": "x"})), at(90)).unwrap();
    assert_eq!(change.state, RequestState::Completed);
    assert_eq!(change.result, Some(json!({"text": "x"})));
    assert_eq!(change.holder, Some(agent('a')), "who ended it stays known");
    assert_eq!(change.lease_until, None);
}

#[test]
fn a_heartbeat_and_progress_extend_the_lease_and_never_shorten_it() {
    let held = held();
    let beat = hold(&held, &agent('a'), 1, &HoldCommand::Heartbeat, at(30)).unwrap();
    assert_eq!(beat.lease_until, Some(at(90)));
    let early = hold(&held, &agent('a'), 1, &HoldCommand::Heartbeat, at(-30)).unwrap();
    assert_eq!(early.lease_until, Some(at(60)));
    let progress = Progress { step: "reading".to_owned(), percent: 40 };
    let change = hold(&held, &agent('a'), 1, &HoldCommand::Progress(progress.clone()), at(10)).unwrap();
    assert_eq!((change.lease_until, change.progress), (Some(at(70)), Some(progress)));
}

#[test]
fn progress_out_of_bounds_is_refused_with_every_violation() {
    let progress = Progress { step: "x".repeat(201), percent: 101 };
    let refusal = hold(&held(), &agent('a'), 1, &HoldCommand::Progress(progress), at(1)).unwrap_err();
    assert_eq!(refusal.code, Code::InvalidParameter);
    let fields: Vec<_> = refusal.violations.iter().map(|v| v.field.as_str()).collect();
    assert_eq!(fields, ["step", "percent"]);
}

#[test]
fn a_failure_waits_longer_each_time_and_ends_with_the_attempts() {
    assert_eq!([1, 2, 3, 8, 9, 40].map(back_off), [2, 4, 8, 256, 300, 300]);
    let change = hold(&held(), &agent('a'), 1, &fail(), at(5)).unwrap();
    assert_eq!((change.state, change.next_at), (RequestState::Submitted, Some(at(7))));
    assert_eq!(change.reason.as_deref(), Some("no model"));
    let last = Facts { attempt: 3, ..held() };
    let change = hold(&last, &agent('a'), 1, &fail(), at(5)).unwrap();
    assert_eq!(change.state, RequestState::Failed);
    assert_eq!(change.reason.as_deref(), Some("attempts_exhausted: no model"));
}

#[test]
fn a_release_and_a_revocation_do_not_count_the_attempt() {
    let release = HoldCommand::Release { reason: "shutting down".to_owned() };
    let released = hold(&held(), &agent('a'), 1, &release, at(5)).unwrap();
    let fenced = fence(&held(), at(5)).unwrap();
    for change in [released, fenced] {
        assert_eq!((change.state, change.attempt, change.epoch), (RequestState::Submitted, 0, 1));
        assert_eq!((change.holder, change.next_at), (None, Some(at(5))));
    }
    assert_eq!(fence(&waiting(), at(5)), None);
}

#[test]
fn a_lapsed_lease_requeues_and_dead_letters_when_attempts_are_used_up() {
    assert_eq!(expire(&held(), at(59)), None);
    assert_eq!(expire(&waiting(), at(999)), None);
    let change = expire(&held(), at(60)).unwrap();
    assert_eq!((change.state, change.holder, change.attempt), (RequestState::Submitted, None, 1));
    assert_eq!(change.reason.as_deref(), Some("lease_lost"));
    let change = expire(&Facts { attempt: 3, ..held() }, at(60)).unwrap();
    assert_eq!(change.state, RequestState::Failed);
    assert_eq!(change.reason.as_deref(), Some("attempts_exhausted: lease_lost"));
}

#[test]
fn a_claim_nobody_acknowledges_goes_back_after_seconds() {
    let moment = at(i64::from(ACKNOWLEDGE_SECONDS));
    assert_eq!(expire(&fresh(), at(1)), None);
    let change = expire(&fresh(), moment).unwrap();
    assert_eq!((change.state, change.attempt), (RequestState::Submitted, 1));
    assert_eq!(change.ended.as_ref().unwrap().how, AttemptEnd::NotAcknowledged);
    assert_eq!(change.reason.as_deref(), Some("not_acknowledged"));
}

#[test]
fn no_heartbeat_carries_an_attempt_beyond_its_hard_end() {
    let held = held();
    let beat = hold(&held, &agent('a'), 1, &HoldCommand::Heartbeat, at(3_590)).unwrap();
    assert_eq!(beat.lease_until, Some(at(3_600)));
    let late = after(&held, &beat);
    let beat = hold(&late, &agent('a'), 1, &HoldCommand::Heartbeat, at(3_600)).unwrap();
    assert_eq!(beat.lease_until, Some(at(3_600)));
    let ended = expire(&after(&late, &beat), at(3_600)).unwrap();
    assert_eq!(ended.ended.unwrap().how, AttemptEnd::OutOfTime);
    assert_eq!(ended.state, RequestState::Submitted);
}

#[test]
fn a_question_keeps_the_claim_until_it_is_answered_and_the_answer_goes_to_the_same_holder() {
    let asking = asking();
    assert_eq!((asking.state, asking.holder.clone()), (RequestState::InputRequired, Some(agent('a'))));
    assert_eq!(asking.lease_until, Some(at(10 + i64::from(ANSWER_SECONDS))));
    assert_eq!(expire(&asking, at(5_000)), None, "neither lease nor hard end run while a person thinks");
    let beat = hold(&asking, &agent('a'), 1, &HoldCommand::Heartbeat, at(500)).unwrap();
    assert_eq!((beat.state, beat.lease_until), (RequestState::InputRequired, asking.lease_until));
    let answered = after_at(&asking, &operate(&asking, &answer(), at(5_010)).unwrap(), at(5_010));
    assert_eq!((answered.state, answered.epoch, answered.holder.clone()), (RequestState::Working, 1, Some(agent('a'))));
    assert_eq!(
        (answered.lease_until, answered.hard_until),
        (Some(at(5_070)), Some(at(8_600))),
        "the wait is not counted"
    );
    assert!(hold(&answered, &agent('a'), 1, &HoldCommand::Complete(json!(1)), at(5_020)).is_ok());
    assert_eq!(operate(&answered, &answer(), at(5_020)).unwrap_err().code, Code::Conflict, "once");
}

#[test]
fn a_question_nobody_answers_ends_the_request_with_that_reason() {
    let change = expire(&asking(), at(10 + i64::from(ANSWER_SECONDS))).unwrap();
    assert_eq!((change.state, change.ended.unwrap().how), (RequestState::Failed, AttemptEnd::NotAnswered));
    assert!(change.reason.unwrap().starts_with("not_answered"));
}

#[test]
fn a_holder_that_waits_may_go_on_give_up_or_finish_but_not_ask_twice() {
    let asking = asking();
    let say = |command| hold(&asking, &agent('a'), 1, &command, at(30));
    let on = say(HoldCommand::Progress(Progress { step: "guessing".to_owned(), percent: 1 })).unwrap();
    assert_eq!((on.state, on.lease_until), (RequestState::Working, Some(at(90))));
    assert_eq!(say(HoldCommand::Ask { question: "And?".to_owned() }).unwrap_err().code, Code::Conflict);
    assert_eq!(say(HoldCommand::Complete(json!(1))).unwrap().state, RequestState::Completed);
    assert_eq!(say(fail()).unwrap().state, RequestState::Submitted);
    assert_eq!(fence(&asking, at(30)).unwrap().state, RequestState::Submitted);
    assert_eq!(cancel(&asking, "x").unwrap().state, RequestState::Canceled);
}

#[test]
fn questions_and_answers_have_bounds() {
    for question in ["", " ", &"x".repeat(2_001)] {
        let ask = HoldCommand::Ask { question: question.to_owned() };
        assert_eq!(hold(&held(), &agent('a'), 1, &ask, at(1)).unwrap_err().code, Code::InvalidParameter);
    }
    let ask = HoldCommand::Ask { question: "One more?".to_owned() };
    let many = Facts { questions: 20, ..held() };
    assert_eq!(hold(&many, &agent('a'), 1, &ask, at(1)).unwrap_err().code, Code::Conflict);
    for answer in [json!(null), json!("x".repeat(16 * 1024))] {
        let command = OperateCommand::Answer { answer, by: "ada".to_owned() };
        assert_eq!(operate(&asking(), &command, at(20)).unwrap_err().code, Code::InvalidParameter);
    }
}

#[test]
fn a_member_takes_back_what_is_held_and_ends_what_is_open() {
    let release = OperateCommand::Release { reason: "hangs".to_owned() };
    let end = OperateCommand::Fail { reason: "hopeless".to_owned() };
    for facts in [held(), asking()] {
        let change = operate(&facts, &release, at(40)).unwrap();
        assert_eq!((change.state, change.attempt, change.holder.clone()), (RequestState::Submitted, 0, None));
        assert_eq!(change.ended.as_ref().unwrap().how, AttemptEnd::TakenBack);
        let lost = hold(&after(&facts, &change), &agent('a'), 1, &HoldCommand::Heartbeat, at(41)).unwrap_err();
        assert_eq!(lost.lost.map(|lost| (lost.state, lost.epoch)), Some((RequestState::Submitted, 1)));
    }
    assert_eq!(operate(&waiting(), &release, at(0)).unwrap_err().code, Code::Conflict);
    for facts in [waiting(), held(), asking()] {
        let change = operate(&facts, &end, at(40)).unwrap();
        assert_eq!((change.state, change.reason.as_deref()), (RequestState::Failed, Some("failed_by_hand: hopeless")));
    }
    let done = Facts { state: RequestState::Completed, ..held() };
    for command in [release, end, answer()] {
        assert_eq!(operate(&done, &command, at(40)).unwrap_err().code, Code::Conflict);
    }
}

#[test]
fn only_what_failed_or_was_canceled_is_replayed_and_only_what_waits_is_given_up() {
    for state in RequestState::ALL {
        let may = matches!(state, RequestState::Failed | RequestState::Canceled);
        assert_eq!(replayable(state).is_ok(), may, "{state:?}");
        let waits = state == RequestState::Submitted;
        assert_eq!(give_up(&Facts { state, ..waiting() }).is_some(), waits, "{state:?}");
    }
}

#[test]
fn every_attempt_that_brought_nothing_is_told_with_its_agent_and_how_it_ended() {
    let release = HoldCommand::Release { reason: String::new() };
    let ends = [
        (hold(&held(), &agent('a'), 1, &fail(), at(5)).unwrap(), AttemptEnd::Failed, Some("no model")),
        (hold(&held(), &agent('a'), 1, &release, at(5)).unwrap(), AttemptEnd::Released, None),
        (expire(&held(), at(60)).unwrap(), AttemptEnd::LeaseLost, None),
        (fence(&held(), at(5)).unwrap(), AttemptEnd::GrantRevoked, None),
    ];
    for (change, how, reason) in ends {
        let ended = change.ended.unwrap();
        assert_eq!((ended.attempt, ended.epoch, ended.agent, ended.how), (1, 1, agent('a'), how));
        assert_eq!(ended.reason.as_deref(), reason);
    }
    assert_eq!(hold(&held(), &agent('a'), 1, &HoldCommand::Complete(json!(1)), at(5)).unwrap().ended, None);
}

#[test]
fn a_cancel_reaches_under_a_claim_but_not_into_the_past() {
    assert_eq!(cancel(&held(), "not needed").unwrap().state, RequestState::Canceled);
    let done = Facts { state: RequestState::Completed, ..held() };
    assert_eq!(cancel(&done, "too late").unwrap_err().code, Code::Conflict);
}

#[test]
fn a_long_reason_is_cut_and_not_refused() {
    let change = cancel(&held(), &"é".repeat(2000)).unwrap();
    assert_eq!(change.reason.unwrap().chars().count(), 500);
}

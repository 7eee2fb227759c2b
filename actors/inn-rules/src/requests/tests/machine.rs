use inn_protocol::Code;
use inn_protocol::request::{HoldCommand, Progress, RequestState};
use serde_json::json;

use super::{after, agent, at, waiting};
use crate::requests::{Facts, back_off, cancel, claim, expire, fence, hold};

fn held() -> Facts {
    after(&waiting(), &claim(&waiting(), &agent('a'), at(0)).unwrap())
}

fn fail() -> HoldCommand {
    HoldCommand::Fail { reason: "no model".to_owned() }
}

#[test]
fn a_claim_takes_a_lease_an_attempt_and_the_next_epoch() {
    let held = held();
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

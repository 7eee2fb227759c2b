use inn_protocol::Code;
use inn_protocol::job::{JobError, JobState, LineKind, Report, RunOutcome};
use inn_protocol::request::{Progress, RequestState};
use serde_json::json;

use super::{at, queued};
use crate::jobs::{
    Facts, LEASE_SECONDS, MAX_LINE, MAX_RESULT_BYTES, back_off, cancel, check_line, expire, give_up, of_request, renew,
    report, settle, start,
};

fn running() -> Facts {
    start(&queued(), "a", at(0)).unwrap().facts
}

fn error(code: &str) -> JobError {
    JobError { code: code.to_owned(), message: "m".to_owned() }
}

#[test]
fn a_start_counts_an_attempt_and_fences_the_start_before() {
    let facts = running();
    assert_eq!((facts.state, facts.attempt, facts.epoch), (JobState::Running, 1, 1));
    assert_eq!(facts.lease_until, Some(at(i64::from(LEASE_SECONDS))));
    assert_eq!(start(&facts, "b", at(0)).unwrap_err().code, Code::NotClaimable);
    let early = Facts { next_at: Some(at(5)), ..queued() };
    assert_eq!(start(&early, "a", at(4)).unwrap_err().code, Code::NotClaimable);
    assert!(start(&early, "a", at(5)).is_ok());
    let spent = Facts { attempt: 3, ..queued() };
    assert_eq!(start(&spent, "a", at(0)).unwrap_err().code, Code::NotClaimable);
    assert_eq!(start(&queued(), "a", at(3_600)).unwrap_err().code, Code::NotClaimable);
}

#[test]
fn only_the_node_of_the_newest_start_says_what_came_of_it() {
    let lost = expire(&running(), at(11)).unwrap().facts;
    let again = start(&lost, "b", at(11)).unwrap().facts;
    let done = RunOutcome::Completed(json!(1));
    for (node, epoch) in [("a", 1), ("a", 2), ("b", 1)] {
        assert_eq!(settle(&again, node, epoch, &done, at(12)).unwrap_err().code, Code::ClaimLost, "{node} {epoch}");
        assert_eq!(renew(&again, node, epoch, at(12)).unwrap_err().code, Code::ClaimLost, "{node} {epoch}");
    }
    let change = settle(&again, "b", 2, &done, at(12)).unwrap();
    assert_eq!((change.facts.state, change.given.result), (JobState::Completed, Some(json!(1))));
}

#[test]
fn a_lost_node_costs_an_attempt_and_no_pause() {
    assert_eq!(expire(&running(), at(9)), None, "a live lease is left alone");
    let change = expire(&running(), at(10)).unwrap();
    assert_eq!((change.facts.state, change.facts.next_at), (JobState::Queued, Some(at(10))));
    assert_eq!(change.given.ended.unwrap().how, "lease_lost");
    let last = Facts { attempt: 3, ..running() };
    let change = expire(&last, at(10)).unwrap();
    assert_eq!((change.facts.state, change.given.error.unwrap().code), (JobState::Failed, "lease_lost".to_owned()));
}

#[test]
fn a_renewed_lease_is_longer_and_never_outlives_the_job() {
    let facts = renew(&running(), "a", 1, at(5)).unwrap().facts;
    assert_eq!(facts.lease_until, Some(at(15)));
    let facts = renew(&running(), "a", 1, at(3_595)).unwrap().facts;
    assert_eq!(facts.lease_until, Some(at(3_600)));
    assert_eq!(renew(&facts, "a", 1, at(0)).unwrap().facts.lease_until, Some(at(3_600)), "never shorter");
}

#[test]
fn what_failed_is_tried_again_after_a_pause_while_attempts_last() {
    let failed = |again| RunOutcome::Failed { error: error("upstream_error"), again };
    let change = settle(&running(), "a", 1, &failed(true), at(1)).unwrap();
    assert_eq!((change.facts.state, change.facts.next_at), (JobState::Queued, Some(at(3))));
    assert_eq!(change.given.ended.unwrap().how, "failed");
    assert_eq!(settle(&running(), "a", 1, &failed(false), at(1)).unwrap().facts.state, JobState::Failed);
    let last = Facts { attempt: 3, ..running() };
    assert_eq!(settle(&last, "a", 1, &failed(true), at(1)).unwrap().facts.state, JobState::Failed);
    assert_eq!([1, 2, 8, 9, 40].map(back_off), [2, 4, 256, 300, 300]);
}

#[test]
fn a_look_at_an_upstream_is_no_attempt() {
    let waits = RunOutcome::Waiting {
        look_after: 5,
        progress: Some(Progress { step: "half".to_owned(), percent: 50 }),
        remote: Some("r-1".to_owned()),
    };
    let change = settle(&running(), "a", 1, &waits, at(1)).unwrap();
    assert_eq!((change.facts.state, change.facts.next_at), (JobState::Waiting, Some(at(6))));
    assert_eq!(change.given.progress.as_ref().map(|progress| progress.percent), Some(50));
    assert_eq!(change.given.remote.as_deref(), Some("r-1"));
    let long = RunOutcome::Waiting { look_after: 5, progress: None, remote: Some("x".repeat(201)) };
    assert_eq!(settle(&running(), "a", 1, &long, at(1)).unwrap().given.error.unwrap().code, "bad_answer");
    let look = start(&change.facts, "b", at(6)).unwrap();
    assert_eq!((look.facts.attempt, look.facts.epoch), (1, 2));
    let lost = expire(&look.facts, at(20)).unwrap();
    assert_eq!((lost.facts.state, lost.facts.attempt), (JobState::Waiting, 1), "the upstream still works on it");
    let failed = RunOutcome::Failed { error: error("x"), again: true };
    assert!(!settle(&look.facts, "b", 2, &failed, at(7)).unwrap().facts.taken_on, "the next attempt starts anew");
}

#[test]
fn a_cancel_ends_what_nobody_runs_and_asks_whoever_does() {
    let change = cancel(&queued(), "no longer needed").unwrap();
    assert_eq!(
        (change.facts.state, change.given.error.unwrap().message),
        (JobState::Canceled, "no longer needed".to_owned())
    );
    let asked = cancel(&running(), "r").unwrap().facts;
    assert_eq!((asked.state, asked.cancel_requested), (JobState::Running, true));
    assert!(cancel(&asked, "r").unwrap().given.lines.is_empty(), "asking twice is asking once");
    for outcome in [
        RunOutcome::Waiting { look_after: 1, progress: None, remote: None },
        RunOutcome::Failed { error: error("x"), again: true },
    ] {
        assert_eq!(settle(&asked, "a", 1, &outcome, at(1)).unwrap().facts.state, JobState::Canceled);
    }
    let done = settle(&asked, "a", 1, &RunOutcome::Completed(json!(1)), at(1)).unwrap();
    assert_eq!(done.facts.state, JobState::Completed, "work that is done is not thrown away");
    assert_eq!(expire(&asked, at(10)).unwrap().facts.state, JobState::Canceled, "its node died on the way");
    assert_eq!(cancel(&done.facts, "r").unwrap_err().code, Code::Conflict);
}

#[test]
fn a_job_ends_when_its_time_is_over() {
    for facts in [queued(), running(), Facts { state: JobState::Waiting, ..queued() }] {
        assert_eq!(expire(&facts, at(3_599)).is_some(), facts.state == JobState::Running, "only the lease is over");
        let change = expire(&facts, at(3_600)).unwrap();
        assert_eq!(
            (change.facts.state, change.given.error.unwrap().code),
            (JobState::Failed, "out_of_time".to_owned())
        );
    }
}

#[test]
fn an_upstream_reports_until_the_job_has_ended() {
    let progress = Report::Progress(Progress { step: "s".to_owned(), percent: 10 });
    let change = report(&running(), &progress).unwrap();
    assert_eq!(change.given.lines, vec![(LineKind::Progress, "s".to_owned(), Some(10))]);
    let done = report(&running(), &Report::Complete(json!({"n": 1}))).unwrap();
    assert_eq!(done.facts.state, JobState::Completed);
    assert_eq!(settle(&done.facts, "a", 1, &RunOutcome::Completed(json!(2)), at(1)).unwrap_err().code, Code::ClaimLost);
    for late in [progress, Report::Log("l".to_owned()), Report::Complete(json!(1)), Report::Fail(error("x"))] {
        assert_eq!(report(&done.facts, &late).unwrap_err().code, Code::Conflict);
    }
    let failed = report(&running(), &Report::Fail(error("no_paper"))).unwrap();
    assert_eq!((failed.facts.state, failed.given.error.unwrap().code), (JobState::Failed, "no_paper".to_owned()));
}

#[test]
fn what_cannot_be_kept_is_refused() {
    let large = json!("x".repeat(MAX_RESULT_BYTES));
    let refused = |what| report(&running(), &what).unwrap_err().code;
    assert_eq!(refused(Report::Complete(large.clone())), Code::TooLarge);
    assert_eq!(refused(Report::Log(String::new())), Code::InvalidParameter);
    assert_eq!(refused(Report::Log("x".repeat(MAX_LINE + 1))), Code::InvalidParameter);
    assert_eq!(refused(Report::Progress(Progress { step: String::new(), percent: 101 })), Code::InvalidParameter);
    assert_eq!(refused(Report::Fail(error("Not A Word"))), Code::InvalidParameter);
    assert!(check_line("fine").is_ok());
    let change = settle(&running(), "a", 1, &RunOutcome::Completed(large), at(1)).unwrap();
    assert_eq!(
        (change.facts.state, change.given.error.unwrap().code),
        (JobState::Failed, "result_too_large".to_owned())
    );
}

#[test]
fn a_request_says_where_its_job_stands() {
    let table = [
        (RequestState::Submitted, JobState::Queued),
        (RequestState::Working, JobState::Running),
        (RequestState::InputRequired, JobState::Waiting),
        (RequestState::Completed, JobState::Completed),
        (RequestState::Failed, JobState::Failed),
        (RequestState::Canceled, JobState::Canceled),
    ];
    assert_eq!(table.len(), RequestState::ALL.len());
    for (request, job) in table {
        assert_eq!(of_request(request), job);
        assert_eq!(request.is_terminal(), job.is_terminal());
    }
}

#[test]
fn what_is_given_up_says_why() {
    let change = give_up(&running(), "app_removed", "the app was removed");
    assert_eq!((change.facts.state, change.facts.node), (JobState::Failed, None));
    assert_eq!(change.given.error.unwrap().code, "app_removed");
}

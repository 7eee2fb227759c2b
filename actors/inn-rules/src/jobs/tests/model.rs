//! Any sequence of events keeps the invariants of jobs.

use inn_protocol::job::{JobError, JobState, Report, RunOutcome};
use inn_protocol::request::Progress;
use proptest::prelude::*;
use serde_json::json;

use super::{at, queued};
use crate::jobs::{Change, Facts, cancel, expire, renew, report, settle, start};

#[derive(Debug, Clone)]
enum Event {
    Start(char),
    Renew(char, i64),
    /// By whom, how many epochs ago it started, and what came of it.
    Settle(char, i64, Came),
    Report(Said),
    Expire,
    Cancel,
    Wait(i64),
}

#[derive(Debug, Clone, Copy)]
enum Came {
    Done,
    Again,
    Never,
    Waits,
}

#[derive(Debug, Clone, Copy)]
enum Said {
    Progress,
    Log,
    Done,
    Failed,
}

fn event() -> impl Strategy<Value = Event> {
    let node = prop_oneof![Just('a'), Just('b'), Just('c')];
    let old = prop_oneof![4 => Just(0_i64), 1 => 1_i64..3];
    let came =
        prop_oneof![1 => Just(Came::Done), 3 => Just(Came::Again), 1 => Just(Came::Never), 3 => Just(Came::Waits)];
    let said =
        prop_oneof![4 => Just(Said::Progress), 3 => Just(Said::Log), 1 => Just(Said::Done), 1 => Just(Said::Failed)];
    prop_oneof![
        6 => node.clone().prop_map(Event::Start),
        3 => (node.clone(), old.clone()).prop_map(|(node, old)| Event::Renew(node, old)),
        5 => (node, old, came).prop_map(|(node, old, came)| Event::Settle(node, old, came)),
        2 => said.prop_map(Event::Report),
        3 => Just(Event::Expire),
        1 => Just(Event::Cancel),
        6 => (1_i64..40).prop_map(Event::Wait),
    ]
}

fn error() -> JobError {
    JobError { code: "x".to_owned(), message: "y".to_owned() }
}

fn apply(facts: &Facts, event: &Event, now: i64) -> Option<Change> {
    match event {
        Event::Start(node) => start(facts, &node.to_string(), at(now)).ok(),
        Event::Renew(node, old) => renew(facts, &node.to_string(), facts.epoch - old, at(now)).ok(),
        Event::Settle(node, old, came) => {
            let outcome = match came {
                Came::Done => RunOutcome::Completed(json!(1)),
                Came::Again => RunOutcome::Failed { error: error(), again: true },
                Came::Never => RunOutcome::Failed { error: error(), again: false },
                Came::Waits => RunOutcome::Waiting { look_after: 5, progress: None, remote: None },
            };
            settle(facts, &node.to_string(), facts.epoch - old, &outcome, at(now)).ok()
        }
        Event::Report(said) => {
            let said = match said {
                Said::Progress => Report::Progress(Progress { step: "s".to_owned(), percent: 1 }),
                Said::Log => Report::Log("l".to_owned()),
                Said::Done => Report::Complete(json!(2)),
                Said::Failed => Report::Fail(error()),
            };
            report(facts, &said).ok()
        }
        Event::Expire => expire(facts, at(now)),
        Event::Cancel => cancel(facts, "c").ok(),
        Event::Wait(_) => None,
    }
}

proptest! {
    #[test]
    fn every_history_keeps_the_invariants(events in proptest::collection::vec(event(), 1..80)) {
        let mut facts = queued();
        let mut now = 0;
        // The model: which node runs it, how many starts counted, whether somebody canceled.
        let (mut runs, mut counted, mut canceled): (Option<char>, u32, bool) = (None, 0, false);
        for event in &events {
            if let Event::Wait(seconds) = event {
                now += seconds;
            }
            let Some(Change { facts: next, given }) = apply(&facts, event, now) else { continue };
            prop_assert!(!facts.state.is_terminal(), "terminal rows are immutable: {:?}", event);
            match event {
                Event::Start(node) => {
                    prop_assert_eq!(runs, None, "at most one node runs it");
                    prop_assert_eq!(next.epoch, facts.epoch + 1);
                    if !facts.taken_on {
                        counted += 1;
                    }
                    runs = Some(*node);
                }
                Event::Renew(node, old) | Event::Settle(node, old, _) => {
                    prop_assert_eq!(runs, Some(*node), "only the node that runs it speaks");
                    prop_assert_eq!(*old, 0, "and only of this start");
                    prop_assert_eq!(next.epoch, facts.epoch);
                }
                _ => prop_assert_eq!(next.epoch, facts.epoch),
            }
            if matches!(event, Event::Cancel) {
                canceled = true;
            }
            prop_assert_eq!(next.attempt, counted, "attempts are the starts that count");
            prop_assert!(next.attempt <= next.attempts);
            prop_assert_eq!(next.deadline, facts.deadline, "the deadline never moves");
            match next.state {
                JobState::Running => {
                    prop_assert_eq!(next.node.clone(), runs.map(|node| node.to_string()), "what runs has an owner");
                    prop_assert!(next.lease_until.is_some_and(|until| until <= next.deadline), "and a deadline");
                }
                JobState::Queued | JobState::Waiting => {
                    runs = None;
                    prop_assert_eq!((next.node.clone(), next.lease_until), (None, None));
                    prop_assert!(next.next_at.is_some_and(|at| at <= next.deadline + chrono::TimeDelta::seconds(300)), "what waits has a next step");
                    prop_assert!(next.taken_on || next.attempt < next.attempts, "and can take it");
                    prop_assert!(!canceled, "what was canceled does not go on");
                }
                JobState::Completed => {
                    runs = None;
                    prop_assert!(given.result.is_some());
                }
                JobState::Failed | JobState::Canceled => {
                    runs = None;
                    prop_assert!(given.error.is_some(), "an end without a result says why");
                }
            }
            if next.state != facts.state && !(next.taken_on && matches!(facts.state, JobState::Waiting | JobState::Running) && !next.state.is_terminal()) {
                prop_assert!(!given.lines.is_empty(), "who follows it is told: {:?} to {:?}", facts.state, next.state);
            }
            facts = next;
        }
    }
}

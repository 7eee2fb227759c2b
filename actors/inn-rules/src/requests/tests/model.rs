//! Any sequence of events keeps the invariants of the queue.

use inn_protocol::request::{HoldCommand, OperateCommand, Progress, RequestState};
use proptest::prelude::*;
use serde_json::json;

use super::{after_at, agent, at, waiting};
use crate::requests::{Change, Facts, cancel, claim, expire, fence, give_up, hold, operate};

#[derive(Debug, Clone)]
enum Event {
    Claim(char),
    /// By whom, and how many epochs ago the claim was made.
    Hold(char, i64, Verb),
    Expire,
    GiveUp,
    Fence,
    Cancel,
    TakeBack,
    Answer,
    Wait(i64),
}

#[derive(Debug, Clone, Copy)]
enum Verb {
    Beat,
    Complete,
    Fail,
    Release,
    Ask,
    Progress,
}

fn event() -> impl Strategy<Value = Event> {
    let who = prop_oneof![Just('a'), Just('b'), Just('c')];
    let verb = prop_oneof![
        2 => Just(Verb::Beat),
        1 => Just(Verb::Fail),
        1 => Just(Verb::Release),
        1 => Just(Verb::Complete),
        2 => Just(Verb::Ask),
        1 => Just(Verb::Progress),
    ];
    prop_oneof![
        6 => who.clone().prop_map(Event::Claim),
        6 => (who, prop_oneof![3 => Just(0_i64), 1 => 1_i64..3], verb).prop_map(|(who, old, verb)| Event::Hold(who, old, verb)),
        2 => Just(Event::Expire),
        1 => Just(Event::Fence),
        1 => prop_oneof![5 => Just(Event::Cancel), 1 => Just(Event::GiveUp)],
        1 => Just(Event::TakeBack),
        2 => Just(Event::Answer),
        6 => (1_i64..200).prop_map(Event::Wait),
    ]
}

fn apply(facts: &Facts, event: &Event, now: i64) -> Option<Change> {
    match event {
        Event::Claim(who) => claim(facts, &agent(*who), at(now)).ok(),
        Event::Hold(who, old, verb) => {
            let command = match verb {
                Verb::Beat => HoldCommand::Heartbeat,
                Verb::Complete => HoldCommand::Complete(json!(1)),
                Verb::Fail => HoldCommand::Fail { reason: "f".to_owned() },
                Verb::Release => HoldCommand::Release { reason: "r".to_owned() },
                Verb::Ask => HoldCommand::Ask { question: "q".to_owned() },
                Verb::Progress => HoldCommand::Progress(Progress { step: "s".to_owned(), percent: 1 }),
            };
            hold(facts, &agent(*who), facts.epoch - old, &command, at(now)).ok()
        }
        Event::Expire => expire(facts, at(now)),
        Event::GiveUp => give_up(facts),
        Event::Fence => fence(facts, at(now)),
        Event::TakeBack => operate(facts, &OperateCommand::Release { reason: "t".to_owned() }, at(now)).ok(),
        Event::Answer => operate(facts, &OperateCommand::Answer { answer: json!(1), by: "b".to_owned() }, at(now)).ok(),
        Event::Cancel => cancel(facts, "c").ok(),
        Event::Wait(_) => None,
    }
}

proptest! {
    #[test]
    fn every_history_keeps_the_invariants(events in proptest::collection::vec(event(), 1..60)) {
        let mut facts = waiting();
        let mut now = 0;
        // The model: who holds the request, and when it last counted.
        let mut holder: Option<char> = None;
        for event in &events {
            if let Event::Wait(seconds) = event {
                now += seconds;
            }
            let Some(change) = apply(&facts, event, now) else { continue };
            prop_assert!(!facts.state.is_terminal(), "terminal rows are immutable: {:?}", event);
            match event {
                Event::Claim(who) => {
                    prop_assert_eq!(holder, None, "at most one live holder");
                    prop_assert_eq!(change.epoch, facts.epoch + 1);
                    holder = Some(*who);
                }
                Event::Hold(who, old, _) => {
                    prop_assert_eq!(holder, Some(*who), "only the holder speaks");
                    prop_assert_eq!(*old, 0, "and only in this epoch");
                    prop_assert_eq!(change.epoch, facts.epoch);
                }
                _ => prop_assert_eq!(change.epoch, facts.epoch),
            }
            let next = after_at(&facts, &change, at(now));
            prop_assert!(next.attempt <= next.attempts, "attempts never exceed the cap");
            if facts.state.is_held() && !next.state.is_held() && next.state == RequestState::Submitted {
                prop_assert!(change.ended.is_some(), "an attempt that brought nothing is told");
            }
            if next.state.is_held() {
                prop_assert_eq!(next.holder.clone(), holder.map(agent));
                prop_assert!(next.lease_until.is_some(), "a held request has a deadline");
                prop_assert_eq!(next.asked_at.is_some() && next.state == RequestState::InputRequired, next.state == RequestState::InputRequired);
                if next.state == RequestState::Working {
                    prop_assert!(next.lease_until <= next.hard_until, "no lease outlives its attempt");
                }
            } else {
                holder = None;
                prop_assert_eq!(next.lease_until, None);
            }
            if next.state == RequestState::Submitted {
                prop_assert_eq!(next.holder.clone(), None);
                prop_assert!(next.attempt < next.attempts, "what waits can be claimed again");
            }
            facts = next;
        }
    }
}

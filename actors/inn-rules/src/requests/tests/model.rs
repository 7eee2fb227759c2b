//! Any sequence of events keeps the invariants of the queue.

use inn_protocol::request::{HoldCommand, RequestState};
use proptest::prelude::*;
use serde_json::json;

use super::{after, agent, at, waiting};
use crate::requests::{Change, Facts, cancel, claim, expire, fence, hold};

#[derive(Debug, Clone)]
enum Event {
    Claim(char),
    /// By whom, and how many epochs ago the claim was made.
    Hold(char, i64, Verb),
    Expire,
    Fence,
    Cancel,
    Wait(i64),
}

#[derive(Debug, Clone, Copy)]
enum Verb {
    Beat,
    Complete,
    Fail,
    Release,
}

fn event() -> impl Strategy<Value = Event> {
    let who = prop_oneof![Just('a'), Just('b'), Just('c')];
    let verb =
        prop_oneof![Just(Verb::Beat), Just(Verb::Fail), Just(Verb::Release), Just(Verb::Beat), Just(Verb::Complete)];
    prop_oneof![
        6 => who.clone().prop_map(Event::Claim),
        6 => (who, prop_oneof![3 => Just(0_i64), 1 => 1_i64..3], verb).prop_map(|(who, old, verb)| Event::Hold(who, old, verb)),
        2 => Just(Event::Expire),
        1 => Just(Event::Fence),
        1 => Just(Event::Cancel),
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
            };
            hold(facts, &agent(*who), facts.epoch - old, &command, at(now)).ok()
        }
        Event::Expire => expire(facts, at(now)),
        Event::Fence => fence(facts, at(now)),
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
            let next = after(&facts, &change);
            prop_assert!(next.attempt <= next.attempts, "attempts never exceed the cap");
            if next.state == RequestState::Working {
                prop_assert_eq!(next.holder.clone(), holder.map(agent));
                prop_assert!(next.lease_until.is_some(), "a held request has a deadline");
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

//! Calls per minute and class (A2App notes, B.10). A limit slows a caller down and never locks it out.

use std::hash::Hash;
use std::num::NonZeroU32;
use std::sync::Arc;

use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use inn_actors::CallRates;
use inn_protocol::call::Action;
use inn_protocol::caller::Caller;
use inn_protocol::{Code, Refusal};

/// Calls per minute; 0 switches a class off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimits {
    /// Sign-in and other attempts with a password or code, per client address.
    pub auth: u32,
    /// Records, describe, tasks, per caller.
    pub data: u32,
    /// Operations, per caller.
    pub operations: u32,
    /// Claims and what is done with them, per agent. A long poll counts once.
    pub queue: u32,
}

impl Default for RateLimits {
    fn default() -> Self {
        Self { auth: 30, data: 1200, operations: 300, queue: 1200 }
    }
}

/// Bad papers per minute and client address, before they are answered 429 instead of 401.
const STRANGERS: u32 = 600;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    Auth,
    Data,
    Operations,
    Queue,
    Strangers,
}

impl Class {
    /// The class a verified caller's action counts against; signing in and the like count by client address instead.
    fn of(action: &Action) -> Self {
        match action {
            Action::RunOperation { .. } => Self::Operations,
            Action::Claim | Action::Hold { .. } | Action::HoldMany | Action::TakeToken { .. } => Self::Queue,
            _ => Self::Data,
        }
    }
}

/// A window per class and caller, on this node.
pub struct Rates {
    auth: Limiter,
    data: Limiter,
    operations: Limiter,
    queue: Limiter,
    strangers: Limiter,
    clock: DefaultClock,
}

impl CallRates for Rates {
    fn take(&self, caller: &Caller, action: &Action) -> Result<(), Refusal> {
        if matches!(caller, Caller::Stranger | Caller::Platform) {
            return Ok(());
        }
        Self::take(self, Class::of(action), &caller.idempotency_scope())
    }
}

type Limiter = Option<Arc<DefaultKeyedRateLimiter<String>>>;

impl Rates {
    pub fn new(limits: RateLimits) -> Self {
        Self {
            auth: limiter(limits.auth),
            data: limiter(limits.data),
            operations: limiter(limits.operations),
            queue: limiter(limits.queue),
            strangers: limiter(STRANGERS),
            clock: DefaultClock::default(),
        }
    }

    /// Counts one call of a caller.
    pub fn take(&self, class: Class, caller: &str) -> Result<(), Refusal> {
        let limiter = match class {
            Class::Auth => &self.auth,
            Class::Data => &self.data,
            Class::Operations => &self.operations,
            Class::Queue => &self.queue,
            Class::Strangers => &self.strangers,
        };
        let Some(limiter) = limiter else { return Ok(()) };
        limiter.check_key(&caller.to_owned()).map_err(|early| {
            let wait = early.wait_time_from(self.clock.now()).as_secs_f64().ceil();
            // Whole seconds, at least one: `Retry-After` has no fractions.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let seconds = wait.clamp(1.0, 60.0) as u32;
            Refusal::new(Code::RateLimited, format!("Too many calls in a minute. Send this one again in {seconds} s."))
                .after(seconds)
        })
    }

    /// Forgets callers that have been quiet: without this the maps would grow for ever. Call it now and then.
    pub fn tidy(&self) {
        for limiter in [&self.auth, &self.data, &self.operations, &self.queue, &self.strangers].into_iter().flatten() {
            limiter.retain_recent();
            limiter.shrink_to_fit();
        }
    }
}

fn limiter<K: Hash + Eq + Clone>(per_minute: u32) -> Option<Arc<DefaultKeyedRateLimiter<K>>> {
    let per_minute = NonZeroU32::new(per_minute)?;
    Some(Arc::new(RateLimiter::keyed(Quota::per_minute(per_minute))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_call_too_many_is_told_when_to_come_back_and_others_are_not_touched() {
        let rates = Rates::new(RateLimits { auth: 2, ..RateLimits::default() });
        assert!(rates.take(Class::Auth, "a").is_ok());
        assert!(rates.take(Class::Auth, "a").is_ok());
        let refused = rates.take(Class::Auth, "a").unwrap_err();
        assert_eq!(refused.code, Code::RateLimited);
        assert!(refused.retry_after_seconds.is_some_and(|seconds| (1..=60).contains(&seconds)));
        assert!(rates.take(Class::Auth, "b").is_ok());
        assert!(rates.take(Class::Data, "a").is_ok());
    }

    #[test]
    fn zero_switches_a_class_off() {
        let rates = Rates::new(RateLimits { data: 0, ..RateLimits::default() });
        assert!((0..10_000).all(|_| rates.take(Class::Data, "a").is_ok()));
    }
}

//! A typed client of the platform: signs as an agent, speaks as a person, retries what may be retried.
//!
//! [`Client`] knows one platform. [`Client::person`] speaks with a session, [`Client::agent`] signs with a key, and either
//! one's `app` is an app's face at `<platform>/apps/<slug>`: the one address of an app every resolver knows.

mod agent;
mod answer;
mod client;
mod clock;
mod error;
mod face;
mod outgoing;
mod papers;
mod person;
mod retry;
mod token;

pub use agent::Agent;
pub use answer::Answer;
pub use client::{Client, Prepared};
pub use error::{ClientError, RefusalBody};
pub use face::AppFace;
pub use inn_grants::SigningKey as AgentKey;
pub use outgoing::{Outgoing, new_idempotency_key, query, segment};
pub use papers::{DELEGATION, Papers, TOKEN_DIGEST};
pub use person::Person;
pub use retry::RetryPolicy;
pub use token::{Token, TokenCache};

#[cfg(test)]
mod tests;

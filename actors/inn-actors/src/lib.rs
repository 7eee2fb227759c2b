//! What is kept alive: the gateway that guards the door and one actor per loaded app.
//!
//! The only crate that names actix. Others see [`GatewayHandle`]: async methods, our error type, a deadline. Nothing in
//! here waits for I/O inside a mailbox; futures run on the I/O runtime and answer straight to whoever asked.

mod account;
mod admission;
mod app;
mod gateway;
mod handle;
mod papers;
mod plan;
mod registry;
mod snapshots;

pub use admission::AdmissionLimits;
pub use handle::{
    Admitted, BatchRefused, BatchVerb, BatchWrite, CallRates, Gateway, GatewayConfig, Listener, Looked, RecordWrite,
};

#[cfg(test)]
mod tests;

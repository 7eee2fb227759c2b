//! The inside against in-memory ports: papers, the one decision, kill tests.

mod support;

mod accounts;
mod batches;
mod door;
mod kill;
mod writes;

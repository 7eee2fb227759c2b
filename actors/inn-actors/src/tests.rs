//! The inside against in-memory ports: papers, the one decision, kill tests.

mod support;

mod door;
mod kill;
mod writes;

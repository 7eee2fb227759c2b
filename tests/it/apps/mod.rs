//! `/apps/{slug}/…` and an app's own origin: one module per resource.

mod describe;
mod face;
mod idempotency;
mod lists;
mod operations;
mod records;
mod tasks;

//! `/apps/{slug}/…` and an app's own origin: one module per resource.

mod auth;
mod batch;
mod deletes;
mod describe;
mod expand;
mod face;
mod files;
mod hostile;
mod idempotency;
mod jobs;
mod lists;
mod modifiers;
mod operations;
mod people;
mod realtime;
mod records;
mod tasks;
mod views;

//! What breaks on purpose: the answer must stay honest, and nothing may be lost or done twice.

mod database;
mod register;

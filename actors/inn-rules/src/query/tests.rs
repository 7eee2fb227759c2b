//! Section B of the PocketBase notes.

mod fields;
mod lists;

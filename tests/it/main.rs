//! The one integration binary. Folders mirror the URLs: `v1/` the platform's API, `apps/` an app's face; `door/` who gets
//! in at all, `faults/` what breaks on purpose. Add a module here, never a second binary: each costs a link and a set-up.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that meets something unexpected fails there and then"
)]

mod apps;
mod coverage;
mod door;
mod faults;
mod layers;
mod pocketbase;
mod story;
mod tidy;
mod v1;

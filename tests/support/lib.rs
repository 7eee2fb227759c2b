//! What the integration tests are written with: hosts, callers, calls, snapshots.

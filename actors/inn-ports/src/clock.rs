//! Time. Database time rules: an implementation corrects the node's clock by the offset it last measured.

use chrono::{DateTime, Utc};

pub trait Clock: Send + Sync {
    fn now(&self) -> DateTime<Utc>;
}

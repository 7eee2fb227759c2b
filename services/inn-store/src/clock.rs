//! Database time, estimated: the node's clock corrected by the offset measured last.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, TimeDelta, Utc};
use inn_ports::{Clock, Directory, StoreResult};

use crate::PgStore;

/// The node's clock plus the offset to the database's clock.
#[derive(Debug, Clone, Default)]
pub struct DatabaseClock {
    /// Microseconds to add.
    offset: Arc<AtomicI64>,
}

impl DatabaseClock {
    /// Measures the offset: the database's time against the middle of the round trip. Answers it.
    pub async fn measure(&self, store: &PgStore) -> StoreResult<TimeDelta> {
        let before = Utc::now();
        let database = store.database_now().await?;
        let after = Utc::now();
        let middle = before + (after - before) / 2;
        let offset = database - middle;
        self.offset.store(offset.num_microseconds().unwrap_or_default(), Ordering::Relaxed);
        Ok(offset)
    }
}

impl Clock for DatabaseClock {
    fn now(&self) -> DateTime<Utc> {
        Utc::now() + TimeDelta::microseconds(self.offset.load(Ordering::Relaxed))
    }
}

//! Reads what was committed, wherever it was, and hands it on. The bus only says when to look.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::poll;
use inn_ports::{Change, PolicyHints, StoreResult, Topic};
use inn_protocol::AppId;

use super::Realtime;
use super::line::Batch;

/// A hint that was lost costs no more than this.
const LOOK_ANYWAY: Duration = Duration::from_millis(500);
/// Who may listen no longer is sent away at most this late, also when nothing happens.
const STAND_ANYWAY: Duration = Duration::from_secs(1);

impl Realtime {
    /// One look at what is new, or a wait for somebody to listen. Call it again and again.
    pub async fn feed(self: &Arc<Self>) -> StoreResult<()> {
        let listened = self.listened();
        if listened.is_empty() {
            let mut seen = self.seen.lock().await;
            if self.listened().is_empty() {
                *seen = None;
                drop(seen);
                self.lines.lock().clear();
                // Whoever comes is waited for; the time is for those who came between the two lines.
                let _ = tokio::time::timeout(LOOK_ANYWAY, self.arrived.notified()).await;
            }
            return Ok(());
        }
        let hint = self.bus.wait(&[Topic::Changes], LOOK_ANYWAY);
        tokio::pin!(hint);
        // From here on no hint is missed.
        let hinted = poll!(&mut hint).is_ready();
        self.look().await?;
        if !hinted {
            hint.await;
        }
        Ok(())
    }

    /// Reads everything that was committed since the last look.
    async fn look(self: &Arc<Self>) -> StoreResult<()> {
        let mut place = self.seen.lock().await;
        let Some(seen) = place.clone().map(Arc::new) else { return Ok(()) };
        let (mut upto, mut after) = (None, i64::MIN);
        loop {
            let new = self.store.changes(&seen, upto.as_deref(), after, None).await?;
            let until = upto.get_or_insert_with(|| Arc::new(new.upto));
            after = new.changes.last().map_or(after, |last| last.number);
            let listened = self.listened();
            let mut by_app: HashMap<AppId, Vec<Change>> = HashMap::new();
            for change in new.changes.into_iter().filter(|change| listened.contains(&change.app)) {
                by_app.entry(change.app).or_default().push(change);
            }
            for (app, changes) in by_app {
                self.hand_on(app, Batch { seen: Arc::clone(&seen), upto: Arc::clone(until), changes });
            }
            if !new.more {
                *place = upto.as_deref().cloned();
                return Ok(());
            }
        }
    }

    /// Starts reading, when nobody listened until now: what is committed from here on is not missed.
    pub(super) async fn start(&self) -> StoreResult<()> {
        let mut seen = self.seen.lock().await;
        if seen.is_none() {
            *seen = Some(self.store.snapshot().await?);
        }
        drop(seen);
        self.arrived.notify_one();
        Ok(())
    }

    /// Sends away who may listen no longer, once a second and whenever rights may have changed. Call it again and again.
    pub async fn watch(&self, hints: &mut dyn PolicyHints) -> StoreResult<()> {
        // A hint that never comes because the bus has ended is as good as none.
        if let Ok(None) = tokio::time::timeout(STAND_ANYWAY, hints.next()).await {
            tokio::time::sleep(STAND_ANYWAY).await;
        }
        self.end_expired();
        for app in self.listened() {
            self.stand(app).await?;
        }
        Ok(())
    }
}

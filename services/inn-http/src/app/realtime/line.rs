//! The changes of one app on their way to its listeners: in order, and at the app's own pace.

use std::sync::Arc;
use std::time::Duration;

use inn_ports::{Change, Core, StoreError, StoreResult};
use inn_protocol::AppId;
use inn_protocol::app::AppSnapshot;
use inn_rules::realtime::Snapshot;
use tokio::sync::mpsc;

use super::Realtime;
use super::verdicts::Between;

/// Looks of this node that may wait for one app.
const WAITING: usize = 64;
/// How often the same change is tried again, and after how long.
const TRIES: u32 = 6;
const PAUSE: Duration = Duration::from_millis(100);

/// What one look at the database found for one app.
pub(super) struct Batch {
    pub(super) seen: Arc<Snapshot>,
    pub(super) upto: Arc<Snapshot>,
    pub(super) changes: Vec<Change>,
}

impl Realtime {
    /// Hands the changes on. Nobody waits for an app that does not keep up: its streams are ended, and their clients find
    /// out what they missed when they come again.
    pub(super) fn hand_on(self: &Arc<Self>, app: AppId, batch: Batch) {
        let mut lines = self.lines.lock();
        let line = lines.entry(app).or_insert_with(|| {
            let (sender, receiver) = mpsc::channel(WAITING);
            self.io.spawn(run(Arc::clone(self), app, receiver));
            sender
        });
        if let Err(error) = line.try_send(batch) {
            tracing::warn!(%app, %error, "the listeners of an app do not keep up; their streams are ended");
            lines.remove(&app);
            drop(lines);
            self.end_app(app);
        }
    }

    /// The app and its listeners as they stand now: who may listen no longer is sent away. `None`: the app is gone.
    pub(super) async fn stand(&self, app: AppId) -> StoreResult<Option<Arc<AppSnapshot>>> {
        let principals = self.principals(app);
        let listeners: Vec<_> = principals.iter().map(|principal| principal.listener()).collect();
        let checks: Vec<_> = listeners.iter().map(|listener| listener.live()).collect();
        let standing = self.store.standing(app, &checks).await?;
        let Some(epoch) = standing.app_epoch else {
            self.end_app(app);
            return Ok(None);
        };
        let current = match self.known(app).filter(|known| known.epoch == epoch) {
            Some(known) => known,
            None => match self.store.app_by_id(app).await? {
                Some(loaded) => self.knows(loaded),
                None => return Ok(None),
            },
        };
        for ((principal, listener), live) in principals.iter().zip(&listeners).zip(standing.live) {
            if live.all() && listener.live().app.is_none_or(|(_, known)| known == epoch) {
                continue;
            }
            let core: &dyn Core = &*self.store;
            match listener.renewed(core, &current, live, self.clock.now()).await? {
                Some(renewed) => *principal.listener.lock() = Arc::new(renewed),
                None => self.end(app, principal),
            }
        }
        Ok(Some(current))
    }
}

async fn run(hub: Arc<Realtime>, app: AppId, mut batches: mpsc::Receiver<Batch>) {
    while let Some(batch) = batches.recv().await {
        let mut done = 0;
        let mut failures = 0;
        while let Err(error) = tell(&hub, app, &batch, &mut done).await {
            failures += 1;
            tracing::warn!(%app, failures, ?error, "events could not be told yet");
            if failures == TRIES {
                hub.end_app(app);
                break;
            }
            tokio::time::sleep(PAUSE * failures).await;
        }
    }
}

/// Tells what is left of the batch.
async fn tell(hub: &Realtime, app: AppId, batch: &Batch, done: &mut usize) -> StoreResult<()> {
    let Some(current) = hub.stand(app).await? else { return Ok(()) };
    while let Some(change) = batch.changes.get(*done) {
        *done += 1;
        if let Err(error) = one(hub, &current, batch, change).await {
            if !matches!(error, StoreError::Broken | StoreError::Refused(_)) {
                *done -= 1;
                return Err(error);
            }
            // It would never come out better. Nobody is to think that it did.
            tracing::error!(%app, change = change.number, "an event cannot be told; the app's streams are ended");
            hub.end_app(app);
        }
    }
    Ok(())
}

async fn one(hub: &Realtime, app: &Arc<AppSnapshot>, batch: &Batch, change: &Change) -> StoreResult<()> {
    // Who is evaluated as this record is another one from now on.
    for principal in hub.principals(app.id) {
        let listener = principal.listener();
        if listener.stands_for() == Some((change.collection.as_str(), change.record.as_str())) {
            let core: &dyn Core = &*hub.store;
            match listener.renewed(core, app, inn_ports::Live::ALL, hub.clock.now()).await? {
                Some(renewed) => *principal.listener.lock() = Arc::new(renewed),
                None => hub.end(app.id, &principal),
            }
        }
    }
    let Some(collection) = app.definition.model.collection(&change.collection) else { return Ok(()) };
    let targets = hub.targets(app.id, collection, &change.record);
    let between = Between { seen: &batch.seen, upto: &batch.upto };
    for (target, bytes) in hub.verdicts(app, collection, change, &targets, between).await? {
        hub.tell(app.id, target, change.transaction, &bytes);
    }
    Ok(())
}

//! What a client missed since its last event.

use std::sync::Arc;
use std::time::Duration;

use inn_ports::{Change, StoreResult};
use inn_rules::realtime::{Place, Snapshot, event, marker};
use serde_json::json;

use super::Realtime;
use super::client::Client;
use super::hub::Target;
use super::pipe::End;
use super::verdicts::{Between, whose};

/// Changes are kept for an hour; a cursor counts a little less long.
const OLDEST: i64 = 50 * 60;
/// More changes than this are not gone through for one client: it reads the records anew.
const MOST: usize = 5_000;
/// A client that does not read what it missed within this time is cut off.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why a client starts afresh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fresh {
    /// Not a cursor of this caller on this app: another's, another key's, or no cursor at all.
    NotYours,
    TooOld,
    TooMuch,
}

impl Fresh {
    const fn as_str(self) -> &'static str {
        match self {
            Self::NotYours => "not_yours",
            Self::TooOld => "too_old",
            Self::TooMuch => "too_much",
        }
    }
}

struct Piece {
    seen: Arc<Snapshot>,
    upto: Arc<Snapshot>,
    changes: Vec<Change>,
}

impl Realtime {
    /// Tells the client what it missed and then what was held meanwhile, or that it has to start afresh. `now` is the
    /// snapshot from which on it listens.
    pub(super) async fn go_on(&self, client: &Client, turn: u64, last_event: &str, now: Arc<Snapshot>) {
        let told = tokio::time::timeout(PATIENCE, self.tell_missed(client, turn, last_event, &now)).await;
        match told {
            Ok(Ok(())) if client.release(turn) => {}
            Ok(Ok(())) | Err(_) => self.dismiss(client, End::CutOff),
            Ok(Err(error)) => {
                tracing::warn!(?error, client = client.number, "what a client missed could not be read");
                self.dismiss(client, End::Over);
            }
        }
    }

    async fn tell_missed(&self, client: &Client, turn: u64, last_event: &str, now: &Arc<Snapshot>) -> StoreResult<()> {
        let Some(principal) = client.state.lock().principal.clone() else { return Ok(()) };
        let scope = principal.listener().scope();
        let at = self.clock.now().timestamp();
        let missed = match self.place(client, &scope, last_event, at) {
            Ok(place) => match self.missed(client, &place, now).await? {
                Some(pieces) => Ok((place, pieces)),
                None => Err(Fresh::TooMuch),
            },
            Err(fresh) => Err(fresh),
        };
        let start = self.cursors.seal(&whose(client.app, &scope), &Place::at_snapshot((**now).clone(), at).to_bytes());
        let (place, pieces) = match missed {
            Ok(missed) => missed,
            Err(fresh) => {
                let data = json!({ "resumed": false, "reason": fresh.as_str() }).to_string();
                client.pipe.push(event(&start, "INN_RESUME", &data).into());
                return Ok(());
            }
        };
        let data = json!({ "resumed": true }).to_string();
        client.pipe.push(event(last_event, "INN_RESUME", &data).into());
        let Some(app) = self.stand(client.app).await? else { return Ok(()) };
        let topics: Vec<_> = {
            let own = client.state.lock();
            if own.turn != turn {
                return Ok(());
            }
            own.subscriptions.iter().map(|subscription| Arc::clone(&subscription.topic)).collect()
        };
        for Piece { seen, upto, changes } in pieces {
            for change in changes {
                let Some(collection) = app.definition.model.collection(&change.collection) else { continue };
                let is_told = |order: u64| change.number == place.change && order <= place.topic;
                let mut targets: Vec<Target> = topics
                    .iter()
                    .filter(|topic| topic.is_about(collection, &change.record) && !is_told(topic.order))
                    .map(|topic| Target { topic: Arc::clone(topic), principal: Arc::clone(&principal) })
                    .collect();
                targets.sort_by_key(|target| target.topic.order);
                let between = Between { seen: &seen, upto: &upto };
                for (_, bytes) in self.verdicts(&app, collection, &change, &targets, between).await? {
                    client.pipe.room().await;
                    if client.pipe.has_ended() {
                        return Ok(());
                    }
                    client.pipe.push(bytes);
                }
            }
        }
        client.pipe.push(marker(&start).into());
        Ok(())
    }

    fn place(&self, client: &Client, scope: &str, last_event: &str, now: i64) -> Result<Place, Fresh> {
        let opened = self.cursors.open(&whose(client.app, scope), last_event);
        let place = opened.as_deref().and_then(Place::from_bytes).ok_or(Fresh::NotYours)?;
        if now - place.at > OLDEST { Err(Fresh::TooOld) } else { Ok(place) }
    }

    /// First what was left of the look the client's last event came from, then everything since. `None`: too much.
    async fn missed(&self, client: &Client, place: &Place, now: &Arc<Snapshot>) -> StoreResult<Option<Vec<Piece>>> {
        let (seen, upto) = (Arc::new(place.seen.clone()), Arc::new(place.upto.clone()));
        // The change itself may have been told under some topics only.
        let rest = self.between(client, &seen, &upto, place.change.saturating_sub(1), MOST).await?;
        let Some(rest) = rest else { return Ok(None) };
        let left = MOST - rest.changes.len();
        let since = self.between(client, &upto, now, i64::MIN, left).await?;
        Ok(since.map(|since| vec![rest, since]))
    }

    async fn between(
        &self,
        client: &Client,
        seen: &Arc<Snapshot>,
        upto: &Arc<Snapshot>,
        mut after: i64,
        most: usize,
    ) -> StoreResult<Option<Piece>> {
        let mut changes = Vec::new();
        loop {
            let new = self.store.changes(seen, Some(upto), after, Some(client.app)).await?;
            after = new.changes.last().map_or(after, |last| last.number);
            changes.extend(new.changes);
            if changes.len() > most {
                return Ok(None);
            }
            if !new.more {
                return Ok(Some(Piece { seen: Arc::clone(seen), upto: Arc::clone(upto), changes }));
            }
        }
    }
}

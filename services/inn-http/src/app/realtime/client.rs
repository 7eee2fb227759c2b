//! One open stream, and what it listens to.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use actix_web::rt::time::{Instant, Sleep, sleep};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures_util::Stream;
use inn_actors::Listener;
use inn_protocol::AppId;
use inn_rules::realtime::{Snapshot, Topic};
use parking_lot::Mutex;

use super::Realtime;
use super::pipe::{End, Pipe};

/// No stream lives longer (PocketBase notes, section F.7).
const LONGEST: Duration = Duration::from_mins(30);

/// Callers for whom everything is decided alike, whatever the number of their streams.
pub(super) struct Principal {
    pub(super) key: String,
    /// As of the last look.
    pub(super) listener: Mutex<Arc<Listener>>,
}

impl Principal {
    pub(super) fn listener(&self) -> Arc<Listener> {
        Arc::clone(&self.listener.lock())
    }
}

/// One topic of one client.
#[derive(Clone)]
pub(super) struct Subscription {
    pub(super) topic: Arc<Topic>,
    /// Changes that this sees are older than the subscription.
    pub(super) since: Arc<Snapshot>,
}

/// A message that was told while the client was not ready for it.
pub(super) struct Held {
    pub(super) transaction: u64,
    pub(super) topic: Arc<Topic>,
    pub(super) bytes: Bytes,
}

#[derive(Default)]
pub(super) struct Subscribed {
    pub(super) principal: Option<Arc<Principal>>,
    pub(super) subscriptions: Vec<Subscription>,
    /// Set while it is not known yet from where on the client listens, or while it hears what it missed.
    pub(super) held: Option<Vec<Held>>,
    /// When the papers shown last run out.
    pub(super) ends: Option<DateTime<Utc>>,
    /// Counts what it was told to listen to: work for an earlier one is left.
    pub(super) turn: u64,
}

pub(super) struct Client {
    pub(super) id: String,
    pub(super) number: u64,
    pub(super) app: AppId,
    pub(super) address: String,
    /// `Last-Event-ID` it came with, until it is used.
    pub(super) last_event: Mutex<Option<String>>,
    pub(super) pipe: Pipe,
    pub(super) state: Mutex<Subscribed>,
}

impl Client {
    /// Gives the message to the client, now or once it is ready. `false`: it is too slow.
    pub(super) fn offer(&self, most_held: usize, message: Held) -> bool {
        let mut state = self.state.lock();
        if let Some(held) = &mut state.held {
            if held.len() >= most_held {
                return false;
            }
            held.push(message);
            return true;
        }
        if !is_new(&state.subscriptions, &message) {
            return true;
        }
        self.pipe.push(message.bytes)
    }

    pub(super) fn is_expired(&self, now: DateTime<Utc>) -> bool {
        self.state.lock().ends.is_some_and(|ends| ends <= now)
    }

    /// Gives out what was held, once it is known from where on the client listens. `false`: it is too slow.
    pub(super) fn release(&self, turn: u64) -> bool {
        let mut state = self.state.lock();
        if state.turn != turn {
            return true;
        }
        let held = state.held.take().unwrap_or_default();
        held.into_iter().filter(|held| is_new(&state.subscriptions, held)).all(|held| self.pipe.push(held.bytes))
    }
}

fn is_new(subscriptions: &[Subscription], message: &Held) -> bool {
    let found = subscriptions.iter().find(|subscription| subscription.topic.text == message.topic.text);
    found.is_some_and(|subscription| !subscription.since.sees(message.transaction))
}

/// The body of the answer. Ends when told to, when nothing was said for too long, or when it is old.
pub(super) struct EventStream {
    hub: Arc<Realtime>,
    client: Arc<Client>,
    idle: Duration,
    silent: Pin<Box<Sleep>>,
    old: Pin<Box<Sleep>>,
}

impl EventStream {
    pub(super) fn new(hub: Arc<Realtime>, client: Arc<Client>, idle: Duration) -> Self {
        Self { hub, client, idle, silent: Box::pin(sleep(idle)), old: Box::pin(sleep(LONGEST)) }
    }
}

impl Stream for EventStream {
    type Item = Result<Bytes, std::io::Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.client.pipe.poll(context) {
            Poll::Ready(Ok(message)) => {
                let again = Instant::now() + self.idle;
                self.silent.as_mut().reset(again);
                return Poll::Ready(Some(Ok(message)));
            }
            Poll::Ready(Err(End::Over)) => return Poll::Ready(None),
            Poll::Ready(Err(End::CutOff)) => {
                return Poll::Ready(Some(Err(std::io::Error::other("the client reads too slowly"))));
            }
            Poll::Pending => {}
        }
        let over = self.silent.as_mut().poll(context).is_ready() || self.old.as_mut().poll(context).is_ready();
        if over { Poll::Ready(None) } else { Poll::Pending }
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.hub.leave(&self.client);
    }
}

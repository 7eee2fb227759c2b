//! The app actors of this node: started on first use, respawned from a factory when one dies.
//!
//! actix's own `Supervisor` does not restart after a panic (actix#158), so a closed address is noticed by the sender and
//! a fresh actor takes its place. Addresses live here and are never cloned per call: a clone owns a mailbox slot of its
//! own and would turn the limit into none (actix#329).

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::dev::{SendError, ToEnvelope};
use actix::{Actor, Addr, Arbiter, ArbiterHandle, Handler, Message};
use inn_ports::Core;
use inn_protocol::{AppId, Code, Refusal};
use parking_lot::RwLock;

use crate::app::AppActor;

/// Deaths within [`DEATH_WINDOW`] after which an app's calls are refused instead of its actor respawned.
const MAX_DEATHS: usize = 5;
const DEATH_WINDOW: Duration = Duration::from_mins(1);

pub(crate) struct Registry {
    store: Arc<dyn Core>,
    io: tokio::runtime::Handle,
    arbiters: Vec<ArbiterHandle>,
    hasher: RandomState,
    apps: RwLock<HashMap<AppId, Entry>>,
}

struct Entry {
    addr: Addr<AppActor>,
    deaths: VecDeque<Instant>,
}

impl Registry {
    /// Starts the threads that app actors are spread over. Must be called inside an actix system.
    pub(crate) fn start(store: Arc<dyn Core>, io: tokio::runtime::Handle, threads: usize) -> Self {
        let arbiters = (0..threads.max(1)).map(|_| Arbiter::new().handle()).collect();
        Self { store, io, arbiters, hasher: RandomState::new(), apps: RwLock::default() }
    }

    /// Puts a write into its app's mailbox. A refusal gives the message back unsent, so nothing has happened.
    pub(crate) fn send<M>(&self, app: AppId, message: M) -> Result<(), Refusal>
    where
        M: Message<Result = ()> + Send + 'static,
        AppActor: Handler<M>,
        <AppActor as Actor>::Context: ToEnvelope<AppActor, M>,
    {
        let message = match self.try_send(app, message) {
            Ok(()) => return Ok(()),
            Err(SendError::Full(_)) => return Err(full()),
            Err(SendError::Closed(message)) => message,
        };
        self.respawn(app)?;
        match self.try_send(app, message) {
            Ok(()) => Ok(()),
            Err(SendError::Full(_)) => Err(full()),
            Err(_) => Err(failed()),
        }
    }

    #[cfg(test)]
    pub(crate) fn kill(&self, app: AppId) {
        if let Some(entry) = self.apps.read().get(&app) {
            entry.addr.try_send(crate::app::Die).unwrap();
        }
    }

    fn try_send<M>(&self, app: AppId, message: M) -> Result<(), SendError<M>>
    where
        M: Message<Result = ()> + Send + 'static,
        AppActor: Handler<M>,
        <AppActor as Actor>::Context: ToEnvelope<AppActor, M>,
    {
        if let Some(entry) = self.apps.read().get(&app) {
            return entry.addr.try_send(message);
        }
        let mut apps = self.apps.write();
        let entry = apps.entry(app).or_insert_with(|| Entry { addr: self.spawn(app), deaths: VecDeque::new() });
        entry.addr.try_send(message)
    }

    fn respawn(&self, app: AppId) -> Result<(), Refusal> {
        let mut apps = self.apps.write();
        let Some(entry) = apps.get_mut(&app) else { return Ok(()) };
        if entry.addr.connected() {
            return Ok(());
        }
        let now = Instant::now();
        entry.deaths.retain(|death| now.duration_since(*death) < DEATH_WINDOW);
        if entry.deaths.len() >= MAX_DEATHS {
            return Err(failed());
        }
        entry.deaths.push_back(now);
        tracing::error!(app = %app, deaths = entry.deaths.len(), "app actor died and is respawned");
        entry.addr = self.spawn(app);
        Ok(())
    }

    fn spawn(&self, app: AppId) -> Addr<AppActor> {
        let (store, io) = (Arc::clone(&self.store), self.io.clone());
        let index = usize::try_from(self.hasher.hash_one(app)).unwrap_or(0) % self.arbiters.len();
        let actor = AppActor::new(app, store, io);
        match self.arbiters.get(index) {
            Some(arbiter) => AppActor::start_in_arbiter(arbiter, |_| actor),
            None => actor.start(),
        }
    }
}

fn full() -> Refusal {
    Refusal::new(
        Code::Overloaded,
        "This app has more writes waiting than it can take; nothing was done. Send it again.",
    )
    .after(1)
}

fn failed() -> Refusal {
    Refusal::new(Code::Unavailable, "This app failed several times within a minute and is paused. The log says why.")
        .after(30)
}

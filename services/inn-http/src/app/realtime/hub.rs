//! Who listens on this node, and to what.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use inn_actors::Listener;
use inn_grants::cursor::CursorKey;
use inn_ports::{Bus, Clock, Store};
use inn_protocol::app::AppSnapshot;
use inn_protocol::model::Collection;
use inn_protocol::{AppId, Code, Refusal};
use inn_rules::realtime::{Snapshot, Topic};
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore, mpsc};

use super::client::{Client, Held, Principal, Subscribed, Subscription};
use super::line::Batch;
use super::pipe::{End, Pipe};

/// Distinct topics of distinct callers of one app on this node: each is decided by itself.
const MOST_GROUPS: usize = 20_000;
/// Clients that hear what they missed at one time.
const REPLAYS: usize = 4;

/// How much realtime may take on one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RealtimeLimits {
    /// Open streams.
    pub connections: usize,
    /// Open streams of one app.
    pub app_connections: usize,
    /// Open streams of one caller on one app.
    pub caller_connections: usize,
    /// Events that may wait for one slow client.
    pub buffer: usize,
    /// A stream without an event ends after this long.
    pub idle: Duration,
}

impl Default for RealtimeLimits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            app_connections: 6_000,
            caller_connections: 200,
            buffer: 256,
            idle: Duration::from_mins(5),
        }
    }
}

/// Everything realtime of one node.
pub struct Realtime {
    pub(super) store: Arc<dyn Store>,
    pub(super) bus: Arc<dyn Bus>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) io: tokio::runtime::Handle,
    pub(super) cursors: CursorKey,
    pub(super) limits: RealtimeLimits,
    /// How far this node has read; `None` while nobody listens.
    pub(super) seen: tokio::sync::Mutex<Option<Snapshot>>,
    /// Somebody listens.
    pub(super) arrived: Notify,
    pub(super) replays: Arc<Semaphore>,
    pub(super) lines: Mutex<HashMap<AppId, mpsc::Sender<Batch>>>,
    numbers: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    closed: bool,
    clients: HashMap<String, Arc<Client>>,
    apps: HashMap<AppId, Heard>,
}

/// What is listened to in one app.
#[derive(Default)]
struct Heard {
    connections: usize,
    /// The app as it was when somebody looked last.
    app: Option<Arc<AppSnapshot>>,
    /// Streams by caller, guests left out.
    callers: HashMap<String, usize>,
    /// With the number of their streams.
    principals: HashMap<String, (Arc<Principal>, usize)>,
    groups: usize,
    /// By the collection's name or id as it was sent, then by topic and principal.
    topics: HashMap<String, HashMap<(String, String), Group>>,
}

/// Clients that are told the same.
struct Group {
    topic: Arc<Topic>,
    principal: Arc<Principal>,
    members: HashMap<u64, Arc<Client>>,
}

/// Whom a change may concern.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) topic: Arc<Topic>,
    pub(super) principal: Arc<Principal>,
}

impl Realtime {
    /// `io` is the runtime that work is done on.
    pub fn new(
        store: Arc<dyn Store>,
        bus: Arc<dyn Bus>,
        clock: Arc<dyn Clock>,
        io: tokio::runtime::Handle,
        cursors: CursorKey,
        limits: RealtimeLimits,
    ) -> Self {
        Self {
            store,
            bus,
            clock,
            io,
            cursors,
            limits,
            seen: tokio::sync::Mutex::default(),
            arrived: Notify::new(),
            replays: Arc::new(Semaphore::new(REPLAYS)),
            lines: Mutex::default(),
            numbers: AtomicU64::new(0),
            state: Mutex::default(),
        }
    }

    /// Open streams.
    pub fn connections(&self) -> usize {
        self.state.lock().clients.len()
    }

    /// Ends every stream and takes no more: the platform stops.
    pub fn close(&self) {
        let clients: Vec<_> = {
            let mut state = self.state.lock();
            state.closed = true;
            state.clients.values().cloned().collect()
        };
        for client in clients {
            client.pipe.end(End::Over);
        }
        self.lines.lock().clear();
    }

    /// Is there room for one more stream of the app?
    pub(super) fn has_room(&self, app: AppId) -> Result<(), Refusal> {
        room(&self.state.lock(), &self.limits, app)
    }

    /// A new stream. Nobody is known of it until it subscribes.
    pub(super) fn connect(
        &self,
        app: AppId,
        id: String,
        address: String,
        last_event: Option<String>,
    ) -> Result<Arc<Client>, Refusal> {
        let mut state = self.state.lock();
        room(&state, &self.limits, app)?;
        let client = Arc::new(Client {
            id: id.clone(),
            number: self.numbers.fetch_add(1, Ordering::Relaxed),
            app,
            address,
            last_event: Mutex::new(last_event),
            pipe: Pipe::new(self.limits.buffer),
            state: Mutex::new(Subscribed::default()),
        });
        state.clients.insert(id, Arc::clone(&client));
        state.apps.entry(app).or_default().connections += 1;
        Ok(client)
    }

    pub(super) fn client(&self, app: AppId, id: &str) -> Option<Arc<Client>> {
        self.state.lock().clients.get(id).filter(|client| client.app == app).cloned()
    }

    /// May this caller have one more stream, or is it one of its own already?
    pub(super) fn may_join(&self, client: &Client, listener: &Listener) -> Result<(), Refusal> {
        let state = self.state.lock();
        let Some(heard) = state.apps.get(&client.app) else { return Ok(()) };
        joins(heard, &self.limits, client, listener)
    }

    /// Sets what the client listens to from now on; everything is held until [`Client::release`]. Answers the turn, and
    /// whether the client goes on with topics it had. Topics keep what they hear from, so that nothing on its way is lost.
    pub(super) fn join(
        &self,
        client: &Arc<Client>,
        listener: Listener,
        topics: Vec<Topic>,
    ) -> Result<(u64, bool), Refusal> {
        let mut state = self.state.lock();
        if !state.clients.contains_key(&client.id) {
            return Err(unknown_client());
        }
        let Some(heard) = state.apps.get_mut(&client.app) else { return Err(unknown_client()) };
        joins(heard, &self.limits, client, &listener)?;
        if heard.groups.saturating_add(topics.len()) > MOST_GROUPS {
            return Err(Refusal::new(
                Code::RateLimited,
                "So many different things are listened to in this app that no more can be. Try again later.",
            )
            .after(30));
        }
        let mut own = client.state.lock();
        let before = std::mem::take(&mut own.subscriptions);
        forget(heard, client, own.principal.take(), &before);
        let (key, ends) = (listener.key(), listener.ends());
        if !listener.is_guest() {
            *heard.callers.entry(listener.scope()).or_default() += 1;
        }
        let listener = Arc::new(listener);
        let (principal, streams) = heard.principals.entry(key.clone()).or_insert_with(|| {
            (Arc::new(Principal { key: key.clone(), listener: Mutex::new(Arc::clone(&listener)) }), 0)
        });
        *streams += 1;
        // What was just shown is the newest that is known. Of two tokens of one account the longer one speaks for both:
        // each stream has an end of its own.
        let mut known = principal.listener.lock();
        let longer = match (known.ends(), listener.ends()) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(known), Some(new)) => new >= known,
        };
        if longer {
            *known = listener;
        }
        drop(known);
        let principal = Arc::clone(principal);
        let mut kept = false;
        for topic in topics {
            let by_collection = heard.topics.entry(topic.collection.clone()).or_default();
            let group = by_collection.entry((topic.text.clone(), key.clone())).or_insert_with(|| {
                heard.groups += 1;
                Group { topic: Arc::new(topic), principal: Arc::clone(&principal), members: HashMap::new() }
            });
            group.members.insert(client.number, Arc::clone(client));
            let known = before.iter().find(|known| known.topic.text == group.topic.text);
            kept |= known.is_some();
            let since = known.map_or_else(Arc::default, |known| Arc::clone(&known.since));
            own.subscriptions.push(Subscription { topic: Arc::clone(&group.topic), since });
        }
        own.principal = Some(principal);
        own.ends = ends;
        own.held.get_or_insert_default();
        own.turn += 1;
        Ok((own.turn, kept))
    }

    /// The stream has ended.
    pub(super) fn leave(&self, client: &Client) {
        client.pipe.end(End::Over);
        let mut state = self.state.lock();
        if state.clients.remove(&client.id).is_none() {
            return;
        }
        let Some(heard) = state.apps.get_mut(&client.app) else { return };
        heard.connections -= 1;
        let mut own = client.state.lock();
        let before = std::mem::take(&mut own.subscriptions);
        forget(heard, client, own.principal.take(), &before);
        if heard.connections == 0 {
            state.apps.remove(&client.app);
        }
    }

    /// Apps that somebody listens to.
    pub(super) fn listened(&self) -> HashSet<AppId> {
        let state = self.state.lock();
        state.apps.iter().filter(|(_, heard)| heard.groups > 0).map(|(app, _)| *app).collect()
    }

    pub(super) fn known(&self, app: AppId) -> Option<Arc<AppSnapshot>> {
        self.state.lock().apps.get(&app).and_then(|heard| heard.app.clone())
    }

    pub(super) fn knows(&self, app: Arc<AppSnapshot>) -> Arc<AppSnapshot> {
        if let Some(heard) = self.state.lock().apps.get_mut(&app.id) {
            heard.app = Some(Arc::clone(&app));
        }
        app
    }

    pub(super) fn principals(&self, app: AppId) -> Vec<Arc<Principal>> {
        let state = self.state.lock();
        state
            .apps
            .get(&app)
            .map(|heard| heard.principals.values().map(|(known, _)| Arc::clone(known)).collect())
            .unwrap_or_default()
    }

    /// Whom a change of this record may concern, in the order they are told.
    pub(super) fn targets(&self, app: AppId, collection: &Collection, record: &str) -> Vec<Target> {
        let state = self.state.lock();
        let Some(heard) = state.apps.get(&app) else { return Vec::new() };
        let mut names = vec![&collection.name];
        if collection.id != collection.name {
            names.push(&collection.id);
        }
        let groups = names.into_iter().filter_map(|name| heard.topics.get(name)).flat_map(HashMap::values);
        let mut targets: Vec<Target> = groups
            .filter(|group| group.topic.reaches(record))
            .map(|group| Target { topic: Arc::clone(&group.topic), principal: Arc::clone(&group.principal) })
            .collect();
        targets.sort_by_key(|target| target.topic.order);
        targets
    }

    /// Gives a message to everybody of the target. Who is too slow is cut off, alone.
    pub(super) fn tell(&self, app: AppId, target: &Target, transaction: u64, bytes: &bytes::Bytes) {
        let members: Vec<Arc<Client>> = {
            let state = self.state.lock();
            let group = state.apps.get(&app).and_then(|heard| {
                let key = (target.topic.text.clone(), target.principal.key.clone());
                heard.topics.get(&target.topic.collection)?.get(&key)
            });
            group.map(|group| group.members.values().cloned().collect()).unwrap_or_default()
        };
        let now = self.clock.now();
        for client in members {
            if client.is_expired(now) {
                self.dismiss(&client, End::Over);
                continue;
            }
            let message = Held { transaction, topic: Arc::clone(&target.topic), bytes: bytes.clone() };
            if !client.offer(self.limits.buffer, message) {
                self.dismiss(&client, End::CutOff);
            }
        }
    }

    /// The stream ends now, also when its client reads nothing more and its connection hangs.
    pub(super) fn dismiss(&self, client: &Client, end: End) {
        if end == End::CutOff {
            tracing::info!(client = client.number, app = %client.app, "a stream is cut off: its client reads too slowly");
        }
        client.pipe.end(end);
        self.leave(client);
    }

    /// Ends the streams of a principal that may listen no longer.
    pub(super) fn end(&self, app: AppId, principal: &Principal) {
        self.end_where(app, |own| own.principal.as_ref().is_some_and(|known| known.key == principal.key));
    }

    /// Ends every stream of an app.
    pub(super) fn end_app(&self, app: AppId) {
        self.end_where(app, |_| true);
    }

    /// Ends streams whose papers have run out.
    pub(super) fn end_expired(&self) {
        let now = self.clock.now();
        let clients: Vec<_> = self.state.lock().clients.values().cloned().collect();
        for client in clients {
            if client.is_expired(now) {
                self.dismiss(&client, End::Over);
            }
        }
    }

    fn end_where(&self, app: AppId, is_meant: impl Fn(&Subscribed) -> bool) {
        let clients: Vec<_> = self.state.lock().clients.values().filter(|client| client.app == app).cloned().collect();
        for client in clients {
            let meant = is_meant(&client.state.lock());
            if meant {
                self.dismiss(&client, End::Over);
            }
        }
    }
}

pub(super) fn unknown_client() -> Refusal {
    Refusal::new(Code::NotFound, "Missing or invalid client id.")
}

fn room(state: &State, limits: &RealtimeLimits, app: AppId) -> Result<(), Refusal> {
    let full = |whose: &str| {
        Refusal::new(Code::RateLimited, format!("{whose} has as many open streams as it may have. Try again later."))
            .after(30)
    };
    if state.closed {
        return Err(Refusal::new(Code::Unavailable, "This node is stopping; connect again.").after(1));
    }
    if state.clients.len() >= limits.connections {
        return Err(full("This node"));
    }
    if state.apps.get(&app).is_some_and(|heard| heard.connections >= limits.app_connections) {
        return Err(full("This app"));
    }
    Ok(())
}

fn joins(heard: &Heard, limits: &RealtimeLimits, client: &Client, listener: &Listener) -> Result<(), Refusal> {
    let scope = listener.scope();
    let own = client.state.lock().principal.as_ref().is_some_and(|known| known.listener().scope() == scope);
    let open = heard.callers.get(&scope).copied().unwrap_or(0);
    if own || listener.is_guest() || open < limits.caller_connections {
        return Ok(());
    }
    let message = format!("You listen on {open} streams of this app already. Close one of them first.");
    Err(Refusal::new(Code::RateLimited, message).after(30))
}

/// Takes the client out of everything it listened to.
fn forget(heard: &mut Heard, client: &Client, principal: Option<Arc<Principal>>, before: &[Subscription]) {
    let Some(principal) = principal else { return };
    let listener = principal.listener();
    if let Some(open) = heard.callers.get_mut(&listener.scope()).filter(|_| !listener.is_guest()) {
        *open -= 1;
        if *open == 0 {
            heard.callers.remove(&listener.scope());
        }
    }
    for subscription in before {
        let topic = &subscription.topic;
        let Some(by_collection) = heard.topics.get_mut(&topic.collection) else { continue };
        let key = (topic.text.clone(), principal.key.clone());
        if let Some(group) = by_collection.get_mut(&key) {
            group.members.remove(&client.number);
            if group.members.is_empty() {
                by_collection.remove(&key);
                heard.groups -= 1;
            }
        }
        if by_collection.is_empty() {
            heard.topics.remove(&topic.collection);
        }
    }
    if let Some((_, streams)) = heard.principals.get_mut(&principal.key) {
        *streams -= 1;
        if *streams == 0 {
            heard.principals.remove(&principal.key);
        }
    }
}

//! How everybody else reaches the inside: one call in, one answer or refusal out.

mod account;
mod batch;
mod listening;

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use actix::dev::SendError;
use actix::{Actor as _, Addr};
use chrono::{DateTime, Utc};
use inn_grants::token::RootPublicKeys;
use inn_ports::{Clock, Core, StoreError, StoreResult};
use inn_protocol::app::AppSnapshot;
use inn_protocol::call::{Action, Call, RequestFacts};
use inn_protocol::caller::Caller;
use inn_protocol::model::Collection;
use inn_protocol::plan::Committed;
use inn_protocol::receipt::{Receipt, Verb};
use inn_protocol::register::{CallOutcome, CallRecord};
use inn_protocol::{AppId, Code, Refusal};
use inn_rules::access::{self, Host, Permit};
use inn_rules::files::Upload;
use inn_rules::filter::{Expr, Scope};
use serde_json::{Map, Value};
use tokio::sync::oneshot;

use account::AccountWrite;

use crate::admission::{Admission, AdmissionLimits, Slot};
use crate::app::{RunWrite, WriteEnd};
use crate::gateway::{Admit, GatewayActor, Judgement, Verdict};
use crate::papers::{self, Evidence, Proof};
use crate::plan::{WriteInput, has_modifiers};
use crate::registry::Registry;
use crate::snapshots::Snapshots;

pub use batch::{BatchRefused, BatchVerb, BatchWrite};
pub use listening::Listener;

/// Half of a small machine; the rest waits its turn.
const HASHING: usize = 2;

/// How often a call is decided again when the state it was decided from moved on under it.
const MAX_DECISIONS: usize = 4;

/// Calls per minute of one verified caller. Asked after the papers held, so that nobody can use up somebody else's.
pub trait CallRates: Send + Sync {
    fn take(&self, caller: &Caller, action: &Action) -> Result<(), Refusal>;
}

pub struct GatewayConfig {
    pub limits: AdmissionLimits,
    pub rates: Arc<dyn CallRates>,
    /// The host is bound to loopback: the single-machine cases of DESIGN section 5 apply.
    pub loopback: bool,
    /// Threads that app actors are spread over.
    pub app_threads: usize,
}

/// The door. Cheap to clone; use it from actix threads only.
#[derive(Clone)]
pub struct Gateway {
    shared: Arc<Shared>,
}

struct Shared {
    number: u64,
    host: Host,
    store: Arc<dyn Core>,
    clock: Arc<dyn Clock>,
    io: tokio::runtime::Handle,
    snapshots: Snapshots,
    admission: Admission,
    rates: Arc<dyn CallRates>,
    registry: Registry,
    /// Passwords of accounts that are hashed or compared at one time: each takes a core for a while.
    hashing: tokio::sync::Semaphore,
    strangers: AtomicU64,
}

/// A call that may go on: who asks, what its entry will say, and which rows the decision covers.
pub struct Admitted {
    pub caller: Caller,
    pub app: Option<Arc<AppSnapshot>>,
    pub record: CallRecord,
    pub permit: Permit,
    /// Database time when it was decided.
    pub now: DateTime<Utc>,
    host: Host,
    proof: Proof,
    _slot: Slot,
}

impl Admitted {
    /// The same decision about something else the call touches on the way (an expanded relation).
    pub fn also(&self, action: &Action) -> Result<Permit, Refusal> {
        self.decide(action, RequestFacts { context: "expand".to_owned(), ..(*self.permit.auth.request).clone() })
    }

    /// The same decision for a part of the call that is asked in its own way.
    fn decide(&self, action: &Action, facts: RequestFacts) -> Result<Permit, Refusal> {
        let auth = self.permit.auth.clone().asking(Arc::new(facts));
        access::decide_as(&self.caller, action, self.app.as_deref(), &auth, self.host, self.now)
    }

    /// What names in a filter of this caller mean.
    pub fn scope<'a>(&'a self, collection: &'a Collection) -> Result<Scope<'a>, Refusal> {
        Ok(Scope {
            collection,
            model: &self.app()?.definition.model,
            now: self.now,
            auth: &self.permit.auth,
            see_hidden: self.permit.see_hidden,
        })
    }

    /// The app of a call that arrived on one.
    pub fn app(&self) -> Result<&Arc<AppSnapshot>, Refusal> {
        self.app.as_ref().ok_or_else(Refusal::internal)
    }
}

/// What a look at something came to.
pub enum Looked<T> {
    /// The entry is still to be written.
    Seen(Result<T, Refusal>),
    /// The entry went with the look: read and registered in one statement (the inner result), or neither.
    Entered(Result<Result<T, Refusal>, StoreError>),
}

/// What a write of one record is made of, beyond its call. Plain record routes take entity and id from the path,
/// `crud` operations from their declaration.
pub struct RecordWrite {
    pub verb: Verb,
    pub entity: String,
    pub id: Option<String>,
    pub body: Value,
    /// Files that came along, when the body was a form (which may have brought none).
    pub form: Option<Vec<Upload>>,
    /// The fixed filter of a `crud` operation.
    pub fixed: Option<Expr>,
}

thread_local! {
    /// This thread's gateway actor, per host (a test process runs several).
    static GATES: RefCell<HashMap<u64, Addr<GatewayActor>>> = RefCell::default();
}

static NUMBERS: AtomicU64 = AtomicU64::new(0);

impl Gateway {
    /// Must be called inside an actix system; `io` is the runtime that owns every I/O client.
    pub fn new(
        config: &GatewayConfig,
        store: Arc<dyn Core>,
        clock: Arc<dyn Clock>,
        io: tokio::runtime::Handle,
        keys: RootPublicKeys,
    ) -> Self {
        let registry = Registry::start(Arc::clone(&store), io.clone(), config.app_threads);
        let shared = Shared {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            host: Host { loopback: config.loopback },
            snapshots: Snapshots::new(Arc::clone(&store), keys),
            admission: Admission::new(config.limits),
            rates: Arc::clone(&config.rates),
            registry,
            hashing: tokio::sync::Semaphore::new(HASHING),
            strangers: AtomicU64::new(0),
            store,
            clock,
            io,
        };
        Self { shared: Arc::new(shared) }
    }

    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.shared.clock
    }

    pub fn is_loopback(&self) -> bool {
        self.shared.host.loopback
    }

    /// Calls refused for bad papers since start: counted, never written down.
    pub fn strangers(&self) -> u64 {
        self.shared.strangers.load(Ordering::Relaxed)
    }

    pub fn in_flight(&self) -> usize {
        self.shared.admission.in_flight()
    }

    /// Does this session token stand for a live session? Asked before a large body is read.
    pub async fn knows_session(&self, token: &str) -> Result<bool, Refusal> {
        let digest = inn_protocol::Digest::of(token.as_bytes());
        Ok(self.shared.snapshots.session(digest).await?.is_some())
    }

    /// The published snapshot of an app, by slug.
    pub async fn app(&self, slug: &str) -> Result<Option<Arc<AppSnapshot>>, Refusal> {
        Ok(self.shared.snapshots.app(slug).await?)
    }

    /// After a key rotation.
    pub fn set_keys(&self, keys: RootPublicKeys) {
        self.shared.snapshots.set_keys(keys);
    }

    /// Another node (or a person) changed rights or releases: look again.
    pub fn forget_all(&self) {
        self.shared.snapshots.forget_all();
    }

    #[cfg(test)]
    pub(crate) fn kill_app_actor(&self, app: AppId) {
        self.shared.registry.kill(app);
    }

    pub fn forget_app(&self, app: AppId) {
        self.shared.snapshots.forget_app(app);
    }

    /// Verifies and decides, without entry and without effect: for the files of a UI and other things that are no call.
    pub async fn glance(&self, call: Call) -> Result<Admitted, Refusal> {
        self.admit(&Arc::new(call)).await.map_err(|refused| refused.refusal)
    }

    /// A call that changes nothing: looks, then makes the entry durable, then answers.
    ///
    /// `look` runs again when the state it was decided from moved on meanwhile.
    pub async fn read<T, F>(&self, call: Call, look: impl Fn(Arc<Admitted>) -> F) -> Result<T, Refusal>
    where
        F: Future<Output = Result<T, Refusal>>,
    {
        self.look(call, |admitted| async { Looked::Seen(look(admitted).await) }).await
    }

    /// [`Self::read`] for looks that may bring the entry along.
    pub async fn look<T, F>(&self, call: Call, look: impl Fn(Arc<Admitted>) -> F) -> Result<T, Refusal>
    where
        F: Future<Output = Looked<T>>,
    {
        let call = Arc::new(call);
        for _ in 0..MAX_DECISIONS {
            let admitted = Arc::new(self.admit_or_register(&call).await?);
            let (result, entered) = match look(Arc::clone(&admitted)).await {
                Looked::Seen(result) if matches!(admitted.caller, Caller::Stranger) => return result,
                Looked::Seen(result) => {
                    let outcome = outcome(&result);
                    (result, self.shared.store.record(admitted.record.clone(), outcome).await)
                }
                Looked::Entered(Ok(result)) => (result, Ok(())),
                Looked::Entered(Err(error)) => (Err(Refusal::internal()), Err(error)),
            };
            match entered {
                Ok(()) => return result,
                Err(StoreError::Stale) => self.shared.snapshots.forget(&admitted.record.live),
                Err(error @ StoreError::Refused(_)) => return Err(self.refuse(admitted.record.clone(), error).await),
                Err(error) => return Err(error.into()),
            }
        }
        Err(StoreError::Stale.into())
    }

    /// A call whose effect commits itself together with `Admitted::record` (see the ports). Runs on the I/O runtime, so
    /// a client that hangs up does not stop it half-way.
    pub async fn perform<T, F>(&self, call: Call, effect: impl Fn(Arc<Admitted>) -> F) -> Result<T, Refusal>
    where
        T: Send + 'static,
        F: Future<Output = StoreResult<T>> + Send + 'static,
    {
        let call = Arc::new(call);
        for _ in 0..MAX_DECISIONS {
            let admitted = Arc::new(self.admit_or_register(&call).await?);
            let ended = self.shared.io.spawn(effect(Arc::clone(&admitted))).await;
            match ended.unwrap_or(Err(StoreError::Unknown)) {
                Ok(value) => return Ok(value),
                Err(StoreError::Stale) => self.shared.snapshots.forget(&admitted.record.live),
                Err(error) => return Err(self.refuse(admitted.record.clone(), error).await),
            }
        }
        Err(StoreError::Stale.into())
    }

    /// A write of one record: through the app's actor into the one commit.
    pub async fn write(
        &self,
        call: Call,
        prepare: impl Fn(&Admitted) -> Result<RecordWrite, Refusal>,
    ) -> Result<(Arc<Admitted>, Committed), Refusal> {
        let call = Arc::new(call);
        for _ in 0..MAX_DECISIONS {
            let admitted = self.admit_or_register(&call).await?;
            let write = match prepare(&admitted) {
                Ok(write) => write,
                Err(refusal) => return Err(self.refuse(admitted.record, refusal.into()).await),
            };
            let done = (write.verb != Verb::Delete).then(|| (write.verb, write.entity.clone()));
            let changed = (write.verb == Verb::Update).then(|| (write.entity.clone(), write.id.clone()));
            let (admitted, end) = self.commit(&call, admitted, write).await?;
            match end.result {
                Ok(committed) => return Ok((admitted, committed)),
                Err(StoreError::Stale) => self.shared.snapshots.forget(&end.record.live),
                Err(StoreError::Refused(refusal)) if !refusal.violations.is_empty() => {
                    let refusal = match changed {
                        Some((entity, Some(id))) => self.gone_first(&admitted, &entity, &id, *refusal).await?,
                        _ => *refusal,
                    };
                    return Err(self.refuse(end.record, refusal.into()).await);
                }
                Err(error) => {
                    let claimed = end.record.live.claim.is_some();
                    let refusal = self.refuse(end.record, error).await;
                    let earlier = match done {
                        Some((verb, entity)) if claimed => self.earlier(&admitted, verb, entity, &refusal).await?,
                        _ => None,
                    };
                    return earlier.map(|earlier| (admitted, earlier)).ok_or(refusal);
                }
            }
        }
        Err(StoreError::Stale.into())
    }

    /// What an earlier call under the same claim wrote, as far as the caller may see it: a second worker that repeats a
    /// step gets the first one's record instead of a refusal.
    async fn earlier(
        &self,
        admitted: &Admitted,
        verb: Verb,
        entity: String,
        refusal: &Refusal,
    ) -> Result<Option<Committed>, Refusal> {
        let (Code::DuplicateRequest, Some(first), Some(id)) = (refusal.code, refusal.first, &refusal.id) else {
            return Ok(None);
        };
        let view = Action::ViewRecord { entity: entity.clone(), id: id.clone() };
        let Ok(permit) = admitted.also(&view) else { return Ok(None) };
        let plan = inn_ports::ViewPlan {
            app: Arc::clone(admitted.app()?),
            entity: entity.clone(),
            ids: vec![id.clone()],
            rule: permit.rule.stored().cloned().unwrap_or(Expr::Always),
        };
        let Some(row) = self.shared.store.view(&plan).await?.pop() else { return Ok(None) };
        let receipt = Receipt {
            id: first,
            app: Some(plan.app.id),
            at: admitted.now,
            action: admitted.record.draft.action.clone(),
            sentence: String::new(),
            entity: Some(entity),
            record: Some(id.clone()),
            stored: row.clone(),
        };
        Ok(Some(Committed { verb, receipt, row, earlier: true }))
    }

    async fn commit(
        &self,
        call: &Call,
        admitted: Admitted,
        write: RecordWrite,
    ) -> Result<(Arc<Admitted>, WriteEnd), Refusal> {
        let app = Arc::clone(admitted.app()?);
        let looked = write.verb == Verb::Update && needs_row(&app, &write.entity, &write.body, write.form.as_deref());
        let current = match &write.id {
            Some(id) if looked => self.current(&app, &admitted, &write.entity, id).await?,
            _ => None,
        };
        if Instant::now() > call.deadline {
            let late = "The call waited longer than its deadline; nothing was done. Send it again.";
            return Err(self.refuse(admitted.record, Refusal::new(Code::Timeout, late).into()).await);
        }
        let account = AccountWrite {
            app: &app,
            permit: &admitted.permit,
            verb: write.verb,
            entity: &write.entity,
            body: &write.body,
            form: write.form.as_deref(),
            id: write.id.as_deref(),
            current: current.as_ref(),
        };
        let account = match self.account(account).await {
            Ok(account) => account,
            Err(refusal) => return Err(self.refuse(admitted.record, refusal.into()).await),
        };
        let input = WriteInput {
            record: admitted.record.clone(),
            app: Arc::clone(&app),
            verb: write.verb,
            entity: write.entity,
            id: write.id,
            body: write.body,
            form: write.form,
            rule: admitted.permit.rule.clone(),
            fixed: write.fixed,
            see_hidden: admitted.permit.see_hidden,
            looked,
            current,
            account,
            random: rand::random(),
            now: self.shared.clock.now(),
        };
        let (reply, answer) = oneshot::channel();
        let Admitted { caller, app: snapshot, record, permit, now, host, proof, _slot: slot } = admitted;
        self.shared.registry.send(app.id, RunWrite { input: Box::new(input), slot, reply })?;
        // A reply that never comes means the actor or the task died: it may have committed.
        let end =
            answer.await.unwrap_or_else(|_| WriteEnd { record: record.clone(), result: Err(StoreError::Unknown) });
        let spent = Slot::spent();
        Ok((Arc::new(Admitted { caller, app: snapshot, record, permit, now, host, proof, _slot: spent }), end))
    }

    /// That a record is not there (for this caller) is told before what is wrong with the body, as PocketBase does.
    async fn gone_first(
        &self,
        admitted: &Admitted,
        entity: &str,
        id: &str,
        refusal: Refusal,
    ) -> Result<Refusal, Refusal> {
        let there = self.current(admitted.app()?, admitted, entity, id).await?.is_some();
        Ok(if there { refusal } else { Refusal::not_found() })
    }

    /// The stored row, for bodies that change values relative to it.
    async fn current(
        &self,
        app: &Arc<AppSnapshot>,
        admitted: &Admitted,
        entity: &str,
        id: &str,
    ) -> Result<Option<Map<String, Value>>, Refusal> {
        let plan = inn_ports::ViewPlan {
            app: Arc::clone(app),
            entity: entity.to_owned(),
            ids: vec![id.to_owned()],
            rule: admitted.permit.rule.stored().cloned().unwrap_or(Expr::Always),
        };
        Ok(self.shared.store.view(&plan).await?.pop())
    }

    /// Registers the refusal of a verified caller and gives it back. If even that cannot be written, the refusal stands:
    /// nothing was done that the register would have to know.
    ///
    /// What a guest of an app was refused is not written down: the register is not to be filled by anybody who comes by.
    async fn refuse(&self, mut record: CallRecord, error: StoreError) -> Refusal {
        let unknown = matches!(error, StoreError::Unknown);
        let refusal = Refusal::from(error);
        if unknown || record.draft.caller == Caller::Stranger.kind() {
            return refusal;
        }
        if refusal.code == Code::ReplayedNonce {
            record.nonce = None;
        }
        // Whether rights moved on meanwhile does not matter to a call that is refused anyway.
        record.live = inn_protocol::call::LiveCheck::default();
        let outcome = CallOutcome::Refused { code: refusal.code.as_str() };
        if let Err(error) = self.shared.store.record(record, outcome).await {
            tracing::warn!(?error, "a refusal could not be registered");
        }
        refusal
    }

    async fn admit_or_register(&self, call: &Arc<Call>) -> Result<Admitted, Refusal> {
        match self.admit(call).await {
            Ok(admitted) => match self.shared.rates.take(&admitted.caller, &call.action) {
                Ok(()) => Ok(admitted),
                Err(refusal) if matches!(admitted.caller, Caller::Stranger) => Err(refusal),
                Err(refusal) => Err(self.refuse(admitted.record, refusal.into()).await),
            },
            Err(Refused { refusal, record: Some(record) }) => Err(self.refuse(*record, refusal.into()).await),
            Err(Refused { refusal, record: None }) => Err(refusal),
        }
    }

    async fn admit(&self, call: &Arc<Call>) -> Result<Admitted, Refused> {
        let shared = &self.shared;
        let evidence = papers::gather(call, &shared.snapshots).await.inspect_err(|refusal| {
            if refusal.code.status() == 401 {
                shared.strangers.fetch_add(1, Ordering::Relaxed);
            }
        })?;
        let share = evidence.app.as_ref().map(|app| (app.tenant, app.id));
        let slot = shared.admission.enter(share)?;
        let app = evidence.app.clone();
        let proof = papers::proof(call, &evidence);
        let (now, host) = (shared.clock.now(), shared.host);
        let judgement = self.ask(Arc::clone(call), evidence).await?;
        match judgement {
            Judgement::Admitted(verdict) => {
                let Verdict { caller, record, permit } = *verdict;
                Ok(Admitted { caller, app, record, permit, now, host, proof, _slot: slot })
            }
            Judgement::Refused { refusal, record } => {
                if record.is_none() {
                    shared.strangers.fetch_add(1, Ordering::Relaxed);
                }
                Err(Refused { refusal, record })
            }
        }
    }

    /// One question to this thread's gateway actor, which is started, or started anew after a panic, when it is missing.
    async fn ask(&self, call: Arc<Call>, evidence: Evidence) -> Result<Judgement, Refusal> {
        let (reply, answer) = oneshot::channel();
        let message = Admit { call, evidence, reply };
        let sent = GATES.with_borrow_mut(|gates| {
            let start = || GatewayActor::new(self.shared.host, Arc::clone(&self.shared.clock)).start();
            let gate = gates.entry(self.shared.number).or_insert_with(start);
            match gate.try_send(message) {
                Err(SendError::Closed(message)) => {
                    tracing::error!("the gateway actor of this thread died and is started anew");
                    *gate = start();
                    gate.try_send(message)
                }
                sent => sent,
            }
        });
        if sent.is_err() {
            return Err(
                Refusal::new(Code::Overloaded, "The door is crowded; nothing was done. Send it again.").after(1)
            );
        }
        answer.await.map_err(|_| Refusal::internal())
    }
}

/// Whether what an update writes depends on the stored row: modifiers, and files that stay.
fn needs_row(app: &AppSnapshot, entity: &str, body: &Value, form: Option<&[Upload]>) -> bool {
    let (Some(collection), Some(members)) = (app.definition.model.collection(entity), body.as_object()) else {
        return false;
    };
    // Of an account it matters who it is and what its email and password were.
    collection.is_auth()
        || has_modifiers(body)
        || inn_rules::files::needs_row(collection, members, form.unwrap_or_default())
}

/// A refusal on the way in, with the record when it belongs into the register.
struct Refused {
    refusal: Refusal,
    record: Option<Box<CallRecord>>,
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, record: None }
    }
}

fn outcome<T>(result: &Result<T, Refusal>) -> CallOutcome {
    match result {
        Ok(_) => CallOutcome::Done,
        Err(refusal) => CallOutcome::Refused { code: refusal.code.as_str() },
    }
}

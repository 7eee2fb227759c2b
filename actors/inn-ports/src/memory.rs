//! Doubles for tests of the inside: what the gateway and the app actors need, kept in memory, with the same refusals.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use inn_grants::app_token::AppSecret;
use inn_protocol::app::AppSnapshot;
use inn_protocol::call::LiveCheck;
use inn_protocol::model::Collection;
use inn_protocol::plan::Committed;
use inn_protocol::receipt::{Receipt, Verb};
use inn_protocol::register::{CallOutcome, CallRecord};
use inn_protocol::{AgentId, AppId, Code, Digest, GrantId, Refusal, TenantId, UserId};
use inn_rules::filter;
use parking_lot::Mutex;
use serde_json::{Map, Value};

use crate::{
    AgentState, AppUsers, Batch, BatchDone, BatchFailed, Clock, Directory, FileTokenState, GrantState, Ledger,
    ListPlan, MemberState, Page, Plan, Records, Referrer, ReferrersPlan, Seen, SessionState, StoreError, StoreResult,
    ViewPlan, batch_sentence, batch_stored,
};

/// A clock that stands where it was put.
pub struct FixedClock(Mutex<DateTime<Utc>>);

impl FixedClock {
    pub fn at(now: DateTime<Utc>) -> Self {
        Self(Mutex::new(now))
    }

    pub fn set(&self, now: DateTime<Utc>) {
        *self.0.lock() = now;
    }
}

impl Clock for FixedClock {
    fn now(&self) -> DateTime<Utc> {
        *self.0.lock()
    }
}

/// One line of the register, as far as tests of the inside look at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryEntry {
    pub caller: &'static str,
    pub action: String,
    pub outcome: String,
}

/// What tokens of app users hang on, in every app in memory.
pub const MEMORY_SECRET: AppSecret = AppSecret::from_bytes([7; 32]);

/// [`crate::Core`] in memory. Transactions are one lock.
pub struct MemoryCore {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    apps: HashMap<String, Arc<AppSnapshot>>,
    agents: HashMap<AgentId, Arc<AgentState>>,
    grants: HashMap<GrantId, Arc<GrantState>>,
    loopback: HashMap<Digest, GrantId>,
    members: HashMap<(TenantId, UserId), Arc<MemberState>>,
    sessions: HashMap<Digest, Arc<SessionState>>,
    file_tokens: HashMap<Digest, FileTokenState>,
    rows: BTreeMap<(AppId, String, String), Map<String, Value>>,
    nonces: HashSet<(AgentId, String)>,
    keys: HashMap<(String, String, String), (Digest, String)>,
    entries: Vec<MemoryEntry>,
    next: Option<Trouble>,
}

/// What the next commit runs into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// The connection is lost while committing.
    Lost,
    /// The code of the adapter panics.
    Panic,
}

impl MemoryCore {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, state: Mutex::default() }
    }

    pub fn put_app(&self, app: AppSnapshot) {
        self.state.lock().apps.insert(app.slug.clone(), Arc::new(app));
    }

    pub fn put_agent(&self, agent: AgentState) {
        self.state.lock().agents.insert(agent.agent.clone(), Arc::new(agent));
    }

    pub fn put_grant(&self, grant: GrantState, loopback_token: Option<Digest>) {
        let mut state = self.state.lock();
        if let Some(token) = loopback_token {
            state.loopback.insert(token, grant.grant);
        }
        state.grants.insert(grant.grant, Arc::new(grant));
    }

    pub fn put_member(&self, member: MemberState) {
        self.state.lock().members.insert((member.tenant, member.user), Arc::new(member));
    }

    pub fn put_session(&self, token: Digest, session: SessionState) {
        self.state.lock().sessions.insert(token, Arc::new(session));
    }

    pub fn put_file_token(&self, token: Digest, state: FileTokenState) {
        self.state.lock().file_tokens.insert(token, state);
    }

    /// A record of an app, as it is.
    pub fn put_row(&self, app: AppId, entity: &str, row: Map<String, Value>) {
        let id = row.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
        self.state.lock().rows.insert((app, entity.to_owned(), id), row);
    }

    pub fn row(&self, app: AppId, entity: &str, id: &str) -> Option<Map<String, Value>> {
        self.state.lock().rows.get(&(app, entity.to_owned(), id.to_owned())).cloned()
    }

    /// The next commit ends in trouble.
    pub fn trouble_next(&self, trouble: Trouble) {
        self.state.lock().next = Some(trouble);
    }

    pub fn entries(&self) -> Vec<MemoryEntry> {
        self.state.lock().entries.clone()
    }

    pub fn rows(&self) -> usize {
        self.state.lock().rows.len()
    }
}

impl State {
    fn check(&mut self, record: &CallRecord) -> StoreResult<()> {
        if !self.is_live(&record.live) {
            return Err(StoreError::Stale);
        }
        if let Some(nonce) = &record.nonce
            && !self.nonces.insert((nonce.agent.clone(), nonce.nonce.clone()))
        {
            return Err(Refusal::new(Code::ReplayedNonce, "This signature was used already.").into());
        }
        Ok(())
    }

    fn is_live(&self, live: &LiveCheck) -> bool {
        let app = live.app.is_none_or(|(id, epoch)| self.apps.values().any(|app| app.id == id && app.epoch == epoch));
        let grant = live
            .grant
            .is_none_or(|(id, epoch)| self.grants.get(&id).is_some_and(|grant| grant.epoch == epoch && !grant.revoked));
        let member = live.member.is_none_or(|(tenant, user, epoch)| {
            self.members.get(&(tenant, user)).is_some_and(|member| member.epoch == epoch)
        });
        let session = live.session.is_none_or(|id| self.sessions.values().any(|session| session.session == id));
        let app_user = live.app_user.as_ref().is_none_or(|user| {
            let row = self.rows.get(&(user.app, user.collection.clone(), user.record.clone()));
            let key = row.and_then(|row| row.get("tokenKey")).and_then(Value::as_str);
            key.is_some_and(|key| Digest::of(key.as_bytes()) == user.token_key)
        });
        app && grant && member && session && app_user
    }

    fn enter(&mut self, record: &CallRecord, outcome: &CallOutcome) {
        let entry =
            MemoryEntry { caller: record.draft.caller, action: record.draft.action.clone(), outcome: outcome.text() };
        self.entries.push(entry);
    }

    fn write(&mut self, plan: &Plan) -> StoreResult<Map<String, Value>> {
        let write = &plan.write;
        let key = (plan.app.id, write.entity.clone(), write.id.clone());
        let passes = |row: &Map<String, Value>| {
            [&write.rule, &write.fixed].into_iter().flatten().all(|rule| filter::matches(rule, row))
        };
        match write.verb {
            Verb::Create => {
                if self.rows.contains_key(&key) {
                    return Err(inn_rules::values::not_unique(["id"]).into());
                }
                let mut row = write.values.clone();
                row.insert("id".to_owned(), Value::String(write.id.clone()));
                self.rows.insert(key, row.clone());
                Ok(row)
            }
            Verb::Update => {
                let row = self.rows.get_mut(&key).filter(|row| passes(row)).ok_or_else(Refusal::not_found)?;
                row.extend(write.values.clone());
                for (field, delta) in &write.increments {
                    let sum = row.get(field).and_then(Value::as_f64).unwrap_or(0.0) + delta.as_f64().unwrap_or(0.0);
                    row.insert(field.clone(), sum.into());
                }
                Ok(row.clone())
            }
            Verb::Delete => {
                self.rows.get(&key).filter(|row| passes(row)).ok_or_else(Refusal::not_found)?;
                Ok(self.rows.remove(&key).unwrap_or_default())
            }
        }
    }
}

#[async_trait]
impl Directory for MemoryCore {
    async fn app_by_slug(&self, slug: &str) -> StoreResult<Option<Arc<AppSnapshot>>> {
        Ok(self.state.lock().apps.get(slug).cloned())
    }

    async fn app_by_id(&self, app: AppId) -> StoreResult<Option<Arc<AppSnapshot>>> {
        Ok(self.state.lock().apps.values().find(|known| known.id == app).cloned())
    }

    async fn agent(&self, agent: &AgentId) -> StoreResult<Option<Arc<AgentState>>> {
        Ok(self.state.lock().agents.get(agent).cloned())
    }

    async fn grant(&self, grant: GrantId) -> StoreResult<Option<Arc<GrantState>>> {
        Ok(self.state.lock().grants.get(&grant).cloned())
    }

    async fn loopback_grant(&self, token: Digest) -> StoreResult<Option<Arc<GrantState>>> {
        let state = self.state.lock();
        Ok(state.loopback.get(&token).and_then(|grant| state.grants.get(grant)).cloned())
    }

    async fn queue_grants(&self, agent: &AgentId) -> StoreResult<Vec<Arc<GrantState>>> {
        use inn_protocol::scope::Scope;
        let may_claim = |grant: &&Arc<GrantState>| {
            grant.agent == *agent && !grant.revoked && grant.scopes.iter().any(|scope| matches!(scope, Scope::Queue(_)))
        };
        Ok(self.state.lock().grants.values().filter(may_claim).cloned().collect())
    }

    async fn member(&self, tenant: TenantId, user: UserId) -> StoreResult<Option<Arc<MemberState>>> {
        Ok(self.state.lock().members.get(&(tenant, user)).cloned())
    }

    async fn session(&self, token: Digest) -> StoreResult<Option<Arc<SessionState>>> {
        Ok(self.state.lock().sessions.get(&token).cloned())
    }

    async fn file_token(&self, token: Digest) -> StoreResult<Option<FileTokenState>> {
        Ok(self.state.lock().file_tokens.get(&token).cloned())
    }

    async fn app_record(&self, app: &AppSnapshot, id: &str) -> StoreResult<Option<Map<String, Value>>> {
        let state = self.state.lock();
        let auth = app.definition.model.collections.iter().find(|collection| collection.is_auth());
        Ok(auth.and_then(|auth| state.rows.get(&(app.id, auth.name.clone(), id.to_owned()))).cloned())
    }

    async fn database_now(&self) -> StoreResult<DateTime<Utc>> {
        Ok(self.clock.now())
    }
}

#[async_trait]
impl AppUsers for MemoryCore {
    async fn app_secret(&self, _: &AppSnapshot) -> StoreResult<Option<AppSecret>> {
        Ok(Some(MEMORY_SECRET))
    }

    async fn app_user(
        &self,
        app: &AppSnapshot,
        collection: &Collection,
        id: &str,
    ) -> StoreResult<Option<Map<String, Value>>> {
        Ok(self.state.lock().rows.get(&(app.id, collection.name.clone(), id.to_owned())).cloned())
    }
}

#[async_trait]
impl Ledger for MemoryCore {
    async fn commit(&self, plan: &Plan) -> StoreResult<Committed> {
        let mut state = self.state.lock();
        match state.next.take() {
            Some(Trouble::Lost) => return Err(StoreError::Unknown),
            // A double that stands in for a bug of the adapter.
            #[allow(clippy::panic)]
            Some(Trouble::Panic) => panic!("the adapter broke"),
            None => {}
        }
        state.check(&plan.record)?;
        if let Some(key) = &plan.record.idempotency {
            let place = (key.scope.clone(), key.route.clone(), key.key.clone());
            match state.keys.get(&place) {
                Some((body, record)) if *body == key.body => {
                    return Err(Refusal::new(Code::DuplicateRequest, "Done already.").id(record).into());
                }
                Some(_) => return Err(Refusal::new(Code::KeyReused, "Another body had this key.").into()),
                None => drop(state.keys.insert(place, (key.body, plan.write.id.clone()))),
            }
        }
        self.keep(&mut state, plan)
    }

    /// Without the idempotency key of the whole, which no test of the inside needs.
    async fn commit_all(&self, batch: &Batch) -> Result<BatchDone, BatchFailed> {
        let mut state = self.state.lock();
        let before = (state.rows.clone(), state.nonces.clone(), state.entries.clone());
        let done = self.keep_all(&mut state, batch);
        if done.is_err() {
            (state.rows, state.nonces, state.entries) = before;
        }
        done
    }

    async fn record(&self, call: CallRecord, outcome: CallOutcome) -> StoreResult<()> {
        let mut state = self.state.lock();
        state.check(&call)?;
        state.enter(&call, &outcome);
        Ok(())
    }
}

impl MemoryCore {
    fn keep_all(&self, state: &mut State, batch: &Batch) -> Result<BatchDone, BatchFailed> {
        state.check(&batch.record)?;
        let mut writes = Vec::new();
        for (index, step) in batch.steps.iter().enumerate() {
            let seen = step.look().and_then(|look| {
                let row = state.rows.get(&(batch.app.id, look.entity, look.id))?;
                Some(Seen(filter::matches(&look.rule, row).then(|| row.clone())))
            });
            let kept = step.plan(seen).map_err(StoreError::from).and_then(|plan| self.keep(state, &plan));
            writes.push(kept.map_err(|error| BatchFailed { step: Some(index), error })?);
        }
        state.enter(&batch.record, &CallOutcome::Done);
        let draft = &batch.record.draft;
        let receipt = Receipt {
            id: draft.call,
            app: draft.app,
            at: self.clock.now(),
            action: draft.action.clone(),
            sentence: batch_sentence(writes.len()),
            entity: None,
            record: None,
            stored: batch_stored(&writes),
        };
        Ok(BatchDone { writes, receipt })
    }

    fn keep(&self, state: &mut State, plan: &Plan) -> StoreResult<Committed> {
        let row = state.write(plan)?;
        state.enter(&plan.record, &CallOutcome::Done);
        let at = self.clock.now();
        let sentence = inn_rules::sentence::sentence(&plan.write.sentence, &row, &Map::new(), at);
        let receipt = Receipt {
            id: plan.record.draft.call,
            app: Some(plan.app.id),
            at,
            action: plan.record.draft.action.clone(),
            sentence,
            entity: Some(plan.write.entity.clone()),
            record: Some(plan.write.id.clone()),
            stored: row.clone(),
        };
        Ok(Committed { verb: plan.write.verb, receipt, row, earlier: false })
    }
}

#[async_trait]
impl Records for MemoryCore {
    /// Every matching row in id order, one page of them. Sorting is the database's and not doubled here.
    async fn list(&self, plan: &ListPlan) -> StoreResult<Page> {
        let state = self.state.lock();
        let mine = state.rows.iter().filter(|((app, entity, _), _)| *app == plan.app.id && *entity == plan.entity);
        let rows: Vec<_> = mine.map(|(_, row)| row).filter(|row| filter::matches(&plan.filter, row)).cloned().collect();
        let total = (!plan.paging.skip_total).then_some(rows.len() as u64);
        let size = usize::try_from(plan.paging.per_page).unwrap_or(usize::MAX);
        let skip = usize::try_from(plan.paging.page.saturating_sub(1)).unwrap_or(usize::MAX).saturating_mul(size);
        Ok(Page { rows: rows.into_iter().skip(skip).take(size).collect(), total })
    }

    async fn view(&self, plan: &ViewPlan) -> StoreResult<Vec<Map<String, Value>>> {
        let state = self.state.lock();
        let find = |id: &String| state.rows.get(&(plan.app.id, plan.entity.clone(), id.clone()));
        Ok(plan.ids.iter().filter_map(find).filter(|row| filter::matches(&plan.rule, row)).cloned().collect())
    }

    async fn referrers(&self, plan: &ReferrersPlan) -> StoreResult<Vec<Referrer>> {
        let state = self.state.lock();
        let mine = state.rows.iter().filter(|((app, entity, _), _)| *app == plan.app.id && *entity == plan.entity);
        let refers = |row: &Map<String, Value>, id: &str| match row.get(&plan.field) {
            Some(Value::Array(ids)) => ids.iter().any(|other| other == id),
            Some(other) => other == id,
            None => false,
        };
        let mut found = Vec::new();
        for id in &plan.ids {
            let referring = mine.clone().filter(|(_, row)| refers(row, id)).take(plan.most as usize);
            found.extend(referring.map(|((.., referrer), _)| Referrer { of: id.clone(), id: referrer.clone() }));
        }
        Ok(found)
    }
}

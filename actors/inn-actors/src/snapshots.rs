//! What the gateway knows about apps, agents, grants, people and sessions: a bounded copy of the directory.
//!
//! A stale copy is never wrong, only slow: every commit and every entry compares the epochs a decision was made from
//! with the database and answers `Stale` when one moved on. Then the copy is forgotten and the call decided again.

use std::sync::Arc;

use inn_grants::app_token::AppSecret;
use inn_grants::token::{RootPublicKeys, VerifiedToken, verify};
use inn_ports::{AgentState, Core, GrantState, MemberState, SessionState, StoreResult};
use inn_protocol::app::AppSnapshot;
use inn_protocol::call::LiveCheck;
use inn_protocol::{AgentId, AppId, Digest, GrantId, Refusal, TenantId, UserId};
use quick_cache::sync::Cache;

pub(crate) struct Snapshots {
    store: Arc<dyn Core>,
    keys: arc_swap::ArcSwap<RootPublicKeys>,
    apps: Cache<String, Arc<AppSnapshot>>,
    slugs: Cache<AppId, String>,
    agents: Cache<AgentId, Arc<AgentState>>,
    grants: Cache<GrantId, Arc<GrantState>>,
    loopback: Cache<Digest, Arc<GrantState>>,
    members: Cache<(TenantId, UserId), Arc<MemberState>>,
    sessions: Cache<Digest, Arc<SessionState>>,
    tokens: Cache<Digest, Arc<VerifiedToken>>,
    app_secrets: Cache<AppId, AppSecret>,
}

impl Snapshots {
    pub(crate) fn new(store: Arc<dyn Core>, keys: RootPublicKeys) -> Self {
        Self {
            store,
            keys: arc_swap::ArcSwap::from_pointee(keys),
            apps: Cache::new(4_096),
            slugs: Cache::new(4_096),
            agents: Cache::new(50_000),
            grants: Cache::new(50_000),
            loopback: Cache::new(4_096),
            members: Cache::new(50_000),
            sessions: Cache::new(50_000),
            tokens: Cache::new(20_000),
            app_secrets: Cache::new(4_096),
        }
    }

    /// After a key rotation: old keys stay in the set, so cached tokens stay good.
    pub(crate) fn set_keys(&self, keys: RootPublicKeys) {
        self.keys.store(Arc::new(keys));
    }

    pub(crate) async fn app(&self, slug: &str) -> StoreResult<Option<Arc<AppSnapshot>>> {
        if let Some(app) = self.apps.get(slug) {
            return Ok(Some(app));
        }
        let app = self.store.app_by_slug(slug).await?;
        if let Some(app) = &app {
            self.apps.insert(slug.to_owned(), Arc::clone(app));
            self.slugs.insert(app.id, slug.to_owned());
        }
        Ok(app)
    }

    pub(crate) async fn agent(&self, agent: &AgentId) -> StoreResult<Option<Arc<AgentState>>> {
        if let Some(state) = self.agents.get(agent) {
            return Ok(Some(state));
        }
        let state = self.store.agent(agent).await?;
        if let Some(state) = &state {
            self.agents.insert(agent.clone(), Arc::clone(state));
        }
        Ok(state)
    }

    pub(crate) async fn grant(&self, grant: GrantId) -> StoreResult<Option<Arc<GrantState>>> {
        if let Some(state) = self.grants.get(&grant) {
            return Ok(Some(state));
        }
        let state = self.store.grant(grant).await?;
        if let Some(state) = &state {
            self.grants.insert(grant, Arc::clone(state));
        }
        Ok(state)
    }

    pub(crate) async fn loopback_grant(&self, token: Digest) -> StoreResult<Option<Arc<GrantState>>> {
        if let Some(state) = self.loopback.get(&token) {
            return Ok(Some(state));
        }
        let state = self.store.loopback_grant(token).await?;
        if let Some(state) = &state {
            self.loopback.insert(token, Arc::clone(state));
        }
        Ok(state)
    }

    pub(crate) async fn member(&self, tenant: TenantId, user: UserId) -> StoreResult<Option<Arc<MemberState>>> {
        if let Some(state) = self.members.get(&(tenant, user)) {
            return Ok(Some(state));
        }
        let state = self.store.member(tenant, user).await?;
        if let Some(state) = &state {
            self.members.insert((tenant, user), Arc::clone(state));
        }
        Ok(state)
    }

    pub(crate) async fn session(&self, token: Digest) -> StoreResult<Option<Arc<SessionState>>> {
        if let Some(state) = self.sessions.get(&token) {
            return Ok(Some(state));
        }
        let state = self.store.session(token).await?;
        if let Some(state) = &state {
            self.sessions.insert(token, Arc::clone(state));
        }
        Ok(state)
    }

    /// Never cached: it lives for minutes, and ends with the session or grant behind it.
    pub(crate) async fn file_token(&self, token: Digest) -> StoreResult<Option<inn_ports::FileTokenState>> {
        self.store.file_token(token).await
    }

    /// The secret behind the tokens of an app's own users. Once made it never changes.
    pub(crate) async fn app_secret(&self, app: &AppSnapshot) -> StoreResult<Option<AppSecret>> {
        if let Some(secret) = self.app_secrets.get(&app.id) {
            return Ok(Some(secret));
        }
        let secret = self.store.app_secret(app).await?;
        if let Some(secret) = &secret {
            self.app_secrets.insert(app.id, secret.clone());
        }
        Ok(secret)
    }

    /// Never cached: the whole record, whose `tokenKey` its tokens are checked with.
    pub(crate) async fn app_user(
        &self,
        app: &AppSnapshot,
        collection: &inn_protocol::model::Collection,
        id: &str,
    ) -> StoreResult<Option<serde_json::Map<String, serde_json::Value>>> {
        self.store.app_user(app, collection, id).await
    }

    /// Never cached: rules are evaluated as this record, and it changes with the app's own data.
    pub(crate) async fn app_record(
        &self,
        app: &AppSnapshot,
        id: &str,
    ) -> StoreResult<Option<serde_json::Map<String, serde_json::Value>>> {
        self.store.app_record(app, id).await
    }

    /// Signatures and blocks of a token, checked once and then known by its digest. Time is not checked here.
    pub(crate) fn token(&self, token: &str) -> Result<Arc<VerifiedToken>, Refusal> {
        let digest = Digest::of(token.as_bytes());
        if let Some(known) = self.tokens.get(&digest) {
            return Ok(known);
        }
        let verified = Arc::new(verify(token, &self.keys.load())?);
        self.tokens.insert(digest, Arc::clone(&verified));
        Ok(verified)
    }

    /// Forgets what a decision was made from, so that the next look goes to the database.
    pub(crate) fn forget(&self, live: &LiveCheck) {
        if let Some((app, _)) = live.app {
            self.forget_app(app);
        }
        if let Some((grant, _)) = live.grant {
            self.grants.remove(&grant);
            // Loopback grants are few and kept under their token's digest.
            self.loopback.clear();
        }
        if let Some((tenant, user, _)) = live.member {
            self.members.remove(&(tenant, user));
        }
        if live.session.is_some() {
            self.sessions.clear();
        }
    }

    pub(crate) fn forget_app(&self, app: AppId) {
        if let Some(slug) = self.slugs.get(&app) {
            self.apps.remove(&slug);
        }
    }

    /// Everything that can change under a decision. Agents' keys and verified tokens never change.
    pub(crate) fn forget_all(&self) {
        self.apps.clear();
        self.grants.clear();
        self.loopback.clear();
        self.members.clear();
        self.sessions.clear();
    }
}

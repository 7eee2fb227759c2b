//! Reads an HTTP request: place, papers, body. What is refused here is refused before anything else looks.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix_web::http::Method;
use actix_web::http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, ORIGIN};
use actix_web::web::{Bytes, BytesMut, Data};
use actix_web::{FromRequest, HttpRequest, dev::Payload};
use futures_util::StreamExt as _;
use futures_util::future::LocalBoxFuture;
use inn_actors::Admitted;
use inn_grants::{app_token, signature};
use inn_ports::{Store, StoreResult};
use inn_protocol::call::{Action, Call, ClaimCheck, Papers, Place, RequestFacts, SignedPapers};
use inn_protocol::{CallId, Code, Digest, Refusal, TenantId, Violation};
use inn_rules::describe::server_now;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;

use crate::error::{ApiError, Shape};
use crate::form::{self, UnreadForm};
use crate::host;
use crate::rates::Class;
use crate::state::HttpState;

/// An answer is worthless after this long.
const DEADLINE: Duration = Duration::from_secs(30);
/// A body must have arrived within this time.
const BODY_WITHIN: Duration = Duration::from_mins(2);
/// Longest `Idempotency-Key` (A2App notes, B.9).
const MAX_IDEMPOTENCY_KEY: usize = 200;
/// Session tokens start with this; Biscuits never do.
pub const SESSION_PREFIX: &str = "ses_";
/// Cookie of a session. Behind TLS it carries the `__Host-` prefix, which binds it to this very origin.
pub const COOKIE: &str = "inn-session";
pub const HOST_COOKIE: &str = "__Host-inn-session";

/// A route's own body limit for one method, set with `app_data`.
#[derive(Debug, Clone, Copy)]
pub struct BodyLimit {
    pub method: &'static str,
    /// In bytes.
    pub most: usize,
}

/// One HTTP request, read and sorted.
pub struct Incoming {
    pub state: Data<HttpState>,
    pub id: CallId,
    pub place: Place,
    /// See [`Call::about`]; set by the handler that knows.
    pub about: Option<TenantId>,
    pub papers: Papers,
    pub body: Bytes,
    /// The body when it is a form that a handler reads itself, as it comes in.
    form: RefCell<Option<UnreadForm>>,
    /// Of a form that was read.
    form_digest: Cell<Option<Digest>>,
    pub content_type: String,
    /// A place among the large bodies in memory, for as long as this one is.
    large: Option<OwnedSemaphorePermit>,
    pub raw_query: String,
    /// Query pairs, decoded, in order.
    pub query: Vec<(String, String)>,
    pub idempotency_key: Option<String>,
    pub claimed_agent: Option<String>,
    /// What rules may ask about this HTTP request.
    facts: Arc<RequestFacts>,
    /// For rate limits of callers who have not shown papers.
    pub client: String,
    pub shape: Shape,
}

impl Incoming {
    /// The call this HTTP request makes.
    pub fn call(&self, action: Action, body: Value) -> Call {
        Call {
            id: self.id,
            place: self.place.clone(),
            action,
            about: self.about,
            papers: self.papers.clone(),
            body,
            body_digest: self.form_digest.get().unwrap_or_else(|| Digest::of(&self.body)),
            query: self.raw_query.clone(),
            idempotency_key: self.idempotency_key.clone(),
            deadline: Instant::now() + DEADLINE,
            claimed_agent: self.claimed_agent.clone(),
            request: self.facts.clone(),
        }
    }

    /// [`Self::call`] of a record write, whose body the app's rules may ask about.
    pub(crate) fn call_with(&self, action: Action, body: &Value) -> Call {
        let mut facts = (*self.facts).clone();
        facts.body = body.as_object().cloned().unwrap_or_default();
        Call { request: Arc::new(facts), ..self.call(action, Value::Null) }
    }

    /// The form that was not read yet, once.
    pub(crate) fn take_form(&self) -> Option<UnreadForm> {
        self.form.borrow_mut().take()
    }

    /// What idempotency and the register go by: the digest of a form's parts.
    pub(crate) fn set_body_digest(&self, digest: Digest) {
        self.form_digest.set(Some(digest));
    }

    /// The body as JSON; an empty one is `{}`.
    pub async fn json(&self) -> Result<Value, ApiError> {
        if self.body.is_empty() {
            return Ok(Value::Object(serde_json::Map::new()));
        }
        match serde_json::from_slice(&self.body) {
            Ok(value) => Ok(value),
            Err(error) => {
                let (line, column) = (error.line(), error.column());
                let message = format!("The body is not valid JSON (line {line}, column {column}).");
                Err(self.unreadable(Refusal::new(Code::InvalidBody, message)).await)
            }
        }
    }

    /// The body as a typed document.
    pub async fn document<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        match serde_json::from_value(self.json().await?) {
            Ok(document) => Ok(document),
            Err(error) => {
                let message = format!("The body does not fit: {error}.");
                Err(self.unreadable(Refusal::new(Code::InvalidBody, message)).await)
            }
        }
    }

    /// Refuses what could not even be made out.
    pub async fn unreadable(&self, refusal: Refusal) -> ApiError {
        self.refuse(Action::Unreadable, refusal).await
    }

    /// Refuses before the call was made. Somebody verified has an entry of it; with bad papers those come first.
    pub async fn refuse(&self, action: Action, refusal: Refusal) -> ApiError {
        let call = self.call(action, Value::Null);
        let read = self.state.gateway.read(call, |_| std::future::ready(Err::<(), _>(refusal.clone())));
        self.fail(read.await.err().unwrap_or(refusal))
    }

    /// What was made out of the HTTP request, or its refusal, registered.
    pub async fn fit<T>(&self, checked: Result<T, Refusal>) -> Result<T, ApiError> {
        match checked {
            Ok(fitting) => Ok(fitting),
            Err(refusal) => Err(self.unreadable(refusal).await),
        }
    }

    /// First value of a query parameter.
    pub fn param(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub fn fail(&self, refusal: Refusal) -> ApiError {
        // Guessing is slowed down by address, after the fact, so that it costs nobody else anything.
        let guess = refusal.code.status() == 401;
        let counted = if guess { self.state.rates.take(Class::Strangers, &self.client) } else { Ok(()) };
        let refusal = counted.err().unwrap_or(refusal);
        ApiError {
            refusal: Box::new(refusal),
            call: self.id,
            help: self.state.config.platform("/help/"),
            shape: self.shape,
            server_now: server_now(self.state.gateway.clock().now()),
        }
    }

    /// One call that changes nothing (see [`inn_actors::Gateway::read`]).
    pub async fn read<T, F>(&self, action: Action, look: impl Fn(Arc<Admitted>) -> F) -> Result<T, ApiError>
    where
        F: Future<Output = Result<T, Refusal>>,
    {
        self.state.gateway.read(self.call(action, Value::Null), look).await.map_err(|refusal| self.fail(refusal))
    }

    /// One call whose effect commits itself with its entry (see [`inn_actors::Gateway::perform`]). `input` is shared by
    /// the attempts, of which there is more than one only when rights moved on under the call.
    pub async fn perform<T, I, F>(
        &self,
        action: Action,
        input: I,
        effect: impl Fn(Arc<dyn Store>, Arc<Admitted>, Arc<I>) -> F,
    ) -> Result<T, ApiError>
    where
        T: Send + 'static,
        F: Future<Output = StoreResult<T>> + Send + 'static,
    {
        self.perform_call(self.call(action, Value::Null), input, effect).await
    }

    /// [`Self::perform`] as a call of its own, when one HTTP request makes two: each has its own id and entry.
    pub async fn perform_as_new<T, I, F>(
        &self,
        action: Action,
        input: I,
        effect: impl Fn(Arc<dyn Store>, Arc<Admitted>, Arc<I>) -> F,
    ) -> Result<T, ApiError>
    where
        T: Send + 'static,
        F: Future<Output = StoreResult<T>> + Send + 'static,
    {
        let call = Call { id: CallId::new(), idempotency_key: None, ..self.call(action, Value::Null) };
        self.perform_call(call, input, effect).await
    }

    async fn perform_call<T, I, F>(
        &self,
        call: Call,
        input: I,
        effect: impl Fn(Arc<dyn Store>, Arc<Admitted>, Arc<I>) -> F,
    ) -> Result<T, ApiError>
    where
        T: Send + 'static,
        F: Future<Output = StoreResult<T>> + Send + 'static,
    {
        let input = Arc::new(input);
        let store = &self.state.store;
        let effect = |admitted| effect(Arc::clone(store), admitted, Arc::clone(&input));
        self.state.gateway.perform(call, effect).await.map_err(|refusal| self.fail(refusal))
    }

    /// Counts an attempt with a password, a code or a new key, by client address. `about` says whose it is, so that
    /// people behind one proxy do not share one allowance.
    pub fn rate_auth(&self, about: &str) -> Result<(), ApiError> {
        let about: String = about.chars().take(254).flat_map(char::to_lowercase).collect();
        let key = format!("{} {about}", self.client);
        self.state.rates.take(Class::Auth, &key).map_err(|refusal| self.fail(refusal))
    }

    /// The app this HTTP request is for.
    pub fn slug(&self) -> Result<&str, ApiError> {
        match &self.place {
            Place::App { slug, .. } => Ok(slug),
            Place::Platform => Err(self.fail(Refusal::not_found())),
        }
    }
}

impl FromRequest for Incoming {
    type Error = ApiError;
    type Future = LocalBoxFuture<'static, Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let request = request.clone();
        let payload = payload.take();
        Box::pin(async move { read(&request, payload).await })
    }
}

async fn read(request: &HttpRequest, payload: Payload) -> Result<Incoming, ApiError> {
    let id = CallId::new();
    let Some(state) = request.app_data::<Data<HttpState>>().cloned() else {
        return Err(ApiError {
            refusal: Box::new(Refusal::internal()),
            call: id,
            help: String::new(),
            shape: Shape::Plain,
            server_now: String::new(),
        });
    };
    let path = request.path();
    let single = path.ends_with("/api/batch") || path.ends_with("/api/realtime");
    let shape = if single || path.contains("/api/files/") || path.contains("/api/collections/") {
        Shape::Records
    } else {
        Shape::Plain
    };
    let mut incoming = Incoming {
        id,
        place: Place::Platform,
        about: None,
        papers: Papers::None,
        body: Bytes::new(),
        form: RefCell::new(None),
        form_digest: Cell::new(None),
        content_type: String::new(),
        large: None,
        raw_query: request.query_string().to_owned(),
        query: Vec::new(),
        idempotency_key: None,
        claimed_agent: None,
        facts: Arc::default(),
        client: request.peer_addr().map_or_else(String::new, |addr| addr.ip().to_string()),
        shape,
        state,
    };
    let result = fill(&mut incoming, request, payload).await;
    match result {
        Ok(()) => Ok(incoming),
        Err(refusal) => Err(incoming.fail(refusal)),
    }
}

/// What an app's rules may ask. Headers that carry papers are left out: no rule may look at a secret of another face.
fn facts(incoming: &Incoming, request: &HttpRequest) -> RequestFacts {
    let mut query = BTreeMap::new();
    for (name, value) in &incoming.query {
        query.entry(name.clone()).or_insert_with(|| value.clone());
    }
    let mut headers = BTreeMap::new();
    for (name, value) in request.headers() {
        if let (false, Ok(value)) = (PAPER_HEADERS.contains(&name.as_str()), value.to_str()) {
            headers.entry(name.as_str().replace('-', "_")).or_insert_with(|| value.to_owned());
        }
    }
    let (context, method) = ("default".to_owned(), request.method().as_str().to_owned());
    RequestFacts { context, method, query, headers, body: serde_json::Map::new() }
}

/// Headers whose values are secrets or proofs.
pub(crate) const PAPER_HEADERS: [&str; 8] = [
    "authorization",
    "cookie",
    "signature",
    "signature-input",
    "x-a2app-token",
    "x-lui-token",
    "innkeeper-delegation",
    "proxy-authorization",
];

async fn fill(incoming: &mut Incoming, request: &HttpRequest, payload: Payload) -> Result<(), Refusal> {
    let state = incoming.state.clone();
    let headers = request.headers();
    // Never a forwarded name: what a client says about other hops must not choose the place.
    let authority = header(headers, HOST.as_str())?.ok_or_else(|| {
        Refusal::new(Code::InvalidParameter, "The Host header is missing; it says which app is meant.")
    })?;
    incoming.place = match host::place(&state.config, &authority) {
        Some(Place::Platform) => match path_slug(request.path()) {
            Some(slug) => Place::App { slug: slug.to_owned(), own_origin: false },
            None => Place::Platform,
        },
        Some(place) => place,
        None => {
            return Err(Refusal::new(
                Code::ForbiddenHost,
                "This host name is not one of ours. Use the address the platform printed.",
            ));
        }
    };
    check_origin(incoming, request, &authority)?;
    let own_limit = request.app_data::<BodyLimit>().filter(|limit| limit.method == request.method().as_str());
    let own_limit = own_limit.map(|limit| limit.most).filter(|most| *most > state.config.max_body);
    let mut limit = state.config.max_body;
    if let Some(most) = own_limit {
        incoming.large = may_send_large(incoming, request).await?;
        limit = if incoming.large.is_some() { most } else { limit };
    }
    incoming.content_type = header(headers, CONTENT_TYPE.as_str())?.unwrap_or_default();
    let boundary = if form::is_read_by_handler(request) { form::boundary(&incoming.content_type)? } else { None };
    let reading = async {
        match boundary {
            None => body(request, payload, limit).await,
            Some(boundary) => {
                let declared = header(headers, "content-length")?.and_then(|length| length.parse().ok());
                incoming.form.replace(Some(UnreadForm { payload, boundary, declared, signed_digest: None }));
                Ok(Bytes::new())
            }
        }
    };
    let read = tokio::time::timeout(BODY_WITHIN, reading).await.map_err(|_| {
        let seconds = BODY_WITHIN.as_secs();
        Refusal::new(Code::Timeout, format!("The body did not arrive within {seconds} s; nothing was kept."))
    })?;
    incoming.body = match read {
        Err(refusal) if refusal.code == Code::TooLarge && own_limit.is_some() && incoming.large.is_none() => {
            return Err(Refusal::new(Code::Unauthenticated, "Sign in first: bodies this large are for people."));
        }
        read => read?,
    };
    incoming.query = url::form_urlencoded::parse(request.query_string().as_bytes()).into_owned().collect();
    incoming.idempotency_key = header(headers, "idempotency-key")?;
    if incoming.idempotency_key.as_ref().is_some_and(|key| key.is_empty() || key.len() > MAX_IDEMPOTENCY_KEY) {
        return Err(Refusal::new(Code::InvalidParameter, "Idempotency-Key must have 1 to 200 characters."));
    }
    let claimed = header(headers, "x-a2app-agent")?.or(header(headers, "x-lui-agent")?);
    incoming.claimed_agent = claimed.map(|name| name.chars().filter(|c| !c.is_control()).take(120).collect());
    incoming.papers = papers(incoming, request, &authority)?;
    incoming.facts = Arc::new(facts(incoming, request));
    let asks_the_app = matches!(incoming.place, Place::App { .. }) && request.path().contains("/api/");
    if asks_the_app && matches!(incoming.papers, Papers::None) {
        // Verified callers are counted by who they are; of guests only the address is known. Files of pages are no calls.
        state.rates.take(Class::Data, &format!("guest {}", incoming.client))?;
    }
    Ok(())
}

/// Large bodies are for people with a live session, a few at a time: otherwise anybody could fill the memory. Everybody
/// else (`None`) may send as much as anywhere, and is told what is wrong by the one decision.
async fn may_send_large(incoming: &Incoming, request: &HttpRequest) -> Result<Option<OwnedSemaphorePermit>, Refusal> {
    let token = match bearer(request.headers())? {
        Some(token) => Some(token),
        None => cookie(incoming, request)?,
    };
    let known = match &token {
        Some(token) => incoming.state.gateway.knows_session(token).await?,
        None => false,
    };
    if !known {
        return Ok(None);
    }
    Arc::clone(&incoming.state.large_bodies).try_acquire_owned().map(Some).map_err(|_| {
        Refusal::new(Code::Overloaded, "Several large uploads are under way; nothing was kept. Send it again.").after(5)
    })
}

/// `/apps/<slug>/…` on the platform's host is the app's face for programs.
fn path_slug(path: &str) -> Option<&str> {
    let slug = path.strip_prefix("/apps/")?.split('/').next()?;
    host::is_slug(slug).then_some(slug)
}

fn header(headers: &HeaderMap, name: &str) -> Result<Option<String>, Refusal> {
    let mut values = headers.get_all(name);
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Refusal::new(
            Code::InvalidParameter,
            format!("The header {name} was sent twice; which one counts is not clear."),
        ));
    }
    match value.to_str() {
        Ok(text) => Ok(Some(text.trim().to_owned())),
        Err(_) => Err(Refusal::new(Code::InvalidParameter, format!("The header {name} has characters outside ASCII."))),
    }
}

/// Browsers send `Origin` with every write and every cross-origin read: a foreign one is refused, preflight included.
fn check_origin(incoming: &Incoming, request: &HttpRequest, authority: &str) -> Result<(), Refusal> {
    let Some(origin) = header(request.headers(), ORIGIN.as_str())? else { return Ok(()) };
    if own_origins(incoming, authority).contains(&origin) {
        return Ok(());
    }
    Err(Refusal::new(
        Code::ForbiddenOrigin,
        "This page comes from another origin and may not call here. Programs send no Origin header.",
    ))
}

fn own_origins(incoming: &Incoming, authority: &str) -> Vec<String> {
    let config = &incoming.state.config;
    if let Place::App { slug, own_origin: true } = &incoming.place {
        return vec![config.app_origin(slug)];
    }
    let mut origins = vec![config.platform_origin()];
    if config.loopback {
        // The host was checked already, so this is one of the platform's own loopback names.
        origins.push(format!("{}://{authority}", config.platform_url.scheme()));
    }
    origins
}

async fn body(request: &HttpRequest, mut payload: Payload, limit: usize) -> Result<Bytes, Refusal> {
    let too_large =
        || Refusal::new(Code::TooLarge, format!("The body is larger than {limit} bytes; nothing was kept."));
    if let Some(length) = header(request.headers(), "content-length")?
        && length.parse::<usize>().is_ok_and(|length| length > limit)
    {
        return Err(too_large());
    }
    let mut bytes = BytesMut::new();
    while let Some(chunk) = payload.next().await {
        let chunk = chunk
            .map_err(|_| Refusal::new(Code::InvalidBody, "The body ended before it was complete; nothing was kept."))?;
        if bytes.len() + chunk.len() > limit {
            return Err(too_large());
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes.freeze())
}

fn papers(incoming: &Incoming, request: &HttpRequest, authority: &str) -> Result<Papers, Refusal> {
    let headers = request.headers();
    let bearer = bearer(headers)?;
    if let Some(signature_input) = header(headers, "signature-input")? {
        return signed(incoming, request, authority, signature_input, bearer);
    }
    let otherwise = unsigned(incoming, request, bearer)?;
    Ok(match file_token(incoming, request) {
        Some(token) => Papers::File { token, otherwise: Box::new(otherwise) },
        None => otherwise,
    })
}

/// `?token=` of a file (PocketBase notes, section F).
fn file_token(incoming: &Incoming, request: &HttpRequest) -> Option<String> {
    let file = request.match_pattern().is_some_and(|pattern| pattern.ends_with("/api/files/{entity}/{id}/{name}"));
    let token = incoming.param("token").filter(|token| file && !token.is_empty());
    token.map(str::to_owned)
}

fn unsigned(incoming: &Incoming, request: &HttpRequest, bearer: Option<String>) -> Result<Papers, Refusal> {
    let headers = request.headers();
    if headers.contains_key("innkeeper-claim") {
        let message = "innkeeper-claim counts only when the signature covers it: sign the HTTP request.";
        return Err(Refusal::new(Code::SignatureRequired, message));
    }
    if let Some(token) = header(headers, "x-a2app-token")?.or(header(headers, "x-lui-token")?) {
        return loopback(incoming, headers, token);
    }
    if let Some(token) = bearer {
        return Ok(if token.starts_with(SESSION_PREFIX) {
            Papers::Session { token, app_origin: false }
        } else if let Some(papers) = app_papers(incoming, &token) {
            papers
        } else {
            Papers::Bearer { token }
        });
    }
    if let Some(token) = cookie(incoming, request)? {
        let app_origin = matches!(incoming.place, Place::App { .. });
        return Ok(Papers::Session { token, app_origin });
    }
    Ok(visitor(incoming, request))
}

/// A token of the app's own sign-in (`reference` notes on PocketBase, section E). That of an owner names a session which
/// counts on this app and nowhere else.
fn app_papers(incoming: &Incoming, token: &str) -> Option<Papers> {
    if !matches!(incoming.place, Place::App { .. }) || !app_token::is_one(token) {
        return None;
    }
    let token = token.to_owned();
    let owner = app_token::peek(&token).is_some_and(|claims| claims.collection_id == app_token::SUPERUSERS_ID);
    Some(if owner { Papers::Session { token, app_origin: true } } else { Papers::AppUser { token } })
}

fn bearer(headers: &HeaderMap) -> Result<Option<String>, Refusal> {
    let Some(value) = header(headers, AUTHORIZATION.as_str())? else { return Ok(None) };
    let token = match value.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token.trim().to_owned(),
        // PocketBase clients send the bare token.
        None => value,
        Some(_) => {
            return Err(Refusal::new(Code::Unauthenticated, "Authorization must be `Bearer <token>`."));
        }
    };
    Ok(Some(token))
}

fn signed(
    incoming: &Incoming,
    request: &HttpRequest,
    authority: &str,
    signature_input: String,
    token: Option<String>,
) -> Result<Papers, Refusal> {
    let headers = request.headers();
    let signature = header(headers, "signature")?
        .ok_or_else(|| Refusal::new(Code::InvalidSignature, "Signature-Input came without Signature."))?;
    let content_digest = header(headers, "content-digest")?;
    let form = incoming.form.borrow_mut().as_mut().map(|form| form.signed_digest.clone_from(&content_digest));
    match &content_digest {
        // Compared by whoever reads the form.
        Some(_) if form.is_some() => {}
        Some(digest) => signature::check_content_digest(digest, &incoming.body)?,
        None if form.is_none() && incoming.body.is_empty() => {}
        None => {
            return Err(Refusal::new(
                Code::DigestMismatch,
                "A signed HTTP request with a body needs Content-Digest (sha-256), covered by the signature.",
            ));
        }
    }
    let default_port = if incoming.state.config.platform_url.scheme() == "https" { 443 } else { 80 };
    let query = request.uri().query().map_or_else(|| "?".to_owned(), |query| format!("?{query}"));
    let claim = header(headers, "innkeeper-claim")?;
    if claim.as_deref().is_some_and(|claim| ClaimCheck::parse(claim).is_none()) {
        let violation = Violation::new(Code::InvalidParameter, "innkeeper-claim", "<request id>;<epoch>");
        return Err(Refusal::violations("The claim this is made under cannot be read.", vec![violation]));
    }
    Ok(Papers::Signed(Box::new(SignedPapers {
        method: request.method().as_str().to_owned(),
        authority: signature::normalized_authority(authority, default_port).into_owned(),
        path: request.uri().path().to_owned(),
        query,
        content_type: header(headers, CONTENT_TYPE.as_str())?,
        content_digest,
        idempotency_key: incoming.idempotency_key.clone(),
        token_digest: header(headers, "innkeeper-token-digest")?,
        delegation: header(headers, "innkeeper-delegation")?,
        claim,
        signature_input,
        signature,
        token,
        enrolling_key: None,
    })))
}

/// The single-machine token (DESIGN section 5): not off loopback, not through a proxy, not from a browser's page.
fn loopback(incoming: &Incoming, headers: &HeaderMap, token: String) -> Result<Papers, Refusal> {
    if incoming.state.config.loopback && !is_forwarded(headers) {
        return Ok(Papers::Loopback { token });
    }
    Err(Refusal::new(
        Code::AgentTokenRequired,
        "Agent token files work only directly on the machine the host runs on. From elsewhere an agent signs its calls and shows a token.",
    ))
}

/// Came through a proxy or tunnel, so whoever sent it need not sit at this machine (A2App notes, B.8).
fn is_forwarded(headers: &HeaderMap) -> bool {
    let signs = [
        "forwarded",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-real-ip",
        "via",
        "cf-ray",
        "cf-connecting-ip",
        "cf-visitor",
        "cdn-loop",
    ];
    signs.iter().any(|name| headers.contains_key(*name))
}

fn cookie(incoming: &Incoming, request: &HttpRequest) -> Result<Option<String>, Refusal> {
    if matches!(incoming.place, Place::App { own_origin: false, .. }) {
        // The face for programs ignores cookies: nothing an app serves there may act as a person.
        return Ok(None);
    }
    let secure = incoming.state.config.platform_url.scheme() == "https";
    let Some(cookie) = request.cookie(if secure { HOST_COOKIE } else { COOKIE }) else { return Ok(None) };
    // A cookie travels by itself, so a write must prove that its own page sent it.
    if is_write(request.method()) && header(request.headers(), ORIGIN.as_str())?.is_none() {
        return Err(Refusal::new(
            Code::ForbiddenOrigin,
            "A write with a session cookie must come from this origin's own page (an Origin header). Programs use `Authorization: Bearer`.",
        ));
    }
    Ok(Some(cookie.value().to_owned()))
}

fn is_write(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// Nothing to show: on loopback the app's own page counts as whoever sits at this machine, and so does a reading program.
fn visitor(incoming: &Incoming, request: &HttpRequest) -> Papers {
    if !incoming.state.config.loopback || is_forwarded(request.headers()) {
        return Papers::None;
    }
    let from_own_page = request.headers().contains_key(ORIGIN);
    match &incoming.place {
        Place::App { own_origin: true, .. } if from_own_page || !is_write(request.method()) => Papers::Visitor,
        Place::App { own_origin: false, .. } if !is_write(request.method()) => Papers::Visitor,
        _ => Papers::None,
    }
}

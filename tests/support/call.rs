//! One HTTP request of a test, with every detail of its papers open to be got wrong.

use std::time::{SystemTime, UNIX_EPOCH};

use inn_grants::SigningKey;
use inn_grants::signature::{self, SignedParts};
use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

/// Where a node is reached: the socket and the names it answers to.
#[derive(Debug, Clone)]
pub struct Door {
    pub http: reqwest::Client,
    /// `http://127.0.0.1:<port>`
    pub socket: String,
    /// `Host` of the platform's own origin.
    pub authority: String,
    /// Apps answer one label below.
    pub apps_domain: String,
}

impl Door {
    pub fn call(&self, method: Method, target: impl Into<String>) -> Call {
        Call {
            door: self.clone(),
            method,
            target: target.into(),
            host: self.authority.clone(),
            headers: Vec::new(),
            body: None,
            papers: Papers::Nobody,
            signing: Signing::default(),
            late_headers: Vec::new(),
            late_body: None,
        }
    }

    pub fn get(&self, target: impl Into<String>) -> Call {
        self.call(Method::GET, target)
    }

    pub fn post(&self, target: impl Into<String>, body: &Value) -> Call {
        self.call(Method::POST, target).json(body)
    }

    pub fn patch(&self, target: impl Into<String>, body: &Value) -> Call {
        self.call(Method::PATCH, target).json(body)
    }

    pub fn put(&self, target: impl Into<String>, body: &Value) -> Call {
        self.call(Method::PUT, target).json(body)
    }

    pub fn delete(&self, target: impl Into<String>) -> Call {
        self.call(Method::DELETE, target)
    }

    /// `http://…` of the platform, as browsers send it in `Origin`.
    pub fn origin(&self) -> String {
        format!("http://{}", self.authority)
    }

    /// `Host` of an app's own origin.
    pub fn app_host(&self, slug: &str) -> String {
        format!("{slug}.{}", self.apps_domain)
    }
}

/// What a call shows.
#[derive(Clone, Default)]
pub enum Papers {
    #[default]
    Nobody,
    Session(String),
    /// The session cookie; browsers add the `Origin` themselves, tests with [`Call::header`].
    Cookie(String),
    Key(SigningKey),
    Agent {
        key: SigningKey,
        token: String,
        delegation: Option<String>,
    },
    Bearer(String),
    Loopback(String),
}

/// How the signature is made. The default is as a well-behaved agent makes it.
#[derive(Debug, Clone)]
pub struct Signing {
    /// Seconds from now.
    pub created: i64,
    /// Seconds from `created` to `expires`.
    pub lifetime: i64,
    /// Otherwise a fresh one.
    pub nonce: Option<String>,
    /// Signs this instead of what is sent.
    pub method: Option<String>,
    pub path: Option<String>,
    pub query: Option<String>,
    pub authority: Option<String>,
    /// Leaves this header out of what is covered, though it is sent.
    pub uncovered: Option<&'static str>,
}

impl Default for Signing {
    fn default() -> Self {
        Self {
            created: 0,
            lifetime: signature::MAX_LIFETIME_SECONDS,
            nonce: None,
            method: None,
            path: None,
            query: None,
            authority: None,
            uncovered: None,
        }
    }
}

#[derive(Clone)]
pub struct Call {
    door: Door,
    method: Method,
    target: String,
    host: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
    papers: Papers,
    signing: Signing,
    late_headers: Vec<(String, String)>,
    late_body: Option<Vec<u8>>,
}

impl Call {
    pub fn by(mut self, papers: impl Into<Papers>) -> Self {
        self.papers = papers.into();
        self
    }

    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub fn key(self, key: &str) -> Self {
        self.header("idempotency-key", key)
    }

    /// Addresses another name than the platform's.
    pub fn host(mut self, host: impl Into<String>) -> Self {
        self.host = host.into();
        self
    }

    /// Addresses an app's own origin.
    pub fn on_app(self, slug: &str) -> Self {
        let host = self.door.app_host(slug);
        self.host(host)
    }

    pub fn json(self, body: &Value) -> Self {
        self.header("content-type", "application/json").body(body.to_string())
    }

    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Some(body.into());
        self
    }

    pub fn signing(mut self, signing: Signing) -> Self {
        self.signing = signing;
        self
    }

    /// Replaces or adds a header after the signature was made.
    pub fn late_header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.late_headers.push((name.to_owned(), value.into()));
        self
    }

    /// Replaces the body after the signature was made.
    pub fn late_body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.late_body = Some(body.into());
        self
    }

    pub async fn send(self) -> Reply {
        let door = self.door.clone();
        let request = self.prepared();
        send(&door, request).await.expect("the host answers")
    }

    /// Sends, and leaves the answer's body to be read as it comes.
    pub async fn open(self) -> reqwest::Response {
        let door = self.door.clone();
        door.http.execute(self.prepared()).await.expect("the host answers")
    }

    /// Sends, and gives back a lost connection instead of failing.
    pub async fn try_send(self) -> Result<Reply, reqwest::Error> {
        let door = self.door.clone();
        let request = self.prepared();
        send(&door, request).await
    }

    /// Sends the very same bytes twice, signature and all.
    pub async fn send_twice(self) -> (Reply, Reply) {
        let door = self.door.clone();
        let request = self.prepared();
        let again = request.try_clone().expect("a body in memory");
        let first = send(&door, request).await.expect("the host answers");
        (first, send(&door, again).await.expect("the host answers"))
    }

    fn prepared(self) -> reqwest::Request {
        let url = format!("{}{}", self.door.socket, self.target).parse().expect("an address");
        let mut request = reqwest::Request::new(self.method.clone(), url);
        let mut headers = HeaderMap::new();
        put(&mut headers, "host", &self.host);
        for (name, value) in &self.headers {
            headers.append(name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap());
        }
        self.show_papers(&request, &mut headers);
        for (name, value) in &self.late_headers {
            put(&mut headers, name, value);
        }
        *request.headers_mut() = headers;
        *request.body_mut() = self.late_body.or(self.body).map(Into::into);
        request
    }

    fn show_papers(&self, request: &reqwest::Request, headers: &mut HeaderMap) {
        match &self.papers {
            Papers::Nobody => {}
            Papers::Session(token) | Papers::Bearer(token) => put(headers, "authorization", &format!("Bearer {token}")),
            Papers::Cookie(token) => put(headers, "cookie", &format!("inn-session={token}")),
            Papers::Loopback(token) => put(headers, "x-a2app-token", token),
            Papers::Key(key) => self.sign(key, request, headers),
            Papers::Agent { key, token, delegation } => {
                put(headers, "authorization", &format!("Bearer {token}"));
                put(headers, "innkeeper-token-digest", &signature::token_digest(token));
                if let Some(delegation) = delegation {
                    put(headers, "innkeeper-delegation", delegation);
                }
                self.sign(key, request, headers);
            }
        }
    }

    fn sign(&self, key: &SigningKey, request: &reqwest::Request, headers: &mut HeaderMap) {
        if let Some(body) = self.body.as_ref().filter(|body| !body.is_empty()) {
            put(headers, "content-digest", &signature::content_digest(body));
        }
        let signing = &self.signing;
        let url = request.url();
        let query = url.query().map_or_else(|| "?".to_owned(), |query| format!("?{query}"));
        let covered = |name: &'static str| {
            if signing.uncovered == Some(name) {
                return None;
            }
            headers.get(name).map(|value| value.to_str().unwrap().to_owned())
        };
        let names = [
            "content-type",
            "content-digest",
            "idempotency-key",
            "innkeeper-token-digest",
            "innkeeper-delegation",
            "innkeeper-claim",
        ];
        let [content_type, content_digest, idempotency_key, token_digest, delegation, claim] = names.map(covered);
        let parts = SignedParts {
            method: signing.method.as_deref().unwrap_or(self.method.as_str()),
            authority: signing.authority.as_deref().unwrap_or(&self.host),
            path: signing.path.as_deref().unwrap_or(url.path()),
            query: signing.query.as_deref().unwrap_or(&query),
            content_type: content_type.as_deref(),
            content_digest: content_digest.as_deref(),
            idempotency_key: idempotency_key.as_deref(),
            token_digest: token_digest.as_deref(),
            delegation: delegation.as_deref(),
            claim: claim.as_deref(),
        };
        let created = now() + signing.created;
        let nonce = signing.nonce.clone().unwrap_or_else(fresh_nonce);
        let signed = signature::sign(key, &parts, created, created + signing.lifetime, &nonce).expect("a signature");
        put(headers, "signature-input", &signed.signature_input);
        put(headers, "signature", &signed.signature);
    }
}

/// 32 hex digits nobody used before.
pub fn fresh_nonce() -> String {
    format!("{:032x}", rand::random::<u128>())
}

/// Unix seconds.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970");
    i64::try_from(since.as_secs()).expect("a time before the year 292 billion")
}

fn put(headers: &mut HeaderMap, name: &str, value: &str) {
    headers.insert(name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap());
}

async fn send(door: &Door, request: reqwest::Request) -> Result<Reply, reqwest::Error> {
    let asked = format!("{} {}", request.method(), request.url().path());
    let response = door.http.execute(request).await?;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let body = response.bytes().await?.to_vec();
    Ok(Reply { asked, status, headers, body })
}

/// What came back.
#[derive(Debug, Clone)]
pub struct Reply {
    asked: String,
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body; `null` when it is empty.
    pub fn json(&self) -> Value {
        if self.body.is_empty() {
            return Value::Null;
        }
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{}: {error}: {}", self.asked, self.text()))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("plain ASCII"))
    }

    /// Id of the call.
    pub fn call_id(&self) -> &str {
        self.header("innkeeper-call").unwrap_or_else(|| panic!("{}: no innkeeper-call header", self.asked))
    }

    /// Fails unless the status is this one, then gives the body.
    #[track_caller]
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}: {}", self.asked, self.text());
        assert_eq!(self.header("x-content-type-options"), Some("nosniff"), "{}", self.asked);
        self.call_id();
        self.json()
    }

    /// Fails unless it is a refusal with this code that keeps to the contract every refusal has, then gives the body.
    #[track_caller]
    pub fn refused(&self, status: u16, code: &str) -> Value {
        let body = self.expect(status);
        assert_eq!(body["code"], code, "{}: {body}", self.asked);
        assert_eq!((&body["a2app"], &body["ok"]), (&Value::Bool(true), &Value::Bool(false)), "{body}");
        assert!(body["message"].as_str().is_some_and(|message| message.len() > 10), "a sentence: {body}");
        let help = body["help"].as_str().unwrap_or_default();
        assert!(help.ends_with(&format!("/help/{code}")), "{body}");
        assert_eq!(body["call"], self.call_id(), "the body names the call the header names");
        if status == 401 {
            assert!(self.header("www-authenticate").is_some(), "a 401 names the scheme");
        }
        if body["retry"] == "after" {
            let seconds = self.header("retry-after").and_then(|text| text.parse::<u64>().ok());
            assert_eq!(seconds, body["retryAfterSeconds"].as_u64(), "{body}");
        }
        body
    }

    /// The token in `Set-Cookie`.
    pub fn cookie(&self) -> Option<String> {
        let cookie = self.header("set-cookie")?;
        let value = cookie.split(';').next()?.split_once('=')?.1;
        Some(value.to_owned())
    }
}

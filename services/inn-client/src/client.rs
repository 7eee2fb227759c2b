//! One platform, spoken to over HTTP.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::header::{DATE, HeaderValue};
use reqwest::{Body, Request, redirect};
use serde_json::{Value, json};
use url::Url;

use crate::agent::Agent;
use crate::answer::Answer;
use crate::clock::Skew;
use crate::error::ClientError;
use crate::outgoing::Outgoing;
use crate::papers::Papers;
use crate::person::Person;
use crate::retry::RetryPolicy;
use inn_grants::SigningKey;

/// An answer larger than this is not read to its end.
const MAX_ANSWER: usize = 128 * 1024 * 1024;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A client of one platform. Clones share connections and what was learnt about the server's clock.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    platform: Url,
    skew: Arc<Skew>,
    retry: RetryPolicy,
}

impl Client {
    /// `platform` is an `http` or `https` address without a path, as the platform printed it.
    pub fn new(platform: &str) -> Result<Self, ClientError> {
        let platform = parse(platform)?;
        // The client must be usable from a program that has not chosen a provider; a choice already made stands.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .user_agent(concat!("inn/", env!("CARGO_PKG_VERSION")))
            // A signature covers one address; what lies behind a redirect was not asked for.
            .redirect(redirect::Policy::none());
        if platform.scheme() == "http" {
            // Without TLS no certificates are needed: a machine that has none can still reach its own platform.
            builder = builder.tls_certs_only([]).no_proxy();
        }
        let http = builder
            .build()
            .map_err(|error| ClientError::Invalid(format!("The HTTP client cannot start: {}", chain(&error))))?;
        Ok(Self { http, platform, skew: Arc::default(), retry: RetryPolicy::default() })
    }

    pub fn with_retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }

    /// The platform's address, without a slash at its end.
    pub fn platform(&self) -> &str {
        self.platform.as_str().trim_end_matches('/')
    }

    /// Where the API of an app answers: `<platform>/apps/<slug>`.
    pub fn app_url(&self, slug: &str) -> String {
        format!("{}/apps/{}", self.platform(), crate::segment(slug))
    }

    /// The server's time in unix seconds, as well as it is known.
    pub fn now(&self) -> i64 {
        self.skew.now()
    }

    /// Speaks with a person's session.
    pub fn person(&self, session: &str) -> Person {
        Person::new(self.clone(), session)
    }

    /// Signs with an agent's key.
    pub fn agent(&self, key: SigningKey) -> Agent {
        Agent::new(self.clone(), key)
    }

    /// `POST /v1/session`: `{token, session}`.
    pub async fn sign_in(&self, email: &str, password: &str, tenant: Option<&str>) -> Result<Value, ClientError> {
        let mut body = json!({"email": email, "password": password});
        if let (Some(tenant), Some(object)) = (tenant, body.as_object_mut()) {
            object.insert("tenant".to_owned(), tenant.into());
        }
        self.call(&Outgoing::post("/v1/session", &body), &Papers::Nothing).await?.json()
    }

    /// `GET /v1/keys`
    pub async fn keys(&self) -> Result<Value, ClientError> {
        self.call(&Outgoing::get("/v1/keys"), &Papers::Nothing).await?.json()
    }

    /// Sends a call, again when it may be sent again, and answers with a success.
    pub async fn call(&self, outgoing: &Outgoing, papers: &Papers) -> Result<Answer, ClientError> {
        let mut attempt = 1;
        let mut clock_learnt = false;
        loop {
            let prepared = self.prepare(outgoing, papers)?;
            let before = self.now();
            let error = match prepared.send().await.and_then(Answer::checked) {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            // Refused for its time, before it had any effect, and the answer told us the right time.
            let timed = matches!(error.code(), Some("signature_expired" | "invalid_signature"));
            if timed && !clock_learnt && (self.now() - before).abs() > 2 {
                clock_learnt = true;
                continue;
            }
            attempt += 1;
            let wait = self.retry.wait(&error, attempt, rand::random()).filter(|_| outgoing.is_repeatable());
            let Some(wait) = wait else { return Err(error) };
            tokio::time::sleep(wait).await;
        }
    }

    /// Sends a call once and answers with whatever came, refusals included.
    pub async fn call_once(&self, outgoing: &Outgoing, papers: &Papers) -> Result<Answer, ClientError> {
        self.prepare(outgoing, papers)?.send().await
    }

    /// The call exactly as it will be sent, signature and all.
    pub fn prepare(&self, outgoing: &Outgoing, papers: &Papers) -> Result<Prepared, ClientError> {
        if !outgoing.path.starts_with('/') {
            return Err(ClientError::Invalid(format!("The path `{}` must start with a slash.", outgoing.path)));
        }
        let address = format!("{}{}", self.platform(), outgoing.path);
        let url = Url::parse(&address)
            .map_err(|error| ClientError::Invalid(format!("`{address}` is no address: {error}.")))?;
        let mut request = Request::new(outgoing.method.clone(), url);
        *request.timeout_mut() = Some(outgoing.timeout);
        for (name, value) in &outgoing.headers {
            request.headers_mut().append(name.clone(), value.clone());
        }
        if let Some(key) = &outgoing.idempotency_key {
            let value = HeaderValue::try_from(key.as_str()).map_err(|_| {
                ClientError::Invalid(format!("`{key}` cannot be an idempotency key: plain ASCII only."))
            })?;
            request.headers_mut().insert("idempotency-key", value);
        }
        if let Some(body) = &outgoing.body {
            *request.body_mut() = Some(Body::from(body.clone()));
        }
        papers.show(&mut request, self.skew.now())?;
        Ok(Prepared { client: self.clone(), request })
    }
}

/// A signed call. Sending it twice is a replay: the second one must be refused.
#[derive(Debug)]
pub struct Prepared {
    client: Client,
    request: Request,
}

impl Prepared {
    /// The HTTP request with its headers.
    pub fn request(&self) -> &Request {
        &self.request
    }

    pub async fn send(&self) -> Result<Answer, ClientError> {
        let url = self.request.url().to_string();
        let Some(request) = self.request.try_clone() else {
            return Err(ClientError::Invalid("A body that is a stream cannot be sent.".to_owned()));
        };
        let lost = |error: reqwest::Error| ClientError::Unreachable {
            url: self.client.platform().to_owned(),
            sent: !error.is_connect() && !error.is_builder(),
            cause: chain(&error),
        };
        let mut response = self.client.http.execute(request).await.map_err(lost)?;
        if let Some(date) = response.headers().get(DATE).and_then(|date| date.to_str().ok()) {
            self.client.skew.learn(date);
        }
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let mut body = BytesMut::new();
        while let Some(chunk) = response.chunk().await.map_err(lost)? {
            if body.len() + chunk.len() > MAX_ANSWER {
                return Err(ClientError::Protocol {
                    url,
                    what: format!("the answer is larger than {MAX_ANSWER} bytes"),
                });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Answer { url, status, headers, body: Bytes::from(body) })
    }
}

fn parse(platform: &str) -> Result<Url, ClientError> {
    let invalid = |why: &str| {
        ClientError::Invalid(format!(
            "`{platform}` is not a platform's address: {why}. It looks like http://localhost:8090."
        ))
    };
    let url = Url::parse(platform.trim()).map_err(|error| invalid(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(invalid("it must begin with http:// or https://"));
    }
    if url.host_str().is_none() || !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some()
    {
        return Err(invalid("it has a host and a port, and nothing after them"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid("names and passwords do not belong into it; use `inn login`"));
    }
    Ok(url)
}

/// The causes of an error, the outer ones first: the inner one has the reason.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let next = inner.to_string();
        if !text.contains(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        source = inner.source();
    }
    text
}

//! What a call shows at the door, and the signing of it (DESIGN section 5).

use std::fmt;
use std::sync::Arc;

use inn_grants::SigningKey;
use inn_grants::signature::{self, SignedParts};
use reqwest::Request;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use crate::error::ClientError;
use crate::outgoing::hex_text;

/// Header with the digest of the token a signed call shows.
pub const TOKEN_DIGEST: &str = "innkeeper-token-digest";
/// Header with a parent agent's statement for a helper key.
pub const DELEGATION: &str = "innkeeper-delegation";
const CONTENT_DIGEST: &str = "content-digest";
const IDEMPOTENCY_KEY: &str = "idempotency-key";
const CLAIM: &str = "innkeeper-claim";
const LOOPBACK_TOKEN: &str = "x-a2app-token";

/// Who a call is from.
#[derive(Clone)]
pub enum Papers {
    Nothing,
    /// A person's session token.
    Session(Arc<str>),
    /// An agent's key and nothing else: registering, asking for a grant or a token, claiming.
    Key(SigningKey),
    /// An agent's key and a token. With `delegation` the key is a helper's.
    Agent {
        key: SigningKey,
        token: Arc<str>,
        delegation: Option<Arc<str>>,
    },
    /// A token without a signature, where the grant allows that.
    Plain(Arc<str>),
    /// The agent token file of an app on a host bound to loopback.
    Loopback(Arc<str>),
}

impl fmt::Debug for Papers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "Nothing",
            Self::Session(_) => "Session(hidden)",
            Self::Key(_) => "Key(hidden)",
            Self::Agent { .. } => "Agent(hidden)",
            Self::Plain(_) => "Plain(hidden)",
            Self::Loopback(_) => "Loopback(hidden)",
        })
    }
}

impl Papers {
    /// Puts the papers into the headers. `now` is the server's time in unix seconds. Everything else about `request`
    /// must be in place: a signature covers it.
    pub(crate) fn show(&self, request: &mut Request, now: i64) -> Result<(), ClientError> {
        match self {
            Self::Nothing => Ok(()),
            Self::Session(token) | Self::Plain(token) => bearer(request.headers_mut(), token),
            Self::Loopback(token) => put(request.headers_mut(), LOOPBACK_TOKEN, token),
            Self::Key(key) => sign(request, key, now),
            Self::Agent { key, token, delegation } => {
                let headers = request.headers_mut();
                bearer(headers, token)?;
                put(headers, TOKEN_DIGEST, &signature::token_digest(token))?;
                if let Some(statement) = delegation {
                    put(headers, DELEGATION, statement)?;
                }
                sign(request, key, now)
            }
        }
    }
}

fn bearer(headers: &mut HeaderMap, token: &str) -> Result<(), ClientError> {
    put(headers, AUTHORIZATION.as_str(), &format!("Bearer {token}"))?;
    if let Some(value) = headers.get_mut(AUTHORIZATION) {
        value.set_sensitive(true);
    }
    Ok(())
}

fn put(headers: &mut HeaderMap, name: &str, value: &str) -> Result<(), ClientError> {
    let unfit = || ClientError::Invalid(format!("The value for the header {name} has characters no header may have."));
    let name = HeaderName::try_from(name).map_err(|_| unfit())?;
    headers.insert(name, HeaderValue::try_from(value).map_err(|_| unfit())?);
    Ok(())
}

fn sign(request: &mut Request, key: &SigningKey, now: i64) -> Result<(), ClientError> {
    let digest = request.body().and_then(|body| body.as_bytes()).filter(|body| !body.is_empty());
    if let Some(digest) = digest.map(signature::content_digest) {
        put(request.headers_mut(), CONTENT_DIGEST, &digest)?;
    }
    let url = request.url();
    let authority = authority(url);
    let path = url.path().to_owned();
    let query = url.query().map_or_else(|| "?".to_owned(), |query| format!("?{query}"));
    let headers = request.headers();
    let parts = SignedParts {
        method: request.method().as_str(),
        authority: &authority,
        path: &path,
        query: &query,
        content_type: text(headers, CONTENT_TYPE.as_str())?,
        content_digest: text(headers, CONTENT_DIGEST)?,
        idempotency_key: text(headers, IDEMPOTENCY_KEY)?,
        token_digest: text(headers, TOKEN_DIGEST)?,
        delegation: text(headers, DELEGATION)?,
        claim: text(headers, CLAIM)?,
    };
    let nonce = hex_text(rand::random());
    let signed = signature::sign(key, &parts, now, now + signature::MAX_LIFETIME_SECONDS, &nonce)?;
    let headers = request.headers_mut();
    put(headers, "signature-input", &signed.signature_input)?;
    put(headers, "signature", &signed.signature)
}

/// Host and port as they will stand in the `Host` header.
fn authority(url: &url::Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h str>, ClientError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(ClientError::Invalid(format!("The header {name} is there twice: which one to sign is not clear.")));
    }
    let text = value.to_str().map_err(|_| ClientError::Invalid(format!("The header {name} is not plain ASCII.")))?;
    Ok(Some(text.trim()))
}

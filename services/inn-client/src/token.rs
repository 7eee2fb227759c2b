//! Tokens kept until shortly before they end.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// A token is renewed when it has less than this left, in seconds: a call must not end on its way.
const SPARE_SECONDS: i64 = 60;

/// What `POST /v1/token` answered.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Token {
    pub token: String,
    pub expires_at: DateTime<Utc>,
    pub grant: String,
    #[serde(default)]
    pub app: String,
    #[serde(default)]
    pub scopes: Vec<String>,
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token(of {} until {})", self.grant, self.expires_at)
    }
}

/// Tokens by grant. Clones share one store.
#[derive(Debug, Clone, Default)]
pub struct TokenCache(Arc<Mutex<HashMap<String, Token>>>);

impl TokenCache {
    /// A token that is good for a while yet; `now` is the server's time in unix seconds.
    pub fn fresh(&self, grant: &str, now: i64) -> Option<Token> {
        self.0.lock().get(grant).filter(|token| token.expires_at.timestamp() - now > SPARE_SECONDS).cloned()
    }

    pub fn keep(&self, token: Token) {
        self.0.lock().insert(token.grant.clone(), token);
    }

    pub fn forget(&self, grant: &str) {
        self.0.lock().remove(grant);
    }

    /// Everything in it, for a file of the agent's own.
    pub fn all(&self) -> Vec<Token> {
        self.0.lock().values().cloned().collect()
    }
}

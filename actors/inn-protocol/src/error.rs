//! The one error type. Every refusal answers three questions: what is wrong, did anything happen, may I retry.

use serde::Serialize;

/// The result of anything that can be refused.
pub type Result<T, E = Refusal> = std::result::Result<T, E>;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $wire:literal, $status:literal;)*) => {
        /// The closed set of refusal codes. Clients branch on these and never on prose.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code { $($(#[$doc])* $name,)* }

        impl Code {
            /// Every code, in the order of the help index.
            pub const ALL: &'static [Code] = &[$(Code::$name,)*];

            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$name => $wire,)* }
            }

            /// The HTTP status this code is answered with.
            pub const fn status(self) -> u16 {
                match self { $(Code::$name => $status,)* }
            }
        }
    };
}

codes! {
    // What was sent (A2App guard)
    UnknownField = "unknown_field", 400;
    ReadOnlyField = "read_only_field", 400;
    MissingRequired = "missing_required", 400;
    InvalidDate = "invalid_date", 400;
    InvalidDaykey = "invalid_daykey", 400;
    InvalidString = "invalid_string", 400;
    InvalidNumber = "invalid_number", 400;
    InvalidBoolean = "invalid_boolean", 400;
    InvalidEnum = "invalid_enum", 400;
    InvalidRef = "invalid_ref", 400;
    /// A value breaks a rule of the field that the type alone does not tell (length, range, pattern, uniqueness).
    InvalidValue = "invalid_value", 400;
    NotUnique = "not_unique", 400;
    /// Accepted but absent from storage; everything was rolled back.
    NotStored = "not_stored", 422;
    InvalidFilter = "invalid_filter", 400;
    InvalidBody = "invalid_body", 400;
    InvalidParameter = "invalid_parameter", 400;
    UnsupportedMediaType = "unsupported_media_type", 415;
    TooLarge = "too_large", 413;
    /// PocketBase answers 400 where a required relation keeps a record.
    RecordReferenced = "record_referenced", 400;
    /// One write of a batch was refused, so none was done.
    BatchFailed = "batch_failed", 400;
    /// The collection's create rule does not let this record through; PocketBase answers 400 and no detail.
    CreateRefused = "create_refused", 400;
    // Repeats
    DuplicateRequest = "duplicate_request", 409;
    InProgress = "in_progress", 409;
    KeyReused = "key_reused", 422;
    Conflict = "conflict", 409;
    // Papers
    Unauthenticated = "unauthenticated", 401;
    AgentTokenRequired = "agent_token_required", 401;
    SignatureRequired = "signature_required", 401;
    InvalidSignature = "invalid_signature", 401;
    SignatureExpired = "signature_expired", 401;
    ReplayedNonce = "replayed_nonce", 401;
    DigestMismatch = "digest_mismatch", 401;
    UnknownAgent = "unknown_agent", 401;
    InvalidToken = "invalid_token", 401;
    TokenExpired = "token_expired", 401;
    TokenRevoked = "token_revoked", 401;
    InvalidDelegation = "invalid_delegation", 401;
    WrongCredentials = "wrong_credentials", 401;
    /// The same on an app's own sign-in, with PocketBase's status.
    SignInFailed = "sign_in_failed", 400;
    // May you
    ForbiddenOrigin = "forbidden_origin", 403;
    ForbiddenHost = "forbidden_host", 403;
    Forbidden = "forbidden", 403;
    InsufficientScope = "insufficient_scope", 403;
    NotDeclared = "not_declared", 403;
    NotConsented = "not_consented", 403;
    ApprovalRequired = "approval_required", 428;
    // Is it there
    NotFound = "not_found", 404;
    UnknownEntity = "unknown_entity", 404;
    UnknownOperation = "unknown_operation", 404;
    UnknownApp = "unknown_app", 404;
    JobNotFound = "job_not_found", 404;
    MethodNotAllowed = "method_not_allowed", 405;
    // The queue
    ClaimLost = "claim_lost", 409;
    NotClaimable = "not_claimable", 409;
    InvalidResult = "invalid_result", 400;
    // Bundles and deploys
    InvalidBundle = "invalid_bundle", 400;
    UnsupportedRule = "unsupported_rule", 400;
    DestructiveChange = "destructive_change", 409;
    DeployFailed = "deploy_failed", 422;
    SlugTaken = "slug_taken", 409;
    // The host
    NotImplemented = "not_implemented", 501;
    RateLimited = "rate_limited", 429;
    Overloaded = "overloaded", 503;
    Unavailable = "unavailable", 503;
    Timeout = "timeout", 504;
    OutcomeUnknown = "outcome_unknown", 503;
    Internal = "internal", 500;
}

impl Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Did the call have an effect?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Certainly not.
    None,
    /// The connection was lost while committing: it may have.
    Unknown,
}

/// May the caller send it again?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Retry {
    /// Not unchanged: it would be refused again.
    No,
    /// Yes, with the same `Idempotency-Key`.
    SameKey,
    /// Yes, after `Retry-After` seconds.
    After,
}

/// One thing wrong with one field, param or bundle member.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Violation {
    pub code: Code,
    /// Where: a field name, a parameter, or a path inside a bundle.
    pub field: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub got: Option<serde_json::Value>,
}

impl Violation {
    pub fn new(code: Code, field: impl Into<String>, expected: impl Into<String>) -> Self {
        Self { code, field: field.into(), expected: Some(expected.into()), got: None }
    }

    /// Says what was sent instead. Long values are cut, so that an answer never echoes a large body.
    pub fn got(mut self, value: &serde_json::Value) -> Self {
        let text = value.to_string();
        self.got = Some(if text.len() <= 200 {
            value.clone()
        } else {
            serde_json::Value::String(text.chars().take(200).chain(['…']).collect())
        });
        self
    }
}

/// A call that was not carried out, told to whoever asked. Holds only what an outsider may read; causes go to the log.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Refusal {
    pub code: Code,
    /// One sentence: what, where, what to do.
    pub message: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<Violation>,
    pub outcome: Outcome,
    pub retry: Retry,
    /// With [`Retry::After`]: how long to wait.
    #[serde(rename = "retryAfterSeconds", skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u32>,
    /// The scope that would have allowed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Which leg of user ∩ grant ∩ app refused (`user`, `grant`, `app`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leg: Option<&'static str>,
    /// Who can change that, in words for people.
    #[serde(rename = "whoCanFix", skip_serializing_if = "Option::is_none")]
    pub who_can_fix: Option<String>,
    /// The record or receipt that an earlier attempt produced, or the request it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// With [`Code::ClaimLost`]: what the request is now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<Lost>,
    /// With [`Code::DuplicateRequest`]: the call that was first, whose receipt stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<crate::CallId>,
}

/// What became of a request whose claim is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Lost {
    pub state: crate::request::RequestState,
    /// The newest claim's; higher than the lost one's when somebody claimed it since.
    pub epoch: i64,
}

impl Refusal {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        let retry = match code {
            Code::RateLimited | Code::Overloaded | Code::Unavailable | Code::InProgress => Retry::After,
            Code::OutcomeUnknown | Code::Timeout => Retry::SameKey,
            _ => Retry::No,
        };
        let outcome = if matches!(code, Code::OutcomeUnknown) { Outcome::Unknown } else { Outcome::None };
        Self {
            code,
            message: message.into(),
            violations: Vec::new(),
            outcome,
            retry,
            retry_after_seconds: (retry == Retry::After).then_some(1),
            scope: None,
            leg: None,
            who_can_fix: None,
            id: None,
            lost: None,
            first: None,
        }
    }

    /// A refusal that lists everything wrong; its code is that of the first violation.
    pub fn violations(message: impl Into<String>, violations: Vec<Violation>) -> Self {
        let code = violations.first().map_or(Code::InvalidBody, |first| first.code);
        Self { violations, ..Self::new(code, message) }
    }

    pub fn not_found() -> Self {
        Self::new(Code::NotFound, "The requested resource wasn't found.")
    }

    /// Something broke on our side. The cause belongs in the log, never in the answer.
    pub fn internal() -> Self {
        Self::new(Code::Internal, "Something went wrong on the server. The log has the cause under this call's id.")
    }

    pub fn scope(mut self, scope: &impl ToString) -> Self {
        self.scope = Some(scope.to_string());
        self
    }

    pub fn leg(mut self, leg: &'static str) -> Self {
        self.leg = Some(leg);
        self
    }

    pub fn fix(mut self, who: impl Into<String>) -> Self {
        self.who_can_fix = Some(who.into());
        self
    }

    pub fn id(mut self, id: &impl ToString) -> Self {
        self.id = Some(id.to_string());
        self
    }

    pub fn after(mut self, seconds: u32) -> Self {
        self.retry = Retry::After;
        self.retry_after_seconds = Some(seconds);
        self
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code.as_str(), self.message)
    }
}

impl std::error::Error for Refusal {}

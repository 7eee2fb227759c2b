//! Calls the platform makes itself: they are in the register like everybody else's.

use inn_protocol::call::{Action, LiveCheck};
use inn_protocol::caller::Caller;
use inn_protocol::register::{CallRecord, EntryDraft};
use inn_protocol::{AppId, CallId, Digest, TenantId};

/// The record of one such call. `body` is the digest of what it was about (a bundle, a token), or of nothing.
pub(crate) fn platform_call(action: &Action, tenant: TenantId, app: Option<AppId>, body: Digest) -> CallRecord {
    let draft = EntryDraft {
        call: CallId::new(),
        tenant,
        app,
        caller: Caller::Platform.kind(),
        user: None,
        agent: None,
        helper: None,
        grant: None,
        via: None,
        app_user: None,
        action: action.name(),
        target: action.target(),
        body,
        claimed_agent: None,
        signature_base: None,
        signature: None,
    };
    CallRecord { draft, live: LiveCheck::default(), nonce: None, idempotency: None }
}

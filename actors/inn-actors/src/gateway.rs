//! The gateway actor: one per worker thread, guarding the door.
//!
//! It verifies papers, asks the one decision and answers. Everything it needs travels in the message; it never waits.

use std::sync::Arc;

use actix::{Actor, Context, Handler, Message};
use chrono::{DateTime, Utc};
use inn_protocol::app::AppSnapshot;
use inn_protocol::call::{Action, AppUserCheck, Call, ClaimCheck, Idempotency, LiveCheck, Nonce, Papers, Place};
use inn_protocol::caller::{Caller, Via};
use inn_protocol::register::{CallRecord, EntryDraft};
use inn_protocol::{Digest, Refusal, TenantId};
use inn_rules::access::{self, Host, Permit};
use inn_rules::filter::AuthFacts;
use tokio::sync::oneshot;

use crate::papers::{Evidence, Former, Rejected, Verified, judge};

/// Two messages a connection of one worker are more than enough to wait here; the permits in front are the real limit.
const MAILBOX: usize = 512;

#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Admit {
    pub(crate) call: Arc<Call>,
    pub(crate) evidence: Evidence,
    pub(crate) reply: oneshot::Sender<Judgement>,
}

pub(crate) enum Judgement {
    Admitted(Box<Verdict>),
    /// `record` is there when somebody verified was refused: that is an entry. Strangers are only counted.
    Refused {
        refusal: Refusal,
        record: Option<Box<CallRecord>>,
    },
}

/// A yes, who got it, and what its entry will say.
pub(crate) struct Verdict {
    pub(crate) caller: Caller,
    pub(crate) record: CallRecord,
    pub(crate) permit: Permit,
}

pub(crate) struct GatewayActor {
    host: Host,
    clock: Arc<dyn inn_ports::Clock>,
}

impl GatewayActor {
    pub(crate) fn new(host: Host, clock: Arc<dyn inn_ports::Clock>) -> Self {
        Self { host, clock }
    }
}

impl Actor for GatewayActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Context<Self>) {
        ctx.set_mailbox_capacity(MAILBOX);
    }
}

impl Handler<Admit> for GatewayActor {
    type Result = ();

    fn handle(&mut self, message: Admit, _: &mut Context<Self>) {
        let judgement = admit(&message.call, &message.evidence, self.host, self.clock.now());
        // A receiver that is gone has hung up; nothing has happened yet.
        message.reply.send(judgement).ok();
    }
}

/// Papers, then the decision.
pub(crate) fn admit(call: &Call, evidence: &Evidence, host: Host, now: DateTime<Utc>) -> Judgement {
    let verified = match judge(call, evidence, now) {
        Ok(verified) => verified,
        Err(Rejected { refusal, former }) => {
            let record = former.map(|former| Box::new(former_record(call, *former, evidence.app.as_deref())));
            return Judgement::Refused { refusal, record };
        }
    };
    let app = evidence.app.as_deref();
    let record = record(call, &verified, app);
    let auth = match evidence.auth_of(&verified.caller) {
        Some(record) => AuthFacts::of_record(record.clone()),
        None => access::known_auth(&verified.caller, app),
    }
    .asking(Arc::clone(&call.request));
    match access::decide_as(&verified.caller, &call.action, app, &auth, host, now) {
        Ok(permit) => Judgement::Admitted(Box::new(Verdict { caller: verified.caller, record, permit })),
        Err(refusal) => {
            let known = !matches!(verified.caller, Caller::Stranger);
            Judgement::Refused { refusal, record: known.then(|| Box::new(record)) }
        }
    }
}

fn record(call: &Call, verified: &Verified, app: Option<&AppSnapshot>) -> CallRecord {
    let Verified { caller, signature } = verified;
    let (agent, helper, via) = match caller {
        Caller::Agent(agent) => (Some(agent.agent.clone()), agent.helper.clone(), Some(via(agent.via))),
        Caller::Key(agent) => (Some(agent.clone()), None, Some("signed")),
        Caller::AppUser(_) => (None, None, Some("app_token")),
        _ => (None, None, None),
    };
    let tenant = match caller {
        Caller::Person(person) => person.tenant,
        // Its own tenant's business, even when it knocks at another tenant's app: that one learns nothing of it.
        Caller::Agent(agent) => agent.tenant,
        Caller::AppUser(user) => user.tenant,
        _ => app.map(|app| app.tenant).or(call.about).unwrap_or(TenantId::PLATFORM),
    };
    let app = app.filter(|app| app.tenant == tenant);
    let draft = EntryDraft {
        call: call.id,
        tenant,
        app: app.map(|app| app.id),
        caller: caller.kind(),
        user: caller.user(),
        agent,
        helper,
        grant: caller.grant(),
        via,
        app_user: app_user_of(caller),
        action: call.action.name(),
        target: call.action.target(),
        body: call.body_digest,
        claimed_agent: call.claimed_agent.clone(),
        signature_base: signature.as_ref().map(|signature| signature.base.clone()),
        signature: signature.as_ref().map(|signature| signature.signature.to_vec()),
    };
    let nonce = signature.as_ref().map(|signature| Nonce {
        agent: signature.agent.clone(),
        nonce: signature.nonce.clone(),
        expires: DateTime::from_timestamp(signature.expires, 0).unwrap_or(DateTime::<Utc>::MAX_UTC),
    });
    let live = live(call, caller, app);
    let route = format!("{} {} {}", draft.action, draft.target, call.query);
    let key = call.idempotency_key.as_ref().filter(|_| call.action.is_write());
    let idempotency = match (&live.claim, key) {
        (Some(claim), key) => Some(claimed_once(claim, key, route, call.body_digest)),
        (None, Some(key)) => {
            Some(Idempotency { scope: caller.idempotency_scope(), route, key: key.clone(), body: call.body_digest })
        }
        (None, None) => None,
    };
    CallRecord { live, draft, nonce, idempotency }
}

/// A write under a claim counts once for the request, whoever works on it. A key names the step, and then the first one
/// counts whatever the others say (two workers seldom find the same words); without a key equal bodies are one write.
fn claimed_once(claim: &ClaimCheck, key: Option<&String>, route: String, body: Digest) -> Idempotency {
    let scope = format!("claim {}", claim.request);
    match key {
        Some(key) => Idempotency { scope, route, key: format!("key {key}"), body: Digest::of(b"") },
        None => Idempotency { scope, route, key: format!("body {body}"), body },
    }
}

/// The claim a signed write to an app is made under. The edge has refused headers that say nothing.
fn claim(call: &Call, caller: &Caller) -> Option<ClaimCheck> {
    let (Papers::Signed(papers), Caller::Agent(agent)) = (&call.papers, caller) else { return None };
    let writes = matches!(
        call.action,
        Action::CreateRecord { .. }
            | Action::UpdateRecord { .. }
            | Action::DeleteRecord { .. }
            | Action::RunOperation { .. }
            | Action::Batch
    );
    let (request, epoch) = ClaimCheck::parse(papers.claim.as_deref().filter(|_| writes)?)?;
    Some(ClaimCheck { request, epoch, agent: agent.agent.clone() })
}

/// The app's own user who asks, or whom the agent acts as.
fn app_user_of(caller: &Caller) -> Option<String> {
    match caller {
        Caller::AppUser(user) => Some(user.name()),
        Caller::Agent(agent) => agent.app_record.clone(),
        _ => None,
    }
}

/// The record of a call whose right was gone: who it was is still known, and for whom it once acted.
fn former_record(call: &Call, former: Former, app: Option<&AppSnapshot>) -> CallRecord {
    let claims = former.token.claims.clone();
    let verified = Verified { caller: Caller::Key(former.signature.agent.clone()), signature: Some(former.signature) };
    let app = app.filter(|app| app.tenant == claims.tenant);
    let mut record = record(call, &verified, app);
    record.draft.caller = "agent";
    record.draft.tenant = claims.tenant;
    record.draft.user = Some(claims.user);
    record.draft.grant = Some(claims.grant);
    record
}

fn via(via: Via) -> &'static str {
    match via {
        Via::Signed => "signed",
        Via::PlainToken => "plain_token",
        Via::LoopbackToken => "loopback_token",
        Via::FileToken => "file_token",
    }
}

fn live(call: &Call, caller: &Caller, app: Option<&AppSnapshot>) -> LiveCheck {
    let mut live = LiveCheck::default();
    if let (Place::App { .. }, Some(app)) = (&call.place, app) {
        live.app = Some((app.id, app.epoch));
    }
    match caller {
        Caller::Person(person) => {
            live.member = Some((person.tenant, person.user, person.member_epoch));
            live.session = Some(person.session);
        }
        Caller::Agent(agent) => {
            live.claim = claim(call, caller);
            live.member = Some((agent.tenant, agent.user, agent.member_epoch));
            live.grant = Some((agent.grant, agent.grant_epoch));
        }
        Caller::AppUser(user) => {
            live.app_user = Some(AppUserCheck {
                app: user.app,
                collection: user.collection.clone(),
                record: user.record.clone(),
                token_key: user.token_key,
            });
        }
        _ => {}
    }
    live
}

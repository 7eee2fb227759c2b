//! From papers to a caller. Gathering the evidence may wait for the directory; judging it never does.

mod account;
mod proof;

use std::collections::BTreeSet;
use std::sync::Arc;

use chrono::{DateTime, Duration, Utc};
use inn_grants::signature::{self, SignedParts, VerifiedSignature};
use inn_grants::token::VerifiedToken;
use inn_grants::{PublicKey, app_token, delegation};
use inn_ports::{AgentState, FileTokenPapers, GrantState, MemberState, SessionState};
use inn_protocol::app::AppSnapshot;
use inn_protocol::call::{Call, Papers, Place, SignedPapers};
use inn_protocol::caller::{Agent, Caller, Person, Via};
use inn_protocol::{AgentId, Code, Digest, Refusal};

pub(crate) use self::account::facts_of;
use self::account::{AppUserEvidence, gather_app_user};
pub(crate) use self::proof::{Proof, proof};
use crate::snapshots::Snapshots;

/// How long after the password was given a session may consent (DESIGN section 5).
const FRESH_MINUTES: i64 = 5;

/// Everything the directory says about the papers of one call.
#[derive(Clone, Default)]
pub(crate) struct Evidence {
    pub(crate) app: Option<Arc<AppSnapshot>>,
    signer: Option<Arc<AgentState>>,
    parent: Option<Arc<AgentState>>,
    token: Option<Arc<VerifiedToken>>,
    grant: Option<Arc<GrantState>>,
    member: Option<Arc<MemberState>>,
    session: Option<Arc<SessionState>>,
    /// The record whose token was shown, and what its token says, when it was made with the record's key.
    app_user: Option<AppUserEvidence>,
    /// Who took the token for files that was shown, and what it opened then.
    file_token: Option<FileTokenPapers>,
    /// The app user's token was one for files.
    by_file_token: bool,
    /// `@request.auth` of an agent on a multi-user app.
    pub(crate) auth: Option<serde_json::Map<String, serde_json::Value>>,
}

impl Evidence {
    /// The record `@request.auth` stands for: the one a caller is signed in as, or an agent's linked one.
    pub(crate) fn auth_of(&self, caller: &Caller) -> Option<&serde_json::Map<String, serde_json::Value>> {
        match caller {
            Caller::AppUser(_) => self.app_user.as_ref().map(|shown| &shown.record),
            _ => self.auth.as_ref(),
        }
    }
}

/// A caller and the proof it gave.
pub(crate) struct Verified {
    pub(crate) caller: Caller,
    pub(crate) signature: Option<VerifiedSignature>,
}

/// Papers that did not hold. When key and token were genuine and only the right behind them is gone, whose call it was
/// is known, and the refusal belongs into the register; anybody else is a stranger.
pub(crate) struct Rejected {
    pub(crate) refusal: Refusal,
    pub(crate) former: Option<Box<Former>>,
}

/// An agent that proved its key and showed a token we minted for it, but acts for nobody any more.
pub(crate) struct Former {
    pub(crate) signature: VerifiedSignature,
    pub(crate) token: Arc<VerifiedToken>,
}

impl From<Refusal> for Rejected {
    fn from(refusal: Refusal) -> Self {
        Self { refusal, former: None }
    }
}

/// Looks up what [`judge`] needs. Refuses only what cannot be looked up at all.
pub(crate) async fn gather(call: &Call, snapshots: &Snapshots) -> Result<Evidence, Refusal> {
    let mut evidence = Evidence::default();
    if let Place::App { slug, .. } = &call.place {
        let app = snapshots.app(slug).await?;
        evidence.app = Some(app.ok_or_else(|| {
            Refusal::new(
                Code::UnknownApp,
                "There is no app of that name here. `GET /v1/apps` lists the apps you can see.",
            )
        })?);
    }
    look_up(&call.papers, &mut evidence, snapshots).await?;
    if let (Some(app), Some(grant)) = (&evidence.app, &evidence.grant)
        && let Some(record) = &grant.app_record
    {
        evidence.auth = snapshots.app_record(app, record).await?;
    }
    Ok(evidence)
}

async fn look_up(papers: &Papers, evidence: &mut Evidence, snapshots: &Snapshots) -> Result<(), Refusal> {
    match papers {
        Papers::None | Papers::Visitor => {}
        Papers::AppUser { token } => gather_app_user(evidence, token, app_token::Kind::Auth, snapshots).await?,
        Papers::File { token, otherwise } if app_token::is_one(token) => {
            gather_app_user(evidence, token, app_token::Kind::File, snapshots).await?;
            evidence.by_file_token = evidence.app_user.is_some();
            if !evidence.by_file_token {
                Box::pin(look_up(otherwise, evidence, snapshots)).await?;
            }
        }
        Papers::File { token, otherwise } => {
            let here = evidence.app.as_ref().map(|app| app.id);
            let state = snapshots.file_token(Digest::of(token.as_bytes())).await?;
            match state.filter(|state| Some(state.app) == here) {
                Some(state) => gather_file_token(evidence, state.papers, snapshots).await?,
                // It means nothing (any more), so what else was shown counts.
                None => Box::pin(look_up(otherwise, evidence, snapshots)).await?,
            }
        }
        Papers::Signed(papers) => {
            let signer = signature::parse(&papers.signature_input, &papers.signature)?.agent().clone();
            if papers.enrolling_key.is_none() {
                evidence.signer = snapshots.agent(&signer).await?;
            }
            if let Some(token) = &papers.token {
                let token = snapshots.token(token)?;
                if token.claims.agent != signer {
                    evidence.parent = snapshots.agent(&token.claims.agent).await?;
                }
                gather_grant(evidence, token, snapshots).await?;
            }
        }
        Papers::Bearer { token } => gather_grant(evidence, snapshots.token(token)?, snapshots).await?,
        Papers::Session { token, .. } => {
            evidence.session = snapshots.session(Digest::of(token.as_bytes())).await?;
            if let Some(session) = &evidence.session {
                // On an app the person counts as a member of that app's tenant, whichever tenant the session shows.
                let tenant = evidence.app.as_ref().map_or(session.tenant, |app| app.tenant);
                evidence.member = snapshots.member(tenant, session.user).await?;
            }
        }
        Papers::Loopback { token } => {
            evidence.grant = snapshots.loopback_grant(Digest::of(token.as_bytes())).await?;
            if let Some(grant) = &evidence.grant {
                evidence.member = snapshots.member(grant.tenant, grant.user).await?;
            }
        }
    }
    Ok(())
}

async fn gather_file_token(
    evidence: &mut Evidence,
    papers: FileTokenPapers,
    snapshots: &Snapshots,
) -> Result<(), Refusal> {
    match &papers {
        FileTokenPapers::Person(session) => {
            let tenant = evidence.app.as_ref().map_or(session.tenant, |app| app.tenant);
            evidence.member = snapshots.member(tenant, session.user).await?;
            evidence.session = Some(Arc::clone(session));
        }
        FileTokenPapers::Agent { grant, .. } => {
            evidence.member = snapshots.member(grant.tenant, grant.user).await?;
            evidence.grant = Some(Arc::clone(grant));
        }
    }
    evidence.file_token = Some(papers);
    Ok(())
}

async fn gather_grant(
    evidence: &mut Evidence,
    token: Arc<VerifiedToken>,
    snapshots: &Snapshots,
) -> Result<(), Refusal> {
    evidence.grant = snapshots.grant(token.claims.grant).await?;
    evidence.member = snapshots.member(token.claims.tenant, token.claims.user).await?;
    evidence.token = Some(token);
    Ok(())
}

/// Checks signature, token, grant and session. Pure: `now` is database time.
pub(crate) fn judge(call: &Call, evidence: &Evidence, now: DateTime<Utc>) -> Result<Verified, Rejected> {
    judge_papers(&call.papers, evidence, now)
}

fn judge_papers(papers: &Papers, evidence: &Evidence, now: DateTime<Utc>) -> Result<Verified, Rejected> {
    let unsigned = |caller| Ok(Verified { caller, signature: None });
    match papers {
        Papers::File { .. } if evidence.by_file_token => unsigned(app_user(evidence, now)),
        Papers::File { otherwise, .. } => match &evidence.file_token {
            None => judge_papers(otherwise, evidence, now),
            Some(FileTokenPapers::Person(_)) => {
                // Taken on this app, with a session that counted here.
                unsigned(Caller::Person(Person { fresh: false, ..person(evidence, true, now)? }))
            }
            Some(FileTokenPapers::Agent { helper, scopes, .. }) => {
                let grant = live_grant(evidence)?;
                // What the grant allows now, and no more than the agent's token did when it took this one.
                let scopes = Arc::new(grant.scopes.intersection(scopes).cloned().collect());
                unsigned(Caller::Agent(agent(evidence, grant, scopes, helper.clone(), Via::FileToken)?))
            }
        },
        Papers::AppUser { .. } => unsigned(app_user(evidence, now)),
        Papers::None => unsigned(Caller::Stranger),
        Papers::Visitor => unsigned(Caller::Visitor),
        Papers::Session { app_origin, .. } => unsigned(Caller::Person(person(evidence, *app_origin, now)?)),
        Papers::Bearer { .. } => {
            let grant = live_grant(evidence)?;
            let (token, grant) = live_token(evidence, grant, now)?;
            if !(grant.plain_token && token.claims.plain) {
                return Err(Refusal::new(
                    Code::SignatureRequired,
                    "A token alone proves nothing: sign the HTTP request with your agent's key (RFC 9421, tag \"innkeeper\").",
                )
                .fix("the owner, who can allow plain tokens for this grant")
                .into());
            }
            unsigned(Caller::Agent(agent(
                evidence,
                grant,
                token.scopes_at(token.claims.app, now)?,
                None,
                Via::PlainToken,
            )?))
        }
        Papers::Loopback { .. } => {
            let Some(grant) = evidence.grant.as_deref().filter(|grant| grant.loopback && !grant.revoked) else {
                return Err(Refusal::new(
                    Code::AgentTokenRequired,
                    "That is not the agent token of this app, or it was revoked. It is in the app's token file on this machine.",
                )
                .into());
            };
            unsigned(Caller::Agent(agent(evidence, grant, Arc::clone(&grant.scopes), None, Via::LoopbackToken)?))
        }
        Papers::Signed(papers) => signed(papers, evidence, now),
    }
}

/// Who a token of the app's own says it is, while it has not run out; after that nobody is signed in.
fn app_user(evidence: &Evidence, now: DateTime<Utc>) -> Caller {
    let shown = evidence.app_user.as_ref().filter(|shown| shown.expires > now.timestamp());
    shown.map_or(Caller::Stranger, |shown| Caller::AppUser(shown.user.clone()))
}

fn signed(papers: &SignedPapers, evidence: &Evidence, now: DateTime<Utc>) -> Result<Verified, Rejected> {
    let signature = signed_by(papers, evidence, now)?;
    let caller = match &papers.token {
        None => Caller::Key(signature.agent.clone()),
        Some(text) => {
            let Some(digest) = &papers.token_digest else {
                return Err(Refusal::new(
                    Code::InvalidSignature,
                    "A call with a token needs the header Innkeeper-Token-Digest, covered by the signature.",
                )
                .into());
            };
            signature::check_token_digest(digest, text)?;
            let token = evidence.token.as_ref().ok_or_else(Refusal::internal)?;
            let helper = helper(papers, evidence, token, &signature.agent, now)?;
            match acting(evidence, helper, now) {
                Ok(agent) => Caller::Agent(agent),
                Err(refusal) => {
                    let former = Former { signature, token: Arc::clone(token) };
                    return Err(Rejected { refusal, former: Some(Box::new(former)) });
                }
            }
        }
    };
    Ok(Verified { caller, signature: Some(signature) })
}

fn signed_by(papers: &SignedPapers, evidence: &Evidence, now: DateTime<Utc>) -> Result<VerifiedSignature, Refusal> {
    let parsed = signature::parse(&papers.signature_input, &papers.signature)?;
    let key = match (&papers.enrolling_key, &evidence.signer) {
        (Some(key), _) => PublicKey::from_bytes(key)?,
        (None, Some(agent)) => agent.public_key,
        (None, None) => {
            return Err(Refusal::new(
                Code::UnknownAgent,
                "No agent with this keyid is registered here. Register the key with POST /v1/agents first.",
            )
            .fix("the agent itself: registering is free"));
        }
    };
    signature::verify(&parsed, &parts(papers), &key, now.timestamp())
}

/// The agent as it may act now: grant live, token in its time, person still a member.
fn acting(evidence: &Evidence, helper: Option<AgentId>, now: DateTime<Utc>) -> Result<Agent, Refusal> {
    let (token, grant) = live_token(evidence, live_grant(evidence)?, now)?;
    let scopes = token.scopes_at(token.claims.app, now)?;
    agent(evidence, grant, scopes, helper, Via::Signed)
}

/// The helper key that signed, when it was not the agent's own and the agent delegated the token to it.
fn helper(
    papers: &SignedPapers,
    evidence: &Evidence,
    token: &VerifiedToken,
    signer: &AgentId,
    now: DateTime<Utc>,
) -> Result<Option<AgentId>, Refusal> {
    if token.claims.agent == *signer {
        return Ok(None);
    }
    let (Some(statement), Some(parent)) = (&papers.delegation, &evidence.parent) else {
        return Err(Refusal::new(
            Code::InvalidToken,
            "The token was minted for another agent's key. A helper key needs that agent's Innkeeper-Delegation statement.",
        ));
    };
    delegation::verify(statement, &parent.public_key, token.digest, signer, now.timestamp())?;
    Ok(Some(signer.clone()))
}

fn parts(papers: &SignedPapers) -> SignedParts<'_> {
    SignedParts {
        method: &papers.method,
        authority: &papers.authority,
        path: &papers.path,
        query: &papers.query,
        content_type: papers.content_type.as_deref(),
        content_digest: papers.content_digest.as_deref(),
        idempotency_key: papers.idempotency_key.as_deref(),
        token_digest: papers.token_digest.as_deref(),
        delegation: papers.delegation.as_deref(),
        claim: papers.claim.as_deref(),
    }
}

fn live_grant(evidence: &Evidence) -> Result<&GrantState, Refusal> {
    evidence.grant.as_deref().filter(|grant| !grant.revoked).ok_or_else(|| {
        Refusal::new(Code::TokenRevoked, "The grant behind this token was revoked.")
            .leg("grant")
            .fix("the person who granted it, by a new grant")
    })
}

fn live_token<'e>(
    evidence: &'e Evidence,
    grant: &'e GrantState,
    now: DateTime<Utc>,
) -> Result<(&'e VerifiedToken, &'e GrantState), Refusal> {
    let token = evidence.token.as_deref().ok_or_else(Refusal::internal)?;
    token.check_time(now)?;
    if token.claims.grant_epoch != grant.epoch {
        return Err(Refusal::new(
            Code::TokenRevoked,
            "The grant changed after this token was minted. Take a new one at /v1/token.",
        )
        .leg("grant"));
    }
    Ok((token, grant))
}

fn agent(
    evidence: &Evidence,
    grant: &GrantState,
    scopes: Arc<BTreeSet<inn_protocol::scope::Scope>>,
    helper: Option<AgentId>,
    via: Via,
) -> Result<Agent, Refusal> {
    let member = evidence.member.as_deref().ok_or_else(|| {
        Refusal::new(
            Code::TokenRevoked,
            "The person this agent acts for is no longer a member here, so neither is the agent.",
        )
        .leg("user")
        .fix("an owner of the tenant")
    })?;
    Ok(grant.agent(member, scopes, helper, via))
}

fn person(evidence: &Evidence, app_origin: bool, now: DateTime<Utc>) -> Result<Person, Refusal> {
    let ended = || Refusal::new(Code::Unauthenticated, "This session has ended. Sign in again.");
    let session = evidence.session.as_deref().filter(|session| session.expires_at > now).ok_or_else(ended)?;
    // A session handed over to an app's origin is good there and nowhere else.
    let here = evidence.app.as_ref().map(|app| app.id);
    if session.app.is_some() && (session.app != here || !app_origin) {
        return Err(ended());
    }
    let member = evidence
        .member
        .as_deref()
        .ok_or_else(|| Refusal::not_found().leg("user").fix("an owner of the tenant, who can add you as a member"))?;
    Ok(Person {
        user: session.user,
        email: Arc::clone(&member.email),
        session: session.session,
        tenant: member.tenant,
        role: member.role,
        member_epoch: member.epoch,
        // Consent belongs on the person's own surface, never on an app's origin.
        fresh: session.app.is_none() && now - session.authenticated_at <= Duration::minutes(FRESH_MINUTES),
    })
}

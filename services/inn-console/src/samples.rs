//! Sample data for the tests of the pages, and all pages made from it.

use std::path::Path;
use std::sync::Arc;

use askama::Template;
use chrono::{DateTime, Duration, Utc};
use inn_ports::{InstalledApp, Message, ShownMail};
use inn_protocol::app::{AppDefinition, AppSnapshot};
use inn_protocol::grant::{Grant, GrantRequest, GrantRequestStatus, Revocation};
use inn_protocol::people::Role;
use inn_protocol::register::{Entry, Head, Verification};
use inn_protocol::{
    AgentId, AppId, CallId, Code, Digest, GrantId, GrantRequestId, Refusal, TenantId, UserId, Violation,
};
use serde_json::json;

use crate::audit::{AuditPage, Filter, Pick, VerifyPage};
use crate::consent::{ConsentPage, State};
use crate::entry::{EntryLine, Names};
use crate::error::ErrorPage;
use crate::frame::{Frame, Here};
use crate::grants::{GrantLine, GrantPage, GrantsPage};
use crate::home::{AppLine, HomePage, RequestLine};
use crate::mail::MailPage;
use crate::session::{ContinuePage, SignInPage};
use crate::stamp::Stamp;

/// What somebody hostile would call themselves.
pub(crate) const HOSTILE: &str = "<script>alert('x')</script>\" onload=\"x&amp;";
const KEY: &str = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k";

pub(crate) fn at() -> DateTime<Utc> {
    DateTime::from_timestamp(1_796_000_000, 0).unwrap()
}

pub(crate) fn frame(here: Here, name: &str) -> Frame {
    Frame { here, email: format!("{name}@example.org"), tenant: name.to_owned(), role: Role::Owner }
}

pub(crate) fn app(name: &str, auth_mode: &str) -> AppSnapshot {
    let definition: AppDefinition = serde_json::from_value(json!({
        "declaredId": "sample", "name": name, "description": name, "version": "1.0.0", "dialect": "1.0",
        "authMode": auth_mode,
        "model": {"collections": [
            {"id": "c1", "name": "cards", "type": "base"}, {"id": "c2", "name": "boards", "type": "base"}]},
        "operations": [
            {"name": "cards.add", "description": "Add a card to a list.",
             "executor": {"type": "crud", "collection": "cards", "action": "create"}},
            {"name": "cards.clear", "description": name, "destructive": true,
             "executor": {"type": "crud", "collection": "cards", "action": "delete"}}],
        "operationsJson": {},
        "capabilities": [{"name": "sum-up", "sentence": name, "input": {}, "result": {}}],
        "limits": {}, "uiRoot": "ui", "uiEntry": "index.html"
    }))
    .unwrap();
    AppSnapshot {
        id: AppId::from_uuid(uuid::Uuid::from_u128(7)),
        tenant: TenantId::from_uuid(uuid::Uuid::from_u128(1)),
        slug: "kanban".to_owned(),
        release: Digest::of(b"r"),
        epoch: 1,
        definition: Arc::new(definition),
        ui_files: Arc::default(),
        consented: Vec::new(),
    }
}

pub(crate) const ASKED: [&str; 6] =
    ["data:boards:read", "data:cards:read", "data:cards:write", "op:cards.add", "op:cards.clear", "queue:sum-up"];

pub(crate) fn request(name: &str, status: GrantRequestStatus) -> GrantRequest {
    GrantRequest {
        id: GrantRequestId::new(),
        app: AppId::from_uuid(uuid::Uuid::from_u128(7)),
        app_slug: "kanban".to_owned(),
        tenant: TenantId::from_uuid(uuid::Uuid::from_u128(1)),
        agent: AgentId::parse(KEY).unwrap(),
        agent_name: name.to_owned(),
        code: "WXYZ-2345".to_owned(),
        scopes: ASKED.iter().map(|scope| scope.parse().unwrap()).collect(),
        reason: name.to_owned(),
        status,
        grant: (status == GrantRequestStatus::Approved).then(GrantId::new),
        created_at: at(),
        expires_at: at() + Duration::hours(24),
    }
}

pub(crate) fn grant(name: &str, revoked: bool) -> Grant {
    let request = request(name, GrantRequestStatus::Approved);
    Grant {
        id: GrantId::new(),
        tenant: request.tenant,
        app: request.app,
        app_slug: request.app_slug,
        agent: request.agent,
        agent_name: request.agent_name,
        user: UserId::from_uuid(uuid::Uuid::from_u128(3)),
        user_email: format!("{name}@example.org"),
        scopes: request.scopes,
        others_requests: true,
        plain_token: !revoked,
        loopback: false,
        app_record: Some(name.to_owned()),
        epoch: 1,
        created_at: at(),
        revoked_at: revoked.then(|| at() + Duration::hours(1)),
    }
}

pub(crate) fn entry(name: &str, caller: &str, action: &str, outcome: &str) -> Entry {
    let user = UserId::from_uuid(uuid::Uuid::from_u128(3));
    let agent = (caller != "person").then_some(KEY);
    Entry {
        call: CallId::new(),
        tenant: TenantId::from_uuid(uuid::Uuid::from_u128(1)),
        at: at(),
        facts: json!({"caller": caller, "user": user, "agent": agent, "claimedAgent": name, "action": action,
            "target": name, "app": AppId::from_uuid(uuid::Uuid::from_u128(7)), "via": "signed",
            "signatureBase": format!("\"@method\": POST\n\"@authority\": {name}")}),
        outcome: outcome.to_owned(),
        effect: Some(Digest::of(b"effect")),
        digest: Digest::of(b"entry"),
        seq: Some(41),
    }
}

pub(crate) fn names(name: &str) -> Names {
    let one = |id: String, name: String| [(id, name)].into_iter().collect();
    Names {
        users: one(UserId::from_uuid(uuid::Uuid::from_u128(3)).to_string(), format!("{name}@example.org")),
        apps: one(AppId::from_uuid(uuid::Uuid::from_u128(7)).to_string(), name.to_owned()),
        agents: one(KEY.to_owned(), name.to_owned()),
    }
}

fn lines(name: &str) -> Vec<EntryLine> {
    let entries = [
        entry(name, "agent", "records.create", "done"),
        entry(name, "agent", "operations.run", "refused:approval_required"),
        entry(name, "person", "grants.approve", "done"),
        entry(name, "key", "tokens.take", "done"),
        entry(name, "agent", "records.list", "done"),
    ];
    entries.iter().map(|entry| EntryLine::of(entry, &names(name))).collect()
}

fn home(name: &str) -> HomePage {
    let installed = |slug: &str| InstalledApp {
        id: AppId::new(),
        slug: slug.to_owned(),
        name: name.to_owned(),
        release: Digest::of(b"r"),
        version: "1.0.0".to_owned(),
        deployed_at: at(),
    };
    let line = |slug: &str, has_ui| AppLine {
        app: installed(slug),
        description: format!("Boards, lists and cards. {name}"),
        deployed: Stamp(at()),
        has_ui,
        face: format!("http://localhost:8090/apps/{slug}"),
    };
    let request = request(name, GrantRequestStatus::Pending);
    HomePage {
        frame: frame(Here::Home, name),
        apps: vec![line("kanban", true), line("expenses", false)],
        requests: vec![RequestLine { until: Stamp(request.expires_at), request }],
        grants: vec![grant(name, false).into()],
        news: Some(lines(name)),
    }
}

fn consent(name: &str, auth_mode: &str, status: GrantRequestStatus, problem: bool) -> ConsentPage {
    let app = app(name, auth_mode);
    let problem = problem.then(|| format!("That is not your password. {name}"));
    ConsentPage::sample(frame(Here::Grants, name), request(name, status), app, problem)
}

fn audit(name: &str) -> AuditPage {
    let pick = |picked| Pick { value: name.to_owned(), label: name.to_owned(), picked };
    AuditPage {
        frame: frame(Here::Register, name),
        lines: lines(name),
        filter: Filter {
            grant: name.to_owned(),
            action: name.to_owned(),
            outcome: "refused:x".to_owned(),
            since: name.to_owned(),
        },
        apps: vec![pick(true)],
        users: vec![pick(false)],
        agents: vec![pick(false)],
        paged: true,
        newest: "/audit?app=a&outcome=done".to_owned(),
        older: Some("/audit?app=a&before=5.call".to_owned()),
    }
}

fn verification(name: &str, ok: bool) -> Verification {
    let head = Head {
        tenant: TenantId::from_uuid(uuid::Uuid::from_u128(1)),
        seq: 41,
        head: Digest::of(b"head"),
        at: at(),
        key: name.to_owned(),
        signature: "c2lnbmF0dXJl".repeat(7),
    };
    let problems = if ok { Vec::new() } else { vec![format!("Entry 7 does not have the digest it says. {name}")] };
    Verification { ok, entries: 42, sealed: 41, heads: 12, problems, head: Some(head) }
}

fn error_page(name: &str) -> ErrorPage {
    let violation = Violation::new(Code::InvalidParameter, name, name);
    let refusal = Refusal::violations(name, vec![violation]).fix(name).after(3);
    let error = inn_http::error::ApiError {
        refusal: Box::new(refusal),
        call: CallId::new(),
        help: "http://localhost:8090/help/".to_owned(),
        shape: inn_http::error::Shape::Plain,
        server_now: String::new(),
    };
    ErrorPage::of(&error)
}

/// Every template, with every optional part shown, around one name that everybody and everything has.
fn mail(name: &str) -> MailPage {
    let message = Message {
        tenant: TenantId::from_uuid(uuid::Uuid::from_u128(1)),
        app: AppId::from_uuid(uuid::Uuid::from_u128(7)),
        app_name: name.to_owned(),
        to: format!("{name}@example.org"),
        subject: name.to_owned(),
        html: name.to_owned(),
    };
    let shown = ShownMail { at: at(), message, text: name.to_owned() };
    MailPage { frame: frame(Here::Home, name), mails: vec![shown.into()] }
}

pub(crate) fn every_page(name: &str) -> Vec<(&'static str, String)> {
    let sign_in = SignInPage { problem: Some(name.to_owned()), next: name.to_owned(), email: name.to_owned() };
    let scopes = vec![(format!("Read cards {name}"), name.to_owned()), (String::new(), "op:cards.clear".to_owned())];
    let stopped = Revocation { grant: GrantId::new(), revoked_at: at(), claims_fenced: 1, tokens_ended: 2 };
    let grant_page = |revoked| GrantPage {
        frame: frame(Here::Grants, name),
        line: GrantLine::from(grant(name, revoked)),
        scopes: scopes.clone(),
        stopped: revoked.then(|| stopped.clone()),
    };
    let grants = GrantsPage {
        frame: frame(Here::Grants, name),
        live: vec![grant(name, false).into()],
        revoked: vec![grant(name, true).into()],
    };
    let verify = |ok| VerifyPage {
        frame: frame(Here::Register, name),
        verification: verification(name, ok),
        signed: Some(Stamp(at())),
    };
    let mut removed = consent(name, "none", GrantRequestStatus::Pending, false);
    removed.state = State::NoApp;
    vec![
        ("sign-in", sign_in.render().unwrap()),
        ("continue", ContinuePage { to: format!("/open/{name}") }.render().unwrap()),
        ("home", home(name).render().unwrap()),
        ("consent", consent(name, "none", GrantRequestStatus::Pending, false).render().unwrap()),
        ("consent-users", consent(name, "multi-user", GrantRequestStatus::Pending, true).render().unwrap()),
        ("consent-approved", consent(name, "none", GrantRequestStatus::Approved, false).render().unwrap()),
        ("consent-refused", consent(name, "none", GrantRequestStatus::Refused, false).render().unwrap()),
        ("consent-expired", consent(name, "none", GrantRequestStatus::Expired, false).render().unwrap()),
        ("consent-removed", removed.render().unwrap()),
        ("grants", grants.render().unwrap()),
        ("grant", grant_page(false).render().unwrap()),
        ("grant-revoked", grant_page(true).render().unwrap()),
        ("audit", audit(name).render().unwrap()),
        ("verify", verify(true).render().unwrap()),
        ("verify-broken", verify(false).render().unwrap()),
        ("mail", mail(name).render().unwrap()),
        ("error", error_page(name).render().unwrap()),
    ]
}

/// Writes the pages where `INN_CONSOLE_PAGES` says, with the style sheet inlined by address, to be looked at.
pub(crate) fn write_to(folder: &Path, pages: &[(&str, String)]) {
    for (name, page) in pages {
        let page = page.replace("/console/style.css", "style.css").replace("/console/icon.svg", "icon.svg");
        std::fs::write(folder.join(format!("{name}.html")), page).unwrap();
    }
    std::fs::write(folder.join("style.css"), include_str!("../assets/style.css")).unwrap();
    std::fs::write(folder.join("icon.svg"), include_str!("../assets/icon.svg")).unwrap();
}

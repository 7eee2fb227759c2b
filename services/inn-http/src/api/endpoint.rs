//! Every endpoint of `/v1`, once.

use actix_web::{Route, web};

use super::{
    agents, apps, audit, explain, grant_requests, grants, jobs, limits, members, openapi, platform, queue, receipts,
    requests, session, tenants, token,
};

/// Who may knock at all. What they may do is the one decision's business.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    Anyone,
    /// A session.
    Person,
    /// An agent's signature without token.
    Key,
    /// A session or an agent's signature.
    PersonOrKey,
    /// A session or a signed token.
    PersonOrAgent,
}

pub struct Endpoint {
    pub method: &'static str,
    pub path: &'static str,
    pub who: Who,
    /// The register's `action`, empty for what is no call (health, keys, help).
    pub action: &'static str,
    pub summary: &'static str,
    /// Members of the JSON body: name, JSON type, required.
    pub body: &'static [(&'static str, &'static str, bool)],
    /// Query parameters.
    pub query: &'static [&'static str],
    /// Largest body in bytes, when it is not the usual one.
    pub body_limit: Option<usize>,
    pub route: fn() -> Route,
}

/// Largest bundle taken over HTTP.
pub const MAX_BUNDLE: usize = 64 * 1024 * 1024;

macro_rules! endpoints {
    ($($method:ident $path:literal $who:ident $action:literal $summary:literal
       { $($member:literal: $kind:literal $($required:literal)?),* } [$($query:literal),*] $($limit:literal)? => $handler:path;)*) => {
        &[$(Endpoint {
            method: stringify!($method),
            path: $path,
            who: Who::$who,
            action: $action,
            summary: $summary,
            body: &[$(($member, $kind, endpoints!(@required $($required)?))),*],
            query: &[$($query),*],
            body_limit: endpoints!(@limit $($limit)?),
            route: || endpoints!(@route $method).to($handler),
        }),*]
    };
    (@required) => { false };
    (@required $required:literal) => { true };
    (@limit) => { None };
    (@limit $limit:literal) => { Some(MAX_BUNDLE) };
    (@route GET) => { web::get() };
    (@route POST) => { web::post() };
    (@route PUT) => { web::put() };
    (@route PATCH) => { web::patch() };
    (@route DELETE) => { web::delete() };
}

#[rustfmt::skip]
pub static ENDPOINTS: &[Endpoint] = endpoints![
    // Sessions
    POST "/v1/session" Anyone "sessions.sign-in" "Sign in with email and password" {"email": "string" "!", "password": "string" "!", "tenant": "string"} [] => session::sign_in;
    GET "/v1/session" Person "sessions.view" "The session, its tenant and the person's other tenants" {} [] => session::view;
    PATCH "/v1/session" Person "sessions.switch" "Work in another tenant" {"tenant": "string" "!"} [] => session::switch;
    DELETE "/v1/session" Person "sessions.sign-out" "Sign out, everywhere with all=true" {} ["all"] => session::sign_out;
    POST "/v1/session/confirm" Person "sessions.confirm" "Give the password again, to consent within five minutes" {"password": "string" "!"} [] => session::confirm;
    PUT "/v1/session/password" Person "sessions.password" "Change the password; other sessions end" {"old": "string" "!", "new": "string" "!"} [] => session::password;
    POST "/v1/session/handoff" Person "sessions.handoff" "A one-time link that opens an app signed in" {"app": "string" "!"} [] => session::handoff;
    // Tenants and members
    GET "/v1/tenants" Person "sessions.tenants" "Tenants of the person" {} [] => tenants::list;
    POST "/v1/tenants" Person "tenants.create" "Create a tenant and own it" {"slug": "string" "!", "name": "string" "!"} [] => tenants::create;
    GET "/v1/members" Person "members.list" "Members of the tenant" {} [] => members::list;
    POST "/v1/members" Person "members.set" "Add a member or change a role" {"email": "string" "!", "role": "string" "!", "password": "string"} [] => members::set;
    DELETE "/v1/members/{user}" Person "members.remove" "Take a membership away, and every grant with it" {} [] => members::remove;
    // Apps
    GET "/v1/apps" Person "apps.list" "Installed apps" {} [] => apps::list;
    POST "/v1/apps" Person "apps.deploy" "Deploy a bundle" {} ["slug", "dryRun", "allowDestructive", "capabilities"] "!" => apps::deploy;
    GET "/v1/apps/{slug}" Person "apps.list" "One app with its scopes and capabilities in sentences" {} [] => apps::view;
    DELETE "/v1/apps/{slug}" Person "apps.remove" "Take an app out of service" {} [] => apps::remove;
    GET "/v1/apps/{slug}/releases" Person "apps.list" "Releases, failed ones with their reason" {} [] => apps::releases;
    POST "/v1/apps/{slug}/releases/rollback" Person "apps.rollback" "Back to an earlier release" {"release": "string" "!"} [] => apps::rollback;
    // Agents and grants
    GET "/v1/agents" Person "grants.list" "Agents with grants here" {} [] => agents::list;
    POST "/v1/agents" Key "agents.register" "Register a self-made key" {"publicKey": "string" "!", "name": "string" "!"} [] => agents::register;
    GET "/v1/grant-requests" Person "grants.list" "Grant requests that wait for a decision" {} [] => grant_requests::list;
    POST "/v1/grant-requests" Key "grants.request" "Ask for a grant" {"app": "string" "!", "scopes": "array" "!", "reason": "string"} [] => grant_requests::create;
    GET "/v1/grant-requests/{id}" PersonOrKey "grants.view-request" "A grant request and what became of it" {} [] => grant_requests::view;
    POST "/v1/grant-requests/{id}/approve" Person "grants.approve" "Consent to all or part of it" {"code": "string", "scopes": "array", "othersRequests": "boolean", "plainToken": "boolean", "appRecord": "string", "password": "string"} [] => grant_requests::approve;
    POST "/v1/grant-requests/{id}/refuse" Person "grants.refuse" "Say no" {} [] => grant_requests::refuse;
    GET "/v1/grants" Person "grants.list" "Grants: one's own, an owner sees all" {} ["agent"] => grants::list;
    GET "/v1/grants/{id}" Person "grants.list" "One grant with its scopes in sentences" {} [] => grants::view;
    DELETE "/v1/grants/{id}" Person "grants.revoke" "Revoke; answers what it stopped" {} [] => grants::revoke;
    POST "/v1/token" Key "tokens.take" "A short-lived token for a grant" {"grant": "string" "!", "scopes": "array"} [] => token::take;
    POST "/v1/explain" PersonOrAgent "explain" "Why a call is or is not allowed, leg by leg" {"app": "string" "!", "action": "string" "!", "entity": "string", "operation": "string", "capability": "string", "grant": "string"} [] => explain::explain;
    // The queue
    GET "/v1/requests" Person "requests.list" "Requests of an app" {} ["app", "state"] => queue::list;
    POST "/v1/requests/claim" Key "requests.claim" "Claim waiting requests, waiting up to 30 s for one" {"apps": "array", "capabilities": "array", "max": "integer", "waitSeconds": "integer"} [] => requests::claim;
    GET "/v1/requests/{id}" Person "requests.view" "One request" {} ["app"] => queue::view;
    POST "/v1/requests/{id}/heartbeat" Key "requests.heartbeat" "Keep the lease" {"epoch": "integer" "!"} [] => requests::heartbeat;
    POST "/v1/requests/{id}/progress" Key "requests.progress" "Say how far it is; keeps the lease" {"epoch": "integer" "!", "step": "string" "!", "percent": "integer" "!"} [] => requests::progress;
    POST "/v1/requests/{id}/ask" Key "requests.ask-back" "Ask the requester something and wait for the answer" {"epoch": "integer" "!", "question": "string" "!"} [] => requests::ask_back;
    POST "/v1/requests/{id}/complete" Key "requests.complete" "Give the result" {"epoch": "integer" "!", "result": "any" "!"} [] => requests::complete;
    POST "/v1/requests/complete" Key "requests.complete-many" "Give up to 100 results, each standing for itself" {"items": "array" "!"} [] => requests::complete_many;
    POST "/v1/requests/{id}/fail" Key "requests.fail" "Give up this attempt" {"epoch": "integer" "!", "reason": "string" "!"} [] => requests::fail;
    POST "/v1/requests/{id}/release" Key "requests.release" "Give it back without counting the attempt" {"epoch": "integer" "!", "reason": "string"} [] => requests::release;
    POST "/v1/requests/{id}/cancel" Person "requests.cancel" "Cancel" {"app": "string" "!", "reason": "string"} [] => queue::cancel;
    POST "/v1/requests/{id}/answer" Person "requests.answer" "Answer the agent's question" {"app": "string" "!", "answer": "any" "!"} [] => queue::answer;
    POST "/v1/requests/{id}/take-back" Person "requests.take-back" "Take it from its agent, back into the queue" {"app": "string" "!", "reason": "string"} [] => queue::take_back;
    POST "/v1/requests/{id}/end" Person "requests.end" "End it as failed" {"app": "string" "!", "reason": "string"} [] => queue::end;
    POST "/v1/requests/{id}/replay" Person "requests.replay" "Do a failed or canceled one again, as a new one" {"app": "string" "!"} [] => queue::replay;
    POST "/v1/requests/cancel" Person "requests.cancel-many" "Cancel up to 1,000 open requests of an app" {"app": "string" "!", "capability": "string", "state": "string", "olderThanSeconds": "integer", "reason": "string"} [] => queue::cancel_many;
    GET "/v1/requests/{id}/why" Person "requests.view" "What a request waits for" {} ["app"] => queue::why;
    GET "/v1/queue-limits" Person "queue.limits" "Weights and caps of the queue" {} [] => limits::list;
    POST "/v1/queue-limits" Person "queue.set-limit" "Set weight and cap of an app, a capability, a person, an agent or a tenant" {"kind": "string" "!", "app": "string", "subject": "string", "weight": "integer", "most": "integer"} [] => limits::set;
    // Jobs
    GET "/v1/jobs" Person "jobs.list" "Jobs of an app, newest first" {} ["app", "state"] => jobs::list;
    GET "/v1/jobs/{id}" Person "jobs.view" "One job, with its attempts" {} ["app"] => jobs::view;
    GET "/v1/jobs/{id}/logs" Person "jobs.logs" "Lines of its log after a number" {} ["app", "after", "limit"] => jobs::logs;
    POST "/v1/jobs/{id}/cancel" Person "jobs.cancel" "Cancel" {"app": "string" "!", "reason": "string"} [] => jobs::cancel;
    POST "/v1/jobs/{id}/retry" Person "jobs.retry" "Do a failed or canceled one again, as a new one" {"app": "string" "!"} [] => jobs::retry;
    // The register
    GET "/v1/audit" Person "audit.search" "Entries, newest first" {} ["app", "agent", "grant", "user", "action", "outcome", "since", "before", "limit"] => audit::search;
    GET "/v1/audit/verify" Person "audit.verify" "Recompute digests, chain and heads" {} ["seq", "head"] => audit::verify;
    GET "/v1/audit/head" Person "audit.head" "The newest signed head" {} [] => audit::head;
    GET "/v1/audit/export" Person "audit.export" "Entries as JSON lines, newest first" {} ["before", "limit"] => audit::export;
    GET "/v1/receipts/{call}" PersonOrAgent "receipts.view" "The receipt of a call" {} [] => receipts::view;
    // The platform
    GET "/v1/keys" Anyone "" "Public keys of tokens and register heads, old ones included" {} [] => platform::keys;
    GET "/v1/openapi.json" Anyone "" "This document" {} [] => openapi::serve;
    GET "/healthz" Anyone "" "The process answers" {} [] => platform::health;
    GET "/readyz" Anyone "" "The database answers and the node takes calls" {} [] => platform::ready;
    GET "/metrics" Anyone "" "Prometheus metrics" {} [] => platform::metrics;
    GET "/help/{code}" Anyone "" "What a code means and what to do" {} [] => platform::help;
];

//! `POST /v1/explain`: which leg of user ∩ grant ∩ app refuses, and who can change that. Nothing is done.

use std::sync::Arc;

use actix_web::HttpResponse;
use inn_protocol::call::Action;
use inn_protocol::caller::{Caller, Via};
use inn_protocol::people::Role;
use inn_protocol::{Code, GrantId, Refusal};
use inn_rules::access::{self, Explanation, Host};
use serde::Deserialize;

use super::session::person;
use crate::error::ApiError;
use crate::incoming::Incoming;
use crate::respond;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Explain {
    app: String,
    /// The register's word: `records.create`, `operations.run`, …
    action: String,
    entity: Option<String>,
    operation: Option<String>,
    capability: Option<String>,
    /// As the agent of this grant; without it, as oneself.
    grant: Option<GrantId>,
}

pub(super) async fn explain(incoming: Incoming) -> Result<HttpResponse, ApiError> {
    let body: Explain = incoming.document().await?;
    let asked = asked(&body).map_err(|refusal| incoming.fail(refusal))?;
    let (store, gateway, body, asked) = (&incoming.state.store, &incoming.state.gateway, &body, &asked);
    let explanation: Explanation = incoming
        .read(Action::Explain, |admitted| async move {
            if let Caller::Agent(agent) = &admitted.caller {
                // An agent explains itself to itself.
                let app = gateway.app(&body.app).await?.filter(|app| app.tenant == agent.tenant).ok_or_else(no_app)?;
                let host = Host { loopback: gateway.is_loopback() };
                return Ok(access::explain(&admitted.caller, asked, Some(&app), host, gateway.clock().now()));
            }
            let person = person(&admitted.caller)?;
            let app = gateway.app(&body.app).await?.filter(|app| app.tenant == person.tenant);
            let app = app.ok_or_else(no_app)?;
            let caller = match body.grant {
                None => admitted.caller.clone(),
                Some(id) => {
                    let grant = store.grant(id).await?.filter(|grant| {
                        grant.tenant == person.tenant && (person.role == Role::Owner || grant.user == person.user)
                    });
                    let grant = grant.ok_or_else(Refusal::not_found)?;
                    if grant.revoked {
                        return Ok(revoked());
                    }
                    let member = store.member(grant.tenant, grant.user).await?;
                    let Some(member) = member else { return Ok(left()) };
                    Caller::Agent(grant.agent(&member, Arc::clone(&grant.scopes), None, Via::Signed))
                }
            };
            let host = Host { loopback: gateway.is_loopback() };
            Ok(access::explain(&caller, asked, Some(&app), host, gateway.clock().now()))
        })
        .await?;
    Ok(respond::ok(incoming.id, &explanation))
}

fn asked(body: &Explain) -> Result<Action, Refusal> {
    let need = |value: &Option<String>, name: &str| {
        value
            .clone()
            .ok_or_else(|| Refusal::new(Code::InvalidParameter, format!("{} needs `{name}` in the body.", body.action)))
    };
    Ok(match body.action.as_str() {
        "app.describe" => Action::DescribeApp,
        "records.list" => Action::ListRecords { entity: need(&body.entity, "entity")? },
        "records.view" => Action::ViewRecord { entity: need(&body.entity, "entity")?, id: String::new() },
        "records.create" => Action::CreateRecord { entity: need(&body.entity, "entity")? },
        "records.update" => Action::UpdateRecord { entity: need(&body.entity, "entity")?, id: String::new() },
        "records.delete" => Action::DeleteRecord { entity: need(&body.entity, "entity")?, id: String::new() },
        "operations.run" => Action::RunOperation { operation: need(&body.operation, "operation")? },
        "requests.ask" => Action::Ask { capability: need(&body.capability, "capability")? },
        _ => {
            return Err(Refusal::new(
                Code::InvalidParameter,
                "action must be one of app.describe, records.list, records.view, records.create, records.update, \
                 records.delete, operations.run, requests.ask.",
            ));
        }
    })
}

fn revoked() -> Explanation {
    refused_by("grant", "The grant was revoked.", Code::TokenRevoked, "the person who granted it, by a new grant")
}

fn left() -> Explanation {
    refused_by(
        "user",
        "The person the agent acts for is no longer a member.",
        Code::TokenRevoked,
        "an owner of the tenant",
    )
}

fn refused_by(leg: &'static str, reason: &str, code: Code, who: &str) -> Explanation {
    let result = access::LegResult {
        leg,
        ok: false,
        reason: reason.to_owned(),
        code: Some(code),
        scope: None,
        who_can_fix: Some(who.to_owned()),
    };
    Explanation { allowed: false, legs: vec![result] }
}

fn no_app() -> Refusal {
    Refusal::new(Code::UnknownApp, "There is no app of that name here.")
}

//! `GET /v1/receipts/{call}`: the same bytes for ever.

use std::collections::BTreeSet;

use actix_web::HttpResponse;
use actix_web::web::Path;
use inn_protocol::call::Action;
use inn_protocol::caller::Caller;
use inn_protocol::people::Role;
use inn_protocol::receipt::Receipt;
use inn_protocol::scope::Scope;
use inn_protocol::{CallId, Refusal};
use serde_json::{Map, Value};

use crate::error::ApiError;
use crate::incoming::Incoming;
use crate::respond;

pub(super) async fn view(incoming: Incoming, path: Path<String>) -> Result<HttpResponse, ApiError> {
    let id: CallId = incoming.fit(path.parse().map_err(|_| Refusal::not_found())).await?;
    let store = &incoming.state.store;
    let receipt: Receipt = incoming
        .read(Action::ReadReceipt { call: id }, |admitted| async move {
            let tenant = match &admitted.caller {
                Caller::Person(person) => person.tenant,
                Caller::Agent(agent) => agent.tenant,
                _ => return Err(Refusal::not_found()),
            };
            // One's own calls; an owner sees all of the tenant's. The entry says whose call it was.
            let entry = store.entry(tenant, id).await?.ok_or_else(Refusal::not_found)?;
            let own = match &admitted.caller {
                Caller::Person(person) => person.role == Role::Owner || says(&entry.facts, "user", &person.user),
                Caller::Agent(agent) => says(&entry.facts, "grant", &agent.grant),
                _ => false,
            };
            if !own {
                return Err(Refusal::not_found());
            }
            let receipt = store.receipt(tenant, id).await?.ok_or_else(Refusal::not_found)?;
            Ok(match &admitted.caller {
                Caller::Agent(agent) => for_agent(receipt, &agent.scopes),
                _ => receipt,
            })
        })
        .await?;
    Ok(respond::ok(incoming.id, &receipt))
}

fn says(facts: &Value, name: &str, id: &impl ToString) -> bool {
    facts.get(name).and_then(Value::as_str) == Some(id.to_string().as_str())
}

/// An agent that may write an entity but not read it gets the proof and not the contents.
fn for_agent(mut receipt: Receipt, scopes: &BTreeSet<Scope>) -> Receipt {
    if let Some(entity) = &receipt.entity
        && !scopes.contains(&Scope::Read(entity.clone()))
    {
        receipt.sentence = format!("Wrote a record of {entity}");
        receipt.stored = Map::new();
    }
    receipt
}

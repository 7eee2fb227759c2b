//! Grants: see and revoke.

use actix_web::HttpResponse;
use actix_web::web::Path;
use inn_ports::Topic;
use inn_protocol::call::Action;
use inn_protocol::caller::Person;
use inn_protocol::grant::{Grant, Revocation};
use inn_protocol::people::Role;
use inn_protocol::{AgentId, Code, GrantId, Refusal};

use super::session::person;
use super::views;
use crate::error::ApiError;
use crate::incoming::Incoming;
use crate::respond;

pub(super) async fn list(incoming: Incoming) -> Result<HttpResponse, ApiError> {
    let agent = match incoming.param("agent") {
        Some(text) => Some(AgentId::parse(text).ok_or_else(|| {
            incoming.fail(Refusal::new(Code::InvalidParameter, "agent must be a key thumbprint of 43 characters."))
        })?),
        None => None,
    };
    let (store, agent) = (&incoming.state.store, agent.as_ref());
    let grants: Vec<Grant> = incoming
        .read(Action::ListGrants, |admitted| async move {
            let person = person(&admitted.caller)?;
            let only = (person.role < Role::Owner).then_some(person.user);
            Ok(store.grants(person.tenant, only, agent).await?)
        })
        .await?;
    Ok(respond::ok(incoming.id, &views::items(grants)))
}

pub(super) async fn view(incoming: Incoming, path: Path<String>) -> Result<HttpResponse, ApiError> {
    let id: GrantId = incoming.fit(path.parse().map_err(|_| Refusal::not_found())).await?;
    let (store, gateway) = (&incoming.state.store, &incoming.state.gateway);
    let body = incoming
        .read(Action::ListGrants, |admitted| async move {
            let person = person(&admitted.caller)?;
            let grant =
                store.grant_view(id).await?.filter(|grant| may_touch(person, grant)).ok_or_else(Refusal::not_found)?;
            let app = gateway.app(&grant.app_slug).await?;
            Ok(views::grant(&grant, app.as_ref().map(|app| &*app.definition)))
        })
        .await?;
    Ok(respond::ok(incoming.id, &body))
}

/// One's own grants; an owner, all of the tenant's.
pub fn may_touch(person: &Person, grant: &Grant) -> bool {
    grant.tenant == person.tenant && (person.role == Role::Owner || grant.user == person.user)
}

pub(super) async fn revoke(incoming: Incoming, path: Path<String>) -> Result<HttpResponse, ApiError> {
    let id: GrantId = incoming.fit(path.parse().map_err(|_| Refusal::not_found())).await?;
    let revocation = revoke_grant(&incoming, id).await?;
    let receipt = incoming.state.config.platform(&format!("/v1/receipts/{}", incoming.id)).into();
    let body = respond::with(&revocation, [("receipt", receipt)]);
    Ok(respond::ok(incoming.id, &body))
}

/// Revocation, for the API and the console alike.
pub async fn revoke_grant(incoming: &Incoming, id: GrantId) -> Result<Revocation, ApiError> {
    let bus = incoming.state.bus.clone();
    let revocation = incoming
        .perform(Action::RevokeGrant { grant: id }, id, move |store, admitted, id| {
            let bus = bus.clone();
            async move {
                let person = person(&admitted.caller)?;
                let grant = store.grant_view(*id).await?.filter(|grant| may_touch(person, grant));
                let grant = grant.ok_or_else(Refusal::not_found)?;
                let revocation = store.revoke(&admitted.record, grant.tenant, *id).await?;
                bus.publish(Topic::Policy(grant.tenant)).await;
                bus.publish(Topic::Requests(grant.app)).await;
                Ok(revocation)
            }
        })
        .await?;
    incoming.state.gateway.forget_all();
    Ok(revocation)
}

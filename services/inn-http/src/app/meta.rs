//! What an app says about itself: identity, describe, operations, health.

use actix_web::HttpResponse;
use inn_protocol::call::Action;
use inn_protocol::caller::Caller;
use inn_rules::describe;
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::incoming::Incoming;
use crate::respond;

pub(super) async fn identity(incoming: Incoming) -> Result<HttpResponse, ApiError> {
    tell(&incoming, describe::identity).await
}

pub(super) async fn describe(incoming: Incoming) -> Result<HttpResponse, ApiError> {
    tell(&incoming, describe::describe).await
}

pub(super) async fn operations(incoming: Incoming) -> Result<HttpResponse, ApiError> {
    tell(&incoming, |app, _| describe::operations(&app.definition)).await
}

/// PocketBase's health answer: what its SDK and the apps' pipelines ask for.
pub(super) async fn health(incoming: Incoming) -> Result<HttpResponse, ApiError> {
    tell(&incoming, |_, _| json!({"message": "API is healthy.", "code": 200, "data": {}})).await
}

/// Who the app takes the caller for.
pub(super) async fn whoami(incoming: Incoming) -> Result<HttpResponse, ApiError> {
    let call = incoming.call(Action::DescribeApp, Value::Null);
    let read = incoming.state.gateway.read(call, |admitted| async move {
        Ok(match &admitted.caller {
            Caller::Agent(agent) => json!({
                "credentialId": agent.grant,
                "agentName": agent.agent,
                "principal": agent.user,
                "scopes": &*agent.scopes,
            }),
            Caller::Person(person) => json!({
                "credentialId": person.session, "agentName": null, "principal": person.user, "role": person.role,
            }),
            Caller::AppUser(user) => json!({"credentialId": null, "agentName": null, "principal": user.name()}),
            other => json!({"credentialId": null, "agentName": null, "principal": null, "caller": other.kind()}),
        })
    });
    let body: Value = read.await.map_err(|refusal| incoming.fail(refusal))?;
    Ok(respond::ok(incoming.id, &body))
}

async fn tell(
    incoming: &Incoming,
    view: impl Fn(&inn_protocol::app::AppSnapshot, chrono::DateTime<chrono::Utc>) -> Value,
) -> Result<HttpResponse, ApiError> {
    let now = incoming.state.gateway.clock().now();
    let view = &view;
    let call = incoming.call(Action::DescribeApp, Value::Null);
    let read = incoming.state.gateway.read(call, |admitted| async move { Ok(view(&**admitted.app()?, now)) });
    let body: Value = read.await.map_err(|refusal| incoming.fail(refusal))?;
    Ok(respond::ok(incoming.id, &body))
}

//! Members of a tenant and their roles.

use actix_web::HttpResponse;
use actix_web::web::Path;
use inn_ports::Topic;
use inn_protocol::call::Action;
use inn_protocol::people::{Member, Role};
use inn_protocol::{Code, Refusal, UserId};
use serde::Deserialize;

use super::session::{hash, person};
use super::views;
use crate::error::ApiError;
use crate::incoming::Incoming;
use crate::respond;

pub(super) async fn list(incoming: Incoming) -> Result<HttpResponse, ApiError> {
    let store = &incoming.state.store;
    let members: Vec<Member> = incoming
        .read(Action::ListMembers, |admitted| async move { Ok(store.members(person(&admitted.caller)?.tenant).await?) })
        .await?;
    Ok(respond::ok(incoming.id, &views::items(members)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Set {
    email: String,
    role: Role,
    password: Option<String>,
}

pub(super) async fn set(incoming: Incoming) -> Result<HttpResponse, ApiError> {
    let body: Set = incoming.document().await?;
    let fail = |refusal| incoming.fail(refusal);
    if !(3..=254).contains(&body.email.len())
        || !body.email.contains('@')
        || body.email.chars().any(char::is_whitespace)
    {
        let refusal = Refusal::new(Code::InvalidParameter, "email does not look like an address.");
        return Err(incoming.unreadable(refusal).await);
    }
    let hash = match &body.password {
        Some(password) => Some(hash(&incoming.state, password).await.map_err(fail)?),
        None => None,
    };
    let bus = incoming.state.bus.clone();
    let receipt = incoming
        .perform(
            Action::ManageMembers { member: body.email.clone(), verb: "set" },
            (body, hash),
            move |store, admitted, input| {
                let bus = bus.clone();
                async move {
                    let (body, hash) = &*input;
                    let tenant = person(&admitted.caller)?.tenant;
                    let receipt =
                        store.set_member(&admitted.record, tenant, &body.email, hash.as_deref(), body.role).await?;
                    bus.publish(Topic::Policy(tenant)).await;
                    Ok(receipt)
                }
            },
        )
        .await?;
    incoming.state.gateway.forget_all();
    Ok(respond::ok(incoming.id, &receipt))
}

pub(super) async fn remove(incoming: Incoming, path: Path<String>) -> Result<HttpResponse, ApiError> {
    let user: UserId = incoming.fit(path.parse().map_err(|_| Refusal::not_found())).await?;
    let bus = incoming.state.bus.clone();
    let receipt = incoming
        .perform(
            Action::ManageMembers { member: user.to_string(), verb: "remove" },
            user,
            move |store, admitted, user| {
                let bus = bus.clone();
                async move {
                    let tenant = person(&admitted.caller)?.tenant;
                    let receipt = store.remove_member(&admitted.record, tenant, *user).await?;
                    bus.publish(Topic::Policy(tenant)).await;
                    Ok(receipt)
                }
            },
        )
        .await?;
    incoming.state.gateway.forget_all();
    Ok(respond::ok(incoming.id, &receipt))
}

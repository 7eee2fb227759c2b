//! Tenants of a person.

use actix_web::HttpResponse;
use inn_protocol::call::Action;
use inn_protocol::people::Tenant;
use inn_protocol::{Code, Refusal, TenantId};
use serde::Deserialize;
use serde_json::{Value, json};

use super::session::person;
use super::views;
use crate::error::ApiError;
use crate::host::is_slug;
use crate::incoming::Incoming;
use crate::respond;

pub(super) async fn list(incoming: Incoming) -> Result<HttpResponse, ApiError> {
    let store = &incoming.state.store;
    let tenants: Vec<Value> = incoming
        .read(Action::OwnSession { verb: "tenants" }, |admitted| async move {
            let tenants = store.tenants_of(person(&admitted.caller)?.user).await?;
            let shape = |(tenant, role): &(Tenant, _)| json!({"id": tenant.id, "slug": tenant.slug, "name": tenant.name, "role": role});
            Ok(tenants.iter().map(shape).collect())
        })
        .await?;
    Ok(respond::ok(incoming.id, &views::items(tenants)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Create {
    slug: String,
    name: String,
}

pub(super) async fn create(incoming: Incoming) -> Result<HttpResponse, ApiError> {
    let body: Create = incoming.document().await?;
    if !is_slug(&body.slug) {
        return Err(incoming
            .unreadable(Refusal::new(
                Code::InvalidParameter,
                "slug must be 1 to 40 lower-case letters, digits and inner hyphens.",
            ))
            .await);
    }
    let name = incoming.fit(views::name(&body.name, "name")).await?;
    let tenant = Tenant { id: TenantId::new(), slug: body.slug, name };
    let answer = json!(tenant);
    incoming
        .perform(Action::CreateTenant { slug: tenant.slug.clone() }, tenant, |store, admitted, tenant| async move {
            let owner = person(&admitted.caller)?.user;
            store.create_tenant(&admitted.record, &tenant, owner).await
        })
        .await?;
    Ok(respond::created(incoming.id, &answer))
}

//! Installed apps: deploy, look, roll back, remove.

use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::web::Path;
use inn_actors::Admitted;
use inn_ports::{Deployed, InstalledApp, ReleaseInfo, Store, StoreResult, Topic};
use inn_protocol::app::AppSnapshot;
use inn_protocol::call::Action;
use inn_protocol::caller::Caller;
use inn_protocol::receipt::Receipt;
use inn_protocol::{AppId, Code, Digest, Refusal};
use serde::Deserialize;
use serde_json::{Value, json};

use super::session::person;
use super::views;
use crate::deploy::{self, CapabilityConsent, InstallOptions};
use crate::error::ApiError;
use crate::host::is_slug;
use crate::incoming::Incoming;
use crate::respond;

pub(super) async fn list(incoming: Incoming) -> Result<HttpResponse, ApiError> {
    let store = &incoming.state.store;
    let apps: Vec<InstalledApp> = incoming
        .read(Action::ListApps, |admitted| async move { Ok(store.apps(person(&admitted.caller)?.tenant).await?) })
        .await?;
    let config = &incoming.state.config;
    let apps: Vec<Value> = apps
        .iter()
        .map(|app| {
            respond::with(
                app,
                [
                    ("origin", config.app_origin(&app.slug).into()),
                    ("face", config.platform(&format!("/apps/{}", app.slug)).into()),
                ],
            )
        })
        .collect();
    Ok(respond::ok(incoming.id, &views::items(apps)))
}

pub(super) async fn view(incoming: Incoming, path: Path<String>) -> Result<HttpResponse, ApiError> {
    let app = own_app(&incoming, &path, Action::ListApps).await?;
    let definition = &app.definition;
    let config = &incoming.state.config;
    let capabilities: Vec<Value> = definition
        .capabilities
        .iter()
        .map(|capability| {
            json!({
                "name": capability.name,
                "sentence": capability.sentence,
                "consented": app.consented.contains(&capability.name),
                "leaseSeconds": capability.lease_seconds,
                "attempts": capability.attempts,
            })
        })
        .collect();
    let body = json!({
        "id": app.id,
        "slug": app.slug,
        "name": definition.name,
        "description": definition.description,
        "version": definition.version,
        "release": app.release,
        "dialect": definition.dialect,
        "authMode": definition.auth_mode,
        "origin": config.app_origin(&app.slug),
        "face": config.platform(&format!("/apps/{}", app.slug)),
        "scopes": views::scopes(&definition.scopes(), definition),
        "capabilities": capabilities,
        "operations": definition.operations,
        "entities": definition.model.collections.iter().map(|collection| &collection.name).collect::<Vec<_>>(),
    });
    Ok(respond::ok(incoming.id, &body))
}

/// The app of that slug, if it is the person's tenant's; others' apps do not exist.
async fn own_app(incoming: &Incoming, slug: &str, action: Action) -> Result<Arc<AppSnapshot>, ApiError> {
    let gateway = &incoming.state.gateway;
    incoming
        .read(action, |admitted| async move {
            let tenant = person(&admitted.caller)?.tenant;
            gateway.app(slug).await?.filter(|app| app.tenant == tenant).ok_or_else(no_app)
        })
        .await
}

fn no_app() -> Refusal {
    Refusal::new(Code::UnknownApp, "There is no app of that name here. `GET /v1/apps` lists the apps you can see.")
}

pub(super) async fn deploy(incoming: Incoming) -> Result<HttpResponse, ApiError> {
    let slug = incoming.param("slug").unwrap_or_default().to_owned();
    if !is_slug(&slug) {
        return Err(incoming.unreadable(Refusal::new(
            Code::InvalidParameter,
            "slug (in the query) must be 1 to 40 lower-case letters, digits and inner hyphens: it becomes the app's host name.",
        )).await);
    }
    let flag = |name| matches!(incoming.param(name), Some("true" | "1" | ""));
    let options = InstallOptions {
        allow_destructive: flag("allowDestructive"),
        dry_run: flag("dryRun"),
        consent: match incoming.param("capabilities") {
            None => CapabilityConsent::AsBefore,
            Some("*") => CapabilityConsent::All,
            Some(list) => CapabilityConsent::Named(
                list.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect(),
            ),
        },
        max_bundle: Some(incoming.state.config.max_bundle),
    };
    let dry_run = options.dry_run;
    let (blobs, bus) = (incoming.state.blobs.clone(), incoming.state.bus.clone());
    let input = (slug.clone(), incoming.body.clone(), options);
    let deployed = incoming
        .perform(Action::Deploy { slug }, input, move |store, admitted, input| {
            let (blobs, bus) = (blobs.clone(), bus.clone());
            async move {
                let (slug, bytes, options) = &*input;
                let tenant = match &admitted.caller {
                    Caller::Person(person) => person.tenant,
                    _ => return Err(Refusal::internal().into()),
                };
                let deployed =
                    deploy::install(&*store, &*blobs, &admitted.record, tenant, slug, bytes.clone(), options).await?;
                bus.publish(Topic::Policy(tenant)).await;
                Ok(deployed)
            }
        })
        .await?;
    incoming.state.gateway.forget_app(deployed.app);
    let body = respond::with(&deployed, [("origin", incoming.state.config.app_origin(&deployed.slug).into())]);
    Ok(if dry_run || deployed.unchanged {
        respond::ok(incoming.id, &body)
    } else {
        respond::created(incoming.id, &body)
    })
}

pub(super) async fn releases(incoming: Incoming, path: Path<String>) -> Result<HttpResponse, ApiError> {
    let (gateway, store, slug) = (&incoming.state.gateway, &incoming.state.store, path.as_str());
    let releases: Vec<ReleaseInfo> = incoming
        .read(Action::ListApps, |admitted| async move {
            let tenant = person(&admitted.caller)?.tenant;
            let app = gateway.app(slug).await?.filter(|app| app.tenant == tenant).ok_or_else(no_app)?;
            Ok(store.releases(tenant, app.id).await?)
        })
        .await?;
    Ok(respond::ok(incoming.id, &views::items(releases)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rollback {
    release: Digest,
}

pub(super) async fn rollback(incoming: Incoming, path: Path<String>) -> Result<HttpResponse, ApiError> {
    let body: Rollback = incoming.document().await?;
    let deployed = manage(&incoming, &path, "rollback", body.release, |store, admitted, app, release| async move {
        store.rollback(&admitted.record, app, release).await
    });
    let deployed: Deployed = deployed.await?;
    incoming.state.gateway.forget_app(deployed.app);
    Ok(respond::ok(incoming.id, &deployed))
}

pub(super) async fn remove(incoming: Incoming, path: Path<String>) -> Result<HttpResponse, ApiError> {
    let receipt = manage(&incoming, &path, "remove", (), |store, admitted, app, ()| async move {
        store.remove(&admitted.record, app).await
    });
    let receipt: Receipt = receipt.await?;
    if let Some(app) = receipt.app {
        incoming.state.gateway.forget_app(app);
    }
    Ok(respond::ok(incoming.id, &receipt))
}

/// One call on an app of the person's own tenant: one decision, one entry, whatever comes of it.
async fn manage<T, I, F>(
    incoming: &Incoming,
    slug: &str,
    verb: &'static str,
    input: I,
    effect: impl Fn(Arc<dyn Store>, Arc<Admitted>, AppId, I) -> F + Clone + Send + Sync + 'static,
) -> Result<T, ApiError>
where
    T: Send + 'static,
    I: Copy + Send + Sync + 'static,
    F: Future<Output = StoreResult<T>> + Send + 'static,
{
    let fail = |refusal| incoming.fail(refusal);
    let app = if is_slug(slug) { incoming.state.gateway.app(slug).await.map_err(fail)? } else { None };
    let target = if is_slug(slug) { slug.to_owned() } else { String::new() };
    let bus = incoming.state.bus.clone();
    incoming
        .perform(Action::ManageApp { slug: target, verb }, app, move |store, admitted, app| {
            let (bus, effect) = (bus.clone(), effect.clone());
            async move {
                let tenant = person(&admitted.caller)?.tenant;
                let app = app.as_ref().as_ref().filter(|app| app.tenant == tenant).ok_or_else(no_app)?;
                let done = effect(store, Arc::clone(&admitted), app.id, input).await?;
                bus.publish(Topic::Policy(tenant)).await;
                Ok(done)
            }
        })
        .await
}

//! Grants: which agent may act for whom, and the button that ends it.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::Path;
use askama::Template;
use inn_http::api::{may_touch_grant, person, revoke_grant};
use inn_http::error::ApiError;
use inn_protocol::call::Action;
use inn_protocol::grant::{Grant, Revocation};
use inn_protocol::people::Role;
use inn_protocol::{Code, GrantId, Refusal};
use inn_rules::access::scope_sentence;

use crate::frame::{Frame, Here};
use crate::page;
use crate::stamp::Stamp;
use crate::visit::{Answer, Visit};

/// One line of a list of grants.
pub(crate) struct GrantLine {
    pub(crate) grant: Grant,
    pub(crate) since: Stamp,
    pub(crate) revoked: Option<Stamp>,
}

impl From<Grant> for GrantLine {
    fn from(grant: Grant) -> Self {
        Self { since: Stamp(grant.created_at), revoked: grant.revoked_at.map(Stamp), grant }
    }
}

#[derive(Template)]
#[template(path = "grants.html")]
pub(crate) struct GrantsPage {
    pub(crate) frame: Frame,
    pub(crate) live: Vec<GrantLine>,
    pub(crate) revoked: Vec<GrantLine>,
}

#[derive(Template)]
#[template(path = "grant.html")]
pub(crate) struct GrantPage {
    pub(crate) frame: Frame,
    pub(crate) line: GrantLine,
    /// Each scope in words, and as it is written.
    pub(crate) scopes: Vec<(String, String)>,
    /// What revoking just stopped.
    pub(crate) stopped: Option<Revocation>,
}

pub(crate) async fn list(visit: Visit) -> HttpResponse {
    let answer = try_list(&visit).await;
    visit.answer(answer)
}

async fn try_list(visit: &Visit) -> Answer {
    let incoming = &visit.incoming;
    let store = &incoming.state.store;
    let (frame, grants) = incoming
        .read(Action::ListGrants, |admitted| async move {
            let person = person(&admitted.caller)?;
            let only = (person.role < Role::Owner).then_some(person.user);
            let grants = store.grants(person.tenant, only, None).await?;
            Ok((Frame::of(&**store, person, Here::Grants).await?, grants))
        })
        .await?;
    let (revoked, live) = grants.into_iter().map(GrantLine::from).partition(|line| line.revoked.is_some());
    Ok(page::html(incoming.id, StatusCode::OK, &GrantsPage { frame, live, revoked }))
}

pub(crate) async fn show(visit: Visit, id: Path<String>) -> HttpResponse {
    let answer = try_show(&visit, &id, None).await;
    visit.answer(answer)
}

async fn try_show(visit: &Visit, id: &str, stopped: Option<Revocation>) -> Answer {
    let incoming = &visit.incoming;
    let id = parse(visit, id)?;
    let (store, gateway) = (&incoming.state.store, &incoming.state.gateway);
    let (frame, grant, scopes) = incoming
        .read(Action::ListGrants, |admitted| async move {
            let person = person(&admitted.caller)?;
            let grant =
                store.grant_view(id).await?.filter(|grant| may_touch_grant(person, grant)).ok_or_else(no_grant)?;
            let app = gateway.app(&grant.app_slug).await?.filter(|app| app.id == grant.app);
            let words = |scope| app.as_ref().map_or_else(String::new, |app| scope_sentence(scope, &app.definition));
            let scopes: Vec<_> = grant.scopes.iter().map(|scope| (words(scope), scope.to_string())).collect();
            Ok((Frame::of(&**store, person, Here::Grants).await?, grant, scopes))
        })
        .await?;
    let page = GrantPage { frame, line: grant.into(), scopes, stopped };
    Ok(page::html(incoming.id, StatusCode::OK, &page))
}

fn parse(visit: &Visit, id: &str) -> Result<GrantId, ApiError> {
    id.parse().map_err(|_| visit.incoming.fail(no_grant()))
}

fn no_grant() -> Refusal {
    Refusal::new(Code::NotFound, "There is no grant of that id in this tenant.")
}

/// The page with the button.
pub(crate) async fn revoke_page(visit: Visit, id: Path<String>) -> HttpResponse {
    let answer = parse(&visit, &id).map(|id| page::see_other(visit.incoming.id, &format!("/grants/{id}")));
    visit.answer(answer)
}

pub(crate) async fn revoke(mut visit: Visit, id: Path<String>) -> HttpResponse {
    let answer = try_revoke(&mut visit, &id).await;
    visit.answer(answer)
}

async fn try_revoke(visit: &mut Visit, id: &str) -> Answer {
    let grant = parse(visit, id)?;
    visit.form()?.only(&[]).map_err(|refusal| visit.incoming.fail(refusal))?;
    let stopped = revoke_grant(&visit.incoming, grant).await?;
    visit.next_call();
    try_show(visit, id, Some(stopped)).await
}

//! The front page: what is installed, who waits for an answer, what happened last.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template;
use inn_http::api::person;
use inn_http::error::ApiError;
use inn_ports::InstalledApp;
use inn_protocol::call::Action;
use inn_protocol::grant::{GrantRequest, GrantRequestStatus};
use inn_protocol::people::Role;
use inn_protocol::register::EntrySearch;

use crate::entry::{EntryLine, Names};
use crate::frame::{Frame, Here};
use crate::grants::GrantLine;
use crate::page;
use crate::stamp::Stamp;
use crate::visit::{Answer, Visit};

/// Register entries shown, out of so many looked at.
const NEWS: usize = 10;
const LOOKED_AT: u32 = 100;

#[derive(Template)]
#[template(path = "home.html")]
pub(crate) struct HomePage {
    pub(crate) frame: Frame,
    pub(crate) apps: Vec<AppLine>,
    pub(crate) requests: Vec<RequestLine>,
    pub(crate) grants: Vec<GrantLine>,
    /// The register is for owners.
    pub(crate) news: Option<Vec<EntryLine>>,
}

pub(crate) struct AppLine {
    pub(crate) app: InstalledApp,
    pub(crate) description: String,
    pub(crate) deployed: Stamp,
    pub(crate) has_ui: bool,
    pub(crate) face: String,
}

pub(crate) struct RequestLine {
    pub(crate) request: GrantRequest,
    pub(crate) until: Stamp,
}

pub(crate) async fn show(mut visit: Visit) -> HttpResponse {
    let answer = try_show(&mut visit).await;
    visit.answer(answer)
}

async fn try_show(visit: &mut Visit) -> Answer {
    let (frame, apps) = apps(visit).await?;
    visit.next_call();
    let (requests, grants) = grants(visit).await?;
    // Whoever may not read the register is not asked about it: that would be a refused call on every visit.
    let news = if frame.is_owner() {
        visit.next_call();
        Some(news(visit).await?)
    } else {
        None
    };
    Ok(page::html(visit.incoming.id, StatusCode::OK, &HomePage { frame, apps, requests, grants, news }))
}

async fn apps(visit: &Visit) -> Result<(Frame, Vec<AppLine>), ApiError> {
    let incoming = &visit.incoming;
    let (store, gateway, config) = (&incoming.state.store, &incoming.state.gateway, &incoming.state.config);
    incoming
        .read(Action::ListApps, |admitted| async move {
            let person = person(&admitted.caller)?;
            let mut lines = Vec::new();
            for app in store.apps(person.tenant).await? {
                let snapshot = gateway.app(&app.slug).await?;
                lines.push(AppLine {
                    description: snapshot.as_ref().map_or_else(String::new, |app| app.definition.description.clone()),
                    has_ui: snapshot.is_some_and(|app| app.definition.ui_entry.is_some()),
                    deployed: Stamp(app.deployed_at),
                    face: config.platform(&format!("/apps/{}", app.slug)),
                    app,
                });
            }
            Ok((Frame::of(&**store, person, Here::Home).await?, lines))
        })
        .await
}

async fn grants(visit: &Visit) -> Result<(Vec<RequestLine>, Vec<GrantLine>), ApiError> {
    let incoming = &visit.incoming;
    let store = &incoming.state.store;
    incoming
        .read(Action::ListGrants, |admitted| async move {
            let person = person(&admitted.caller)?;
            // Decided ones come along in the list; here only what waits counts.
            let mut requests = store.grant_requests(person.tenant).await?;
            requests.retain(|request| request.status == GrantRequestStatus::Pending);
            let requests =
                requests.into_iter().map(|request| RequestLine { until: Stamp(request.expires_at), request });
            let only = (person.role < Role::Owner).then_some(person.user);
            let grants = store.grants(person.tenant, only, None).await?;
            let live = grants.into_iter().filter(|grant| grant.revoked_at.is_none()).map(GrantLine::from);
            Ok((requests.collect(), live.collect()))
        })
        .await
}

async fn news(visit: &Visit) -> Result<Vec<EntryLine>, ApiError> {
    let incoming = &visit.incoming;
    let store = &incoming.state.store;
    incoming
        .read(Action::ReadRegister { verb: "search" }, |admitted| async move {
            let person = person(&admitted.caller)?;
            let search = EntrySearch { limit: LOOKED_AT, ..EntrySearch::default() };
            let entries = store.entries(person.tenant, &search).await?;
            let names = Names::of(&**store, person.tenant).await?;
            let news = entries.iter().filter(|entry| !EntryLine::is_own_look(entry, person)).take(NEWS);
            Ok(news.map(|entry| EntryLine::of(entry, &names)).collect())
        })
        .await
}

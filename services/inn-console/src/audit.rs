//! The register: search it, page through it, check that nobody changed it.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template;
use inn_http::api::{entry_cursor, entry_search, person};
use inn_http::incoming::Incoming;
use inn_protocol::call::Action;
use inn_protocol::register::Verification;

use crate::entry::{EntryLine, Names};
use crate::frame::{Frame, Here};
use crate::page;
use crate::stamp::Stamp;
use crate::visit::{Answer, Visit};

/// What the filter form has; everything else in the query belongs to paging.
const FILTERS: [&str; 7] = ["app", "user", "agent", "grant", "action", "outcome", "since"];

#[derive(Template)]
#[template(path = "audit.html")]
pub(crate) struct AuditPage {
    pub(crate) frame: Frame,
    pub(crate) lines: Vec<EntryLine>,
    pub(crate) filter: Filter,
    pub(crate) apps: Vec<Pick>,
    pub(crate) users: Vec<Pick>,
    pub(crate) agents: Vec<Pick>,
    /// This is not the newest page.
    pub(crate) paged: bool,
    pub(crate) newest: String,
    pub(crate) older: Option<String>,
}

/// The form as it was sent.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    pub(crate) grant: String,
    pub(crate) action: String,
    pub(crate) outcome: String,
    pub(crate) since: String,
}

/// One choice of a list.
pub(crate) struct Pick {
    pub(crate) value: String,
    pub(crate) label: String,
    pub(crate) picked: bool,
}

pub(crate) async fn search(mut visit: Visit) -> HttpResponse {
    let answer = try_search(&mut visit.incoming).await;
    visit.answer(answer)
}

async fn try_search(incoming: &mut Incoming) -> Answer {
    let shown = |name: &str| incoming.param(name).unwrap_or_default().to_owned();
    let filter =
        Filter { grant: shown("grant"), action: shown("action"), outcome: shown("outcome"), since: shown("since") };
    let (app, user, agent) = (shown("app"), shown("user"), shown("agent"));
    let newest = address(&incoming.query, None);
    let paged = incoming.param("before").is_some();
    whole_days(&mut incoming.query);
    let search = entry_search(incoming).await?;
    let (store, wanted) = (&incoming.state.store, &search);
    let (frame, entries, names) = incoming
        .read(Action::ReadRegister { verb: "search" }, |admitted| async move {
            let person = person(&admitted.caller)?;
            let entries = store.entries(person.tenant, wanted).await?;
            let names = Names::of(&**store, person.tenant).await?;
            Ok((Frame::of(&**store, person, Here::Register).await?, entries, names))
        })
        .await?;
    // Fewer than asked for is the end of the register.
    let full = u32::try_from(entries.len()).is_ok_and(|got| got >= search.limit);
    let older = entries.last().filter(|_| full).map(|last| address(&incoming.query, Some(&entry_cursor(last))));
    let page = AuditPage {
        frame,
        lines: entries.iter().map(|entry| EntryLine::of(entry, &names)).collect(),
        filter,
        // Apps are searched by slug, people and agents by id.
        apps: picks(names.apps.values().map(|slug| (slug.clone(), slug.clone())), &app),
        users: picks(names.users.into_iter(), &user),
        agents: picks(names.agents.into_iter().map(|(id, name)| (id.clone(), labelled(&name, &id))), &agent),
        paged,
        newest,
        older,
    };
    Ok(page::html(incoming.id, StatusCode::OK, &page))
}

/// Agents name themselves, so two may have one name: the key tells them apart.
fn labelled(name: &str, id: &str) -> String {
    let short: String = id.chars().take(8).collect();
    format!("{name} ({short}…)")
}

/// What is searched for stays in the list even when it has gone since.
fn picks(known: impl Iterator<Item = (String, String)>, picked: &str) -> Vec<Pick> {
    let mut picks: Vec<_> = known.map(|(value, label)| Pick { picked: value == picked, value, label }).collect();
    picks.sort_by(|a, b| (&a.label, &a.value).cmp(&(&b.label, &b.value)));
    if !picked.is_empty() && !picks.iter().any(|pick| pick.picked) {
        picks.push(Pick { value: picked.to_owned(), label: picked.to_owned(), picked: true });
    }
    picks
}

/// A date field sends a day; the search takes a moment.
fn whole_days(query: &mut [(String, String)]) {
    for (name, value) in query {
        if name == "since" && chrono::NaiveDate::parse_from_str(value, "%Y-%m-%d").is_ok() {
            value.push_str("T00:00:00Z");
        }
    }
}

/// The same search at another place.
fn address(query: &[(String, String)], before: Option<&str>) -> String {
    let mut pairs = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in query.iter().filter(|(name, value)| FILTERS.contains(&name.as_str()) && !value.is_empty()) {
        // Back to what the form had.
        let value = if name == "since" { value.strip_suffix("T00:00:00Z").unwrap_or(value) } else { value };
        pairs.append_pair(name, value);
    }
    if let Some(before) = before {
        pairs.append_pair("before", before);
    }
    let query = pairs.finish();
    if query.is_empty() { "/audit".to_owned() } else { format!("/audit?{query}") }
}

#[derive(Template)]
#[template(path = "verify.html")]
pub(crate) struct VerifyPage {
    pub(crate) frame: Frame,
    pub(crate) verification: Verification,
    pub(crate) signed: Option<Stamp>,
}

pub(crate) async fn verify(visit: Visit) -> HttpResponse {
    let answer = try_verify(&visit.incoming).await;
    visit.answer(answer)
}

async fn try_verify(incoming: &Incoming) -> Answer {
    let store = &incoming.state.store;
    let (frame, verification) = incoming
        .read(Action::ReadRegister { verb: "verify" }, |admitted| async move {
            let person = person(&admitted.caller)?;
            let verification = store.verify(person.tenant, None).await?;
            Ok((Frame::of(&**store, person, Here::Register).await?, verification))
        })
        .await?;
    let signed = verification.head.as_ref().map(|head| Stamp(head.at));
    Ok(page::html(incoming.id, StatusCode::OK, &VerifyPage { frame, verification, signed }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn paging_keeps_the_search_and_nothing_else() {
        let query = pairs(&[("app", "a&b"), ("action", ""), ("before", "1.call"), ("limit", "9"), ("x", "<y>")]);
        assert_eq!(address(&query, None), "/audit?app=a%26b");
        assert_eq!(address(&query, Some("5.call_1")), "/audit?app=a%26b&before=5.call_1");
        assert_eq!(address(&[], None), "/audit");
    }

    #[test]
    fn a_day_is_searched_from_its_beginning_and_shown_as_a_day() {
        let mut query = pairs(&[("since", "2026-11-30"), ("action", "2026-11-30")]);
        whole_days(&mut query);
        assert_eq!(query, pairs(&[("since", "2026-11-30T00:00:00Z"), ("action", "2026-11-30")]));
        assert_eq!(address(&query, None), "/audit?since=2026-11-30&action=2026-11-30");
        let mut odd = pairs(&[("since", "yesterday")]);
        whole_days(&mut odd);
        assert_eq!(odd, pairs(&[("since", "yesterday")]), "the search itself says what is wrong with it");
    }

    #[test]
    fn what_is_searched_for_stays_in_the_list_when_it_has_gone() {
        let known = [("2".to_owned(), "b".to_owned()), ("1".to_owned(), "a".to_owned())];
        let list = picks(known.into_iter(), "9");
        let list: Vec<_> = list.iter().map(|pick| (pick.value.as_str(), pick.picked)).collect();
        assert_eq!(list, [("1", false), ("2", false), ("9", true)]);
    }
}

//! Mails of apps to their own users, on a machine in development: what would have been sent.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template;
use inn_http::api::person;
use inn_http::incoming::Incoming;
use inn_ports::ShownMail;
use inn_protocol::Refusal;
use inn_protocol::call::Action;

use crate::frame::{Frame, Here};
use crate::page;
use crate::stamp::Second;
use crate::visit::{Answer, Visit};

#[derive(Template)]
#[template(path = "mail.html")]
pub(crate) struct MailPage {
    pub(crate) frame: Frame,
    pub(crate) mails: Vec<MailLine>,
}

pub(crate) struct MailLine {
    pub(crate) mail: ShownMail,
    pub(crate) at: Second,
}

impl From<ShownMail> for MailLine {
    fn from(mail: ShownMail) -> Self {
        Self { at: Second(mail.at), mail }
    }
}

pub(crate) async fn show(visit: Visit) -> HttpResponse {
    let answer = try_show(&visit.incoming).await;
    visit.answer(answer)
}

/// For owners, like the register: who reads a mail can take the account it is about. Where mail is really sent there is
/// no such page.
async fn try_show(incoming: &Incoming) -> Answer {
    let (store, mail) = (&incoming.state.store, &incoming.state.mail);
    let page = incoming
        .read(Action::ReadRegister { verb: "mail" }, |admitted| async move {
            let person = person(&admitted.caller)?;
            let shown = mail.shown(person.tenant).ok_or_else(Refusal::not_found)?;
            let frame = Frame::of(&**store, person, Here::Home).await?;
            Ok(MailPage { frame, mails: shown.into_iter().map(MailLine::from).collect() })
        })
        .await?;
    Ok(page::html(incoming.id, StatusCode::OK, &page))
}

//! Mails to accounts: registered, then sent, after whoever asked was answered.

use std::sync::Arc;
use std::time::Duration;

use inn_ports::{MailError, Message, NewMail, NewTicket};
use inn_protocol::{Code, Refusal};
use tokio::sync::OwnedSemaphorePermit;

use super::accounts::{Accounts, Row, text};
use crate::incoming::Incoming;

/// Pauses before a mail server that was busy is asked again.
const AGAIN: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(30)];

/// A place among the mails under way. Taken before anybody is looked up, so that it tells nothing about anybody.
pub(super) fn turn(incoming: &Incoming) -> Result<OwnedSemaphorePermit, Refusal> {
    let state = &incoming.state;
    if !state.mail.is_ready() {
        let what = "This host sends no mail: no mail server is set (mail.smtp-host). Nothing was sent.";
        return Err(Refusal::new(Code::NotImplemented, what).fix("whoever runs this host"));
    }
    Arc::clone(&state.mails).try_acquire_owned().map_err(|_| {
        Refusal::new(Code::Overloaded, "Too many mails are on their way; nothing was sent. Ask again.").after(10)
    })
}

/// One mail to one account.
pub(super) struct Posting {
    pub(super) verb: &'static str,
    pub(super) mail: NewMail,
    pub(super) ticket: Option<NewTicket>,
    pub(super) subject: String,
    pub(super) html: String,
    pub(super) to: String,
}

/// Makes out whether a mail is to go to anybody, registers and sends it, all in the background: nothing of that shows in
/// the answer or in the time it takes.
pub(super) fn post<F>(incoming: Incoming, accounts: Accounts, turn: OwnedSemaphorePermit, write: F)
where
    F: AsyncFnOnce(&Incoming, &Accounts) -> Result<Option<Posting>, Refusal> + 'static,
{
    actix_web::rt::spawn(async move {
        let written = write(&incoming, &accounts).await;
        let sent = match written {
            Ok(Some(posting)) => deliver(&incoming, accounts, posting).await,
            Ok(None) => Ok(()),
            Err(refusal) => Err(refusal),
        };
        if let Err(refusal) = sent {
            tracing::warn!(call = %incoming.id, %refusal, "a mail was not sent");
        }
        drop(turn);
    });
}

async fn deliver(incoming: &Incoming, accounts: Accounts, posting: Posting) -> Result<(), Refusal> {
    let app = Arc::clone(&accounts.app);
    let action = accounts.action(&posting.mail.record, posting.verb)?;
    let Posting { mail, ticket, subject, html, to, .. } = posting;
    let opened = incoming
        .perform(action, (accounts, mail, ticket), |store, admitted, input| async move {
            let (accounts, mail, ticket) = &*input;
            store.open_mail(&admitted.record, &accounts.app, mail, ticket.as_ref()).await
        })
        .await
        .map_err(|error| *error.refusal)?;
    if !opened {
        return Ok(());
    }
    let message = Message { tenant: app.tenant, app: app.id, app_name: app.definition.name.clone(), to, subject, html };
    let mail = Arc::clone(&incoming.state.mail);
    let call = incoming.id;
    // On the I/O runtime, where sockets live; awaited here, so that it counts among the mails under way.
    let sent = incoming.state.io.spawn(async move {
        for pause in AGAIN {
            match mail.send(&message).await {
                Err(MailError::Later(cause)) => {
                    tracing::warn!(%call, cause, "the mail server did not take a mail yet");
                    tokio::time::sleep(pause).await;
                }
                done => return done,
            }
        }
        mail.send(&message).await
    });
    match sent.await {
        Ok(Ok(())) => {}
        Ok(Err(MailError::Later(cause) | MailError::Never(cause))) => {
            tracing::error!(%call, cause, "a mail was not sent; whoever waits for it has to ask again");
        }
        Err(error) => tracing::error!(%call, %error, "sending a mail died"),
    }
    Ok(())
}

/// An address mail can go to.
pub(super) fn address(row: &Row) -> Option<&str> {
    Some(text(row, "email")).filter(|email| !email.is_empty())
}

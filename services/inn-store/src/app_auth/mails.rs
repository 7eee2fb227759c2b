//! Mails to accounts: registered before they go, and not too often.

use inn_ports::{NewMail, NewTicket, StoreResult};
use inn_protocol::app::AppSnapshot;
use inn_protocol::register::CallRecord;
use serde_json::json;

use super::tickets;
use crate::PgStore;
use crate::people::sql::{facts, run};

/// Nothing is touched while the pause lasts.
const OPEN: &str = "
INSERT INTO inn.app_mails AS m (app, purpose, record) VALUES ($1, $2, $3)
ON CONFLICT (app, purpose, record) DO UPDATE SET sent_at = clock_timestamp()
    WHERE m.sent_at < clock_timestamp() - make_interval(secs => $4)";

pub(super) async fn open(
    store: &PgStore,
    call: &CallRecord,
    app: &AppSnapshot,
    mail: &NewMail,
    ticket: Option<&NewTicket>,
) -> StoreResult<bool> {
    let mut client = store.client().await?;
    let step = store.begin(&mut client, call).await?;
    let pause = f64::from(mail.pause);
    let opened = run(step.tx(), "mail", OPEN, &[&app.id.uuid(), &mail.purpose, &mail.record, &pause]).await? > 0;
    let sentence = if opened {
        if let Some(ticket) = ticket {
            tickets::insert(step.tx(), app, ticket).await?;
        }
        mail.sentence.clone()
    } else {
        "No mail was sent: one went a moment ago".to_owned()
    };
    let said = json!({ "account": call.draft.target, "mail": mail.purpose, "sent": opened });
    step.commit(sentence, facts(said)).await?;
    Ok(opened)
}

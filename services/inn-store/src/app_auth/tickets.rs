//! One-time passwords and first factors: kept as keyed digests, looked at five times, used once.

use deadpool_postgres::Transaction;
use inn_ports::{NewTicket, StoreResult, Ticket, TicketKind};
use inn_protocol::app::AppSnapshot;
use inn_protocol::register::CallRecord;
use serde_json::json;

use crate::PgStore;
use crate::people::sql::{column, facts, maybe, run, unreadable};

/// Wrong codes after which a ticket is worthless: a code has eight digits.
const ATTEMPTS: i32 = 5;
/// Tickets of one kind that one record may have open; the oldest goes when one more is opened.
const MOST: i64 = 10;

const INSERT: &str = "
INSERT INTO inn.app_tickets (app, kind, id, collection, record, token_key, proof, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, clock_timestamp() + make_interval(secs => $8))";

const END_SURPLUS: &str = "
DELETE FROM inn.app_tickets WHERE app = $1 AND kind = $2 AND record = $3 AND id IN (
    SELECT id FROM inn.app_tickets WHERE app = $1 AND kind = $2 AND record = $3 ORDER BY created_at DESC, id OFFSET $4)";

pub(super) async fn insert(tx: &Transaction<'_>, app: &AppSnapshot, ticket: &NewTicket) -> StoreResult<()> {
    let (app, kind) = (app.id.uuid(), ticket.kind.as_str());
    let key: &[u8] = &ticket.token_key;
    let seconds = f64::from(ticket.seconds);
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 8] =
        [&app, &kind, &ticket.id, &ticket.collection, &ticket.record, &key, &ticket.proof, &seconds];
    run(tx, "ticket", INSERT, &values).await?;
    run(tx, "surplus tickets", END_SURPLUS, &[&app, &kind, &ticket.record, &MOST]).await?;
    Ok(())
}

pub(super) async fn open(store: &PgStore, call: &CallRecord, app: &AppSnapshot, ticket: &NewTicket) -> StoreResult<()> {
    let mut client = store.client().await?;
    let step = store.begin(&mut client, call).await?;
    insert(step.tx(), app, ticket).await?;
    let said = json!({ "account": call.draft.target, "ticket": ticket.kind.as_str() });
    step.commit("The first factor was right; a second one is asked for".to_owned(), facts(said)).await?;
    Ok(())
}

/// Counted before it is compared, so that guesses at the same moment count as well. It is a limit and not an effect:
/// whoever guesses has proved nothing yet.
const ATTEMPT: &str = "
UPDATE inn.app_tickets SET attempts = attempts + 1
WHERE app = $1 AND kind = $2 AND id = $3 AND collection = $4 AND attempts < $5 AND expires_at > clock_timestamp()
RETURNING record, token_key, proof";

pub(super) async fn attempt(
    store: &PgStore,
    app: &AppSnapshot,
    kind: TicketKind,
    collection: &str,
    id: &str,
) -> StoreResult<Option<Ticket>> {
    if id.contains('\0') {
        return Ok(None);
    }
    let client = store.client().await?;
    let row = maybe(&client, "ticket", ATTEMPT, &[&app.id.uuid(), &kind.as_str(), &id, &collection, &ATTEMPTS]).await?;
    let Some(row) = row else { return Ok(None) };
    let key: Vec<u8> = column(&row, "token_key")?;
    let token_key = key.try_into().map_err(|_| unreadable("token key digest", "of another length"))?;
    Ok(Some(Ticket { record: column(&row, "record")?, token_key, proof: column(&row, "proof")? }))
}

const TAKE: &str = "
DELETE FROM inn.app_tickets WHERE app = $1 AND kind = $2 AND id = $3 AND expires_at > clock_timestamp() RETURNING record";

const TAKE_OTHERS: &str = "DELETE FROM inn.app_tickets WHERE app = $1 AND kind = $2 AND record = $3";

pub(super) async fn take(
    store: &PgStore,
    call: &CallRecord,
    app: &AppSnapshot,
    kind: TicketKind,
    id: &str,
    sentence: &str,
) -> StoreResult<bool> {
    let mut client = store.client().await?;
    let step = store.begin(&mut client, call).await?;
    let (app, kind) = (app.id.uuid(), kind.as_str());
    let Some(row) = maybe(step.tx(), "take ticket", TAKE, &[&app, &kind, &id]).await? else {
        step.abandon().await;
        return Ok(false);
    };
    let record: String = column(&row, "record")?;
    run(step.tx(), "take ticket", TAKE_OTHERS, &[&app, &kind, &record]).await?;
    let said = json!({ "account": call.draft.target, "ticket": kind });
    step.commit(sentence.to_owned(), facts(said)).await?;
    Ok(true)
}

//! What sign-in compares with, and changing it.

use chrono::{DateTime, Utc};
use inn_ports::{StoreResult, UserSecret};
use inn_protocol::register::CallRecord;
use inn_protocol::{Refusal, SessionId, UserId};
use serde_json::json;

use super::sql::{column, facts, maybe, run};
use super::tenants;
use crate::PgStore;

pub(super) enum Who<'w> {
    /// Ignoring ASCII case.
    Email(&'w str),
    Id(UserId),
}

const BY_EMAIL: &str = "SELECT id, email, password FROM inn.users WHERE email_key = $1 AND disabled_at IS NULL";
const BY_ID: &str = "SELECT id, email, password FROM inn.users WHERE id = $1 AND disabled_at IS NULL";

pub(super) async fn secret(store: &PgStore, who: Who<'_>) -> StoreResult<Option<UserSecret>> {
    let client = store.client().await?;
    let found = match who {
        Who::Email(email) => maybe(&client, "user by email", BY_EMAIL, &[&email_key(email)]).await?,
        Who::Id(user) => maybe(&client, "user by id", BY_ID, &[&user.uuid()]).await?,
    };
    let Some(row) = found else { return Ok(None) };
    let user = UserId::from_uuid(column(&row, "id")?);
    let tenants = tenants::of(&client, user).await?.into_iter().map(|(tenant, _)| tenant).collect();
    Ok(Some(UserSecret { user, email: column(&row, "email")?, password: column(&row, "password")?, tenants }))
}

/// What makes two addresses one. NUL, which no text column takes, is in no address either.
pub(super) fn email_key(email: &str) -> String {
    email.trim().replace('\0', "").to_ascii_lowercase()
}

const SET: &str =
    "UPDATE inn.users SET password = $2, password_changed_at = now() WHERE id = $1 AND disabled_at IS NULL";

/// What was handed over to apps from the session that stays, stays too.
const END_OTHERS: &str = "
UPDATE inn.sessions SET ended_at = now()
WHERE user_id = $1 AND ended_at IS NULL AND id IS DISTINCT FROM $2 AND ($2::uuid IS NULL OR parent IS DISTINCT FROM $2)";

pub(super) async fn set(
    store: &PgStore,
    call: &CallRecord,
    user: UserId,
    password: &str,
    keep: Option<SessionId>,
) -> StoreResult<()> {
    let mut client = store.client().await?;
    let step = store.begin(&mut client, call).await?;
    if run(step.tx(), "set password", SET, &[&user.uuid(), &password]).await? == 0 {
        return Err(step.refuse(Refusal::not_found()).await);
    }
    let ended = run(step.tx(), "end sessions", END_OTHERS, &[&user.uuid(), &keep.map(SessionId::uuid)]).await?;
    step.commit("Changed the password".to_owned(), facts(json!({ "user": user, "sessionsEnded": ended }))).await?;
    Ok(())
}

pub(super) async fn changed_at(store: &PgStore, user: UserId) -> StoreResult<Option<DateTime<Utc>>> {
    let client = store.client().await?;
    let text = "SELECT password_changed_at FROM inn.users WHERE id = $1";
    let row = maybe(&client, "password age", text, &[&user.uuid()]).await?;
    row.as_ref().map(|row| column(row, "password_changed_at")).transpose()
}

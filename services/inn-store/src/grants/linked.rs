//! The record of an app's own users that a grant acts as (DESIGN section 5).

use deadpool_postgres::Transaction;
use inn_ports::StoreResult;
use inn_protocol::app::AuthMode;
use inn_protocol::{AppId, Code, Refusal};

use crate::people::sql::{invalid, maybe};
use crate::{columns, directory};

/// Whether the app has users of its own and this is one of them. Refused with `invalid_parameter` for `appRecord`, or with
/// `unknown_app` when the app was removed. The app cannot change until the transaction ends.
pub(super) async fn check(tx: &Transaction<'_>, app: AppId, record: &str) -> StoreResult<Result<(), Refusal>> {
    let text = format!("{} AND a.id = $1 FOR SHARE OF a", directory::SNAPSHOT);
    let Some(row) = maybe(tx, "app of a grant", &text, &[&app.uuid()]).await? else {
        return Ok(Err(Refusal::new(Code::UnknownApp, "The app has been removed.")));
    };
    let app = directory::snapshot(&row)?;
    if app.definition.auth_mode != AuthMode::MultiUser {
        let message = format!("\"{}\" has no users of its own, so there is no record to act as.", app.slug);
        return Ok(Err(invalid("appRecord", "nothing: the app is not a multi-user app", message)));
    }
    // PostgreSQL takes no U+0000 in a text, and no id has one.
    if !record.contains('\0') {
        let (collections, record) = app.definition.model.account(record);
        for collection in collections {
            let text = format!("SELECT FROM {} AS t WHERE t.id = $1 FOR SHARE", columns::table(app.id, collection));
            if maybe(tx, "record of a grant", &text, &[&record]).await?.is_some() {
                return Ok(Ok(()));
            }
        }
    }
    let message = format!("\"{}\" has no user with this record id.", app.slug);
    Ok(Err(invalid("appRecord", "the id of a record in one of the app's auth collections", message)))
}

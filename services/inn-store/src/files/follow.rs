//! Triggers that keep `inn.files` in step with the records (migration V0009), and what a change of the model does to
//! files. All of it in the transaction of the deploy.

use deadpool_postgres::Transaction;
use inn_ports::StoreResult;
use inn_protocol::AppId;
use inn_protocol::model::{Collection, CollectionKind, Field, FieldKind, Model};
use inn_rules::schema::{Storage, storage};

use crate::columns::{ident, stored_name, table};
use crate::error::broken;

const FOLLOW: &str = "SELECT inn.follow_table($1::text::regclass, $2, $3, $4)";

fn file_columns(collection: &Collection) -> Vec<String> {
    let files = collection.fields.iter().filter(|field| is_file(field));
    files.map(|field| stored_name(&field.name)).collect()
}

fn is_file(field: &Field) -> bool {
    matches!(field.kind, FieldKind::File { .. })
}

fn with_files(model: &Model) -> impl Iterator<Item = &Collection> {
    let tables = model.collections.iter().filter(|collection| collection.kind != CollectionKind::View);
    tables.filter(|collection| collection.fields.iter().any(is_file))
}

/// Before the tables change: a column in use by a trigger cannot change its type.
pub(crate) async fn unfollow(tx: &Transaction<'_>, app: AppId, model: &Model) -> StoreResult<()> {
    for collection in with_files(model) {
        set(tx, app, collection, &[]).await?;
    }
    Ok(())
}

/// After it.
pub(crate) async fn follow(tx: &Transaction<'_>, app: AppId, model: &Model) -> StoreResult<()> {
    for collection in with_files(model) {
        set(tx, app, collection, &file_columns(collection)).await?;
    }
    Ok(())
}

async fn set(tx: &Transaction<'_>, app: AppId, collection: &Collection, columns: &[String]) -> StoreResult<()> {
    let table = table(app, collection);
    tx.execute(FOLLOW, &[&table, &app.uuid(), &collection.id, &columns]).await.map_err(broken("follow files"))?;
    Ok(())
}

/// A field that holds one file now and held several before has kept its last one; the others go.
pub(crate) async fn forget_losers(
    tx: &Transaction<'_>,
    app: AppId,
    before: Option<&Model>,
    after: &Model,
) -> StoreResult<()> {
    let Some(before) = before else { return Ok(()) };
    for collection in with_files(after) {
        let Some(earlier) = before.collections.iter().find(|earlier| earlier.id == collection.id) else { continue };
        for field in collection.fields.iter().filter(|field| is_file(field) && storage(field) == Storage::Text) {
            let was_list = earlier.fields.iter().any(|old| old.id == field.id && storage(old) == Storage::List);
            if was_list {
                lose(tx, app, collection, field).await?;
            }
        }
    }
    Ok(())
}

async fn lose(tx: &Transaction<'_>, app: AppId, collection: &Collection, field: &Field) -> StoreResult<()> {
    let text = format!(
        "UPDATE inn.files f SET state = 'doomed', due_at = clock_timestamp()
         WHERE f.app = $1 AND f.collection = $2 AND f.field = $3 AND f.state = 'kept'
            AND NOT EXISTS (SELECT FROM {} AS t WHERE t.id = f.record AND t.{} = f.name)",
        table(app, collection),
        ident(&field.name)
    );
    tx.execute(&text, &[&app.uuid(), &collection.id, &field.id]).await.map_err(broken("forget files"))?;
    Ok(())
}

/// Files that only a dropped column (or, without `column`, a dropped table) still named, when its window ends. `is_of`
/// says which (collection, field) it belonged to; a field that was made anew under the same id keeps its own.
pub(crate) async fn purge(
    tx: &Transaction<'_>,
    app: AppId,
    table: &str,
    column: Option<&str>,
    is_of: impl Fn(&str, &str) -> bool,
) -> StoreResult<()> {
    const FIELDS: &str = "SELECT DISTINCT collection, field FROM inn.files WHERE app = $1 AND state = 'kept'";
    let rows = tx.query(FIELDS, &[&app.uuid()]).await.map_err(broken("purge files"))?;
    let named = match column {
        Some(column) => format!("f.name = ANY (inn.file_names(json_build_object('names', t.{column}), '{{names}}'))"),
        None => "position(f.name IN to_json(t)::text) > 0".to_owned(),
    };
    let text = format!(
        "UPDATE inn.files f SET state = 'doomed', due_at = clock_timestamp() FROM {table} AS t
         WHERE f.app = $1 AND f.collection = $2 AND f.field = $3 AND f.state = 'kept' AND t.id = f.record AND {named}"
    );
    for row in rows {
        let read = broken("purge files");
        let (collection, field): (&str, &str) = (row.try_get(0).map_err(&read)?, row.try_get(1).map_err(&read)?);
        if is_of(collection, field) {
            tx.execute(&text, &[&app.uuid(), &collection, &field]).await.map_err(broken("purge files"))?;
        }
    }
    Ok(())
}

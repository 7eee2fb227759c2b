//! What was dropped and may still come back.

use deadpool_postgres::Object;
use inn_ports::StoreResult;
use inn_protocol::AppId;
use inn_protocol::model::{Collection, Field};
use tokio_postgres::Row;

use super::{Problem, SchemaChange, key_name};
use crate::columns::{column_definition, column_type, fingerprint, ident, schema_name, stored_fields, stored_name};
use crate::error::{broken, committing};
use crate::{PgStore, files};

const PREFIX: &str = "~gone_";

/// Columns, then tables, that were dropped before a moment (milliseconds since 1970, as text of 13 digits).
const PURGE: &str = "
SELECT n.nspname AS schema, c.relname AS \"table\", a.attname AS \"column\"
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname ~ '^app_[0-9a-f]{32}$' AND c.relkind = 'r' AND NOT a.attisdropped AND c.relname !~ '^~gone_'
  AND a.attname ~ '^~gone_[0-9]{13}_' AND substr(a.attname, 7, 13) < $1
UNION ALL
SELECT n.nspname, c.relname, NULL
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname ~ '^app_[0-9a-f]{32}$' AND c.relkind = 'r' AND c.relname ~ '^~gone_[0-9]{13}_' AND substr(c.relname, 7, 13) < $1";

/// `stamp` in milliseconds has 13 digits until the year 2286, so that names sort by time.
pub(super) fn name(stamp: i64, mark: &str) -> String {
    format!("{PREFIX}{stamp:013}_{mark}")
}

pub(super) fn column_mark(collection_id: &str, field_id: &str) -> String {
    fingerprint(&["column", collection_id, field_id])
}

fn table_mark(collection_id: &str) -> String {
    fingerprint(&["table", collection_id])
}

impl SchemaChange<'_> {
    pub(super) async fn drop_table(&self, collection_id: &str, collection: &str) -> Result<(), Problem> {
        if !self.has_table(collection).await? {
            return Ok(());
        }
        let table = self.table(collection);
        let schema = ident(&schema_name(self.app));
        // Index names are the schema's: they must not be in the way of a collection that takes this one's place.
        let indexes = "SELECT i.relname FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid \
                       WHERE x.indrelid = $1::text::regclass AND NOT x.indisprimary";
        for row in self.tx.query(indexes, &[&table]).await? {
            let index: String = row.try_get(0)?;
            self.run(&format!("DROP INDEX {schema}.{}", quoted(&index))).await?;
        }
        let mark = table_mark(collection_id);
        let key = (ident(&key_name(collection_id)), quoted(&name(self.stamp, &fingerprint(&["key", collection_id]))));
        self.run(&format!("ALTER TABLE {table} RENAME CONSTRAINT {} TO {}", key.0, key.1)).await?;
        self.run(&format!("ALTER TABLE {table} RENAME TO {}", quoted(&name(self.stamp, &mark)))).await
    }

    /// Takes the newest dropped table of the collection back and makes its columns those of the collection as it is
    /// wanted now. `false` when there is none.
    pub(super) async fn take_back_table(&self, collection: &Collection) -> Result<bool, Problem> {
        let find = "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
                    WHERE n.nspname = $1 AND c.relkind = 'r' AND c.relname LIKE $2 ORDER BY c.relname DESC LIMIT 1";
        let pattern = format!("~gone\\_%\\_{}", table_mark(&collection.id));
        let Some(row) = self.tx.query_opt(find, &[&schema_name(self.app), &pattern]).await? else { return Ok(false) };
        let kept: String = row.try_get(0)?;
        let stale = format!("{}.{}", ident(&schema_name(self.app)), quoted(&kept));
        let table = self.table(&collection.name);
        self.run(&format!("ALTER TABLE {stale} RENAME TO {}", ident(&collection.name))).await?;
        let key = "SELECT conname::text FROM pg_constraint WHERE conrelid = $1::text::regclass AND contype = 'p'";
        let key: String = self.tx.query_one(key, &[&table]).await?.try_get(0)?;
        self.run(&format!(
            "ALTER TABLE {table} RENAME CONSTRAINT {} TO {}",
            quoted(&key),
            ident(&key_name(&collection.id))
        ))
        .await?;
        self.fit(collection, &table).await?;
        Ok(true)
    }

    /// Columns the collection does not have (or not with that type) are put aside, missing ones added.
    async fn fit(&self, collection: &Collection, table: &str) -> Result<(), Problem> {
        let columns = "SELECT a.attname::text, format_type(a.atttypid, NULL) FROM pg_attribute a \
                       WHERE a.attrelid = $1::text::regclass AND a.attnum > 0 AND NOT a.attisdropped";
        let present: Vec<(String, String)> = self
            .tx
            .query(columns, &[&table])
            .await?
            .iter()
            .map(|row: &Row| Ok((row.try_get(0)?, row.try_get(1)?)))
            .collect::<Result<_, tokio_postgres::Error>>()?;
        let fits = |column: &str, kind: &str| {
            stored_fields(collection).any(|field| stored_name(&field.name) == column && column_type(field) == kind)
        };
        let ours = |column: &str| ["id", "_row"].contains(&column) || column.starts_with(PREFIX);
        for (column, kind) in present.iter().filter(|(column, _)| !ours(column)) {
            if !fits(column, kind) {
                let aside = name(self.stamp, &fingerprint(&["aside", &collection.id, column]));
                self.run(&format!("ALTER TABLE {table} RENAME COLUMN {} TO {}", quoted(column), quoted(&aside)))
                    .await?;
            }
        }
        for field in stored_fields(collection) {
            let column = stored_name(&field.name);
            let there = present.iter().any(|(name, kind)| *name == column && fits(name, kind));
            if !there && !self.take_back_column(&collection.id, table, field).await? {
                let definition = column_definition(field);
                self.run(&format!("ALTER TABLE {table} ADD COLUMN {} {definition}", ident(&field.name))).await?;
            }
        }
        Ok(())
    }

    /// Takes the newest dropped column of the field back, when it has the wanted type. `false` when there is none.
    pub(super) async fn take_back_column(
        &self,
        collection_id: &str,
        table: &str,
        field: &Field,
    ) -> Result<bool, Problem> {
        let find = "SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = $1::text::regclass AND NOT a.attisdropped \
                    AND a.attname LIKE $2 AND format_type(a.atttypid, NULL) = $3 ORDER BY a.attname DESC LIMIT 1";
        let pattern = format!("~gone\\_%\\_{}", column_mark(collection_id, &field.id));
        let Some(row) = self.tx.query_opt(find, &[&table, &pattern, &column_type(field)]).await? else {
            return Ok(false);
        };
        let kept: String = row.try_get(0)?;
        self.run(&format!("ALTER TABLE {table} RENAME COLUMN {} TO {}", quoted(&kept), ident(&field.name))).await?;
        Ok(true)
    }
}

/// A name from the catalogue, as it is.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Drops one column or table, and with it the files nothing else names. One transaction, with a short patience for
/// locks. `gone` is the name it was put aside under.
async fn purge(client: &mut Object, schema: &str, table: &str, column: Option<&str>, gone: &str) -> StoreResult<()> {
    let tx = client.transaction().await.map_err(broken("purge dropped"))?;
    tx.batch_execute("SET LOCAL lock_timeout = '2s'").await.map_err(broken("purge dropped"))?;
    let app: Option<AppId> = schema.parse().ok();
    let mark = gone.rsplit('_').next().unwrap_or_default();
    let quoted_column = column.map(quoted);
    if let Some(app) = app {
        let is_of = |collection: &str, field: &str| match column {
            Some(_) => column_mark(collection, field) == mark,
            None => table_mark(collection) == mark,
        };
        files::purge(&tx, app, table, quoted_column.as_deref(), is_of).await?;
    }
    let statement = match &quoted_column {
        Some(column) => format!("ALTER TABLE {table} DROP COLUMN IF EXISTS {column}"),
        None => format!("DROP TABLE IF EXISTS {table}"),
    };
    tx.batch_execute(&statement).await.map_err(broken("purge dropped"))?;
    tx.commit().await.map_err(committing("purge dropped"))
}

impl PgStore {
    /// Ends the window in which a rollback brings back what a release dropped: removes columns and tables dropped longer
    /// ago than `kept`. Answers how many. A table that is in use stays for the next time.
    pub async fn purge_dropped(&self, kept: chrono::Duration) -> StoreResult<u64> {
        let mut client = self.client().await?;
        let oldest =
            "SELECT to_char((extract(epoch FROM clock_timestamp()) * 1000)::bigint - $1::bigint, 'FM0000000000000')";
        let oldest: String = client
            .query_one(oldest, &[&kept.num_milliseconds()])
            .await
            .and_then(|row| row.try_get(0))
            .map_err(broken("purge dropped"))?;
        let mut purged = 0;
        for row in client.query(PURGE, &[&oldest]).await.map_err(broken("purge dropped"))? {
            let read = |place: usize| row.try_get::<_, Option<String>>(place).map_err(broken("purge dropped"));
            let (schema, table, column) = (read(0)?.unwrap_or_default(), read(1)?.unwrap_or_default(), read(2)?);
            let gone = column.clone().unwrap_or_else(|| table.clone());
            let table = format!("{}.{}", quoted(&schema), quoted(&table));
            match purge(&mut client, &schema, &table, column.as_deref(), &gone).await {
                Ok(()) => purged += 1,
                Err(error) => tracing::warn!(%table, ?error, "a dropped column or table stays"),
            }
        }
        Ok(purged)
    }
}

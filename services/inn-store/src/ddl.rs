//! From schema changes to the app's tables.
//!
//! Nothing an app drops is gone at once: a dropped column or table stays under a name no field can have
//! (`~gone_<milliseconds>_<fingerprint>`), invisible to every statement of ours, so that a rollback can take it back. The
//! fingerprint is made of the ids of collection and field. [`PgStore::purge_dropped`](crate::PgStore::purge_dropped)
//! ends the window. Converting a list to a single value keeps the last element only, and is not undone.

mod gone;
mod kinds;
mod views;

#[cfg(test)]
mod tests;

use deadpool_postgres::Transaction;
use inn_ports::{StoreError, StoreResult};
use inn_protocol::model::{Collection, CollectionKind, Field, Model};
use inn_protocol::{AppId, Code, Refusal};
use inn_rules::schema::{Change, IndexColumn, IndexMethod, IndexSpec, Storage, indexes, storage};

use crate::columns::{
    ROW, column_definition, column_type, fingerprint, ident, schema_name, stored_fields, table_named,
};
use crate::error::broken;

pub(crate) use views::{drop_views, make_views};

/// The fields of the unique index or primary key with this name in the database.
pub(crate) fn unique_fields(collection: &Collection, constraint: &str) -> Option<Vec<String>> {
    if constraint == key_name(&collection.id) {
        return Some(vec!["id".to_owned()]);
    }
    let declared = indexes(collection).ok()?;
    let index =
        declared.into_iter().find(|index| index.unique && index_name(&collection.id, &index.name) == constraint)?;
    Some(index.columns.into_iter().map(|column| column.name).collect())
}

/// The changes of one release of one app, inside the transaction that activates it.
pub(crate) struct SchemaChange<'a> {
    pub(crate) tx: &'a Transaction<'a>,
    pub(crate) app: AppId,
    /// The model the changes lead to.
    pub(crate) model: &'a Model,
    /// Milliseconds since 1970, database time: part of the names of what is dropped.
    pub(crate) stamp: i64,
    /// Dropped columns and tables come back when they are added again.
    pub(crate) restore: bool,
}

impl SchemaChange<'_> {
    /// Runs the steps in their order. A step the data does not allow is a `deploy_failed` refusal that names it.
    pub(crate) async fn apply(&self, changes: &[Change]) -> StoreResult<()> {
        for change in changes {
            self.step(change).await.map_err(|problem| match problem {
                Problem::Database(error) => refused(change, error),
                Problem::Store(error) => error,
            })?;
        }
        Ok(())
    }

    async fn step(&self, change: &Change) -> Result<(), Problem> {
        match change {
            // Views go before the first step and come after the last.
            Change::RulesOnly { .. } | Change::View { .. } => Ok(()),
            Change::CreateCollection { collection } => self.create(collection).await,
            Change::DropCollection { id, name } => self.drop_table(id, name).await,
            Change::RenameCollection { from, to, .. } => {
                self.run_if_table(from, &format!("ALTER TABLE {} RENAME TO {}", self.table(from), ident(to))).await
            }
            Change::DropIndex { collection_id, index, .. } => {
                let name = ident(&index_name(collection_id, &index.name));
                self.run(&format!("DROP INDEX IF EXISTS {}.{name}", ident(&schema_name(self.app)))).await
            }
            Change::CreateIndex { collection_id, collection, index } => {
                if self.is_view(collection_id) {
                    return Ok(());
                }
                self.run(&self.create_index(collection_id, collection, index)).await
            }
            Change::AddField { field, .. } | Change::DropField { field, .. } if field.name == "id" => Ok(()),
            Change::AddField { collection_id, collection, field } => {
                if self.is_view(collection_id) {
                    Ok(())
                } else {
                    self.add(collection_id, collection, field).await
                }
            }
            Change::DropField { collection_id, collection, field } => {
                let gone = gone::name(self.stamp, &gone::column_mark(collection_id, &field.id));
                let rename = format!("RENAME COLUMN {} TO {}", ident(&field.name), ident(&gone));
                self.run_if_table(collection, &format!("ALTER TABLE {} {rename}", self.table(collection))).await
            }
            Change::RenameField { from, to, .. } if from == "id" || to == "id" => {
                Err(Refusal::new(Code::DeployFailed, "The field id of a collection cannot be renamed.").into())
            }
            Change::RenameField { collection, from, to, .. } => {
                let rename = format!("RENAME COLUMN {} TO {}", ident(from), ident(to));
                self.run_if_table(collection, &format!("ALTER TABLE {} {rename}", self.table(collection))).await
            }
            Change::AlterField { collection, from, to, .. } => match convert(from, to) {
                Some(actions) => {
                    self.run_if_table(collection, &format!("ALTER TABLE {} {actions}", self.table(collection))).await
                }
                None => Ok(()),
            },
        }
    }

    async fn create(&self, collection: &Collection) -> Result<(), Problem> {
        if collection.kind == CollectionKind::View {
            return Ok(());
        }
        if !(self.restore && self.take_back_table(collection).await?) {
            self.run(&create_table(self.app, collection)).await?;
        }
        // Lists without a sort come in this order.
        let name = ident(&format!("row_{}", fingerprint(&[&collection.id])));
        self.run(&format!("CREATE INDEX {name} ON {} ({ROW})", self.table(&collection.name))).await
    }

    async fn add(&self, collection_id: &str, collection: &str, field: &Field) -> Result<(), Problem> {
        let table = self.table(collection);
        if self.restore && self.take_back_column(collection_id, &table, field).await? {
            return Ok(());
        }
        self.run(&format!("ALTER TABLE {table} ADD COLUMN {} {}", ident(&field.name), column_definition(field))).await
    }

    fn create_index(&self, collection_id: &str, collection: &str, index: &IndexSpec) -> String {
        let fields = self.model.collections.iter().find(|c| c.id == collection_id);
        let column = |column: &IndexColumn| {
            let name = ident(&column.name);
            let field = fields.and_then(|collection| collection.field(&column.name));
            let sql = match field.map(storage) {
                // `json` has no order of its own; its text has.
                Some(Storage::Json | Storage::Geo) => format!("({name}::text)"),
                Some(Storage::Text) | None if column.nocase => format!("lower({name})"),
                _ => name,
            };
            if column.descending { format!("{sql} DESC") } else { sql }
        };
        let columns: Vec<String> = index.columns.iter().map(column).collect();
        let unique = if index.unique { "UNIQUE " } else { "" };
        let method = match index.method {
            IndexMethod::Btree => "btree",
            IndexMethod::Gin => "gin",
        };
        let condition = index.where_not_empty.as_ref().map_or_else(String::new, |name| {
            let column = ident(name);
            match fields.and_then(|collection| collection.field(name)).map(storage) {
                Some(Storage::Text) | None => format!(" WHERE {column} <> ''"),
                // A list, a number, a point is never `''`; unset JSON is NULL, which is not compared.
                Some(Storage::Json) => format!(" WHERE {column} IS NOT NULL"),
                Some(_) => String::new(),
            }
        });
        format!(
            "CREATE {unique}INDEX {} ON {} USING {method} ({}){condition}",
            ident(&index_name(collection_id, &index.name)),
            self.table(collection),
            columns.join(", ")
        )
    }

    fn table(&self, collection: &str) -> String {
        table_named(self.app, collection)
    }

    fn is_view(&self, collection_id: &str) -> bool {
        self.model.collections.iter().any(|c| c.id == collection_id && c.kind == CollectionKind::View)
    }

    async fn run(&self, statement: &str) -> Result<(), Problem> {
        Ok(self.tx.batch_execute(statement).await?)
    }

    /// View collections have no table.
    async fn run_if_table(&self, collection: &str, statement: &str) -> Result<(), Problem> {
        if self.has_table(collection).await? { self.run(statement).await } else { Ok(()) }
    }

    async fn has_table(&self, collection: &str) -> Result<bool, Problem> {
        let row = self.tx.query_one("SELECT to_regclass($1) IS NOT NULL", &[&self.table(collection)]).await?;
        Ok(row.try_get(0)?)
    }
}

/// Why a step did not happen.
enum Problem {
    Database(tokio_postgres::Error),
    Store(StoreError),
}

impl From<tokio_postgres::Error> for Problem {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error)
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        Self::Store(refusal.into())
    }
}

/// The name of a declared or automatic index in the database: fixed by ids and by the name the app gave it.
fn index_name(collection_id: &str, index: &str) -> String {
    format!("ix_{}", fingerprint(&[collection_id, index]))
}

fn key_name(collection_id: &str) -> String {
    format!("pk_{}", fingerprint(&[collection_id]))
}

fn create_table(app: AppId, collection: &Collection) -> String {
    let mut columns =
        vec![format!("{ROW} bigint GENERATED ALWAYS AS IDENTITY"), "\"id\" text COLLATE \"C\" NOT NULL".to_owned()];
    columns
        .extend(stored_fields(collection).map(|field| format!("{} {}", ident(&field.name), column_definition(field))));
    columns.push(format!("CONSTRAINT {} PRIMARY KEY (\"id\")", ident(&key_name(&collection.id))));
    format!("CREATE TABLE {} ({})", table_named(app, &collection.name), columns.join(", "))
}

/// One value to a list and back; nothing else changes a column.
fn convert(from: &Field, to: &Field) -> Option<String> {
    let name = ident(&to.name);
    let using = match (storage(from), storage(to)) {
        (Storage::Text, Storage::List) => format!("CASE WHEN {name} = '' THEN '{{}}'::text[] ELSE ARRAY[{name}] END"),
        (Storage::List, Storage::Text) => format!("coalesce({name}[cardinality({name})], '')"),
        _ => return None,
    };
    let kind = column_type(to);
    let zero = if storage(to) == Storage::List { "'{}'" } else { "''" };
    Some(format!(
        "ALTER COLUMN {name} DROP DEFAULT, ALTER COLUMN {name} TYPE {kind} COLLATE \"C\" USING {using}, \
         ALTER COLUMN {name} SET DEFAULT {zero}"
    ))
}

/// What the database said about a step, in words for whoever deploys.
fn refused(change: &Change, error: tokio_postgres::Error) -> StoreError {
    let what = change.sentence();
    let state = error.code().map_or("", tokio_postgres::error::SqlState::code);
    let reason = match state {
        "23505" => "records with the same values exist",
        "54000" => "a stored value is too long for an index",
        "55P03" => {
            let message =
                format!("{what}: the tables are in use at the moment and did not become free in time. Deploy again.");
            return Refusal::new(Code::Overloaded, message).after(5).into();
        }
        _ if ["22", "23", "42", "54"].iter().any(|class| state.starts_with(class)) => {
            tracing::error!(step = %what, error = %crate::error::chain(&error), "a schema change was refused by the database");
            "the database refuses it; the log of the host has the cause"
        }
        _ => return broken("change schema")(error),
    };
    Refusal::new(Code::DeployFailed, format!("The release could not be activated. {what}: {reason}.")).into()
}

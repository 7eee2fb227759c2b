//! Where the records of a collection are found.

use inn_protocol::AppId;

use crate::columns::{literal, table_named};

/// The tables of an app, or the records as they were before a transaction deleted some of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tables {
    app: AppId,
    before: Option<u64>,
}

impl Tables {
    pub(crate) const fn of(app: AppId) -> Self {
        Self { app, before: None }
    }

    /// With the records that this transaction deleted, as its changes tell them.
    pub(crate) const fn before(app: AppId, transaction: u64) -> Self {
        Self { app, before: Some(transaction) }
    }

    /// What stands in `FROM` or `JOIN`, before an alias.
    pub(super) fn named(self, collection: &str) -> String {
        let table = table_named(self.app, collection);
        let Some(transaction) = self.before else { return table };
        format!(
            "(SELECT * FROM {table} UNION ALL SELECT d.* FROM inn.changes AS c, \
             json_populate_record(NULL::{table}, c.\"row\"::json) AS d \
             WHERE c.txid = '{transaction}'::xid8 AND c.app = '{}'::uuid AND c.verb = 'delete' AND c.collection = {})",
            self.app.uuid(),
            literal(collection)
        )
    }
}

//! Records that refer to others: the back relations of an `expand`, one look for all of them.

use inn_ports::{Referrer, ReferrersPlan, StoreResult};
use inn_protocol::{Code, Refusal};
use inn_rules::schema::{Storage, storage};
use tokio_postgres::types::{ToSql, Type};

use super::{read_failed, readable};
use crate::PgStore;
use crate::columns::{ROW, ident, table};
use crate::error::broken;

pub(super) async fn referrers(store: &PgStore, plan: &ReferrersPlan) -> StoreResult<Vec<Referrer>> {
    let collection = readable(&plan.app, &plan.entity)?;
    let Some(field) = collection.field(&plan.field) else {
        let message = format!("`{}` has no field `{}`; see describe.", collection.name, plan.field);
        return Err(Refusal::new(Code::InvalidParameter, message).into());
    };
    // PostgreSQL has no text with U+0000, so no record has such an id.
    let ids: Vec<&str> = plan.ids.iter().map(String::as_str).filter(|id| !id.contains('\0')).collect();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let column = ident(&field.name);
    let refers = if storage(field) == Storage::List {
        format!("t.{column} @> ARRAY[w.id]")
    } else {
        format!("t.{column} = w.id")
    };
    let text = format!(
        "SELECT w.id, r.id FROM unnest($1) WITH ORDINALITY AS w (id, place)
         CROSS JOIN LATERAL (SELECT t.id, t.{ROW} AS n FROM {} AS t WHERE {refers} ORDER BY t.{ROW} LIMIT $2) AS r
         ORDER BY w.place, r.n LIMIT $3",
        table(plan.app.id, collection)
    );
    let (most, pairs) = (i64::from(plan.most), i64::from(plan.most_pairs) + 1);
    let parameters: [&(dyn ToSql + Sync); 3] = [&ids, &most, &pairs];
    let client = store.client().await?;
    let types = [Type::TEXT_ARRAY, Type::INT8, Type::INT8];
    let statement = client.prepare_typed_cached(&text, &types).await.map_err(read_failed)?;
    let rows = client.query(&statement, &parameters).await.map_err(read_failed)?;
    if rows.len() > usize::try_from(plan.most_pairs).unwrap_or(usize::MAX) {
        let message = format!(
            "More than {} records of {} refer to what this page shows. Ask for a smaller page, or list {} with a filter.",
            plan.most_pairs, collection.name, collection.name
        );
        return Err(Refusal::new(Code::TooLarge, message).into());
    }
    let read = |row: &tokio_postgres::Row| Ok(Referrer { of: row.try_get(0)?, id: row.try_get(1)? });
    rows.iter().map(read).collect::<Result<_, _>>().map_err(broken("referring records"))
}

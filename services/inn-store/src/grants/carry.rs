//! Grants of an app whose release changes, in the transaction of the deploy.

use std::collections::BTreeSet;

use deadpool_postgres::Transaction;
use inn_ports::StoreResult;
use inn_protocol::AppId;
use inn_protocol::app::AppDefinition;
use inn_protocol::scope::Scope;
use inn_rules::access::carried;
use uuid::Uuid;

use super::rows;
use crate::error::broken;
use crate::people::sql::column;

/// Makes every live grant cover under `to` what it covered under `from` and nothing that is only called the same
/// ([`carried`]). Changed grants get a new epoch, which ends their tokens. Answers a sentence for each scope that goes.
pub(crate) async fn carry(
    tx: &Transaction<'_>,
    app: AppId,
    from: &AppDefinition,
    to: &AppDefinition,
) -> StoreResult<Vec<String>> {
    let live = "SELECT id, scopes FROM inn.grants WHERE app = $1 AND revoked_at IS NULL ORDER BY id FOR UPDATE";
    let grants = tx.query(live, &[&app.uuid()]).await.map_err(broken("grants of a release"))?;
    let mut changed: Vec<(Uuid, Vec<String>)> = Vec::new();
    let mut lost: BTreeSet<Scope> = BTreeSet::new();
    for grant in &grants {
        let (id, before) = (column(grant, "id")?, rows::scopes(grant)?);
        let after = carried(from, to, &before);
        if after != before {
            lost.extend(
                before
                    .iter()
                    .filter(|scope| carried(from, to, &BTreeSet::from([(*scope).clone()])).is_empty())
                    .cloned(),
            );
            changed.push((id, rows::texts(&after)));
        }
    }
    let change = "UPDATE inn.grants SET scopes = $2, epoch = nextval('inn.epoch') WHERE id = $1";
    for (id, scopes) in &changed {
        tx.execute(change, &[id, scopes]).await.map_err(broken("grants of a release"))?;
    }
    let sentence = |scope: &Scope| {
        format!("Take {scope} from the agents that have it: the name means something else now, and they may ask again")
    };
    Ok(lost.iter().map(sentence).collect())
}

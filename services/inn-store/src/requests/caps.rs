//! What is left of the caps of a tenant.

use deadpool_postgres::{GenericClient, Transaction};
use inn_ports::StoreResult;
use inn_protocol::queue::LimitKind;
use inn_protocol::{AppId, TenantId};
use inn_rules::requests::{Room, Rooms};
use uuid::Uuid;

use crate::people::sql::{all, column, run, unreadable};

const ROOMS: &str = "
SELECT l.kind, l.app, l.subject, greatest(0, l.most - (
    SELECT count(*) FROM inn.requests r
    WHERE r.tenant = l.tenant AND r.state IN ('working', 'input-required') AND CASE l.kind
        WHEN 'app' THEN r.app = l.app WHEN 'capability' THEN r.app = l.app AND r.capability = l.subject
        WHEN 'person' THEN r.lane = l.subject WHEN 'agent' THEN r.holder = l.subject ELSE false END))::integer AS room
FROM inn.queue_limits l WHERE l.tenant = $1 AND l.most IS NOT NULL";

pub(super) async fn rooms<C>(client: &C, tenant: TenantId) -> StoreResult<Rooms>
where
    C: GenericClient + Sync,
{
    let rows = all(client, "caps", ROOMS, &[&tenant.uuid()]).await?;
    let rooms = rows.iter().map(|row| {
        let kind: &str = column(row, "kind")?;
        Ok(Room {
            kind: LimitKind::parse(kind).ok_or_else(|| unreadable("kind of a limit", kind))?,
            app: column::<Option<Uuid>>(row, "app")?.map(AppId::from_uuid),
            subject: column(row, "subject")?,
            left: u32::try_from(column::<i32>(row, "room")?).unwrap_or_default(),
        })
    });
    Ok(Rooms::new(rooms.collect::<StoreResult<Vec<_>>>()?))
}

/// The same for a claim, which nobody else of the tenant makes until this transaction ends.
pub(super) async fn lock(tx: &Transaction<'_>, tenant: TenantId) -> StoreResult<Rooms> {
    const LOCK: &str = "SELECT pg_advisory_xact_lock(hashtextextended('inn.queue ' || $1::uuid::text, 0))";
    run(tx, "lock caps", LOCK, &[&tenant.uuid()]).await?;
    rooms(tx, tenant).await
}

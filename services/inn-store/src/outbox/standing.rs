//! Does what a listener was let in for still hold?

use inn_ports::{Live, Standing, StoreResult};
use inn_protocol::call::LiveCheck;
use inn_protocol::{AppId, SessionId};

use crate::PgStore;
use crate::error::broken;
use crate::step::account;

const LOOK: &str = "
SELECT (SELECT a.epoch FROM inn.apps a WHERE a.id = $1 AND a.status = 'active'),
    i.live_grant IS NULL
        OR EXISTS (SELECT FROM inn.grants g WHERE g.id = i.live_grant AND g.epoch = i.grant_epoch AND g.revoked_at IS NULL),
    i.member_user IS NULL
        OR EXISTS (SELECT FROM inn.members m WHERE m.tenant = i.member_tenant AND m.user_id = i.member_user
            AND m.epoch = i.member_epoch AND m.removed_at IS NULL),
    i.session IS NULL
        OR EXISTS (SELECT FROM inn.sessions s WHERE s.id = i.session AND s.ended_at IS NULL AND s.expires_at > clock_timestamp()),
    i.app_user IS NULL OR inn.app_user_there(i.app_user),
    i.ord
FROM (SELECT 1) AS one LEFT JOIN
    unnest($2::uuid[], $3::int8[], $4::uuid[], $5::uuid[], $6::int8[], $7::uuid[], $8::text[])
    WITH ORDINALITY AS i (live_grant, grant_epoch, member_tenant, member_user, member_epoch, session, app_user, ord) ON true
ORDER BY i.ord";

pub(super) async fn look(store: &PgStore, app: AppId, checks: &[&LiveCheck]) -> StoreResult<Standing> {
    let grants: Vec<_> = checks.iter().map(|check| check.grant.map(|(grant, _)| grant.uuid())).collect();
    let grant_epochs: Vec<_> = checks.iter().map(|check| check.grant.map(|(_, epoch)| epoch)).collect();
    let tenants: Vec<_> = checks.iter().map(|check| check.member.map(|(tenant, ..)| tenant.uuid())).collect();
    let users: Vec<_> = checks.iter().map(|check| check.member.map(|(_, user, _)| user.uuid())).collect();
    let member_epochs: Vec<_> = checks.iter().map(|check| check.member.map(|(.., epoch)| epoch)).collect();
    let sessions: Vec<_> = checks.iter().map(|check| check.session.map(SessionId::uuid)).collect();
    let app_users: Vec<_> = checks.iter().map(|check| account::spec(check.app_user.as_ref())).collect();
    let client = store.client().await?;
    let read = broken("standing");
    let statement = client.prepare_cached(LOOK).await.map_err(&read)?;
    let rows = client
        .query(
            &statement,
            &[&app.uuid(), &grants, &grant_epochs, &tenants, &users, &member_epochs, &sessions, &app_users],
        )
        .await
        .map_err(&read)?;
    let app_epoch = rows.first().map(|row| row.try_get(0)).transpose().map_err(&read)?.flatten();
    let live = rows.iter().take(checks.len()).map(|row| {
        Ok(Live {
            grant: row.try_get(1)?,
            member: row.try_get(2)?,
            session: row.try_get(3)?,
            app_user: row.try_get(4)?,
        })
    });
    let live = live.collect::<Result<_, _>>().map_err(&read)?;
    Ok(Standing { app_epoch, live })
}

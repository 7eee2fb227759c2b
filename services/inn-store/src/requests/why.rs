//! What stands around a request that waits.

use inn_ports::StoreResult;
use inn_protocol::queue::LimitKind;
use inn_protocol::request::QueueRequest;
use inn_rules::requests::Surroundings;

use super::rows;
use crate::PgStore;
use crate::people::sql::{all, column, one, unreadable};

/// Counted up to a thousand: more is not told apart.
const AROUND: &str = concat!(
    "SELECT r.capability = ANY(a.consented) AS consented,
    CASE WHEN r.state = 'submitted' AND NOT r.ready THEN r.next_at END AS pause_until,
    r.unique_mode IN ('running', 'both') AND EXISTS (
        SELECT FROM inn.requests h WHERE h.app = r.app AND h.capability = r.capability AND h.unique_key = r.unique_key
            AND h.state IN ('working', 'input-required') AND h.unique_mode IN ('running', 'both')) AS twin,
    (SELECT count(*) FROM (SELECT FROM inn.requests w WHERE w.app = r.app AND w.capability = r.capability AND w.lane = r.lane
        AND w.state = 'submitted' AND w.ready AND (w.rank, w.id) < (r.rank, r.id) LIMIT 1000) n) AS ahead,
    (SELECT count(*) FROM (SELECT DISTINCT w.lane FROM (SELECT w.lane FROM inn.requests w WHERE w.app = r.app
        AND w.capability = r.capability AND w.lane <> r.lane AND w.state = 'submitted' AND w.ready LIMIT 10000) w LIMIT 1000) n) AS others,
    able.agents, able.able
FROM inn.requests r JOIN inn.apps a ON a.id = r.app
CROSS JOIN LATERAL (
    SELECT count(DISTINCT g.agent) AS agents,
        count(DISTINCT g.agent) FILTER (WHERE g.others_requests OR g.user_id = r.requester_user) AS able
    FROM inn.grants g JOIN inn.members m ON m.tenant = g.tenant AND m.user_id = g.user_id
    JOIN inn.users u ON u.id = m.user_id AND ",
    rows::answers!(),
    " WHERE g.app = r.app AND g.revoked_at IS NULL AND NOT g.loopback AND 'queue:' || r.capability = ANY(g.scopes)
) able
WHERE r.id = $1"
);

const FULL: &str = "
SELECT l.kind, l.most::bigint AS most FROM inn.requests r JOIN inn.queue_limits l ON l.tenant = r.tenant AND l.most IS NOT NULL
WHERE r.id = $1 AND CASE l.kind WHEN 'app' THEN l.app = r.app WHEN 'capability' THEN l.app = r.app AND l.subject = r.capability
        WHEN 'person' THEN l.subject = r.lane ELSE false END
  AND l.most <= (SELECT count(*) FROM inn.requests h WHERE h.tenant = r.tenant AND h.state IN ('working', 'input-required')
        AND CASE l.kind WHEN 'app' THEN h.app = l.app WHEN 'capability' THEN h.app = l.app AND h.capability = l.subject
            ELSE h.lane = l.subject END)
ORDER BY l.kind";

pub(super) async fn around(store: &PgStore, request: &QueueRequest) -> StoreResult<Surroundings> {
    let client = store.client().await?;
    let id = request.id.uuid();
    // Ended ones may be in the history already, and wait for nothing.
    if request.state.is_terminal() {
        return Ok(Surroundings::default());
    }
    let row = one(&client, "around a request", AROUND, &[&id]).await?;
    let full = all(&client, "caps that are used up", FULL, &[&id]).await?;
    let full = full.iter().map(|row| {
        let kind: &str = column(row, "kind")?;
        Ok((LimitKind::parse(kind).ok_or_else(|| unreadable("kind of a limit", kind))?, column(row, "most")?))
    });
    Ok(Surroundings {
        // The store does not read releases: whoever has the app says so.
        declared: true,
        consented: column(&row, "consented")?,
        agents: column(&row, "agents")?,
        able_agents: column(&row, "able")?,
        full: full.collect::<StoreResult<Vec<_>>>()?,
        twin: column::<Option<bool>>(&row, "twin")?.unwrap_or_default(),
        ahead: column(&row, "ahead")?,
        other_requesters: column(&row, "others")?,
        pause_until: column(&row, "pause_until")?,
    })
}

//! The end of a one-statement step: entry, receipt and answer of an effect that SQL itself has described.
//!
//! A statement is [`super::guard::GUARD`], the effect (it reads `pass`, does nothing unless `pass.ok`), a table `said
//! (sentence, "row")` with at most one row, and [`KEEP`]. It keeps nothing at all when it ends through `inn.stop`.

use inn_protocol::register::EntryDraft;
use inn_protocol::{AgentId, AppId, GrantId, UserId};
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use crate::register;

/// Entry and receipt of the row in `said`, by the recipe of `super::FINISH`. `$18` is the call, `$20` to `$28` are
/// [`Entry::list`]; the effect's own parameters follow from `$29` on.
pub(crate) const KEEP: &str = "
moment AS MATERIALIZED (SELECT clock_timestamp() AS at),
effect AS MATERIALIZED (
    SELECT s.sentence, s.\"row\", m.at, sha256(convert_to(s.sentence || E'\\n\\n' || s.\"row\" || E'\\n', 'UTF8')) AS effect
    FROM said s, moment m
),
entry AS (
    INSERT INTO inn.entries (call, tenant, at, app, caller, user_id, agent, grant_id, action, target, facts, outcome, effect, digest)
    SELECT $18, $20, at, $21, $22, $23, $24, $25, $26, $27, $28, 'done', effect,
        sha256(convert_to($28 || E'\\ndone\\n' || ((extract(epoch FROM at) * 1000000)::bigint)::text || E'\\n' || encode(effect, 'hex'), 'UTF8'))
    FROM effect
),
receipt AS (
    INSERT INTO inn.receipts (call, tenant, app, at, action, sentence, \"row\")
    SELECT $18, $20, $21, at, $26, sentence, \"row\" FROM effect
)";

pub(crate) const TYPES: [Type; 9] =
    [Type::UUID, Type::UUID, Type::TEXT, Type::UUID, Type::TEXT, Type::UUID, Type::TEXT, Type::TEXT, Type::TEXT];

/// The values of the entry's parameters, owned so that they can be borrowed as one list.
pub(crate) struct Entry<'a> {
    tenant: Uuid,
    app: Option<Uuid>,
    caller: &'a str,
    user: Option<Uuid>,
    agent: Option<&'a str>,
    grant: Option<Uuid>,
    action: String,
    target: String,
    facts: String,
}

impl<'a> Entry<'a> {
    pub(crate) fn new(draft: &'a EntryDraft) -> Self {
        Self {
            tenant: draft.tenant.uuid(),
            app: draft.app.map(AppId::uuid),
            caller: draft.caller,
            user: draft.user.map(UserId::uuid),
            agent: draft.agent.as_ref().map(AgentId::as_str),
            grant: draft.grant.map(GrantId::uuid),
            action: register::printable(&draft.action),
            target: register::printable(&draft.target),
            facts: draft.canonical(),
        }
    }

    pub(crate) fn list(&self) -> [&(dyn ToSql + Sync); 9] {
        [
            &self.tenant,
            &self.app,
            &self.caller,
            &self.user,
            &self.agent,
            &self.grant,
            &self.action,
            &self.target,
            &self.facts,
        ]
    }
}

//! Putting a request into the queue.

use deadpool_postgres::Object;
use inn_ports::{AskReceipt, StoreError, StoreResult};
use inn_protocol::app::AppSnapshot;
use inn_protocol::receipt::Receipt;
use inn_protocol::register::CallRecord;
use inn_protocol::request::NewRequest;
use inn_protocol::{AgentId, AppId, CallId, Code, JobId, Refusal, RequestId, UserId, canonical};
use serde_json::{Value, json};
use tokio_postgres::Error;
use tokio_postgres::types::{Json, ToSql, Type};

use super::{claim, rows};
use crate::PgStore;
use crate::error::{broken, classify, verdict};
use crate::people::sql::{column, one, readable};
use crate::register;
use crate::step::guard::{self, Key};
use crate::step::{account, once};

/// One statement. With a key of which only one may wait, a request that waits already is joined instead.
fn text() -> &'static str {
    static TEXT: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    TEXT.get_or_init(|| {
        format!(
            "{guard},
            live_user AS MATERIALIZED (SELECT CASE WHEN $29::text IS NULL THEN true ELSE inn.app_user_live($29) END AS ok),
            app AS MATERIALIZED (
                SELECT a.*, p.ok AND u.ok AS open FROM inn.apps a, pass p, live_user u
                WHERE a.id = $30 AND a.tenant = $20 AND a.status = 'active' AND $32::text = ANY(a.consented)
            ),
            same AS MATERIALIZED (
                SELECT r.* FROM inn.requests r, app WHERE $41::text IN ('queued', 'both') AND r.app = $30 AND r.capability = $32
                  AND r.unique_key = $42 AND r.unique_mode IN ('queued', 'both') AND r.state = 'submitted'
                ORDER BY r.rank, r.id LIMIT 1
            ),
            asked AS (
                INSERT INTO inn.requests (id, tenant, app, capability, payload, requester_user, requester_label,
                    lease_seconds, attempts, hard_seconds, priority, rank, replay_of, unique_mode, unique_key, job)
                SELECT $31, app.tenant, app.id, $32, $33::json, $34, $35, $36, $37, $38, $39::smallint,
                    clock_timestamp() + ($39::smallint - 3) * interval '10 minutes', $40, $41, $42, $45
                FROM app WHERE app.open AND NOT EXISTS (SELECT FROM same)
                ON CONFLICT (app, capability, unique_key)
                    WHERE state = 'submitted' AND epoch = 0 AND unique_mode IN ('queued', 'both') DO NOTHING
                RETURNING *
            ),
            job AS (
                INSERT INTO inn.jobs (id, tenant, app, operation, kind, params, requester_user, requester_label, agent,
                    request, attempts, retry_of, lines)
                SELECT n.job, n.tenant, n.app, $46, 'agent', n.payload, n.requester_user, n.requester_label, $47, n.id,
                    n.attempts, $48, 1 FROM asked n WHERE n.job IS NOT NULL
                RETURNING id, created_at
            ),
            job_line AS (
                INSERT INTO inn.job_lines (job, seq, at, kind, text) SELECT id, 1, created_at, 'state', 'queued' FROM job
            ),
            kept AS MATERIALIZED (
                SELECT *, false AS joined FROM asked UNION ALL SELECT same.*, true FROM same, app WHERE app.open
            ),
            told AS (
                INSERT INTO inn.outbox (tenant, app, topic, body)
                SELECT k.tenant, k.app, 'requests.submitted', $44::json FROM kept k WHERE NOT k.joined
            ),
            said AS MATERIALIZED (
                SELECT CASE WHEN k.joined THEN 'Joined the request for \"' || $32 || '\" that waits already'
                        ELSE 'Asked agents for \"' || $32 || '\"' END AS sentence,
                    CASE WHEN k.joined THEN json_build_object('joined', 'req_' || replace(k.id::text, '-', ''),
                        'capability', $32, 'state', k.state)::text ELSE $43 END AS \"row\"
                FROM kept k
            ),{keep}
            SELECT {columns}, r.joined, s.sentence, s.\"row\", m.at FROM (
                SELECT CASE WHEN NOT EXISTS (SELECT FROM kept) THEN inn.stop(json_build_object(
                    'free', p.free, 'live', p.live AND u.ok, 'fresh', p.fresh, 'ok', p.ok,
                    'consented', EXISTS (SELECT FROM app))::text) END AS stopped
                FROM pass p, live_user u
            ) v CROSS JOIN moment m LEFT JOIN kept r ON v.stopped IS NULL LEFT JOIN said s ON true
            LEFT JOIN inn.apps a ON a.id = r.app",
            guard = guard::GUARD,
            keep = once::KEEP,
            columns = rows::columns!(),
        )
    })
}

/// Types of the statement's own parameters, from `$29` on.
const TYPES: [Type; 20] = [
    Type::TEXT,
    Type::UUID,
    Type::UUID,
    Type::TEXT,
    Type::JSON,
    Type::UUID,
    Type::TEXT,
    Type::INT4,
    Type::INT4,
    Type::INT4,
    Type::INT2,
    Type::UUID,
    Type::TEXT,
    Type::BYTEA,
    Type::TEXT,
    Type::JSON,
    Type::UUID,
    Type::TEXT,
    Type::TEXT,
    Type::UUID,
];

pub(super) async fn ask(
    store: &PgStore,
    call: &CallRecord,
    app: &AppSnapshot,
    new: &NewRequest,
) -> StoreResult<AskReceipt> {
    readable("requester", &new.requester_label, 320)?;
    let client = store.client().await?;
    if store.inner.queue.may_be_full(app.id, new.max_open) {
        count(store, &client, app.id, new.max_open).await?;
    }
    let asked = at_once(&client, call, app, new).await;
    if matches!(asked, Err(StoreError::Unknown)) {
        // The pool may not have noticed yet that this connection is dead; the next call must not get it.
        drop(Object::take(client));
    }
    let (asked, place) = asked?;
    if let Some((lane, rank)) = place {
        store.inner.queue.waits(app.id, &asked.request.capability, &lane, rank);
    }
    Ok(asked)
}

/// Counted up to the limit only. Askers do not wait for each other, so as many as there are connections may pass at once.
const OPEN: &str = "
SELECT count(*) AS open FROM (SELECT FROM inn.requests WHERE app = $1 AND ended_at IS NULL LIMIT $2) counted";

async fn count(store: &PgStore, client: &Object, app: AppId, most: u32) -> StoreResult<()> {
    let limit = i64::from(most);
    let open: i64 = column(&one(client, "count open requests", OPEN, &[&app.uuid(), &limit]).await?, "open")?;
    store.inner.queue.counted(app, open);
    if open < limit {
        return Ok(());
    }
    let message = format!(
        "This app has {open} requests waiting for agents, which is the most it may have. Ask again when some are done."
    );
    Err(Refusal::new(Code::RateLimited, message).after(30).leg("app").into())
}

/// The request, and its place in the queue when it is a new one.
type Asked = (AskReceipt, Option<(String, chrono::DateTime<chrono::Utc>)>);

async fn at_once(client: &Object, call: &CallRecord, app: &AppSnapshot, new: &NewRequest) -> StoreResult<Asked> {
    let mut stored = json!({
        "request": new.id, "capability": new.capability, "state": "submitted", "requester": new.requester,
        "requesterLabel": new.requester_label, "payload": new.payload, "priority": new.priority,
        "replayOf": new.replay_of, "unique": new.unique.as_ref().map(|unique| unique.mode),
    });
    if let (Some(job), Some(members)) = (&new.job, stored.as_object_mut()) {
        members.insert("job".to_owned(), json!(job.id));
        members.insert("operation".to_owned(), json!(job.operation));
    }
    let stored = canonical::to_string(&stored);
    let told = json!({ "request": new.id, "capability": new.capability, "state": "submitted" });
    let id = new.id.uuid();
    // What a repeated call is pointed to.
    let record = new.job.as_ref().map_or_else(|| new.id.to_string(), |job| job.id.to_string());
    let job = new.job.as_ref().map(|job| job.id.uuid());
    let operation = new.job.as_ref().map(|job| job.operation.as_str());
    let agent = new.job.as_ref().and_then(|job| job.agent.as_ref()).map(AgentId::as_str);
    let retry_of = new.job.as_ref().and_then(|job| job.retry_of).map(JobId::uuid);
    let (guard, entry) = (guard::Parameters::new(call, Some(&record)), once::Entry::new(&call.draft));
    let (app_id, requester) = (app.id.uuid(), new.requester.map(UserId::uuid));
    let spec = account::spec(call.live.app_user.as_ref());
    let [lease, attempts, hard] = [new.lease_seconds, new.attempts, new.hard_seconds].map(|n| rows::stored(n.max(1)));
    let priority = i16::from(new.priority.clamp(1, 5));
    let replay_of = new.replay_of.map(RequestId::uuid);
    let unique = new.unique.as_ref().filter(|_| new.job.is_none());
    let mode = unique.map(|unique| unique.mode.as_str());
    let key = unique.map(|unique| unique.key.0.as_slice());
    let (payload, told): (Json<&Value>, Json<&Value>) = (Json(&new.payload), Json(&told));
    let own: [&(dyn ToSql + Sync); 20] = [
        &spec,
        &app_id,
        &id,
        &new.capability,
        &payload,
        &requester,
        &new.requester_label,
        &lease,
        &attempts,
        &hard,
        &priority,
        &replay_of,
        &mode,
        &key,
        &stored,
        &told,
        &job,
        &operation,
        &agent,
        &retry_of,
    ];
    let types: Vec<Type> = guard::TYPES.into_iter().chain(once::TYPES).chain(TYPES).collect();
    let statement = client.prepare_typed_cached(text(), &types).await.map_err(broken("ask"))?;
    let parameters: Vec<_> = guard.list().into_iter().chain(entry.list()).chain(own).collect();
    let row = match client.query_one(&statement, &parameters).await {
        Ok(row) => row,
        Err(error) => return Err(stopped(client, call, new, &error).await),
    };
    let request = rows::request(&row)?;
    let joined: bool = column(&row, "joined")?;
    let place = (!joined).then(|| Ok::<_, StoreError>((column(&row, "lane")?, column(&row, "rank")?))).transpose()?;
    let receipt = Receipt {
        id: CallId::from_uuid(call.draft.call.uuid()),
        app: call.draft.app,
        at: column(&row, "at")?,
        action: call.draft.action.clone(),
        sentence: column(&row, "sentence")?,
        entity: None,
        record: None,
        stored: register::object(column(&row, "row")?)?,
    };
    Ok((AskReceipt { request, receipt }, place))
}

async fn stopped(client: &Object, call: &CallRecord, new: &NewRequest, error: &Error) -> StoreError {
    let Some(verdict) = verdict(error) else { return classify("ask", error, StoreError::Unknown) };
    match claim::passed(&verdict).check() {
        Err(error) => return error,
        Ok(Key::Used) => return guard::used(client, call).await.map_or_else(|error| error, StoreError::from),
        Ok(Key::Unused) => {}
    }
    if verdict.get("consented").and_then(Value::as_bool).unwrap_or(false) {
        // Somebody asked for the same in the same moment, and could not be seen yet.
        return StoreError::Stale;
    }
    let message = format!("The app's owner has not consented to \"{}\".", new.capability);
    let refusal = Refusal::new(Code::NotConsented, message).leg("app");
    refusal.fix("An owner of the tenant can consent to it.").into()
}

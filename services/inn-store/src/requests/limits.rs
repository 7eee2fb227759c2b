//! Weights and caps of the queue, as people set them.

use inn_ports::StoreResult;
use inn_protocol::queue::{LimitKind, NewLimit, QueueLimit};
use inn_protocol::receipt::Receipt;
use inn_protocol::register::CallRecord;
use inn_protocol::{AppId, Code, Refusal, TenantId};
use serde_json::json;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::PgStore;
use crate::people::sql::{all, column, facts, maybe, one, run, unreadable};

/// Limits one tenant may set.
const MOST_LIMITS: i64 = 10_000;

/// A person is shown by e-mail address, where there is one.
const LIST: &str = "
SELECT l.kind, l.app, a.slug, l.subject, coalesce(u.email, nullif(ltrim(l.subject, '~'), ''), t.slug) AS name, l.weight, l.most, l.updated_at
FROM inn.queue_limits l JOIN inn.tenants t ON t.id = l.tenant LEFT JOIN inn.apps a ON a.id = l.app
LEFT JOIN inn.users u ON l.kind = 'person' AND u.id::text = l.subject
WHERE l.tenant = $1 ORDER BY l.kind, a.slug, name";

pub(super) async fn list(store: &PgStore, tenant: TenantId) -> StoreResult<Vec<QueueLimit>> {
    let client = store.client().await?;
    all(&client, "queue limits", LIST, &[&tenant.uuid()]).await?.iter().map(limit).collect()
}

fn limit(row: &Row) -> StoreResult<QueueLimit> {
    let kind: &str = column(row, "kind")?;
    let whole = |number: i32| u32::try_from(number).map_err(|_| unreadable("limit", "a negative number"));
    Ok(QueueLimit {
        kind: LimitKind::parse(kind).ok_or_else(|| unreadable("kind of a limit", kind))?,
        app: column::<Option<Uuid>>(row, "app")?.map(AppId::from_uuid),
        app_slug: column(row, "slug")?,
        subject: column(row, "subject")?,
        name: column(row, "name")?,
        weight: whole(column::<i16>(row, "weight")?.into())?,
        most: column::<Option<i32>>(row, "most")?.map(whole).transpose()?,
        updated_at: column(row, "updated_at")?,
    })
}

/// Weighing tenants is for whoever runs the platform: an owner of its first tenant.
const MAY_WEIGH: &str = "SELECT $1 = (SELECT id FROM inn.tenants ORDER BY created_at, id LIMIT 1) AS may";

const TENANT: &str = "SELECT id FROM inn.tenants WHERE slug = $1";

/// A member by address, else a visitor or a user of an app by name.
const PERSON: &str = "
SELECT coalesce((SELECT u.id::text FROM inn.users u JOIN inn.members m ON m.user_id = u.id
    WHERE m.tenant = $1 AND lower(u.email) = lower($2) LIMIT 1), '~' || $2) AS lane";

const SLUG: &str = "SELECT slug FROM inn.apps WHERE id = $1";

const HOW_MANY: &str = "SELECT count(*) AS limits FROM inn.queue_limits WHERE tenant = $1";

const SET: &str = "
INSERT INTO inn.queue_limits AS l (tenant, kind, app, subject, weight, most) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (tenant, kind, coalesce(app, '00000000-0000-0000-0000-000000000000'::uuid), subject)
DO UPDATE SET weight = excluded.weight, most = excluded.most, updated_at = clock_timestamp()";

const CLEAR: &str = "
DELETE FROM inn.queue_limits WHERE tenant = $1 AND kind = $2 AND app IS NOT DISTINCT FROM $3 AND subject = $4";

pub(super) async fn set(store: &PgStore, call: &CallRecord, tenant: TenantId, new: &NewLimit) -> StoreResult<Receipt> {
    let mut client = store.client().await?;
    let step = store.begin(&mut client, call).await?;
    let mut of = tenant;
    let subject = match new.kind {
        LimitKind::Tenant => {
            if !column::<bool>(&one(step.tx(), "first tenant", MAY_WEIGH, &[&tenant.uuid()]).await?, "may")? {
                let message = "Only owners of the platform's first tenant weigh tenants against each other.";
                return Err(step.refuse(Refusal::new(Code::Forbidden, message).leg("user")).await);
            }
            let Some(row) = maybe(step.tx(), "find tenant", TENANT, &[&new.subject]).await? else {
                return Err(step.refuse(Refusal::not_found()).await);
            };
            of = TenantId::from_uuid(column(&row, "id")?);
            String::new()
        }
        LimitKind::Person => {
            column(&one(step.tx(), "find person", PERSON, &[&tenant.uuid(), &new.subject]).await?, "lane")?
        }
        LimitKind::App | LimitKind::Capability | LimitKind::Agent => new.subject.clone(),
    };
    let (app, kind) = (new.app.map(AppId::uuid), new.kind.as_str());
    if new.is_default() {
        run(step.tx(), "clear limit", CLEAR, &[&of.uuid(), &kind, &app, &subject]).await?;
    } else {
        let limits: i64 = column(&one(step.tx(), "count limits", HOW_MANY, &[&of.uuid()]).await?, "limits")?;
        if limits >= MOST_LIMITS {
            let message = format!("This tenant has {MOST_LIMITS} limits already, which is the most it may have.");
            return Err(step.refuse(Refusal::new(Code::Conflict, message)).await);
        }
        let weight = i16::try_from(new.weight).unwrap_or(1);
        let most = new.most.map(|most| i32::try_from(most).unwrap_or(i32::MAX));
        run(step.tx(), "set limit", SET, &[&of.uuid(), &kind, &app, &subject, &weight, &most]).await?;
    }
    let cap = new.most.map_or_else(|| "no cap".to_owned(), |most| format!("at most {most} at a time"));
    let slug = match app {
        Some(app) => maybe(step.tx(), "app's slug", SLUG, &[&app]).await?,
        None => None,
    };
    let slug = slug.map(|row| column::<String>(&row, "slug")).transpose()?.unwrap_or_default();
    let about = [kind, &slug, &new.subject].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    let sentence = format!("The queue serves {about} with weight {}, {cap}", new.weight);
    let stored = json!({ "kind": kind, "app": new.app, "subject": subject, "weight": new.weight, "most": new.most });
    let receipt = step.commit(sentence, facts(stored)).await;
    // Other nodes notice within a second.
    store.inner.queue.board().doubt();
    receipt
}

//! Tokens for `?token=`: kept by digest, good while session or grant are.

use std::collections::BTreeSet;
use std::sync::Arc;

use inn_ports::{
    Directory as _, FileTokenHolder, FileTokenPapers, FileTokenState, NewFileToken, SessionState, StoreResult,
};
use inn_protocol::receipt::Receipt;
use inn_protocol::register::CallRecord;
use inn_protocol::scope::Scope;
use inn_protocol::{AgentId, AppId, Digest, GrantId, SessionId, TenantId, UserId};
use serde_json::{Map, json};
use uuid::Uuid;

use crate::PgStore;
use crate::error::broken;

const INSERT: &str = "INSERT INTO inn.file_tokens (token, app, session, grant_id, helper, scopes, expires_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7)";

const FIND: &str = "
SELECT t.app, t.grant_id, t.helper, t.scopes, s.id, s.user_id, s.tenant, s.app, s.authenticated_at, s.expires_at
FROM inn.file_tokens t
LEFT JOIN inn.sessions s ON s.id = t.session AND s.ended_at IS NULL AND s.expires_at > clock_timestamp()
WHERE t.token = $1 AND t.expires_at > clock_timestamp()";

pub(super) async fn take(store: &PgStore, call: &CallRecord, token: &NewFileToken) -> StoreResult<Receipt> {
    let (session, grant, helper, scopes) = match &token.holder {
        FileTokenHolder::Person(session) => (Some(session.uuid()), None, None, Vec::new()),
        FileTokenHolder::Agent { grant, helper, scopes } => {
            let scopes = scopes.iter().map(ToString::to_string).collect();
            (None, Some(grant.uuid()), helper.as_ref().map(AgentId::as_str), scopes)
        }
    };
    let mut client = store.client().await?;
    let step = store.begin(&mut client, call).await?;
    let statement = step.tx().prepare_cached(INSERT).await.map_err(broken("file token"))?;
    let (digest, app) = (token.token.0.as_slice(), token.app.uuid());
    let inserted = step
        .tx()
        .execute(&statement, &[&digest, &app, &session, &grant, &helper, &scopes, &token.expires_at])
        .await
        .map_err(broken("file token"));
    if let Err(error) = inserted {
        step.abandon().await;
        return Err(error);
    }
    let stored = Map::from_iter([("expiresAt".to_owned(), json!(token.expires_at))]);
    step.commit("Took a token that opens protected files for three minutes".to_owned(), stored).await
}

pub(super) async fn state(store: &PgStore, token: Digest) -> StoreResult<Option<FileTokenState>> {
    let client = store.client().await?;
    let statement = client.prepare_cached(FIND).await.map_err(broken("file token"))?;
    let row = client.query_opt(&statement, &[&token.0.as_slice()]).await.map_err(broken("file token"))?;
    drop(client);
    let Some(row) = row else { return Ok(None) };
    let read = broken("file token");
    let app = AppId::from_uuid(row.try_get(0).map_err(&read)?);
    let grant: Option<Uuid> = row.try_get(1).map_err(&read)?;
    let papers = if let Some(grant) = grant {
        let helper: Option<&str> = row.try_get(2).map_err(&read)?;
        let scopes: Vec<&str> = row.try_get(3).map_err(&read)?;
        let scopes: BTreeSet<Scope> = scopes.iter().filter_map(|scope| scope.parse().ok()).collect();
        let Some(grant) = store.grant(GrantId::from_uuid(grant)).await? else { return Ok(None) };
        FileTokenPapers::Agent { grant, helper: helper.and_then(AgentId::parse), scopes: Arc::new(scopes) }
    } else {
        let Some(session) = row.try_get::<_, Option<Uuid>>(4).map_err(&read)? else { return Ok(None) };
        FileTokenPapers::Person(Arc::new(SessionState {
            session: SessionId::from_uuid(session),
            user: UserId::from_uuid(row.try_get(5).map_err(&read)?),
            tenant: TenantId::from_uuid(row.try_get(6).map_err(&read)?),
            app: row.try_get::<_, Option<Uuid>>(7).map_err(&read)?.map(AppId::from_uuid),
            authenticated_at: row.try_get(8).map_err(&read)?,
            expires_at: row.try_get(9).map_err(&read)?,
        }))
    };
    Ok(Some(FileTokenState { app, papers }))
}

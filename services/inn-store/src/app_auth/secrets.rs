//! The secret an app's tokens are made with: in the database only as the vault sealed it.

use deadpool_postgres::GenericClient;
use inn_grants::app_token::AppSecret;
use inn_grants::vault::{Place, Sealed, Vault};
use inn_ports::{StoreError, StoreResult};
use inn_protocol::app::AppSnapshot;
use tokio_postgres::Row;

use crate::people::sql::{all, column, maybe, must, run};

const PURPOSE: &str = "app tokens";

const FIND: &str = "SELECT key, sealed FROM inn.app_secrets WHERE app = $1 AND purpose = $2";

/// Another node may make one in the same moment: the first stays.
const MAKE: &str = "
INSERT INTO inn.app_secrets (app, purpose, key, sealed) VALUES ($1, $2, $3, $4) ON CONFLICT (app, purpose) DO NOTHING";

pub(super) async fn find<C: GenericClient + Sync>(
    client: &C,
    vault: &Vault,
    app: &AppSnapshot,
) -> StoreResult<Option<AppSecret>> {
    let found = maybe(client, "app secret", FIND, &[&app.id.uuid(), &PURPOSE]).await?;
    found.map(|row| open(&row, vault, app)).transpose()
}

pub(super) async fn make<C: GenericClient + Sync>(
    client: &C,
    vault: &Vault,
    app: &AppSnapshot,
) -> StoreResult<AppSecret> {
    if let Some(secret) = find(client, vault, app).await? {
        return Ok(secret);
    }
    let secret: [u8; 32] = rand::random();
    let sealed = vault.seal(&secret, place(app), rand::random()).map_err(damaged)?;
    run(client, "app secret", MAKE, &[&app.id.uuid(), &PURPOSE, &i64::from(sealed.key), &sealed.bytes]).await?;
    must(find(client, vault, app).await?)
}

pub(super) async fn keys<C: GenericClient + Sync>(client: &C) -> StoreResult<Vec<u32>> {
    let rows = all(client, "secret keys", "SELECT DISTINCT key FROM inn.app_secrets ORDER BY key", &[]).await?;
    let number = |row: &Row| Ok(u32::try_from(column::<i64>(row, "key")?).unwrap_or_default());
    rows.iter().map(number).collect()
}

fn open(row: &Row, vault: &Vault, app: &AppSnapshot) -> StoreResult<AppSecret> {
    let key: i64 = column(row, "key")?;
    let sealed = Sealed { key: u32::try_from(key).unwrap_or_default(), bytes: column(row, "sealed")? };
    let secret = vault.open(&sealed, place(app)).map_err(damaged)?;
    let secret = secret.try_into().map_err(|_| damaged("it has another length"))?;
    Ok(AppSecret::from_bytes(secret))
}

fn place(app: &AppSnapshot) -> Place<'static> {
    Place { tenant: app.tenant, app: app.id, purpose: PURPOSE }
}

fn damaged(cause: impl std::fmt::Display) -> StoreError {
    tracing::error!(%cause, "an app's token secret cannot be opened");
    StoreError::Broken
}

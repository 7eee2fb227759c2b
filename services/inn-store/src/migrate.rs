//! Bringing the platform's tables up to date. Several nodes may start at once: one does it, the others wait.

use tokio_postgres::{Client, NoTls};

use crate::error::{SetupError, chain};
use crate::pool;

mod embedded {
    refinery::embed_migrations!("../../migrations");
}

/// Held on one database session around a run: the runner takes no lock of its own.
const LOCK: &str = "SELECT pg_advisory_lock(hashtextextended('inn.migrate', 0))";
const UNLOCK: &str = "SELECT pg_advisory_unlock(hashtextextended('inn.migrate', 0))";

/// Applies what is pending and makes the partitions of the next months. Answers the names of the applied migrations.
pub async fn migrate(url: &str) -> Result<Vec<String>, SetupError> {
    let mut client = session(url).await?;
    client.batch_execute(LOCK).await.map_err(|error| SetupError::Migration(chain(&error)))?;
    let outcome = run(&mut client).await;
    // The lock ends with the session anyway; a failed unlock must not hide a failed migration.
    if let Err(error) = client.batch_execute(UNLOCK).await {
        tracing::warn!(error = %chain(&error), "the migration lock was not released before the session ended");
    }
    outcome
}

async fn run(client: &mut Client) -> Result<Vec<String>, SetupError> {
    let report =
        embedded::migrations::runner().run_async(client).await.map_err(|error| SetupError::Migration(chain(&error)))?;
    client
        .batch_execute("SELECT inn.ensure_partitions(2)")
        .await
        .map_err(|error| SetupError::Migration(chain(&error)))?;
    Ok(report.applied_migrations().iter().map(ToString::to_string).collect())
}

/// Names of the migrations this binary brings and the database does not have yet.
pub async fn pending(url: &str) -> Result<Vec<String>, SetupError> {
    let mut client = session(url).await?;
    let runner = embedded::migrations::runner();
    let broken = |error: &dyn std::error::Error| SetupError::Migration(chain(error));
    let known = client
        .query_one("SELECT to_regclass('public.refinery_schema_history') IS NOT NULL", &[])
        .await
        .map_err(|error| broken(&error))?;
    let applied = if known.get::<_, bool>(0) {
        runner.get_applied_migrations_async(&mut client).await.map_err(|error| broken(&error))?
    } else {
        Vec::new()
    };
    let missing =
        runner.get_migrations().iter().filter(|ours| applied.iter().all(|done| done.version() != ours.version()));
    Ok(missing.map(ToString::to_string).collect())
}

async fn session(url: &str) -> Result<Client, SetupError> {
    let mut target = pool::parse(url)?;
    target.connect_timeout(std::time::Duration::from_secs(10)).application_name("inn migrate");
    let (client, connection) = target.connect(NoTls).await.map_err(|error| SetupError::Unreachable(chain(&error)))?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::warn!(error = %chain(&error), "database connection ended");
        }
    });
    // A role called `inn` would have the schema `inn` first in its path: the runner, which says only the table's name,
    // would then start a second, empty history there and apply everything again.
    client.batch_execute("SET search_path TO public").await.map_err(|error| SetupError::Migration(chain(&error)))?;
    Ok(client)
}

#[cfg(test)]
mod tests;

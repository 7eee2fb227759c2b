//! Sends this node's hints to the others.

use std::sync::Arc;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisResult};

use super::{Backoff, CHANNEL, COALESCE, PATIENCE, Shared};
use crate::wire::{self, News};

/// Sends what is unsent, at once when it was quiet and then at most every [`COALESCE`]. What could not be sent becomes
/// one "everything" for the moment Redis is back, so the wait is bounded in memory and nobody stays stale.
pub(super) async fn run(client: Client, shared: Arc<Shared>) {
    let mut connection = None;
    let mut backoff = Backoff::new();
    loop {
        shared.publish.notified().await;
        loop {
            let news = std::mem::take(&mut *shared.unsent.lock());
            if news.is_empty() {
                break;
            }
            match send(&client, &mut connection, &wire::write(shared.node, &news)).await {
                Ok(()) => {
                    backoff = Backoff::new();
                    tokio::time::sleep(COALESCE).await;
                }
                Err(error) => {
                    tracing::warn!(%error, "Redis did not take hints; other nodes find out from the database");
                    connection = None;
                    *shared.unsent.lock() = News::Everything;
                    backoff.pause().await;
                }
            }
        }
    }
}

async fn send(client: &Client, connection: &mut Option<MultiplexedConnection>, message: &str) -> RedisResult<()> {
    let attempt = async {
        let mut live = if let Some(live) = connection.take() {
            live
        } else {
            let config = AsyncConnectionConfig::new()
                .set_connection_timeout(Some(PATIENCE))
                .set_response_timeout(Some(PATIENCE));
            client.get_multiplexed_async_connection_with_config(&config).await?
        };
        redis::cmd("PUBLISH").arg(CHANNEL).arg(message).query_async::<()>(&mut live).await?;
        *connection = Some(live);
        Ok(())
    };
    // The client's own timers do not cover every wait inside it, hence one around the whole.
    tokio::time::timeout(PATIENCE * 2, attempt).await.unwrap_or_else(|_| Err(super::timed_out()))
}

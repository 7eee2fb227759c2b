//! Hears the hints of other nodes.

use std::sync::Arc;

use futures_util::StreamExt as _;
use redis::aio::{PubSubSink, PubSubStream};
use redis::{Client, RedisResult};

use super::{Backoff, CHANNEL, HEARTBEAT, PATIENCE, Shared};
use crate::wire::{self, News};

/// Subscribes on a connection of its own (a subscription would hold up every other answer, and has no response time),
/// again after every loss. Pub/Sub keeps nothing, so each new subscription means: look at everything again.
pub(super) async fn run(client: Client, shared: Arc<Shared>) {
    let mut backoff = Backoff::new();
    loop {
        match within(subscribe(&client)).await {
            Ok((sink, stream)) => {
                backoff = Backoff::new();
                shared.hub.wake_everything();
                tracing::info!("listening for hints of other nodes");
                let error = listen(sink, stream, &shared).await;
                tracing::warn!(%error, "lost the subscription to other nodes' hints; trying again");
            }
            Err(error) => tracing::warn!(%error, "Redis does not answer; other nodes' hints are late until it does"),
        }
        backoff.pause().await;
    }
}

async fn subscribe(client: &Client) -> RedisResult<(PubSubSink, PubSubStream)> {
    let mut pubsub = client.get_async_pubsub().await?;
    pubsub.subscribe(CHANNEL).await?;
    Ok(pubsub.split())
}

/// Hands hints on until the connection is lost; answers why.
async fn listen(mut sink: PubSubSink, mut stream: PubSubStream, shared: &Shared) -> redis::RedisError {
    loop {
        match tokio::time::timeout(HEARTBEAT, stream.next()).await {
            Ok(Some(message)) => match message.get_payload::<String>() {
                Ok(text) => hear(&text, shared),
                Err(error) => tracing::debug!(%error, "a message on the hint channel is not text"),
            },
            Ok(None) => return (redis::ErrorKind::Io, "the connection was closed").into(),
            // A dead peer looks like a quiet one until it is asked.
            Err(_quiet) => {
                if let Err(error) = within(sink.ping::<redis::Value>()).await {
                    return error;
                }
            }
        }
    }
}

fn hear(text: &str, shared: &Shared) {
    match wire::read(text) {
        Some((node, _)) if node == shared.node => {}
        Some((_, News::Topics(topics))) => topics.into_iter().for_each(|topic| shared.hub.wake(topic)),
        Some((_, News::Everything)) => shared.hub.wake_everything(),
        None => tracing::debug!("a message on the hint channel is not a node's"),
    }
}

async fn within<T>(attempt: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
    tokio::time::timeout(PATIENCE, attempt).await.unwrap_or_else(|_| Err(super::timed_out()))
}

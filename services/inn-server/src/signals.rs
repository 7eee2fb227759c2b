//! SIGTERM and SIGINT: the polite ways to end a process.

use anyhow::Context as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Answers a token that the first of either signal cancels. From here on neither ends the process by itself.
pub(crate) fn watch() -> anyhow::Result<CancellationToken> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("signals cannot be watched")?;
    let stop = CancellationToken::new();
    let told = stop.clone();
    let (mut terminate, mut interrupt) = {
        let _entered = runtime.enter();
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?)
    };
    std::thread::Builder::new().name("inn-signals".to_owned()).spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = terminate.recv() => tracing::info!("SIGTERM"),
                _ = interrupt.recv() => tracing::info!("SIGINT"),
            }
        });
        told.cancel();
    })?;
    Ok(stop)
}

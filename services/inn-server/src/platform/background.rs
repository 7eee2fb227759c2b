//! The loops of one node. Every node runs all of them: what must not be done twice at a time is settled by rows.

use std::sync::Arc;
use std::time::{Duration, Instant};

use actix_web::web;
use inn_blobs::BlobStore;
use inn_http::HttpState;
use inn_ports::{Files as _, Jobs as _, Objects as _, PolicyHints, Requests as _, StoreError, Topic};
use inn_store::PgStore;
use parking_lot::Mutex;

use super::parts::Parts;
use crate::loops::Loops;
use crate::vitals::PlatformVitals;

/// Heads are signed at least every second (DESIGN section 7).
const SEAL: Duration = Duration::from_millis(250);
/// A lost lease is noticed at most this late.
const SWEEP: Duration = Duration::from_secs(1);
/// Bytes of what was deleted are gone this soon.
const FILES: Duration = Duration::from_secs(2);
const FILES_AT_ONCE: u16 = 50;
const HOUSEKEEPING: Duration = Duration::from_mins(5);
const CLOCK: Duration = Duration::from_secs(10);
/// Dropped columns and tables come back with a rollback for this many days.
const KEPT_DAYS: i64 = 30;
const PURGE: Duration = Duration::from_hours(1);
const STUCK: Duration = Duration::from_secs(15);
const TIDY: Duration = Duration::from_mins(1);
/// Token files of apps that came or went without a hint.
const TOKENS: Duration = Duration::from_secs(30);

pub(super) fn start(loops: &mut Loops, parts: &Parts, state: &web::Data<HttpState>, vitals: &Arc<PlatformVitals>) {
    let store = parts.store.clone();
    let (watched, last) = (Arc::clone(vitals), Arc::new(Mutex::new(Instant::now())));
    loops.every("sealer", SEAL, move || {
        let (store, vitals, last) = (store.clone(), Arc::clone(&watched), Arc::clone(&last));
        async move {
            // Nothing is unsealed for longer than since the last round that ended well.
            vitals.seal_lag(last.lock().elapsed());
            let began = Instant::now();
            store.seal_all().await?;
            *last.lock() = began;
            vitals.seal_lag(began.elapsed());
            Ok::<_, StoreError>(())
        }
    });

    let (store, bus) = (parts.store.clone(), Arc::clone(&parts.bus));
    loops.every("request sweeper", SWEEP, move || {
        let (store, bus) = (store.clone(), Arc::clone(&bus));
        async move {
            for app in store.sweep_requests().await? {
                bus.publish(Topic::Requests(app)).await;
            }
            Ok::<_, StoreError>(())
        }
    });

    let (store, bus) = (parts.store.clone(), Arc::clone(&parts.bus));
    loops.every("job sweeper", SWEEP, move || {
        let (store, bus) = (store.clone(), Arc::clone(&bus));
        async move {
            for app in store.sweep_jobs().await? {
                bus.publish(Topic::Requests(app)).await;
            }
            Ok::<_, StoreError>(())
        }
    });

    let (store, watched) = (parts.store.clone(), Arc::clone(vitals));
    loops.every("stuck rows", STUCK, move || {
        let (store, vitals) = (store.clone(), Arc::clone(&watched));
        async move {
            let stuck = store.stuck().await? + store.stuck_jobs().await?;
            vitals.stuck(stuck);
            if stuck > 0 {
                tracing::error!(stuck, "requests or jobs without owner, deadline or next step");
            }
            Ok::<_, StoreError>(())
        }
    });

    let (store, blobs) = (parts.store.clone(), parts.blobs.clone());
    loops.every("file sweeper", FILES, move || {
        let (store, blobs) = (store.clone(), blobs.clone());
        async move { sweep_files(&store, &blobs).await }
    });

    let store = parts.store.clone();
    loops.every("housekeeping", HOUSEKEEPING, move || {
        let store = store.clone();
        async move {
            let done = store.housekeeping().await?;
            tracing::debug!(?done, "housekeeping");
            Ok::<_, StoreError>(())
        }
    });

    let store = parts.store.clone();
    loops.every("purge of dropped columns", PURGE, move || {
        let store = store.clone();
        async move {
            let purged = store.purge_dropped(chrono::Duration::days(KEPT_DAYS)).await?;
            if purged > 0 {
                tracing::info!(purged, "columns and tables dropped a month ago are gone now");
            }
            Ok::<_, StoreError>(())
        }
    });

    let (store, clock, watched) = (parts.store.clone(), parts.clock.clone(), Arc::clone(vitals));
    loops.every("clock", CLOCK, move || {
        let (store, clock, vitals) = (store.clone(), clock.clone(), Arc::clone(&watched));
        async move {
            let offset = clock.measure(&store).await?;
            vitals.clock_offset(offset.as_seconds_f64());
            Ok::<_, StoreError>(())
        }
    });

    let state_of_rates = state.clone().into_inner();
    loops.every("rate windows", TIDY, move || {
        state_of_rates.rates.tidy();
        std::future::ready(Ok::<_, StoreError>(()))
    });

    realtime(loops, parts, state);
    policy(loops, parts, state);
    tokens(loops, parts);
}

/// Removes the bytes of files that nothing names (any more), a few at a time until none is due.
async fn sweep_files(store: &PgStore, blobs: &BlobStore) -> Result<(), StoreError> {
    loop {
        let due = store.due_files(FILES_AT_ONCE).await?;
        if due.is_empty() {
            return Ok(());
        }
        let mut removed = Vec::with_capacity(due.len());
        let mut failed = None;
        for file in due {
            match blobs.remove(file.key).await {
                Ok(()) => removed.push(file),
                // It stays due: the lease ends in a minute.
                Err(error) => failed = Some(error),
            }
        }
        store.files_removed(&removed).await?;
        if let Some(error) = failed {
            return Err(error);
        }
    }
}

/// Streams of events: what was committed anywhere is told here, and who may listen no longer is sent away.
fn realtime(loops: &mut Loops, parts: &Parts, state: &web::Data<HttpState>) {
    let fed = state.clone().into_inner();
    loops.every("realtime", Duration::from_millis(1), move || {
        let state = Arc::clone(&fed);
        async move { state.realtime.feed().await }
    });
    let state = state.clone().into_inner();
    let hints: Arc<tokio::sync::Mutex<Box<dyn PolicyHints>>> =
        Arc::new(tokio::sync::Mutex::new(parts.bus.policy_hints()));
    loops.every("realtime rights", Duration::from_millis(10), move || {
        let (state, hints) = (Arc::clone(&state), Arc::clone(&hints));
        async move { state.realtime.watch(&mut **hints.lock().await).await }
    });
}

/// Rights or releases changed somewhere: what the gateway remembers is looked up again.
fn policy(loops: &mut Loops, parts: &Parts, state: &web::Data<HttpState>) {
    let state = state.clone().into_inner();
    let hints: Arc<tokio::sync::Mutex<Box<dyn PolicyHints>>> =
        Arc::new(tokio::sync::Mutex::new(parts.bus.policy_hints()));
    loops.every("policy hints", Duration::from_millis(1), move || {
        let (state, hints) = (Arc::clone(&state), Arc::clone(&hints));
        async move {
            let hint = hints.lock().await.next().await;
            if hint.is_none() {
                return Err("the bus has ended");
            }
            state.gateway.forget_all();
            Ok(())
        }
    });
}

/// Apps that are deployed or removed while the platform runs get or lose their agent token file.
fn tokens(loops: &mut Loops, parts: &Parts) {
    let Some(tokens) = parts.tokens.clone() else { return };
    let (store, bus) = (parts.store.clone(), Arc::clone(&parts.bus));
    let hints: Arc<tokio::sync::Mutex<Box<dyn PolicyHints>>> = Arc::new(tokio::sync::Mutex::new(bus.policy_hints()));
    loops.every("agent token files", Duration::from_millis(50), move || {
        let (tokens, store, hints) = (tokens.clone(), store.clone(), Arc::clone(&hints));
        async move {
            let hint = tokio::time::timeout(TOKENS, async { hints.lock().await.next().await }).await;
            if matches!(hint, Ok(None)) {
                return Err("the bus has ended".to_owned());
            }
            tokens.ensure(&store, false).await.map_err(|error| format!("{error:?}"))
        }
    });
}

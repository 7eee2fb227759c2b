//! The HTTP server on its actix system, and the end of the platform.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use actix_web::dev::{Server, Service as _, ServiceResponse};
use actix_web::{App, HttpServer, web};
use anyhow::Context as _;
use inn_actors::{AdmissionLimits, Gateway, GatewayConfig};
use inn_http::rates::Rates;
use inn_http::{EdgeKeys, HttpState, Realtime, RealtimeLimits, Vitals};
use inn_ports::{Apps as _, Blobs, Clock, Core, Objects, Store};
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::background;
use super::parts::Parts;
use super::{AppFacts, Facts, Started, peers, probe, trace};
use crate::config::Settings;
use crate::loops::Loops;
use crate::vitals::PlatformVitals;

/// Passwords hashed and bundles unpacked at one time: each takes a core for a while.
const BLOCKING: usize = 4;
/// Mails on their way to the mail server at one time, and waiting for it.
const MAILS: usize = 64;
/// Bundles in memory at one time: each may have 64 MiB, twice while it is opened.
const LARGE_BODIES: usize = 2;
/// The last entries are sealed within this time when the platform stops; otherwise the next start seals them.
const LAST_SEAL: Duration = Duration::from_secs(3);

/// Serves until `stop` is cancelled, then ends everything in turn.
pub(super) fn serve(
    settings: &Settings,
    parts: Parts,
    io: &Runtime,
    tell: &SyncSender<Started>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let system = actix_rt::System::new();
    let ended = system.block_on(live(settings, parts, io, tell, stop));
    // Ends the threads of the app actors too.
    actix_rt::System::current().stop();
    system.run().context("the actor system did not end cleanly")?;
    ended
}

async fn live(
    settings: &Settings,
    parts: Parts,
    io: &Runtime,
    tell: &SyncSender<Started>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let vitals = Arc::new(PlatformVitals::new()?);
    let bound = parts.listener.local_addr()?;
    let state = web::Data::new(state(settings, &parts, io, &vitals));
    vitals.watch(state.gateway.clone(), parts.store.clone());
    let server = http(settings, parts.listener.try_clone()?, &state, &vitals)?;
    let handle = server.handle();
    let mut serving = actix_rt::spawn(server);

    let mut loops = Loops::new(io.handle().clone(), Arc::clone(&vitals));
    background::start(&mut loops, &parts, &state, &vitals);

    let answered = tokio::select! {
        answered = io.spawn(probe::wait_until_ready(reachable(bound), parts.addresses.authority())) => answered.context("the probe died")?,
        ended = &mut serving => Err(anyhow::anyhow!("the HTTP server ended at once: {ended:?}")),
        () = stop.cancelled() => Err(anyhow::anyhow!("stopped while starting")),
    };
    let mut ended = match answered {
        Ok(()) => announce(&parts, &state, tell).await,
        Err(error) => Err(error),
    };
    if ended.is_ok() {
        tracing::info!(platform = parts.addresses.platform_text(), %bound, "ready");
        tokio::select! {
            () = stop.cancelled() => {}
            over = &mut serving => ended = Err(anyhow::anyhow!("the HTTP server ended by itself: {over:?}")),
        }
    }
    tracing::info!("stopping");
    vitals.drain();
    // Nobody would wait for their end.
    state.realtime.close();
    state.job_streams.close();
    handle.stop(true).await;
    loops.end().await;
    let store = parts.store.clone();
    let sealed = io.spawn(async move { tokio::time::timeout(LAST_SEAL, store.seal_all()).await });
    if !matches!(sealed.await, Ok(Ok(Ok(_)))) {
        tracing::warn!("the last register entries were not sealed; the next start does it");
    }
    tracing::info!("stopped");
    ended
}

fn state(settings: &Settings, parts: &Parts, io: &Runtime, vitals: &Arc<PlatformVitals>) -> HttpState {
    let store: Arc<dyn Store> = Arc::new(parts.store.clone());
    let core: Arc<dyn Core> = Arc::new(parts.store.clone());
    let blobs: Arc<dyn Blobs> = Arc::new(parts.blobs.clone());
    let objects: Arc<dyn Objects> = Arc::new(parts.blobs.clone());
    let clock: Arc<dyn Clock> = Arc::new(parts.clock.clone());
    let limits = &settings.limits;
    let config = parts.addresses.http_config(settings);
    let rates = Arc::new(Rates::new(config.rates));
    let gateway = GatewayConfig {
        rates: Arc::<Rates>::clone(&rates),
        limits: AdmissionLimits { node: limits.node, tenant: limits.tenant, app: limits.app },
        loopback: parts.addresses.loopback,
        app_threads: limits.app_threads,
    };
    let public = parts.root.public().clone();
    let realtime = &settings.realtime;
    let realtime = Realtime::new(
        Arc::clone(&store),
        Arc::clone(&parts.bus),
        Arc::clone(&clock),
        io.handle().clone(),
        parts.root.cursors().clone(),
        RealtimeLimits {
            connections: realtime.connections,
            app_connections: realtime.app_connections,
            caller_connections: realtime.caller_connections,
            buffer: realtime.buffer,
            idle: realtime.idle,
        },
    );
    let shown: Arc<dyn Vitals> = vitals.clone();
    HttpState {
        gateway: Gateway::new(&gateway, core, clock, io.handle().clone(), public),
        rates,
        store,
        blobs,
        objects,
        mail: Arc::clone(&parts.mail),
        mails: Arc::new(tokio::sync::Semaphore::new(MAILS)),
        uploads: Arc::new(tokio::sync::Semaphore::new(settings.files.uploads)),
        bus: Arc::clone(&parts.bus),
        realtime: Arc::new(realtime),
        job_streams: Arc::default(),
        keys: EdgeKeys { root: Arc::clone(&parts.root), published: parts.published.clone() },
        config,
        vitals: shown,
        blocking: tokio::sync::Semaphore::new(BLOCKING),
        large_bodies: Arc::new(tokio::sync::Semaphore::new(LARGE_BODIES)),
        io: io.handle().clone(),
    }
}

fn http(
    settings: &Settings,
    listener: std::net::TcpListener,
    state: &web::Data<HttpState>,
    vitals: &Arc<PlatformVitals>,
) -> anyhow::Result<Server> {
    let (state, vitals) = (state.clone(), Arc::clone(vitals));
    let http = &settings.http;
    peers::USUAL.watch(&listener).context("connections cannot be watched for clients that are gone")?;
    let workers = if http.workers == 0 {
        std::thread::available_parallelism().map_or(2, std::num::NonZero::get)
    } else {
        http.workers
    };
    let server = HttpServer::new(move || {
        let vitals = Arc::clone(&vitals);
        App::new()
            .wrap_fn(move |request, service| {
                let (vitals, began, span) = (Arc::clone(&vitals), Instant::now(), trace::span(&request));
                let answering = span.in_scope(|| service.call(request)).instrument(span.clone());
                async move {
                    let answer: Result<ServiceResponse<_>, actix_web::Error> = answering.await;
                    let (status, headers) = match &answer {
                        Ok(answer) => (answer.status(), Some(answer.headers())),
                        Err(error) => (error.as_response_error().status_code(), None),
                    };
                    trace::answered(&span, status, headers);
                    vitals.answered(status.as_u16(), began.elapsed());
                    answer
                }
            })
            .configure(inn_http::configure(state.clone(), inn_console::routes))
    });
    let server = server
        .workers(workers)
        .max_connections(http.max_connections)
        .client_request_timeout(http.request_timeout)
        .keep_alive(http.keep_alive)
        // A client that is gone must not claim work it will never hear of.
        .h1_allow_half_closed(false)
        .shutdown_timeout(http.shutdown.as_secs())
        .disable_signals()
        .listen(listener)
        .context("the HTTP server could not be started")?;
    Ok(server.run())
}

/// What a listener on every address is reached by from here.
fn reachable(bound: SocketAddr) -> SocketAddr {
    let mut reached = bound;
    if bound.ip().is_unspecified() {
        reached.set_ip(if bound.is_ipv4() {
            std::net::Ipv4Addr::LOCALHOST.into()
        } else {
            std::net::Ipv6Addr::LOCALHOST.into()
        });
    }
    reached
}

async fn announce(parts: &Parts, state: &HttpState, tell: &SyncSender<Started>) -> anyhow::Result<()> {
    let apps = parts.store.all_apps().await.map_err(inn_protocol::Refusal::from)?;
    let apps = apps.iter().map(|app| AppFacts {
        origin: state.config.app_origin(&app.slug),
        token_file: parts.tokens.as_ref().and_then(|tokens| tokens.file_of(&app.slug)),
        slug: app.slug.clone(),
    });
    let facts = Facts {
        platform: parts.addresses.platform_text().to_owned(),
        pid: std::process::id(),
        postgres_pid: parts.postgres_pid,
        owner: parts.owner.clone(),
        apps: apps.collect(),
    };
    let started = Started { facts, welcome: parts.welcome.clone(), database_url: parts.database_url.clone() };
    tell.send(started).context("nobody waits for the platform any more")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_on_every_address_is_reached_over_loopback() {
        for (bound, reached) in [
            ("0.0.0.0:1", "127.0.0.1:1"),
            ("[::]:1", "[::1]:1"),
            ("127.0.0.1:1", "127.0.0.1:1"),
            ("192.0.2.1:1", "192.0.2.1:1"),
        ] {
            assert_eq!(reachable(bound.parse().unwrap()), reached.parse().unwrap());
        }
    }
}

//! `/api/realtime` (`reference` notes on PocketBase, section F; ADR 0016): a stream of server-sent events, and what it is
//! to be about.

mod client;
mod feed;
mod hub;
mod line;
mod pipe;
mod replay;
mod verdicts;

use std::sync::Arc;

use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use actix_web::{HttpRequest, HttpResponse};
use inn_actors::Listener;
use inn_protocol::call::Action;
use inn_protocol::{Code, Refusal};
use inn_rules::realtime::{self, Place, event, marker};
use rand::distr::{Alphanumeric, SampleString as _};
use serde_json::{Value, json};

use self::client::{Client, EventStream};
use self::hub::unknown_client;
use self::pipe::End;
use crate::error::{ApiError, CALL_HEADER};
use crate::incoming::Incoming;
use crate::respond;

pub use hub::{Realtime, RealtimeLimits};

/// As long as PocketBase's. It is a secret: whoever knows it may say what the stream is about.
const ID_LENGTH: usize = 40;

/// `GET /api/realtime`
pub(super) async fn connect(incoming: Incoming, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let hub = &incoming.state.realtime;
    let action = Action::Realtime { verb: "connect" };
    let admitted = incoming.read(action, |admitted| async move {
        hub.has_room(admitted.app()?.id)?;
        Ok(admitted)
    });
    let admitted = admitted.await?;
    let app = admitted.app().map_err(|refusal| incoming.fail(refusal))?.id;
    let last_event = request.headers().get("last-event-id").and_then(|id| id.to_str().ok());
    let last_event = last_event.filter(|id| !id.is_empty()).map(str::to_owned);
    let id = Alphanumeric.sample_string(&mut rand::rng(), ID_LENGTH);
    let client = hub.connect(app, id.clone(), incoming.client.clone(), last_event);
    let client = client.map_err(|refusal| incoming.fail(refusal))?;
    let hello = event(&id, "PB_CONNECT", &json!({ "clientId": id }).to_string());
    client.pipe.push(hello.into());
    let stream = EventStream::new(Arc::clone(hub), client, hub.limits.idle);
    Ok(HttpResponse::Ok()
        .insert_header((CALL_HEADER.clone(), incoming.id.to_string()))
        .insert_header((CONTENT_TYPE, "text/event-stream"))
        .insert_header((CACHE_CONTROL, "no-store"))
        .insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header(("X-Accel-Buffering", "no"))
        .streaming(stream))
}

/// `POST /api/realtime`
pub(super) async fn subscribe(incoming: Incoming) -> Result<HttpResponse, ApiError> {
    let action = Action::Realtime { verb: "subscribe" };
    let body: Value = incoming.json().await?;
    let form = match realtime::subscribe(&body) {
        Ok(form) => form,
        Err(refusal) => return Err(incoming.refuse(action, refusal).await),
    };
    let hub = &incoming.state.realtime;
    let (id, address) = (form.client.as_str(), incoming.client.as_str());
    let read = incoming.read(action, |admitted| async move {
        let client = hub.client(admitted.app()?.id, id).ok_or_else(unknown_client)?;
        let listener = admitted.listener();
        may_speak_for(&client, address, &listener)?;
        hub.may_join(&client, &listener)?;
        Ok((client, listener))
    });
    let (client, listener) = read.await?;
    let scope = listener.scope();
    let joined = hub.join(&client, listener, form.topics).map_err(|refusal| incoming.fail(refusal))?;
    if let Err(refusal) = begin(hub, &client, joined, &scope).await {
        // What it would hear from now on is not known; it has to come again.
        hub.dismiss(&client, End::Over);
        return Err(incoming.fail(refusal));
    }
    Ok(respond::no_content(incoming.id))
}

/// The client's own, and somebody's from when it said so: a guest may sign in on its stream, and nobody else may become
/// another (PocketBase notes, section F.4).
fn may_speak_for(client: &Client, address: &str, listener: &Listener) -> Result<(), Refusal> {
    if client.address != address {
        return Err(Refusal::new(
            Code::InvalidBody,
            "The client is not the one that opened the stream: it comes from another address.",
        ));
    }
    let known = client.state.lock().principal.clone();
    match known.map(|known| known.listener()) {
        Some(known) if !known.is_guest() && known.scope() != listener.scope() => {
            Err(Refusal::new(Code::Forbidden, "The current and the previous request authorization don't match."))
        }
        _ => Ok(()),
    }
}

/// From now on the client hears what is committed, after what it missed.
async fn begin(
    hub: &Arc<Realtime>,
    client: &Arc<Client>,
    (turn, goes_on): (u64, bool),
    scope: &str,
) -> Result<(), Refusal> {
    hub.start().await?;
    let now = Arc::new(hub.store.snapshot().await?);
    {
        let mut own = client.state.lock();
        if own.turn == turn {
            let fresh = own.subscriptions.iter_mut().filter(|known| *known.since == realtime::Snapshot::default());
            fresh.for_each(|subscription| subscription.since = Arc::clone(&now));
        }
    }
    if let Some(last_event) = client.last_event.lock().take() {
        let (hub, client) = (Arc::clone(hub), Arc::clone(client));
        let permit = Arc::clone(&hub.replays);
        let io = hub.io.clone();
        io.spawn(async move {
            // The semaphore is never closed.
            let _permit = permit.acquire_owned().await;
            hub.go_on(&client, turn, &last_event, now).await;
        });
        return Ok(());
    }
    if !goes_on {
        let place = Place::at_snapshot((*now).clone(), hub.clock.now().timestamp());
        let cursor = hub.cursors.seal(&verdicts::whose(client.app, scope), &place.to_bytes());
        client.pipe.push(marker(&cursor).into());
    }
    if !client.release(turn) {
        hub.dismiss(client, End::CutOff);
    }
    Ok(())
}

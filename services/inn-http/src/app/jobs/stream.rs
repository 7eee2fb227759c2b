//! A job as it happens: its log from where the client stopped, and its end.
//!
//! Events are the lines of the log under their numbers, so that `Last-Event-ID` goes on without a gap on any node:
//! `state` and `log` with `{text}`, `progress` with `{step, percent}`, and last `end` with the job itself. Between the
//! lines nothing is held but a place in the count of open streams.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use actix_web::{HttpRequest, HttpResponse};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures_util::stream;
use inn_actors::Listener;
use inn_ports::{Bus, Store, StoreError, StoreResult, Topic};
use inn_protocol::call::Action;
use inn_protocol::job::{JobLine, LineKind};
use inn_protocol::{AppId, Code, JobId, Refusal};
use inn_rules::jobs as rules;
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::Instant;

use super::{document, visible};
use crate::error::{ApiError, CALL_HEADER};
use crate::incoming::Incoming;

/// No stream lives longer; the client comes again with the last number it saw.
const LONGEST: Duration = Duration::from_mins(30);
/// Between two looks when nothing was heard: a lost wake-up costs no more.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// Between two signs of life, so that proxies keep the connection.
const ALIVE: Duration = Duration::from_secs(15);
/// Lines of one look.
const LINES: u32 = 200;

/// Counts the open streams of a node, all of them and those of each caller.
#[derive(Debug, Default)]
pub struct JobStreams {
    open: Mutex<Open>,
    closed: AtomicBool,
}

#[derive(Debug, Default)]
struct Open {
    all: usize,
    by_caller: HashMap<String, usize>,
}

impl JobStreams {
    /// Streams of one node at a time.
    const MOST: usize = 2_000;
    /// Streams of one caller on one node at a time, so that nobody takes the room of all.
    const MOST_OF_CALLER: usize = 50;

    /// The node stops: streams end, and their clients come again elsewhere.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    fn enter(self: &Arc<Self>, caller: String) -> Result<Place, Refusal> {
        let mut open = self.open.lock();
        let own = open.by_caller.get(&caller).copied().unwrap_or_default();
        if own >= Self::MOST_OF_CALLER {
            let message = format!("You have {own} open streams of jobs here, which is the most. Close one, or poll.");
            return Err(Refusal::new(Code::RateLimited, message).after(5));
        }
        if open.all >= Self::MOST {
            let message = "This node has as many open streams of jobs as it may. Poll the job instead, or come again.";
            return Err(Refusal::new(Code::Overloaded, message).after(5));
        }
        open.all += 1;
        open.by_caller.insert(caller.clone(), own + 1);
        Ok(Place { streams: Arc::clone(self), caller })
    }
}

/// Free again when the stream is dropped, however it ended.
struct Place {
    streams: Arc<JobStreams>,
    caller: String,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.streams.open.lock();
        open.all = open.all.saturating_sub(1);
        match open.by_caller.get_mut(&self.caller) {
            Some(own) if *own > 1 => *own -= 1,
            _ => {
                open.by_caller.remove(&self.caller);
            }
        }
    }
}

pub(super) async fn follow(request: &HttpRequest, incoming: &Incoming, id: JobId) -> Result<HttpResponse, ApiError> {
    let (store, streams) = (&incoming.state.store, &incoming.state.job_streams);
    let (admitted, job, place) = incoming
        .read(Action::ViewJob { job: id, verb: "follow" }, |admitted| async move {
            let job = visible(&**store, &admitted, id).await?;
            let place = streams.enter(admitted.listener().scope())?;
            Ok((admitted, job, place))
        })
        .await?;
    let last = request.headers().get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok()).unwrap_or(0_i64);
    let follower = Follower {
        store: Arc::clone(&incoming.state.store),
        bus: Arc::clone(&incoming.state.bus),
        let_in: admitted.now,
        listener: admitted.listener(),
        app: job.app,
        job: id,
        // A number from elsewhere starts over.
        seen: if (0..=job.lines).contains(&last) { last } else { 0 },
        began: Instant::now(),
        spoke: Instant::now(),
        over: false,
        place,
    };
    // The decision's permit is given back before anybody waits.
    drop(admitted);
    let events = stream::unfold(follower, |mut follower| async move {
        let bytes = follower.next().await?;
        Some((Ok::<_, std::convert::Infallible>(bytes), follower))
    });
    Ok(HttpResponse::Ok()
        .insert_header((CALL_HEADER.clone(), incoming.id.to_string()))
        .insert_header((CONTENT_TYPE, "text/event-stream"))
        .insert_header((CACHE_CONTROL, "no-store"))
        .insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header(("X-Accel-Buffering", "no"))
        .streaming(Box::pin(events)))
}

struct Follower {
    store: Arc<dyn Store>,
    bus: Arc<dyn Bus>,
    /// Database time of the decision.
    let_in: DateTime<Utc>,
    listener: Listener,
    app: AppId,
    job: JobId,
    /// Number of the last line the client has.
    seen: i64,
    began: Instant,
    spoke: Instant,
    over: bool,
    place: Place,
}

impl Follower {
    /// The next bytes; `None` ends the stream, and the client may come again.
    async fn next(&mut self) -> Option<Bytes> {
        while !self.over && self.began.elapsed() < LONGEST && !self.place.streams.closed.load(Ordering::SeqCst) {
            match self.look().await {
                Ok(Some(bytes)) => {
                    self.spoke = Instant::now();
                    return Some(bytes);
                }
                Ok(None) => {}
                // The client comes again, maybe to a node that is better off.
                Err(error) => {
                    tracing::debug!(job = %self.job, ?error, "a stream of a job ended early");
                    return None;
                }
            }
            if self.spoke.elapsed() >= ALIVE {
                self.spoke = Instant::now();
                return Some(Bytes::from_static(b": alive\n\n"));
            }
            self.bus.wait(&[Topic::Requests(self.app)], LOOK_AGAIN).await;
        }
        None
    }

    /// What is new since the last look. The caller's rights are looked at each time, before anything is told.
    async fn look(&mut self) -> StoreResult<Option<Bytes>> {
        if self.listener.ends().is_some_and(|ends| ends <= self.let_in + self.began.elapsed()) {
            return Err(Refusal::new(Code::TokenExpired, "The papers have run out.").into());
        }
        let standing = self.store.standing(self.app, &[self.listener.live()]).await?;
        if standing.app_epoch.is_none() || !standing.live.iter().all(|live| live.all()) {
            return Err(StoreError::Stale);
        }
        let job = self.store.job(self.app, self.job).await?;
        let Some(job) = job.filter(|job| rules::may_see(self.listener.caller(), job)) else {
            return Err(StoreError::Stale);
        };
        let lines = if job.lines > self.seen {
            self.store.job_lines(self.app, self.job, self.seen, LINES).await?
        } else {
            Vec::new()
        };
        let mut text = String::new();
        for line in &lines {
            self.seen = line.seq;
            text.push_str(&event(line));
        }
        if job.state.is_terminal() && self.seen >= job.lines {
            self.over = true;
            text.push_str(&framed(Some(job.lines), "end", &document(&job)));
        }
        Ok((!text.is_empty()).then(|| text.into()))
    }
}

fn event(line: &JobLine) -> String {
    let at: DateTime<Utc> = line.at;
    let data = match line.kind {
        LineKind::Progress => json!({"step": line.text, "percent": line.percent, "at": at}),
        LineKind::State | LineKind::Log => json!({"text": line.text, "at": at}),
    };
    framed(Some(line.seq), line.kind.as_str(), &data)
}

/// JSON has no line breaks of its own, so one line of data is enough.
fn framed(id: Option<i64>, name: &str, data: &serde_json::Value) -> String {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    format!("{id}event: {name}\ndata: {data}\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(entered: Result<Place, Refusal>) -> Option<Code> {
        entered.err().map(|refusal| refusal.code)
    }

    #[test]
    fn a_caller_has_so_many_streams_and_room_again_when_one_ends() {
        let streams = Arc::<JobStreams>::default();
        let ada = || streams.enter("ada".to_owned());
        let mut open: Vec<_> = (0..JobStreams::MOST_OF_CALLER).map(|_| ada().unwrap()).collect();
        assert_eq!(code(ada()), Some(Code::RateLimited));
        assert_eq!(code(streams.enter("bob".to_owned())), None, "others have room");
        open.pop();
        open.push(ada().unwrap());
        drop(open);
        assert!(streams.open.lock().by_caller.is_empty() && streams.open.lock().all == 0);
    }

    #[test]
    fn a_full_node_says_so() {
        let streams = Arc::<JobStreams>::default();
        let open: Vec<_> = (0..JobStreams::MOST).map(|number| streams.enter(number.to_string()).unwrap()).collect();
        assert_eq!(code(streams.enter("one more".to_owned())), Some(Code::Overloaded));
        drop(open);
        assert_eq!(code(streams.enter("one more".to_owned())), None);
    }
}

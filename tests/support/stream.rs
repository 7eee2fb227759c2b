//! One open stream of events (`/api/realtime`), read in the background.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::call::{Call, Door, Papers, Reply};
use crate::poll::until;

/// One event as it came.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub id: String,
    pub name: String,
    pub data: Value,
}

impl Event {
    /// `create cards/abc…`: what happened to which record.
    pub fn what(&self) -> String {
        let record = &self.data["record"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        format!("{} {}/{}", text(&self.data["action"]), text(&record["collectionName"]), text(&record["id"]))
    }
}

#[derive(Default)]
struct Heard {
    events: Vec<Event>,
    /// The last id, also of blocks without an event.
    last_id: String,
    ended: bool,
}

/// Dropped, the connection is closed.
pub struct Stream {
    pub door: Door,
    pub app: String,
    pub client: String,
    heard: Arc<Mutex<Heard>>,
    reader: JoinHandle<()>,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Stream {
    /// Opens a stream of an app as nobody in particular.
    pub async fn open(door: &Door, app: &str) -> Self {
        Self::of(door, app, door.get(format!("/apps/{app}/api/realtime"))).await
    }

    /// Opens one where another ended.
    pub async fn resume(door: &Door, app: &str, last_event: &str) -> Self {
        let call = door.get(format!("/apps/{app}/api/realtime")).header("last-event-id", last_event);
        Self::of(door, app, call).await
    }

    pub async fn of(door: &Door, app: &str, call: Call) -> Self {
        let answer = call.open().await;
        assert_eq!(answer.status(), 200, "{:?}", answer.headers());
        let heard = Arc::<Mutex<Heard>>::default();
        let told = Arc::clone(&heard);
        let reader = tokio::spawn(async move {
            let mut chunks = answer.bytes_stream();
            let mut text = Vec::new();
            while let Some(Ok(chunk)) = chunks.next().await {
                text.extend_from_slice(&chunk);
                while let Some(end) = text.windows(2).position(|two| two == b"\n\n") {
                    let block: Vec<u8> = text.drain(..end + 2).collect();
                    told.lock().expect("heard").take(&String::from_utf8_lossy(&block));
                }
            }
            told.lock().expect("heard").ended = true;
        });
        let mut stream = Self { door: door.clone(), app: app.to_owned(), client: String::new(), heard, reader };
        let hello = stream.wait(1).await.remove(0);
        assert_eq!(hello.name, "PB_CONNECT");
        hello.data["clientId"].as_str().expect("a client's id").clone_into(&mut stream.client);
        assert_eq!(hello.id, stream.client);
        stream.heard().events.clear();
        stream
    }

    /// Says what it is to be about.
    pub async fn try_subscribe(&self, topics: &[&str], by: impl Into<Papers>) -> Reply {
        let body = json!({"clientId": self.client, "subscriptions": topics});
        self.door.post(format!("/apps/{}/api/realtime", self.app), &body).by(by).send().await
    }

    pub async fn subscribe(&self, topics: &[&str], by: impl Into<Papers>) {
        self.try_subscribe(topics, by).await.expect(204);
    }

    /// Everything since `PB_CONNECT`.
    pub fn events(&self) -> Vec<Event> {
        self.heard().events.clone()
    }

    pub fn last_id(&self) -> String {
        self.heard().last_id.clone()
    }

    pub fn has_ended(&self) -> bool {
        self.heard().ended
    }

    /// Waits for that many events and gives all there are.
    pub async fn wait(&self, count: usize) -> Vec<Event> {
        until(&format!("{count} events"), || async { (self.heard().events.len() >= count).then_some(()) }).await;
        self.events()
    }

    /// Waits for that many events and says what they were.
    pub async fn told(&self, count: usize) -> Vec<String> {
        self.wait(count).await.iter().map(Event::what).collect()
    }

    pub async fn wait_for_end(&self) {
        until("the end of the stream", || async { self.has_ended().then_some(()) }).await;
    }

    /// Nothing more comes: a second stream of the same has heard a later thing meanwhile, or a moment has passed.
    pub async fn silence(&self) {
        tokio::time::sleep(Duration::from_millis(700)).await;
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().expect("what was heard")
    }
}

impl Heard {
    fn take(&mut self, block: &str) {
        let of = |field: &str| block.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        if let Some(id) = of("id") {
            id.clone_into(&mut self.last_id);
        }
        if let Some(data) = of("data") {
            let data = serde_json::from_str(data).expect("an event's data is JSON");
            let name = of("event").unwrap_or_default().to_owned();
            self.events.push(Event { id: self.last_id.clone(), name, data });
        }
    }
}

/// A topic with options, as the SDK writes it.
pub fn with_options(topic: &str, options: &Value) -> String {
    let options: String = url::form_urlencoded::byte_serialize(options.to_string().as_bytes()).collect();
    format!("{topic}?options={}", options.replace('+', "%20"))
}

//! Who hears of what (`reference` notes on PocketBase, section F): the same subscriptions and the same writes on both sides.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt as _;
use inn_protocol::canonical;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::ask::{Answer, Ask, Who, settled};
use super::category::Category;
use super::schema::id;
use super::suite::{Case, Report};
use super::world::{Side, World};

/// Longer than either side takes to tell.
const PATIENCE: Duration = Duration::from_secs(10);
/// Nothing more comes after so long a silence.
const SILENCE: Duration = Duration::from_millis(700);

/// What one stream has been told: event name and data.
type Heard = Arc<Mutex<Vec<(String, Value)>>>;

/// One open stream.
struct Stream {
    client: String,
    heard: Heard,
    reader: JoinHandle<()>,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Stream {
    async fn open(world: &World, side: Side) -> Result<Self, String> {
        let address = format!("{}/api/realtime", world.base(side));
        let http =
            reqwest::Client::builder().tls_certs_only([]).no_proxy().build().map_err(|error| error.to_string())?;
        let answer = http.get(&address).header("accept", "text/event-stream").send().await;
        let answer = answer.map_err(|error| error.to_string())?;
        if answer.status() != 200 {
            return Err(format!("{} {}", answer.status(), answer.text().await.unwrap_or_default()));
        }
        let heard = Heard::default();
        let told = Arc::clone(&heard);
        let reader = tokio::spawn(async move {
            let mut chunks = answer.bytes_stream();
            let mut text = Vec::new();
            while let Some(Ok(chunk)) = chunks.next().await {
                text.extend_from_slice(&chunk);
                while let Some(end) = text.windows(2).position(|two| two == b"\n\n") {
                    let block: Vec<u8> = text.drain(..end + 2).collect();
                    told.lock().expect("what was heard").extend(event(&String::from_utf8_lossy(&block)));
                }
            }
        });
        let started = Instant::now();
        while started.elapsed() < PATIENCE {
            let first = heard.lock().expect("what was heard").first().cloned();
            if let Some((name, data)) = first {
                if name != "PB_CONNECT" {
                    return Err(format!("the first event is {name}"));
                }
                let client = data["clientId"].as_str().unwrap_or_default().to_owned();
                return Ok(Self { client, heard, reader });
            }
            sleep(Duration::from_millis(20)).await;
        }
        Err("no PB_CONNECT".to_owned())
    }

    /// Everything heard since it was opened, without the greeting, in no order: PocketBase promises none.
    fn events(&self) -> Vec<String> {
        let heard = self.heard.lock().expect("what was heard");
        let mut events: Vec<String> = heard
            .iter()
            .skip(1)
            .map(|(name, data)| format!("{name} {}", canonical::to_string(&settled(data))))
            .collect();
        events.sort();
        events
    }
}

/// Name and data of one block; comments and what has no data are nothing.
fn event(block: &str) -> Option<(String, Value)> {
    let of = |field: &str| {
        let mut lines = block.lines().filter_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        lines.next().map(|value| value.strip_prefix(' ').unwrap_or(value).to_owned())
    };
    let data = of("data")?;
    Some((of("event").unwrap_or_default(), serde_json::from_str(&data).unwrap_or(Value::String(data))))
}

fn with_options(topic: &str, options: &Value) -> String {
    let options: String = url::form_urlencoded::byte_serialize(options.to_string().as_bytes()).collect();
    format!("{topic}?options={}", options.replace('+', "%20"))
}

fn topics() -> Vec<String> {
    let filter = |filter: &str| json!({"query": {"filter": filter}});
    let ship = format!("ships/{}", id("rs1"));
    vec![
        "ships/*".to_owned(),
        "pbc_flags/*".to_owned(),
        ship.clone(),
        format!("visits/{}", id("rv1")),
        "visits/*".to_owned(),
        "teams/*".to_owned(),
        "users/*".to_owned(),
        "nothing/*".to_owned(),
        "any word".to_owned(),
        with_options("ships/*", &filter("tons > 5")),
        with_options("ships/*", &filter("owner.name = 'Ada'")),
        with_options("ships/*", &filter("secret = 'x'")),
        with_options("ships/*", &filter("nonsense = 1")),
        // Only superusers may; whom they are signed in as is not the same on both sides.
        with_options("ships/*", &filter("@request.context = 'realtime'")),
        with_options(&ship, &json!({"query": {"expand": "owner", "fields": "id,tons,expand.owner.name"}})),
    ]
}

/// In order; each is told of before the next.
fn writes() -> Vec<Ask> {
    let root = Who::Superuser;
    let ship = |body| Ask::update(root, "ships", &id("rs1"), body);
    vec![
        Ask::create(
            root,
            "ships",
            json!({"id": id("rs1"), "title": "first", "tons": 10, "owner": id("c1"), "secret": "x"}),
        ),
        ship(json!({"tons": 1})),
        ship(json!({"tons+": 8, "owner": id("c2")})),
        Ask::create(root, "visits", json!({"id": id("rv1"), "note": "unseen", "good": false, "ship": id("rs1")})),
        Ask::update(root, "visits", &id("rv1"), json!({"good": true})),
        Ask::update(root, "visits", &id("rv1"), json!({"good": false})),
        Ask::delete(root, "visits", &id("rv1")),
        Ask::create(root, "visits", json!({"id": id("rv2"), "note": "seen", "good": true})),
        Ask::delete(root, "visits", &id("rv2")),
        Ask::create(root, "teams", json!({"id": id("rt1"), "label": "hidden"})),
        Ask::create(root, "flags", json!({"id": id("rf1"), "name": "new", "weight": 1})),
        Ask::update(root, "users", &id("ann"), json!({"name": "changed"})),
        Ask::delete(root, "ships", &id("rs1")),
    ]
}

/// One stream of each caller on each side.
struct Listener {
    who: Who,
    theirs: Stream,
    ours: Stream,
}

/// Compares what is answered to subscribing, and what everybody has heard in the end.
pub(crate) async fn compare(world: &World, report: &mut Report) -> Result<(), String> {
    let mut listeners = Vec::new();
    for who in [Who::Nobody, Who::User(0), Who::User(1), Who::Superuser] {
        let (theirs, ours) = tokio::join!(Stream::open(world, Side::Theirs), Stream::open(world, Side::Ours));
        let listener = Listener { who, theirs: theirs.expect("PocketBase streams"), ours: ours? };
        subscribe(world, report, &listener, topics()).await;
        listeners.push(listener);
    }
    for ask in writes() {
        let case = Case::new(Category::Realtime, ask);
        report.run(world, vec![case]).await;
        // PocketBase tells each client from a task of its own: without a pause even one client may be told in another order,
        // and may be told of a record's state after the next write.
        sleep(Duration::from_millis(120)).await;
    }
    let started = Instant::now();
    let mut silent_since = Instant::now();
    let counts = |listeners: &[Listener]| -> Vec<usize> {
        listeners.iter().map(|listener| listener.theirs.events().len() + listener.ours.events().len()).collect()
    };
    let mut before = counts(&listeners);
    while started.elapsed() < PATIENCE {
        sleep(Duration::from_millis(50)).await;
        let now = counts(&listeners);
        if now != before {
            (before, silent_since) = (now, Instant::now());
        }
        if silent_since.elapsed() > SILENCE {
            break;
        }
    }
    let most = listeners.iter().map(|listener| listener.theirs.events().len()).max().unwrap_or(0);
    assert!(most > 10, "PocketBase has told only {most} events: the test asks for too little");
    for listener in &listeners {
        let sorted = |stream: &Stream| {
            let mut by_topic: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for event in stream.events() {
                let (topic, data) = event.split_once(" {").unwrap_or((&event, ""));
                by_topic.entry(topic.to_owned()).or_default().push(data.to_owned());
            }
            by_topic
        };
        let (theirs, ours) = (sorted(&listener.theirs), sorted(&listener.ours));
        for topic in topics() {
            let answer = |heard: &BTreeMap<String, Vec<String>>| Answer { status: 200, body: json!(heard.get(&topic)) };
            let ask = Ask::list(listener.who, "realtime").with("topic", &*topic);
            report.note(Case::new(Category::Realtime, ask), answer(&theirs), answer(&ours));
        }
    }
    wrong_subscriptions(world, report, &listeners).await;
    Ok(())
}

/// The same topics for both streams of one caller.
async fn subscribe(world: &World, report: &mut Report, listener: &Listener, topics: Vec<String>) {
    let body = |client: &str| json!({"clientId": client, "subscriptions": topics});
    let ask = |client: &str| Ask::post(listener.who, "/api/realtime", body(client));
    let theirs = world.ask_one(Side::Theirs, &ask(&listener.theirs.client)).await;
    let ours = world.ask_one(Side::Ours, &ask(&listener.ours.client)).await;
    report.note(Case::new(Category::Realtime, ask("")), theirs, ours);
}

/// What is refused, and that another may not take over a stream.
async fn wrong_subscriptions(world: &World, report: &mut Report, listeners: &[Listener]) {
    let post = |body| Ask::post(Who::Nobody, "/api/realtime", body);
    let cases = [
        post(json!({})),
        post(json!({"clientId": "", "subscriptions": []})),
        post(json!({"clientId": "x".repeat(40), "subscriptions": ["ships/*"]})),
        post(json!({"clientId": "x".repeat(300), "subscriptions": []})),
        post(json!([])),
    ];
    report.run(world, cases.map(|ask| Case::new(Category::Realtime, ask)).to_vec()).await;
    let [nobody, ann, ..] = listeners else { return };
    subscribe(world, report, nobody, vec!["x".repeat(2501)]).await;
    subscribe(world, report, nobody, (0..1001).map(|number| format!("topic{number}")).collect()).await;
    let takes =
        |who: Who, client: &str| Ask::post(who, "/api/realtime", json!({"clientId": client, "subscriptions": []}));
    for who in [Who::User(1), Who::Nobody] {
        let theirs = world.ask_one(Side::Theirs, &takes(who, &ann.theirs.client)).await;
        let ours = world.ask_one(Side::Ours, &takes(who, &ann.ours.client)).await;
        report.note(Case::new(Category::Realtime, takes(who, "the stream of ann")), theirs, ours);
    }
}

#[test]
fn a_block_of_a_stream_is_read() {
    let block = "id:abc\nevent:PB_CONNECT\ndata:{\"clientId\":\"abc\"}\n\n";
    assert_eq!(event(block), Some(("PB_CONNECT".to_owned(), json!({"clientId": "abc"}))));
    assert_eq!(event(": still here\n\n"), None);
}

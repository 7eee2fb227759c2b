//! Going on after the last event one has heard.

use inn_grants::SigningKey;
use inn_grants::token::RootKeys;
use inn_protocol::AppId;
use inn_protocol::caller::Caller;
use inn_rules::realtime::Place;
use inn_tests::stream::with_options;
use inn_tests::{Papers, Stream, until};
use serde_json::json;

use super::{Account, Chat, SLUG};

async fn resumed(chat: &Chat, last_event: &str, topics: &[&str], by: impl Into<Papers>) -> Stream {
    let stream = Stream::resume(chat.host.door(), SLUG, last_event).await;
    stream.subscribe(topics, by).await;
    stream
}

async fn say(chat: &Chat, text: &str) -> String {
    let id = chat.create("public", &json!({"text": text, "count": 1})).await;
    format!("create public/{id}")
}

#[tokio::test]
async fn what_was_missed_is_told_once_and_in_order() {
    let chat = Chat::start().await;
    let ada = chat.sign_up("ada").await;
    let stream = chat.listen(&["public/*"], &ada).await;
    // Where it begins is told on the stream, after `PB_CONNECT`.
    let begin = until("the begin", || async { Some(stream.last_id()).filter(|id| *id != stream.client) }).await;
    let mut all = Vec::new();
    for number in 0..3 {
        all.push(say(&chat, &number.to_string()).await);
    }
    let heard = stream.wait(3).await;
    drop(stream);
    for number in 3..8 {
        all.push(say(&chat, &number.to_string()).await);
    }
    // From each of its events, and from before the first.
    let places =
        std::iter::once((0, begin)).chain(heard.iter().enumerate().map(|(at, event)| (at + 1, event.id.clone())));
    for (at, id) in places {
        let again = resumed(&chat, &id, &["public/*"], &ada).await;
        let events = again.wait(1 + all.len() - at).await;
        assert_eq!((events[0].name.as_str(), &events[0].data), ("INN_RESUME", &json!({"resumed": true})));
        let told: Vec<String> = events[1..].iter().map(inn_tests::stream::Event::what).collect();
        assert_eq!(told, all[at..], "after event {at}");
        // And a second time, from the middle of what was told again.
        let twice = resumed(&chat, &events[2].id, &["public/*"], &ada).await;
        assert_eq!(twice.told(all.len() - at - 1).await[1..], all[at + 2..]);
        // Then it listens like any other.
        let next = say(&chat, "next").await;
        assert_eq!(again.told(2 + all.len() - at).await.last(), Some(&next));
        all.push(next);
    }
}

#[tokio::test]
async fn an_event_under_two_topics_is_told_again_only_under_the_second() {
    let chat = Chat::start().await;
    let filtered = with_options("public/*", &json!({"query": {"filter": "count > 0"}}));
    let topics = ["public/*", filtered.as_str()];
    let stream = chat.listen(&topics, Papers::Nobody).await;
    say(&chat, "once").await;
    let events = stream.wait(2).await;
    let again = resumed(&chat, &events[0].id, &topics, Papers::Nobody).await;
    let last = say(&chat, "last").await;
    let told = again.wait(4).await;
    assert_eq!((&told[1].name, &told[1].data), (&events[1].name, &events[1].data));
    assert_eq!(told[2].what(), last);
}

#[tokio::test]
async fn what_is_told_again_falls_under_the_rules_of_now() {
    let chat = Chat::start().await;
    let (ada, bob) = (chat.sign_up("ada").await, chat.sign_up("bob").await);
    let room = chat.room(&[&ada, &bob]).await;
    let stream = chat.listen(&["messages/*"], &ada).await;
    chat.say(&room, "1").await;
    let id = stream.wait(1).await[0].id.clone();
    chat.say(&room, "2").await;
    chat.update("rooms", &room, &json!({"members": [bob.id]})).send().await.expect(200);
    let again = resumed(&chat, &id, &["messages/*", "public/*"], &ada).await;
    let last = say(&chat, "x").await;
    assert_eq!(again.told(2).await[1], last);
}

#[tokio::test]
async fn a_cursor_of_another_or_of_nobody_starts_afresh_and_says_so() {
    let chat = Chat::start().await;
    let (ada, bob) = (chat.sign_up("ada").await, chat.sign_up("bob").await);
    let stream = chat.listen(&["public/*"], &ada).await;
    say(&chat, "1").await;
    let id = stream.wait(1).await[0].id.clone();
    say(&chat, "2").await;
    let mut changed = id.clone();
    changed.pop();
    changed.push(if id.ends_with('A') { 'B' } else { 'A' });
    let cases: [(&str, &Account); 4] = [(&id, &bob), (&changed, &ada), ("garbage", &ada), (&stream.client, &ada)];
    for (cursor, account) in cases {
        let again = resumed(&chat, cursor, &["public/*"], account).await;
        let events = again.wait(1).await;
        let afresh = json!({"resumed": false, "reason": "not_yours"});
        assert_eq!((events[0].name.as_str(), &events[0].data), ("INN_RESUME", &afresh));
        let next = say(&chat, "next").await;
        assert_eq!(again.told(2).await[1], next, "and hears what comes");
        // From where it started afresh it may go on.
        let on = resumed(&chat, &events[0].id, &["public/*"], account).await;
        assert_eq!(on.told(2).await[1], next);
    }
}

#[tokio::test]
async fn a_transaction_that_commits_late_is_not_missed() {
    let chat = Chat::start().await;
    let stream = chat.listen(&["public/*"], Papers::Nobody).await;
    // Took its number before everybody else, and commits after them.
    let mut slow = chat.host.sql().await;
    let schema = chat.host.app_schema(SLUG).await;
    let tx = slow.transaction().await.unwrap();
    let late = format!(
        "WITH made AS (INSERT INTO {schema}.public (id, text) VALUES ('late00000000000', 'late') RETURNING id)
         INSERT INTO inn.changes (app, verb, collection, record, \"row\")
         SELECT (SELECT id FROM inn.apps WHERE slug = '{SLUG}'), 'create', 'public', id, '{{\"id\":\"late00000000000\",\"text\":\"late\"}}' FROM made"
    );
    tx.batch_execute(&late).await.unwrap();
    let early = say(&chat, "early").await;
    assert_eq!(stream.told(1).await, std::slice::from_ref(&early));
    let id = stream.events()[0].id.clone();
    tx.commit().await.unwrap();
    let late = "create public/late00000000000".to_owned();
    assert_eq!(stream.told(2).await, [early, late.clone()]);
    let again = resumed(&chat, &id, &["public/*"], Papers::Nobody).await;
    assert_eq!(again.told(2).await[1], late);
}

#[tokio::test]
async fn more_than_is_gone_through_for_one_client_starts_it_afresh() {
    let chat = Chat::start().await;
    let stream = chat.listen(&["public/*"], Papers::Nobody).await;
    say(&chat, "heard").await;
    let id = stream.wait(1).await[0].id.clone();
    drop(stream);
    let sql = chat.host.sql().await;
    let insert = async |from: i32, to: i32| {
        let text = "INSERT INTO inn.changes (app, verb, collection, record, \"row\")
            SELECT a.id, 'update', 'teamwork', n::text, '{}' FROM inn.apps a, generate_series($1::int, $2::int) n WHERE a.slug = 'chat'";
        sql.execute(text, &[&from, &to]).await.unwrap();
    };
    let answer = async || {
        let again = resumed(&chat, &id, &["public/*"], Papers::Nobody).await;
        let first = again.wait(1).await.remove(0);
        assert_eq!(first.name, "INN_RESUME");
        (again, first)
    };
    // Changes of the app count, also those that the client hears nothing of. Its last one is looked at again.
    insert(1, 4_999).await;
    assert_eq!(answer().await.1.data, json!({"resumed": true}));
    insert(5_000, 5_001).await;
    let (again, first) = answer().await;
    assert_eq!(first.data, json!({"resumed": false, "reason": "too_much"}));
    // From there it hears what comes, and may go on.
    let next = say(&chat, "next").await;
    assert_eq!(again.told(2).await[1], next);
    let on = resumed(&chat, &first.id, &["public/*"], Papers::Nobody).await;
    assert_eq!(on.told(2).await[1], next);
}

/// As if a guest had been told it so many seconds earlier: sealed with the host's own key, which nobody else has.
fn aged(chat: &Chat, app: AppId, cursor: &str, seconds: i64) -> String {
    let keys = std::fs::read_dir(chat.host.dir().join("keys")).unwrap();
    let texts = keys.filter_map(|entry| std::fs::read_to_string(entry.unwrap().path()).ok());
    let keys = texts.filter_map(|text| SigningKey::from_pkcs8_pem(&text).ok());
    let cursors = keys.map(|key| RootKeys::new(1, &key, &[]).unwrap().cursors().clone());
    let aged = cursors.flat_map(|cursors| {
        [Caller::Stranger, Caller::Visitor].map(|guest| {
            let whose = format!("{app} {} {}", guest.kind(), guest.idempotency_scope());
            let place = Place::from_bytes(&cursors.open(&whose, cursor)?)?;
            Some(cursors.seal(&whose, &Place { at: place.at - seconds, ..place }.to_bytes()))
        })
    });
    aged.flatten().next().expect("one of the host's keys opens it")
}

#[tokio::test]
async fn a_cursor_is_good_for_fifty_minutes() {
    let chat = Chat::start().await;
    let stream = chat.listen(&["public/*"], Papers::Nobody).await;
    say(&chat, "heard").await;
    let id = stream.wait(1).await[0].id.clone();
    let missed = say(&chat, "missed").await;
    stream.wait(2).await;
    let sql = chat.host.sql().await;
    let app: uuid::Uuid = sql.query_one("SELECT id FROM inn.apps WHERE slug = 'chat'", &[]).await.unwrap().get(0);
    let app = AppId::from_uuid(app);
    let young = resumed(&chat, &aged(&chat, app, &id, 49 * 60), &["public/*"], Papers::Nobody).await;
    assert_eq!(young.wait(1).await[0].data, json!({"resumed": true}));
    assert_eq!(young.told(2).await[1], missed);
    let old = resumed(&chat, &aged(&chat, app, &id, 51 * 60), &["public/*"], Papers::Nobody).await;
    assert_eq!(old.wait(1).await[0].data, json!({"resumed": false, "reason": "too_old"}));
    let next = say(&chat, "next").await;
    assert_eq!(old.told(2).await[1], next, "nothing of what it missed, and everything that comes");
}

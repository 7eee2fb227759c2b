//! What somebody may not see cannot be found out by asking for it either.

use std::time::Duration;

use inn_tests::stream::with_options;
use inn_tests::{Papers, Stream, until};
use serde_json::json;

use super::Vault;

/// Filters and sorts by what a guest may not use.
const UNSEEN: &[(&str, &str)] = &[
    ("filter", "pin = '1234'"),
    ("filter", "pin != '1234'"),
    ("filter", "pin ~ '1' || title != ''"),
    ("filter", "title != '' && (title = 'x' || pin:lower > '1')"),
    ("filter", "lock.name = 'x'"),
    ("filter", "lock.name ?~ 'x'"),
    ("filter", "user.email:lower = '' || user.tokenKey != ''"),
    ("filter", "user.password != ''"),
    ("filter", "strftime('%Y', pin) = '2024'"),
    ("filter", "geoDistance(pin, pin, 0, 0) < 1"),
    ("filter", "notes_via_user.id != ''"),
    ("sort", "pin"),
    ("sort", "-pin"),
    ("sort", "title,lock.name"),
    ("sort", "user.tokenKey"),
    // There is no such thing, which must be no other answer.
    ("filter", "nothing = '1234'"),
    ("filter", "lock.nothing = 'x'"),
    ("filter", "nowhere.name = 'x'"),
    ("sort", "nothing"),
];

/// Neither the number of records nor the time an answer takes can tell anything about them when nothing was asked of the
/// database: the table is locked, so whoever asks it waits.
#[tokio::test]
async fn what_may_not_be_seen_is_refused_before_a_single_row_is_read() {
    let vault = Vault::open().await;
    let lock = vault.create("locked", &json!({"name": "x"})).await;
    vault.create("notes", &json!({"title": "one", "pin": "1234", "lock": lock})).await;
    let mut answers = Vec::new();
    let schema = vault.host.app_schema(super::SLUG).await;
    // Whatever is looked up once, is known before anything is locked.
    vault.list("notes", &[]).send().await.expect(200);
    let sql = vault.host.sql().await;
    let locked = ["notes", "locked", "users"]
        .map(|table| format!("LOCK TABLE \"{schema}\".\"{table}\" IN ACCESS EXCLUSIVE MODE;"));
    sql.batch_execute(&format!("BEGIN; {}", locked.join(" "))).await.unwrap();
    for (name, value) in UNSEEN {
        for more in [("perPage", "1"), ("skipTotal", "1"), ("fields", "id")] {
            let call = vault.list("notes", &[(name, value), more]);
            let reply = tokio::time::timeout(Duration::from_secs(10), call.send()).await;
            let reply = reply.unwrap_or_else(|_| panic!("{name}={value} asks the database"));
            let code = if *name == "filter" { "invalid_filter" } else { "invalid_parameter" };
            let mut body = reply.refused(400, code);
            assert_eq!((&body["data"], body.get("totalItems")), (&json!({}), None), "{name}={value}");
            // All but the name that was sent, and what every call has of its own.
            body.as_object_mut().unwrap().retain(|key, _| !["call", "serverNow"].contains(&key.as_str()));
            let answer: Vec<String> = body.to_string().split('`').step_by(2).map(str::to_owned).collect();
            answers.push((*name, *value, answer));
        }
    }
    // That the lock would have been met: what may be asked, waits for it.
    let waiting = tokio::spawn(vault.list("notes", &[("filter", "title = 'one'")]).send());
    let blocked = "SELECT count(*) FROM pg_locks WHERE NOT granted";
    until("a list that waits", || async { (vault.host.count(blocked).await > 0).then_some(()) }).await;
    sql.batch_execute("COMMIT").await.unwrap();
    assert_eq!(waiting.await.unwrap().expect(200)["totalItems"], 1);
    for (name, value, answer) in &answers {
        let (_, first, same) = answers.iter().find(|(other, ..)| other == name).unwrap();
        assert_eq!(answer, same, "{name}={value} is answered in other words than {name}={first}");
    }
}

#[tokio::test]
async fn a_stream_cannot_be_asked_about_what_may_not_be_seen() {
    let vault = Vault::open().await;
    vault.create("notes", &json!({"title": "one", "pin": "1234"})).await;
    let topic = |filter: &str| with_options("notes/*", &json!({"query": {"filter": filter}}));
    let (hidden, shown) = (topic("pin = '1234'"), topic("title = 'two'"));
    let stream = Stream::open(vault.host.door(), super::SLUG).await;
    stream.subscribe(&[hidden.as_str(), shown.as_str()], Papers::Nobody).await;
    vault.create("notes", &json!({"title": "two", "pin": "1234"})).await;
    vault.create("notes", &json!({"title": "two", "pin": "4321"})).await;
    for event in stream.wait(2).await {
        assert_eq!(event.name, shown, "only what may be asked is told");
        assert!(event.data["record"].get("pin").is_none(), "{}", event.data);
    }
}

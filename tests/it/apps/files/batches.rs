use inn_tests::TestHost;
use inn_tests::drawer::{self, Form};
use reqwest::Method;
use serde_json::{Value, json};

use super::{nothing_left, objects, opened, rows};

const BATCH: &str = "/apps/drawer/api/batch";
const DOCS: &str = "/api/collections/docs/records";

fn batch(requests: &Value) -> Form {
    Form::new().text("@jsonPayload", &json!({"requests": requests}).to_string())
}

async fn kept(host: &TestHost) -> i64 {
    host.count(&format!("SELECT count(*) FROM {}.docs", host.app_schema(drawer::SLUG).await)).await
}

#[tokio::test]
async fn a_batch_brings_the_files_of_each_of_its_requests() {
    let (host, owner) = opened().await;
    let requests = json!([
        {"method": "POST", "url": DOCS, "body": {"id": "doc000000000001", "title": "2026"}},
        {"method": "POST", "url": DOCS, "body": {"title": "second"}},
        {"method": "PATCH", "url": format!("{DOCS}/doc000000000001"), "body": {"num": 7}},
    ]);
    let form = batch(&requests)
        .file("requests.0.many", "a.txt", b"a")
        .file("requests[0].many", "b.txt", b"b")
        .file("requests.1.one", "c.txt", b"c")
        .file("requests.2.many+", "d.txt", b"d");
    let answers = form.call(host.door(), Method::POST, BATCH).by(&owner).send().await.expect(200);
    assert_eq!(answers[0]["body"]["many"].as_array().map(Vec::len), Some(2));
    let changed = &answers[2]["body"];
    assert_eq!((&changed["num"], changed["many"].as_array().map(Vec::len)), (&json!(7), Some(3)));
    for (record, name, content) in [
        (&answers[1]["body"], &answers[1]["body"]["one"], b"c"),
        (changed, &changed["many"][1], b"b"),
        (changed, &changed["many"][2], b"d"),
    ] {
        assert_eq!(host.door().get(drawer::file(record, name)).by(&owner).send().await.body, content);
    }
    assert_eq!((rows(&host).await, objects(&host)), (4, 4));
    let each = "action IN ('records.create', 'records.update') AND outcome = 'done'";
    assert_eq!(host.count(&format!("SELECT count(*) FROM inn.entries WHERE {each}")).await, 3);
}

#[tokio::test]
async fn a_batch_that_fails_leaves_no_file() {
    let (host, owner) = opened().await;
    let create = |body: Value| json!({"method": "POST", "url": DOCS, "body": body});
    let send = |form: Form| form.call(host.door(), Method::POST, BATCH).by(&owner).send();
    let two = json!([create(json!({"title": "good"})), create(json!({"num": "abc"}))]);
    let refused = send(batch(&two).file("requests.0.one", "a.txt", b"a").file("requests.1.one", "b.txt", b"b")).await;
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert!(refused.json()["data"]["requests"]["1"].is_object(), "{}", refused.text());
    let one = json!([create(json!({"title": "good"}))]);
    for wrong in ["requests.0.title", "requests.0.bogus", "requests.0.many-"] {
        let refused = send(batch(&one).file(wrong, "a.txt", b"a")).await;
        assert_eq!(refused.status, 400, "{wrong}: {}", refused.text());
        assert!(refused.json()["data"]["requests"]["0"].is_object(), "{wrong}: {}", refused.text());
    }
    for stray in ["requests.1.one", "requests.x.one", "one", "requests.0"] {
        send(batch(&one).file(stray, "a.txt", b"a")).await.refused(400, "invalid_body");
    }
    // Who may not write the one may not send its files either.
    let viewer = host.viewer().await;
    let form = batch(&one).file("requests.0.one", "a.txt", b"a");
    form.call(host.door(), Method::POST, BATCH).by(&viewer).send().await.refused(403, "forbidden");
    assert_eq!(kept(&host).await, 0);
    nothing_left(&host).await;
}

/// As the JavaScript SDK sends them.
#[tokio::test]
async fn files_may_come_before_what_they_are_for() {
    let (host, owner) = opened().await;
    let create = |body: Value| json!({"method": "POST", "url": DOCS, "body": body});
    let payload = |requests: &Value| json!({"requests": requests}).to_string();
    let send = |form: &Form| form.call(host.door(), Method::POST, BATCH).by(&owner).send();
    let two = json!([create(json!({"title": "first"})), create(json!({"title": "second"}))]);
    let form = Form::new()
        .file("requests.0.many", "a.txt", b"a")
        .file("requests.1.one", "b.txt", b"b")
        .text("@jsonPayload", &payload(&two))
        .file("requests.0.many", "c.txt", b"c");
    let answers = send(&form).await.expect(200);
    let (first, second) = (&answers[0]["body"], &answers[1]["body"]);
    for (record, name, content) in
        [(first, &first["many"][0], b"a"), (first, &first["many"][1], b"c"), (second, &second["one"], b"b")]
    {
        assert_eq!(host.door().get(drawer::file(record, name)).by(&owner).send().await.body, content);
    }
    for path in [drawer::doc(first["id"].as_str().unwrap()), drawer::doc(second["id"].as_str().unwrap())] {
        host.door().delete(path).by(&owner).send().await.expect(204);
    }
    // What is wrong with one is told as if it had come after.
    let one = json!([create(json!({"title": "good"}))]);
    let large = vec![b'x'; 2_001];
    for (key, content) in [
        ("requests.0.title", &b"a"[..]),
        ("requests.0.bogus", b"a"),
        ("requests.0.many", &large),
        ("requests.0.many-", b"a"),
    ] {
        let [after, before] = [
            batch(&one).file(key, "a.txt", content),
            Form::new().file(key, "a.txt", content).text("@jsonPayload", &payload(&one)),
        ];
        let (after, before) = (send(&after).await, send(&before).await);
        assert_eq!(before.status, 400, "{key}: {}", before.text());
        assert_eq!(before.json()["data"], after.json()["data"], "{key}");
        assert!(before.json()["data"]["requests"]["0"].is_object(), "{key}: {}", before.text());
    }
    for form in [
        Form::new().file("requests.1.one", "a.txt", b"a").text("@jsonPayload", &payload(&one)),
        Form::new().file("one", "a.txt", b"a").text("@jsonPayload", &payload(&one)),
        Form::new().file("requests.0.one", "a.txt", b"a"),
        Form::new().file("requests.0.one", "a.txt", b"a").text("@jsonPayload", "{"),
        batch(&one).file("requests.0.one", "a.txt", b"a").text("title", "late"),
    ] {
        send(&form).await.refused(400, "invalid_body");
    }
    // Who may write nowhere sends nothing, not even for a moment.
    let viewer = host.viewer().await;
    let form = Form::new().file("requests.0.one", "a.txt", b"a").text("@jsonPayload", &payload(&one));
    form.call(host.door(), Method::POST, BATCH).by(&viewer).send().await.refused(403, "forbidden");
    assert_eq!(kept(&host).await, 0);
    nothing_left(&host).await;
}

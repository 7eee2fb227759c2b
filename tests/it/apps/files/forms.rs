use inn_tests::drawer::{self, Form};
use inn_tests::kanban;
use regex::Regex;
use serde_json::{Value, json};

use super::{created, id, nothing_left, objects, opened, rows};

fn matches(name: &Value, pattern: &str) {
    let name = name.as_str().expect("a name");
    assert!(Regex::new(&format!("^{pattern}$")).unwrap().is_match(name), "{name} is not {pattern}");
}

#[tokio::test]
async fn a_form_becomes_a_record_with_its_files() {
    let (host, owner) = opened().await;
    let form = Form::new()
        .text("title", "Papers")
        .file("one", "My Scan.PDF", b"%PDF-1.7 scan")
        .file("many", "a.txt", b"first")
        .file("many", "b.txt", b"second")
        .file("many", "empty.bin", b"");
    let record = created(&host, &owner, &form).await;
    assert_eq!(record["title"], "Papers");
    matches(&record["one"], "my_scan_[a-z0-9]{10}\\.PDF");
    matches(&record["many"][0], "a[a-z0-9]{10}_[a-z0-9]{10}\\.txt");
    let read = host.door().get(drawer::doc(id(&record))).by(&owner).send().await.expect(200);
    assert_eq!(read, record);
    for (name, content) in [
        (&record["one"], &b"%PDF-1.7 scan"[..]),
        (&record["many"][0], b"first"),
        (&record["many"][1], b"second"),
        (&record["many"][2], b""),
    ] {
        let reply = host.door().get(drawer::file(&record, name)).by(&owner).send().await;
        assert_eq!((reply.status, reply.body.as_slice()), (200, content), "{name}");
    }
    assert_eq!((rows(&host).await, objects(&host)), (4, 3), "an empty file has no bytes");
}

#[tokio::test]
async fn a_large_file_is_kept_in_pieces_and_comes_back_whole() {
    let (host, owner) = opened().await;
    let content: Vec<u8> = (0..9_000_000_u32).map(|n| u8::try_from(n % 251).unwrap()).collect();
    let record = created(&host, &owner, &Form::new().file("one", "big.bin", &content)).await;
    assert_eq!(objects(&host), 3);
    let path = drawer::file(&record, &record["one"]);
    let reply = host.door().get(&path).by(&owner).send().await;
    assert!(reply.status == 200 && reply.body == content);
    // Across the border of two pieces.
    let reply = host.door().get(&path).header("range", "bytes=4194300-4194309").by(&owner).send().await;
    assert_eq!((reply.status, reply.body.as_slice()), (206, &content[4_194_300..4_194_310]));
    host.door().delete(drawer::doc(id(&record))).by(&owner).send().await.expect(204);
    nothing_left(&host).await;
}

#[tokio::test]
async fn values_of_a_form_are_what_the_text_says() {
    let (host, owner) = opened().await;
    let form = Form::new()
        .text("title", "2026")
        .text("num", "12.5")
        .text("tags", "a")
        .text("tags", "1")
        .text("meta", "{\"a\":[1,null]}");
    let record = created(&host, &owner, &form).await;
    assert_eq!(record["title"], "2026", "a text that looks like a number stays a text");
    assert_eq!(
        (&record["num"], &record["tags"], &record["meta"]),
        (&json!(12.5), &json!(["a", "1"]), &json!({"a": [1, null]}))
    );
    let form = Form::new()
        .text("title", "other")
        .text("@jsonPayload", "{\"title\":\"true\",\"num\":5}")
        .file("one", "x.txt", b"x");
    let record = created(&host, &owner, &form).await;
    assert_eq!((&record["title"], &record["num"]), (&json!("true"), &json!(5)));
    let urlencoded = host.door().call(reqwest::Method::POST, drawer::docs()).by(&owner);
    let urlencoded = urlencoded.header("content-type", "application/x-www-form-urlencoded; charset=utf-8");
    let record = urlencoded.body("title=a+b&num=3&tags=a&tags=b").send().await.expect(200);
    assert_eq!((&record["title"], &record["num"], &record["tags"]), (&json!("a b"), &json!(3), &json!(["a", "b"])));
}

#[tokio::test]
async fn the_guard_stands_before_forms_too() {
    let (host, owner) = opened().await;
    let send = |form: Form| form.create(host.door()).by(&owner).send();
    for (form, field, code) in [
        (Form::new().text("bogus", "1").file("one", "a.txt", b"a"), "bogus", "unknown_field"),
        (Form::new().text("num", "abc"), "num", "invalid_number"),
        (Form::new().text("title", "a").text("title", "b"), "title", "invalid_string"),
        (Form::new().text("@jsonPayload", "{\"num\":\"abc\"}"), "num", "invalid_number"),
        (Form::new().file("title", "a.txt", b"a"), "title", "invalid_value"),
        (Form::new().file("bogus", "a.txt", b"a"), "bogus", "invalid_value"),
        (Form::new().file("many-", "a.txt", b"a"), "many-", "invalid_value"),
    ] {
        let refusal = send(form).await.refused(400, code);
        assert_eq!(refusal["violations"][0]["field"], field, "{refusal}");
        assert!(refusal["data"][field]["code"].is_string(), "{refusal}");
    }
    for broken in [Form::new().text("@jsonPayload", "[1]"), Form::new().text("@jsonPayload", "{")] {
        send(broken).await.refused(400, "invalid_body");
    }
    assert_eq!(host.count(&format!("SELECT count(*) FROM {}.docs", host.app_schema(drawer::SLUG).await)).await, 0);
    nothing_left(&host).await;
}

#[tokio::test]
async fn files_are_added_moved_and_taken_out() {
    let (host, owner) = opened().await;
    let record = created(&host, &owner, &Form::new().file("many", "a.txt", b"a").file("many", "b.txt", b"b")).await;
    let names = |record: &Value| -> Vec<String> {
        record["many"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
    };
    let change = |form: Form| {
        let call = form.update(host.door(), id(&record)).by(&owner);
        async move { call.send().await.expect(200) }
    };
    let first = names(&record);
    let appended = names(&change(Form::new().file("many+", "c.txt", b"c")).await);
    assert_eq!(appended[..2], first);
    let full = Form::new().file("many+", "d.txt", b"d").update(host.door(), id(&record)).by(&owner).send().await;
    assert_eq!(full.refused(400, "invalid_value")["data"]["many"]["code"], "validation_too_many_files");
    let removed = names(&change(Form::new().text("many-", &first[0])).await);
    assert_eq!(removed, appended[1..]);
    let prepended = names(&change(Form::new().file("+many", "p.txt", b"p")).await);
    assert_eq!(prepended[1..], removed);
    // JSON says which stay, and in which order.
    let body = json!({"many": [prepended[2], prepended[0]]});
    let kept = host.door().patch(drawer::doc(id(&record)), &body).by(&owner).send().await.expect(200);
    assert_eq!(names(&kept), [prepended[2].clone(), prepended[0].clone()]);
    let replaced = names(&change(Form::new().text("many", &prepended[0]).file("many", "n.txt", b"n")).await);
    assert!(replaced.len() == 2 && replaced[0] == prepended[0]);
    for gone in first.iter().chain(&prepended[1..]) {
        let reply = host.door().get(drawer::file(&record, &json!(gone))).by(&owner).send().await;
        reply.refused(404, "not_found");
    }
    let cleared = host.door().patch(drawer::doc(id(&record)), &json!({"many": ""})).by(&owner).send().await.expect(200);
    assert_eq!(cleared["many"], json!([]));
    nothing_left(&host).await;
}

#[tokio::test]
async fn a_single_file_is_replaced_and_its_bytes_go() {
    let (host, owner) = opened().await;
    let record = created(&host, &owner, &Form::new().file("one", "a.txt", b"a")).await;
    let twice = Form::new().file("one", "b.txt", b"b").file("one", "c.txt", b"c");
    let replaced = twice.update(host.door(), id(&record)).by(&owner).send().await.expect(200);
    assert!(replaced["one"].as_str().unwrap().starts_with('c'), "the last one counts: {replaced}");
    inn_tests::until("one file to be left", || async { (objects(&host) == 1).then_some(()) }).await;
    assert_eq!(rows(&host).await, 1);
}

#[tokio::test]
async fn what_a_field_does_not_take_is_told_in_pocketbases_words() {
    let (host, owner) = opened().await;
    let png = drawer::png(3, 3);
    let large = vec![b'x'; 2001];
    for (form, expected) in [
        (
            Form::new().file("many", "a.txt", &large),
            json!({"many": {"code": "validation_file_size_limit", "params": {"file": "a.txt", "maxSize": 2000},
                "message": "Failed to upload a.txt - the maximum allowed file size is 2000 bytes."}}),
        ),
        (
            (0..4).fold(Form::new(), |form, n| form.file("many", &format!("{n}.txt"), b"x")),
            json!({"many": {"code": "validation_too_many_files", "params": {"maxSelect": 3}, "message": "The maximum allowed files is 3."}}),
        ),
        (
            Form::new().text("one", "nope.txt"),
            json!({"one": {"code": "validation_invalid_file", "params": {"invalidFiles": ["nope.txt"]}, "message": "Invalid new files: [nope.txt]."}}),
        ),
        // A part without a file name is a value.
        (
            Form::new().file("one", "", b"abc"),
            json!({"one": {"code": "validation_invalid_file", "params": {"invalidFiles": ["abc"]}, "message": "Invalid new files: [abc]."}}),
        ),
    ] {
        let refusal = form.create(host.door()).by(&owner).send().await.refused(400, "invalid_value");
        assert_eq!(refusal["data"], expected, "{refusal}");
    }
    // A picture that calls itself a PDF, and says so in its headers too.
    let fake = Form::new().file("pdf", "x.pdf", &png).create(host.door()).by(&owner).send().await;
    let refusal = fake.refused(400, "invalid_value");
    assert_eq!(refusal["data"]["pdf"]["code"], "validation_invalid_mime_type");
    assert!(
        refusal["data"]["pdf"]["message"]
            .as_str()
            .unwrap()
            .ends_with(".pdf\" mime type must be one of: application/pdf, text/plain.")
    );
    // Everything wrong is told at once.
    let both = Form::new()
        .file("pdf", "x.pdf", &png)
        .file("many", "a.txt", &large)
        .create(host.door())
        .by(&owner)
        .send()
        .await;
    assert_eq!(both.refused(400, "invalid_value")["data"].as_object().unwrap().len(), 2);
    nothing_left(&host).await;
}

#[tokio::test]
async fn a_name_with_folders_stays_where_it_belongs() {
    let (host, owner) = opened().await;
    for name in
        ["../x", "../../../../etc/passwd", "..", "/abs/x.txt", "..\\\\..\\\\evil.txt", "a%2f..%2fb", "\u{202e}fdp.exe"]
    {
        let record = created(&host, &owner, &Form::new().file("one", name, b"harmless")).await;
        let stored = record["one"].as_str().unwrap();
        assert!(!stored.contains(['/', '\\']) && stored.is_ascii(), "{name} became {stored}");
        let reply = host.door().get(drawer::file(&record, &record["one"])).by(&owner).send().await;
        assert_eq!(reply.body, b"harmless", "{name}");
    }
    for escape in ["..%2f..%2fkeys", "%2e%2e", "x%00", "x/../../y"] {
        let path = format!("/apps/{}/api/files/docs/000000000000000/{escape}", drawer::SLUG);
        assert_eq!(host.door().get(path).by(&owner).send().await.status, 404, "{escape}");
    }
}

#[tokio::test]
async fn a_form_of_an_agent_is_signed_and_counts_once() {
    let (host, owner) = opened().await;
    let mut agent = host.new_agent().await;
    agent.obtain(&owner, drawer::SLUG, &["data:docs:read", "data:docs:write"], &inn_tests::Consent::default()).await;
    let form = |boundary: Form| boundary.text("title", "x").file("one", "a.txt", b"a");
    let record = form(Form::new()).create(host.door()).by(&agent).key("upload-1").send().await.expect(200);
    // The same again: another boundary, the same form.
    let again = form(Form::new()).create(host.door()).by(&agent).key("upload-1").send().await;
    assert_eq!(again.refused(409, "duplicate_request")["id"], record["id"]);
    let other =
        Form::new().text("title", "x").file("one", "a.txt", b"b").create(host.door()).by(&agent).key("upload-1");
    other.send().await.refused(422, "key_reused");
    // What is signed is what must arrive.
    let (signed, sent) = (form(Form::new()), Form::new());
    let mut forged = signed.body();
    let place = forged.windows(5).position(|window| window == b"\r\n\r\na").unwrap() + 4;
    forged[place] = b'b';
    let call = signed.create(host.door()).by(&agent).late_body(forged);
    call.send().await.refused(401, "digest_mismatch");
    drop(sent);
    let entry =
        host.count("SELECT count(*) FROM inn.entries WHERE action = 'records.create' AND outcome = 'done'").await;
    assert_eq!(entry, 1);
    inn_tests::until("the other uploads to go", || async { (objects(&host) == 1).then_some(()) }).await;
}

#[tokio::test]
async fn nothing_is_received_from_whoever_may_not_write() {
    let (host, owner) = opened().await;
    let record = created(&host, &owner, &Form::new().text("title", "x")).await;
    let viewer = host.viewer().await;
    let mut reader = host.new_agent().await;
    reader.obtain(&owner, drawer::SLUG, &["data:docs:read"], &inn_tests::Consent::default()).await;
    let small = Form::new().file("one", "a.bin", b"small");
    for update in [false, true] {
        let send = || if update { small.update(host.door(), id(&record)) } else { small.create(host.door()) };
        send().send().await.refused(401, "agent_token_required");
        send().by(&viewer).send().await.refused(403, "forbidden");
        send().by(&reader).send().await.refused(403, "insufficient_scope");
        assert_eq!(send().by(&host.rival().await).send().await.status, 404);
    }
    let large = Form::new().file("one", "a.bin", &vec![7; 5_000_000]);
    // The host may hang up while the form is still on its way; an answer, when there is one, says why.
    if let Ok(reply) = large.create(host.door()).by(&viewer).try_send().await {
        reply.refused(403, "forbidden");
    }
    assert_eq!(host.count("SELECT count(*) FROM inn.files").await, 0, "not even a row");
    let refused = "SELECT count(*) FROM inn.entries WHERE action LIKE 'records.%' AND outcome LIKE 'refused:%'";
    assert!(host.count(refused).await >= 4, "and everybody known has an entry");
    // Other apps do not read forms at all where they take none.
    let kanban = Form::new().text("name", "House").call(host.door(), reqwest::Method::POST, kanban::records("boards"));
    assert_eq!(kanban.by(&owner).send().await.expect(200)["name"], "House");
}

#[tokio::test]
async fn an_apps_own_page_uploads_without_papers_on_loopback_and_a_foreign_one_does_not() {
    let (host, _) = opened().await;
    let page = host.door().app_host(drawer::SLUG);
    let form = Form::new().file("many", "p.png", &drawer::png(4, 4));
    let send = |origin: String| {
        let call = form.call(host.door(), reqwest::Method::POST, "/api/collections/docs/records");
        call.on_app(drawer::SLUG).header("origin", origin).send()
    };
    let record = send(format!("http://{page}")).await.expect(200);
    let shown = host.door().get(drawer::own(&record, &record["many"][0])).on_app(drawer::SLUG).send().await;
    assert_eq!((shown.status, shown.header("content-type")), (200, Some("image/png")));
    send("https://evil.example".to_owned()).await.refused(403, "forbidden_origin");
    assert_eq!(rows(&host).await, 1);
}

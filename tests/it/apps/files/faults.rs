use std::time::Duration;

use inn_tests::drawer::{self, Form};
use inn_tests::{TestHost, until};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{created, id, nothing_left, objects, opened, rows};

/// A form on its way over a bare socket. `length` is what the client announces.
async fn begun(host: &TestHost, session: &str, form: &Form, length: usize) -> TcpStream {
    let address = host.door().socket.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {session}\r\nContent-Type: {}\r\nContent-Length: {length}\r\n\r\n",
        drawer::docs(),
        host.door().authority,
        form.content_type()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn a_client_that_hangs_up_leaves_nothing() {
    let (host, owner) = opened().await;
    let form = Form::new().text("title", "x").file("one", "big.bin", &vec![7; 12_000_000]);
    let body = form.body();
    let mut stream = begun(&host, &owner.token, &form, body.len()).await;
    stream.write_all(&body[..9_000_000]).await.unwrap();
    until("the first pieces", || async { (objects(&host) >= 2).then_some(()) }).await;
    assert_eq!(rows(&host).await, 1);
    drop(stream);
    nothing_left(&host).await;
    assert_eq!(host.door().get(drawer::docs()).by(&owner).send().await.expect(200)["totalItems"], 0);
}

#[tokio::test]
async fn a_form_that_is_cut_off_leaves_nothing() {
    let (host, owner) = opened().await;
    let form = Form::new().text("title", "x").file("one", "a.bin", &[7; 5000]);
    let body = form.body();
    for keep in [0, 10, 100, 200, 3000, body.len() - 10, body.len() - 4] {
        // The client says that this is all of it.
        let mut stream = begun(&host, &owner.token, &form, keep).await;
        stream.write_all(&body[..keep]).await.unwrap();
        let mut answer = vec![0; 20];
        stream.read_exact(&mut answer).await.unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 400"), "{keep}: {}", String::from_utf8_lossy(&answer));
    }
    nothing_left(&host).await;
    assert_eq!(host.door().get(drawer::docs()).by(&owner).send().await.expect(200)["totalItems"], 0);
}

#[tokio::test]
async fn a_refused_record_takes_its_files_along() {
    let (host, owner) = opened().await;
    let form = |code: &str| Form::new().text("code", code).file("one", "a.txt", b"a");
    created(&host, &owner, &form("taken")).await;
    form("taken").create(host.door()).by(&owner).send().await.refused(400, "not_unique");
    let update = Form::new().file("one", "b.txt", b"b").update(host.door(), "000000000000000").by(&owner).send().await;
    update.refused(404, "not_found");
    until("only the kept file to be left", || async { (rows(&host).await == 1 && objects(&host) == 1).then_some(()) })
        .await;
}

#[tokio::test]
async fn what_a_crash_left_is_swept() {
    let (host, owner) = opened().await;
    let record = created(&host, &owner, &Form::new().file("one", "kept.txt", b"kept")).await;
    // A node died after the bytes were written and before the record was: a row, an object, and half of another one.
    let sql = host.sql().await;
    let orphan = "INSERT INTO inn.files (id, tenant, app, collection, field, name, state, due_at)
        SELECT gen_random_uuid(), tenant, id, 'c_docs', 'f_one', 'orphan.txt', 'received', clock_timestamp() + interval '1 hour'
        FROM inn.apps WHERE slug = 'drawer' RETURNING id, app";
    let row = sql.query_one(orphan, &[]).await.unwrap();
    let (file, app): (uuid::Uuid, uuid::Uuid) = (row.get(0), row.get(1));
    let name = file.simple().to_string();
    let spread: String = name.chars().skip(30).collect();
    let folder = host.dir().join("blobs/files").join(app.simple().to_string()).join(spread).join(&name);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("0"), b"orphan").unwrap();
    std::fs::write(folder.join("1#3"), b"half").unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(folder.join("0").exists(), "it may still be on its way into a record");
    sql.execute("UPDATE inn.files SET due_at = clock_timestamp() WHERE name = 'orphan.txt'", &[]).await.unwrap();
    until("the orphan to be swept", || async { (!folder.exists()).then_some(()) }).await;
    assert_eq!((rows(&host).await, objects(&host)), (1, 1));
    let kept = host.door().get(drawer::file(&record, &record["one"])).by(&owner).send().await;
    assert_eq!(kept.body, b"kept");
}

#[tokio::test]
async fn any_node_serves_and_sweeps_what_another_received() {
    let (mut host, owner) = opened().await;
    host.add_node(|_| {}).await;
    let record = created(&host, &owner, &Form::new().file("many", "p.png", &drawer::png(40, 20))).await;
    let [first, second] = host.doors() else { panic!("two nodes") };
    let path = drawer::file(&record, &record["many"][0]);
    let (here, there) = (first.get(&path).by(&owner).send().await, second.get(&path).by(&owner).send().await);
    assert!(here.status == 200 && here.body == there.body && here.header("etag") == there.header("etag"));
    let thumb = format!("{path}?thumb=100x100");
    let (here, there) = (first.get(&thumb).by(&owner).send().await, second.get(&thumb).by(&owner).send().await);
    assert!(here.status == 200 && here.body == there.body);
    second.patch(drawer::doc(id(&record)), &json!({"many": []})).by(&owner).send().await.expect(200);
    assert_eq!(first.get(&path).by(&owner).send().await.status, 404);
    nothing_left(&host).await;
}

#[tokio::test]
async fn a_kept_file_whose_bytes_are_lost_is_told_and_not_served_in_half() {
    let (host, owner) = opened().await;
    let record = created(&host, &owner, &Form::new().file("one", "a.bin", &vec![7; 5_000_000])).await;
    let path = drawer::file(&record, &record["one"]);
    std::fs::remove_dir_all(host.dir().join("blobs/files")).unwrap();
    host.door().get(&path).by(&owner).send().await.refused(500, "internal");
    // The record itself is as it was, and can be mended.
    let mended =
        Form::new().file("one", "b.txt", b"b").update(host.door(), id(&record)).by(&owner).send().await.expect(200);
    assert_eq!(host.door().get(drawer::file(&mended, &mended["one"])).by(&owner).send().await.body, b"b");
}

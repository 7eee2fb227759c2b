use inn_tests::drawer::{self, Form};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::{created, nothing_left, opened, opened_with};

#[tokio::test]
async fn a_form_above_the_limit_is_refused_and_nothing_is_kept() {
    let form = Form::new().file("one", "a.bin", &vec![7; 300_000]);
    let (host, owner) = opened_with("none", |settings| settings.files.max_upload = 100_000).await;
    // The host may hang up while the form is still on its way; an answer, when there is one, says why.
    if let Ok(reply) = form.create(host.door()).by(&owner).try_send().await {
        reply.refused(413, "too_large");
    }
    nothing_left(&host).await;
    let (host, owner) = opened().await;
    created(&host, &owner, &form).await;
    // Texts are a body like any other.
    let texts = Form::new().text("title", &"x".repeat(3 << 20));
    if let Ok(reply) = texts.create(host.door()).by(&owner).try_send().await {
        reply.refused(413, "too_large");
    }
}

#[tokio::test]
async fn one_form_too_many_is_told_to_come_back() {
    let (host, owner) = opened_with("none", |settings| settings.files.uploads = 1).await;
    let form = Form::new().file("one", "a.bin", &vec![7; 5_000_000]);
    let body = form.body();
    let mut slow = TcpStream::connect(host.door().socket.strip_prefix("http://").unwrap()).await.unwrap();
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n\r\n",
        drawer::docs(),
        host.door().authority,
        owner.token,
        form.content_type(),
        body.len()
    );
    slow.write_all(head.as_bytes()).await.unwrap();
    slow.write_all(&body[..4_900_000]).await.unwrap();
    inn_tests::until("the slow form to be under way", || async { (super::objects(&host) == 1).then_some(()) }).await;
    let small = Form::new().file("one", "b.txt", b"b");
    small.create(host.door()).by(&owner).send().await.refused(503, "overloaded");
    // Calls without forms are not held up.
    host.door().get(drawer::docs()).by(&owner).send().await.expect(200);
    drop(slow);
    inn_tests::until("the place to be free again", || async {
        let reply = small.create(host.door()).by(&owner).send().await;
        (reply.status == 200).then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_files_of_an_app_take_no_more_than_the_host_lets_them() {
    let (host, owner) = opened_with("none", |settings| settings.files.app_bytes = 10_000).await;
    let form = || Form::new().file("one", "a.bin", &[7; 6000]);
    let first = created(&host, &owner, &form()).await;
    form().create(host.door()).by(&owner).send().await.refused(413, "too_large");
    // Another app has room of its own, and what is deleted counts no more.
    host.deploy(&owner, "second", drawer::files("none")).await;
    let other = form().call(host.door(), reqwest::Method::POST, "/apps/second/api/collections/docs/records");
    other.by(&owner).send().await.expect(200);
    host.door().delete(drawer::doc(first["id"].as_str().unwrap())).by(&owner).send().await.expect(204);
    created(&host, &owner, &form()).await;
}

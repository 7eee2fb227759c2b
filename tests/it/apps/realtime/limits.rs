//! How much realtime may take.

use std::time::Duration;

use inn_tests::{Papers, Stream, until};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{Chat, SLUG};

#[tokio::test]
async fn an_app_has_so_many_streams_and_one_that_closes_makes_room() {
    let chat = Chat::with(|settings| settings.realtime.app_connections = 2).await;
    let (first, _second) = (chat.stream().await, chat.stream().await);
    let connect = || chat.host.door().get(format!("/apps/{SLUG}/api/realtime"));
    let refused = connect().send().await.refused(429, "rate_limited");
    assert!(refused["retryAfterSeconds"].as_u64().is_some());
    let elsewhere = Stream::open(chat.host.door(), inn_tests::kanban::SLUG).await;
    drop((first, elsewhere));
    until("room for a stream", || async {
        let answer = connect().open().await;
        (answer.status() == 200).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_node_may_be_told_to_stream_nothing() {
    let chat = Chat::with(|settings| settings.realtime.connections = 0).await;
    let connect = chat.host.door().get(format!("/apps/{SLUG}/api/realtime"));
    connect.send().await.refused(429, "rate_limited");
}

#[tokio::test]
async fn a_caller_has_so_many_streams_on_one_app() {
    let chat = Chat::with(|settings| settings.realtime.caller_connections = 1).await;
    let (ada, bob) = (chat.sign_up("ada").await, chat.sign_up("bob").await);
    let first = chat.listen(&["public/*"], &ada).await;
    let second = chat.stream().await;
    second.try_subscribe(&["public/*"], &ada).await.refused(429, "rate_limited");
    first.subscribe(&["public/*"], &ada).await;
    second.subscribe(&["public/*"], &bob).await;
    for _ in 0..3 {
        chat.listen(&["public/*"], Papers::Nobody).await;
    }
}

#[tokio::test]
async fn a_silent_stream_ends_after_its_time() {
    let chat = Chat::with(|settings| settings.realtime.idle = Duration::from_secs(1)).await;
    chat.listen(&["public/*"], Papers::Nobody).await.wait_for_end().await;
}

#[tokio::test]
async fn a_client_that_reads_too_slowly_is_cut_off_alone() {
    let chat = Chat::with(|settings| settings.realtime.buffer = 8).await;
    let quick = chat.listen(&["public/*"], Papers::Nobody).await;
    // Opens a stream with its own hands and then reads nothing any more.
    let door = chat.host.door();
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let address = door.socket.strip_prefix("http://").unwrap().parse().unwrap();
    let mut slow = socket.connect(address).await.unwrap();
    let request = format!("GET /apps/{SLUG}/api/realtime HTTP/1.1\r\nhost: {}\r\n\r\n", door.authority);
    slow.write_all(request.as_bytes()).await.unwrap();
    let mut head = vec![0; 4096];
    let mut read = 0;
    let client = loop {
        read += slow.read(&mut head[read..]).await.unwrap();
        let text = String::from_utf8_lossy(&head[..read]).into_owned();
        if let Some((_, rest)) = text.split_once("\"clientId\":\"") {
            break rest.chars().take(40).collect::<String>();
        }
    };
    let topic = json!({"clientId": client, "subscriptions": ["public/*"]});
    door.post(format!("/apps/{SLUG}/api/realtime"), &topic).send().await.expect(204);
    let known = || door.post(format!("/apps/{SLUG}/api/realtime"), &topic).send();
    let mut told = 0;
    while known().await.status == 204 {
        chat.create("public", &json!({"text": "x".repeat(4_000)})).await;
        told += 1;
        quick.wait(told).await;
        assert!(told < 5_000, "the slow client is never cut off");
    }
    chat.create("public", &json!({"text": "after"})).await;
    quick.wait(told + 1).await;
}

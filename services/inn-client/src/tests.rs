//! Signing round trips against the verifier, and the wire against a server of a few lines.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use inn_grants::SigningKey;
use inn_grants::signature::{self, SignedParts};
use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::{Client, ClientError, Outgoing, Papers, RetryPolicy, TokenCache, segment};

fn key() -> SigningKey {
    SigningKey::from_seed([7; 32])
}

/// What the platform would read from the HTTP request, verified as the platform does.
fn verify(prepared: &crate::Prepared, authority: &str, now: i64) -> Result<(), inn_protocol::Refusal> {
    let request = prepared.request();
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    let parsed = signature::parse(header("signature-input").unwrap(), header("signature").unwrap())?;
    if let Some(body) = request.body().and_then(|body| body.as_bytes()) {
        signature::check_content_digest(header("content-digest").unwrap(), body)?;
    }
    let query = request.url().query().map_or_else(|| "?".to_owned(), |query| format!("?{query}"));
    let parts = SignedParts {
        method: request.method().as_str(),
        authority,
        path: request.url().path(),
        query: &query,
        content_type: header("content-type"),
        content_digest: header("content-digest"),
        idempotency_key: header("idempotency-key"),
        token_digest: header("innkeeper-token-digest"),
        delegation: header("innkeeper-delegation"),
        claim: header("innkeeper-claim"),
    };
    signature::verify(&parsed, &parts, &key().public(), now).map(drop)
}

#[test]
fn every_kind_of_call_is_signed_so_that_the_verifier_accepts_it() {
    let client = Client::new("http://localhost:8090").unwrap();
    let token = Papers::Agent { key: key(), token: Arc::from("abc"), delegation: Some(Arc::from("a.b")) };
    for papers in [Papers::Key(key()), token] {
        for outgoing in [
            Outgoing::get("/v1/grant-requests/grq_1"),
            Outgoing::get("/apps/kanban/api/collections/cards/records?filter=title%3D%22a%20b%22&page=1"),
            Outgoing::post("/v1/token", &json!({"grant": "grt_1"})).key("k1"),
            Outgoing::delete("/apps/kanban/api/collections/cards/records/x").header("x-a2app-agent", "me").unwrap(),
            Outgoing::new(Method::PUT, "/apps/a/api/x")
                .header("content-type", "text/plain")
                .unwrap()
                .raw_body("hi".into()),
        ] {
            let prepared = client.prepare(&outgoing, &papers).unwrap();
            assert_eq!(verify(&prepared, "localhost:8090", client.now()), Ok(()), "{outgoing:?}");
            assert!(verify(&prepared, "localhost:9999", client.now()).is_err(), "the authority is covered");
        }
    }
}

#[test]
fn the_default_port_is_not_part_of_the_signed_authority() {
    let client = Client::new("http://inn.example:80/").unwrap();
    let prepared = client.prepare(&Outgoing::get("/v1/keys"), &Papers::Key(key())).unwrap();
    assert_eq!(verify(&prepared, "inn.example", client.now()), Ok(()));
}

#[test]
fn a_token_travels_with_its_digest_and_two_signatures_never_share_a_nonce() {
    let client = Client::new("http://localhost:8090").unwrap();
    let papers = Papers::Agent { key: key(), token: Arc::from("secret-token"), delegation: None };
    let first = client.prepare(&Outgoing::get("/v1/receipts/x"), &papers).unwrap();
    let second = client.prepare(&Outgoing::get("/v1/receipts/x"), &papers).unwrap();
    let input =
        |prepared: &crate::Prepared| prepared.request().headers()["signature-input"].to_str().unwrap().to_owned();
    assert_ne!(input(&first), input(&second));
    let digest = first.request().headers()["innkeeper-token-digest"].to_str().unwrap();
    assert_eq!(signature::check_token_digest(digest, "secret-token"), Ok(()));
    assert!(!format!("{papers:?} {first:?}").contains("secret-token"), "secrets stay out of debug output");
}

#[test]
fn addresses_that_are_no_platform_are_refused() {
    for text in ["", "localhost:8090", "ftp://x", "http://", "http://x/y", "http://u:p@x", "http://x/?a=1"] {
        assert!(matches!(Client::new(text), Err(ClientError::Invalid(_))), "{text}");
    }
    assert_eq!(Client::new("http://localhost:8090/").unwrap().platform(), "http://localhost:8090");
}

#[test]
fn a_segment_can_be_nothing_but_a_segment() {
    assert_eq!(segment("cards.add"), "cards.add");
    assert_eq!(segment("../x?y#z%/ä"), "..%2Fx%3Fy%23z%25%2F%C3%A4");
    assert_eq!(segment(".."), "%2E%2E");
}

/// Answers each connection with the next of `answers`, the last one for ever; counts them.
async fn server(answers: Vec<String>) -> (Client, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&count);
    tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            let turn = seen.fetch_add(1, Ordering::SeqCst);
            let answer = answers.get(turn).or(answers.last()).cloned().unwrap_or_default();
            let mut buffer = vec![0; 64 * 1024];
            let _ = socket.read(&mut buffer).await;
            let _ = socket.write_all(answer.as_bytes()).await;
        }
    });
    (client, count)
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n{body}", body.len())
}

fn busy() -> String {
    let body = r#"{"code":"overloaded","message":"busy","outcome":"none","retry":"after","retryAfterSeconds":0}"#;
    answer("503 Service Unavailable", "Retry-After: 0\r\n", body)
}

#[tokio::test]
async fn a_read_is_repeated_and_a_write_only_with_a_key() {
    let ok = answer("200 OK", "innkeeper-call: call_1\r\n", "{\"a\":1}");
    let (client, count) = server(vec![busy(), String::new(), ok.clone()]).await;
    let answered = client.call(&Outgoing::get("/v1/keys"), &Papers::Nothing).await.unwrap();
    assert_eq!((answered.call(), answered.json().unwrap()), (Some("call_1"), json!({"a": 1})));
    assert_eq!(count.load(Ordering::SeqCst), 3, "busy, a lost connection, and the answer");

    let (client, count) = server(vec![busy(), ok.clone()]).await;
    let write = Outgoing::post("/v1/x", &json!({}));
    let refused = client.call(&write, &Papers::Nothing).await.unwrap_err();
    assert_eq!((refused.code(), count.load(Ordering::SeqCst)), (Some("overloaded"), 1));
    assert!(client.call(&write.key("k"), &Papers::Nothing).await.is_ok());

    let (client, count) = server(vec![busy()]).await;
    let client = client.with_retry(RetryPolicy { attempts: 2, ..RetryPolicy::default() });
    assert!(client.call(&Outgoing::get("/v1/keys"), &Papers::Nothing).await.is_err());
    assert_eq!(count.load(Ordering::SeqCst), 2, "repeating ends");
}

#[tokio::test]
async fn a_refusal_for_our_clock_is_repeated_once_with_the_servers_time() {
    let date = chrono::DateTime::from_timestamp(1_900_000_000, 0).unwrap().format("%a, %d %b %Y %H:%M:%S GMT");
    let refusal = r#"{"code":"signature_expired","message":"late","outcome":"none","retry":"no"}"#;
    let late = answer("401 Unauthorized", &format!("Date: {date}\r\n"), refusal);
    let ok = answer("200 OK", &format!("Date: {date}\r\n"), "{}");
    let (client, count) = server(vec![late.clone(), ok]).await;
    let write = Outgoing::post("/v1/token", &json!({}));
    assert!(client.call(&write, &Papers::Key(key())).await.is_ok());
    assert_eq!(count.load(Ordering::SeqCst), 2);
    assert!((client.now() - 1_900_000_000).abs() < 5);

    let (client, count) = server(vec![late]).await;
    assert_eq!(client.call(&write, &Papers::Key(key())).await.unwrap_err().code(), Some("signature_expired"));
    assert_eq!(count.load(Ordering::SeqCst), 2, "not for ever");
}

#[tokio::test]
async fn what_is_not_a_platform_is_told_apart_from_one_that_refuses_and_one_that_is_away() {
    let (client, _) = server(vec![answer("502 Bad Gateway", "", "<html>")]).await;
    let error = client.call(&Outgoing::get("/v1/keys"), &Papers::Nothing).await.unwrap_err();
    assert!(matches!(error, ClientError::Protocol { .. }), "{error:?}");

    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let away = Client::new(&format!("http://{free}")).unwrap().with_retry(RetryPolicy::NEVER);
    let error = away.call(&Outgoing::get("/v1/keys"), &Papers::Nothing).await.unwrap_err();
    assert!(matches!(error, ClientError::Unreachable { sent: false, .. }), "{error:?}");
    assert!(!error.outcome_unknown());
}

#[tokio::test]
async fn a_token_is_taken_once_and_again_only_when_it_is_about_to_end() {
    let token = |minutes: i64| {
        let ends = chrono::Utc::now() + chrono::TimeDelta::minutes(minutes);
        answer("200 OK", "", &json!({"token": "t", "expiresAt": ends, "grant": "grt_1"}).to_string())
    };
    let (client, count) = server(vec![token(15)]).await;
    let tokens = TokenCache::default();
    let agent = client.agent(key()).with_tokens(tokens.clone());
    for _ in 0..3 {
        assert_eq!(agent.token("grt_1").await.unwrap().token, "t");
    }
    assert_eq!(count.load(Ordering::SeqCst), 1);
    assert_eq!(tokens.all().len(), 1);

    let (client, count) = server(vec![token(0)]).await;
    let agent = client.agent(key());
    for _ in 0..2 {
        agent.token("grt_1").await.unwrap();
    }
    assert_eq!(count.load(Ordering::SeqCst), 2);
}

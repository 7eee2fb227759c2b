//! Texts that are none, numbers beyond numbers, and what is nested without end.

use inn_tests::drawer::Form;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::{SLUG, Vault};

impl Vault {
    fn form(&self, form: &Form) -> inn_tests::Call {
        form.call(self.host.door(), Method::POST, Self::records("notes"))
    }

    fn written(&self, body: &str) -> inn_tests::Call {
        let call = self.host.door().call(Method::POST, Self::records("notes"));
        call.header("content-type", "application/json").body(body.as_bytes())
    }

    /// A request as these bytes, past every client that would mend it.
    async fn told(&self, request: &[u8]) -> String {
        let address = self.host.door().socket.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(address).await.unwrap();
        // The host may answer and hang up while more is on its way.
        let _ = stream.write_all(request).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned()
    }

    fn get(&self, query: &str) -> Vec<u8> {
        let (path, host) = (Self::records("notes"), &self.host.door().authority);
        format!("GET {path}?{query} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").into_bytes()
    }
}

#[tokio::test]
async fn a_filter_has_an_end_and_any_number_of_parentheses() {
    let vault = Vault::open().await;
    vault.create("notes", &json!({"title": "one"})).await;
    for levels in [200, 1_700] {
        let filter = format!("{}title='one'{}", "(".repeat(levels), ")".repeat(levels));
        assert_eq!(vault.list("notes", &[("filter", &filter)]).send().await.expect(200)["totalItems"], 1, "{levels}");
    }
    for filter in [
        format!("{}title='one'", "(".repeat(200)),
        format!("title='one'{}", ")".repeat(200)),
        format!("title='{}'", "x".repeat(3_493)),
        "(".repeat(3_500),
        "title='x'||".repeat(318),
    ] {
        vault.list("notes", &[("filter", &filter)]).send().await.refused(400, "invalid_filter");
    }
    for (name, value) in
        [("sort", "title,".repeat(4_000)), ("fields", "a.".repeat(8_000)), ("expand", "lock.".repeat(4_000))]
    {
        let reply = vault.list("notes", &[(name, &value)]).send().await;
        assert!(matches!(reply.status, 200 | 400), "{name}: {} {}", reply.status, reply.text());
    }
    // A megabyte does not even get in: no address is that long.
    let long = "x".repeat(1 << 20);
    for query in [format!("filter=title='{long}'"), format!("sort={long}"), format!("{long}={long}")] {
        let answer = vault.told(&vault.get(&query)).await;
        let status = answer.split(' ').nth(1).unwrap_or_default();
        assert!(matches!(status, "400" | "414" | "431" | ""), "{answer}");
    }
    let header = format!("{}X-Long: {long}\r\n\r\n", String::from_utf8(vault.get("page=1")).unwrap().trim_end());
    let status = vault.told(header.as_bytes()).await;
    assert!(!status.contains(" 200 "), "{status}");
    assert_eq!(vault.total("notes").await, 1, "and the host goes on");
}

#[tokio::test]
async fn no_record_has_a_text_that_is_none() {
    let vault = Vault::open().await;
    // U+0000 and half a surrogate pair, as JSON can write them.
    for escape in [r"\u0000", r"\ud800", r"\udfff", r"\ud800\ud800", r"\udc00\ud800", r"\ud83d"] {
        for body in [
            format!(r#"{{"title":"a{escape}b"}}"#),
            format!(r#"{{"title":"x","data":{{"deep":["{escape}"]}}}}"#),
            format!(r#"{{"title":"x","data":{{"{escape}":1}}}}"#),
            format!(r#"{{"title":"x","tags":["{escape}"]}}"#),
            format!(r#"{{"title":"x","lock":"{escape}"}}"#),
            format!(r#"{{"title":"x","{escape}":1}}"#),
            format!(r#"{{"id":"{escape}00000000000000","title":"x"}}"#),
        ] {
            let reply = vault.written(&body).send().await;
            let told = reply.expect(400);
            assert!(told["message"].as_str().is_some_and(|text| !text.is_empty()), "{body}: {told}");
        }
        let payload = Form::new().text("@jsonPayload", &format!(r#"{{"title":"{escape}"}}"#));
        vault.form(&payload).send().await.expect(400);
        let batch = format!(
            r#"{{"requests":[{{"method":"POST","url":"/api/collections/notes/records","body":{{"title":"{escape}"}}}}]}}"#
        );
        let call = vault.host.door().call(Method::POST, format!("/apps/{SLUG}/api/batch"));
        call.header("content-type", "application/json")
            .body(batch.as_bytes())
            .by(&vault.owner)
            .send()
            .await
            .expect(400);
        let topics = format!(r#"{{"clientId":"{}","subscriptions":["notes/{escape}"]}}"#, "x".repeat(40));
        let call = vault.host.door().call(Method::POST, format!("/apps/{SLUG}/api/realtime"));
        let reply = call.header("content-type", "application/json").body(topics.as_bytes()).send().await;
        assert!(matches!(reply.status, 400 | 404), "{escape}: {}", reply.text());
    }
    // Bytes that are no UTF-8, and NUL as it is.
    for bytes in [&b"\xed\xa0\x80"[..], b"\xff", b"\0", b"\xc3"] {
        let body = [b"{\"title\":\"a", bytes, b"\"}"].concat();
        let call = vault.host.door().call(Method::POST, Vault::records("notes"));
        call.header("content-type", "application/json").body(body).send().await.expect(400);
    }
    assert_eq!(vault.total("notes").await, 0);
    // The same in a form, where a text is bytes: what is no text is refused, never kept as another.
    for bytes in ["\0", "a\0b"] {
        vault.form(&Form::new().text("title", bytes)).send().await.expect(400);
    }
    assert_eq!(vault.total("notes").await, 0);
    // A pair of halves that belong together is a letter.
    let kept = vault.written(r#"{"title":"\ud83d\udea2"}"#).send().await.expect(200);
    assert_eq!(kept["title"], "\u{1f6a2}");
}

#[tokio::test]
async fn an_address_with_what_is_no_text_finds_nothing_and_breaks_nothing() {
    let vault = Vault::open().await;
    let note = vault.create("notes", &json!({"title": "one"})).await;
    for odd in ["%00", "%ED%A0%80", "%FF", "%C3", "a%00b", "%E2%80%AE", "%25%30%30"] {
        for query in [
            format!("filter=title%3D'{odd}'"),
            format!("filter={odd}%3D1"),
            format!("filter=data.{odd}%3D1"),
            format!("filter=strftime('{odd}','{odd}')%3D''"),
            format!("sort={odd}"),
            format!("fields={odd}"),
            format!("expand={odd}"),
            format!("page={odd}"),
            format!("perPage={odd}"),
            format!("skipTotal={odd}"),
            format!("{odd}={odd}"),
        ] {
            let answer = vault.told(&vault.get(&query)).await;
            let status = answer.split(' ').nth(1).unwrap_or_default();
            assert!(matches!(status, "200" | "400"), "{query}: {answer}");
        }
        for path in [
            format!("/api/collections/{odd}/records"),
            format!("/api/collections/notes/records/{odd}"),
            format!("/api/files/notes/{note}/{odd}"),
            format!("/api/files/{odd}/{odd}/{odd}?thumb={odd}&token={odd}"),
        ] {
            let reply = vault.host.door().get(format!("/apps/{SLUG}{path}")).send().await;
            assert!(matches!(reply.status, 400 | 404), "{path}: {} {}", reply.status, reply.text());
        }
    }
    for sign in ['\0', '\u{202e}', '\u{feff}', '\u{fffd}'] {
        let filter = format!("title = '{sign}' || title ~ '{sign}' || data.a = '{sign}'");
        assert_eq!(vault.list("notes", &[("filter", &filter)]).send().await.expect(200)["totalItems"], 0, "{sign:?}");
    }
}

#[tokio::test]
async fn numbers_beyond_numbers_are_refused_wherever_they_stand() {
    let vault = Vault::open().await;
    for number in ["1e309", "-1e309", "1e999999999", "NaN", "Infinity", "-Infinity", "0x10", "1_0", "+1", ".5", "01"] {
        for body in [
            format!(r#"{{"title":"x","count":{number}}}"#),
            format!(r#"{{"title":"x","data":{number}}}"#),
            format!(r#"{{"title":"x","data":[[{number}]]}}"#),
            format!(r#"{{"title":"x","place":{{"lon":{number},"lat":0}}}}"#),
            format!(r#"{{"title":"x","count+":{number}}}"#),
        ] {
            vault.written(&body).send().await.expect(400);
        }
    }
    for (field, value) in [
        ("count", json!("NaN")),
        ("count", json!("Infinity")),
        ("count", json!("-inf")),
        ("count", json!("1e309")),
        ("whole", json!(1.5)),
        ("whole", json!("1e-3")),
        ("place", json!({"lon": 1e300, "lat": 0})),
        ("place", json!({"lon": 0, "lat": -91})),
    ] {
        let reply = vault.written(&json!({"title": "x", field: value}).to_string()).send().await;
        assert_eq!(reply.status, 400, "{field} {value}: {}", reply.text());
    }
    assert_eq!(vault.total("notes").await, 0);
    // As large as a number gets is a number; one more is none.
    let largest = vault.create("notes", &json!({"title": "x", "count": f64::MAX, "data": 1e-320})).await;
    let change = |body: Value| {
        let path = format!("{}/{largest}", Vault::records("notes"));
        vault.host.door().patch(path, &body)
    };
    for body in
        [json!({"count+": f64::MAX}), json!({"count-": -f64::MAX}), json!({"count": -f64::MAX, "count-": f64::MAX})]
    {
        let reply = change(body.clone()).send().await;
        assert_eq!(reply.status, 400, "{body}: {}", reply.text());
    }
    let seen = vault.list("notes", &[]).send().await.expect(200);
    assert_eq!(seen["items"][0]["count"], f64::MAX);
    for (filter, found) in [
        (format!("count = {}", "9".repeat(400)), 0),
        (format!("count < {}", "9".repeat(400)), 1),
        (format!("count > -{}", "9".repeat(400)), 1),
        (format!("count > 0.{}1", "0".repeat(400)), 1),
        (format!("title = {}", "9".repeat(400)), 0),
        (format!("data ~ {}", "9".repeat(400)), 0),
        ("geoDistance(count, count, -180, 91) < 1".to_owned(), 0),
        (format!("strftime('%Y', {}, '+9999999999 years') != ''", "9".repeat(300)), 0),
        (format!("data.{} = 1", "9".repeat(300)), 0),
    ] {
        let page = vault.list("notes", &[("filter", &filter)]).send().await.expect(200);
        assert_eq!(page["totalItems"], found, "{filter}");
    }
    let nines = "9".repeat(400);
    for name in ["page", "perPage"] {
        vault.list("notes", &[(name, &nines)]).send().await.refused(400, "invalid_parameter");
    }
    let far = vault.list("notes", &[("page", "9223372036854775807"), ("perPage", "1000")]).send().await;
    assert_eq!((far.status, far.json()["items"].clone()), (200, json!([])), "{}", far.text());
}

#[tokio::test]
async fn what_is_nested_without_end_is_refused() {
    let vault = Vault::open().await;
    for levels in [129, 5_000, 200_000] {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let deep = format!("{}1{}", open.repeat(levels), close.repeat(levels));
            vault.written(&format!(r#"{{"title":"x","data":{deep}}}"#)).send().await.expect(400);
            vault.written(&deep).send().await.expect(400);
            if levels <= 5_000 {
                // As a text it is JSON all the same, or a text; never more than either.
                let text = json!({"title": "x", "data": deep}).to_string();
                let reply = vault.written(&text).send().await;
                assert!(matches!(reply.status, 200 | 400), "{levels}: {}", reply.text());
                let reply = vault.form(&Form::new().text("title", "x").text("data", &deep)).send().await;
                assert!(matches!(reply.status, 200 | 400), "{levels}: {}", reply.text());
            }
        }
    }
    // Whatever was kept can be read again, alone and in a list.
    let page = vault.list("notes", &[("filter", "data.a.a.a.a = 1 || data.0.0.0 = 1 || data ~ '1'")]).send().await;
    page.expect(200);
    vault
        .list("notes", &[("fields", "data.a.a.a"), ("sort", "data.a.a.a.a.a.a,data.0.0.0.0,id")])
        .send()
        .await
        .expect(200);
}

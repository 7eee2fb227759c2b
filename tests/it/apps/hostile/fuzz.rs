//! Bodies that are broken in every way, from a fixed seed: nothing falls over, and what is refused leaves nothing.
//!
//! `INN_FUZZ_SEED` makes other ones (default 1), `INN_FUZZ_CASES` more or fewer of them.

use inn_tests::drawer::{self, Form};
use inn_tests::{Person, TestHost, until};
use reqwest::Method;
use serde_json::Value;

/// Numbers from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides.max(1)
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

fn number(name: &str, usual: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is a whole number, not {text}")),
        Err(_) => usual,
    }
}

/// One HTTP request that is going to be wrong.
struct Sent {
    path: &'static str,
    content_type: String,
    body: Vec<u8>,
}

const JSON: &[&str] = &[
    r#"{"title":"a","num":1.5,"meta":{"a":[1,{"b":null}]},"tags":["a","b"]}"#,
    r#"{"title":"\u00e4\ud83d\udea2","num":-7,"meta":"text","tags":"a"}"#,
    r#"{"meta":[[],{},"",0,false,null]}"#,
    r#"{"title":"a","num":1.5,"meta":{"a":[1,{"b":null}]},"tags":["a","b"],"code":"x"}"#,
    r#"{"title":"a","title":"b","num":"12","num+":1,"num-":"3"}"#,
    r#"{"id":"aaaaaaaaaaaaaaa","tags+":"b","+tags":["a"],"tags-":[],"meta":"{\"a\":1}"}"#,
    r#"{"many":["x.txt"],"many+":"y","many-":["z"],"one":null,"safe":""}"#,
    r#"{"title":{"a":{"b":{"c":[[[[1]]]]}}},"num":[],"code":true,"unknown":1}"#,
    r#"{"@jsonPayload":"{}","collectionId":"c_docs","expand":{},"created":"2024"}"#,
];
const BATCH: &[&str] = &[
    r#"{"requests":[{"method":"POST","url":"/api/collections/docs/records","body":{"title":"a"}},{"method":"DELETE","url":"/api/collections/docs/records/aaaaaaaaaaaaaaa"}]}"#,
    r#"{"requests":[{"method":"PUT","url":"/api/collections/docs/records?expand=x&fields=id","body":{"id":"bbbbbbbbbbbbbbb","num+":1},"headers":{"x":"y"}}]}"#,
    r#"{"requests":[{"method":"PATCH","url":"/api/collections/docs/records/../docs","body":null}],"requests":[]}"#,
];
const PIECES: &[&[u8]] = &[
    b"\0",
    b"\xff",
    b"\xed\xa0\x80",
    b"\r\n",
    b"--",
    b"\"",
    b"\\",
    b"\\ud800",
    b"\\u0000",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"1e999",
    b"-",
    b"null",
    b"99999999999999999999999999",
    b"@jsonPayload",
    b"name=",
    b"; filename=\"x\"",
    b"; filename*=UTF-8''%ff",
    b"Content-Disposition: form-data",
    b"Content-Transfer-Encoding: base64",
    b"\"title\":",
    b"requests.0.one",
    b"%00",
    b"&",
    b"=",
    b"+",
];

/// Drops, doubles, swaps and puts in some bytes, or cuts the end off.
fn damage(body: &mut Vec<u8>, dice: &mut Dice) {
    for _ in 0..dice.below(5) {
        let at = dice.below(body.len() + 1);
        match dice.below(7) {
            0 => body.truncate(at),
            1 if at < body.len() => drop(body.remove(at)),
            2 if at < body.len() => body[at] = u8::try_from(dice.below(256)).unwrap(),
            3 => {
                let end = (at + dice.below(40)).min(body.len());
                let copied = body[at..end].to_vec();
                body.splice(at..at, copied);
            }
            4 => {
                let end = (at + dice.below(40)).min(body.len());
                body.drain(at..end);
            }
            5 => {
                let (open, close) = dice.pick(&[(&b"["[..], &b"]"[..]), (b"{\"a\":", b"}"), (b"(", b")")]);
                let levels = dice.below(400);
                let deep = [open.repeat(levels), b"1".to_vec(), close.repeat(levels)].concat();
                body.splice(at..at, deep);
            }
            _ => {
                let piece = dice.pick(PIECES).to_vec();
                body.splice(at..at, piece);
            }
        }
    }
}

fn form(dice: &mut Dice) -> Form {
    let mut form = Form::new();
    for _ in 0..dice.below(7) {
        let name =
            dice.pick(&["title", "num", "tags", "meta", "code", "@jsonPayload", "many-", "id", "", "requests.0.one"]);
        form = match dice.below(3) {
            0 => form.file(
                dice.pick(&["one", "many", "many+", "+many", "pdf", "safe", "title", "nope"]),
                dice.pick(&["a.txt", "../x", "", "..", "a\\\"b", "x.pdf"]),
                dice.pick(&[&b"%PDF-1.4 x"[..], b"", b"\x89PNG", b"text", &[7; 3_000]]),
            ),
            1 => form.text(name, dice.pick(JSON)),
            _ => form.text(name, dice.pick(&["1", "true", "a", "[\"a\",\"b\"]", "1e999", "", "-0", "{}"])),
        };
    }
    form
}

fn sent(dice: &mut Dice) -> Sent {
    let path = dice.pick(&["/api/collections/docs/records", "/api/collections/docs/records", "/api/batch"]);
    let (mut content_type, mut body) = match dice.below(5) {
        0 | 1 => {
            let form = form(dice);
            (form.content_type(), form.body())
        }
        2 => (
            "application/x-www-form-urlencoded".to_owned(),
            b"title=a+b&num=3&tags=a&tags=b&meta=%7B%22a%22%3A1%7D".to_vec(),
        ),
        _ => {
            let body = if path == "/api/batch" { dice.pick(BATCH) } else { dice.pick(JSON) };
            ("application/json".to_owned(), body.as_bytes().to_vec())
        }
    };
    damage(&mut body, dice);
    if dice.below(8) == 0 {
        // Another type than it is, or a boundary that is not the one.
        let other = [
            "multipart/form-data",
            "multipart/form-data; boundary=-",
            "multipart/form-data; boundary=\"a b\"",
            "application/json",
        ];
        dice.pick(&other).clone_into(&mut content_type);
    }
    Sent { path, content_type, body }
}

async fn total(host: &TestHost, owner: &Person) -> Value {
    host.door().get(drawer::docs()).by(owner).send().await.expect(200)["totalItems"].clone()
}

#[tokio::test]
async fn no_body_makes_the_host_fall_over_and_none_that_is_refused_leaves_anything() {
    let host = TestHost::with(|settings| settings.rates.data = u32::MAX).await;
    let owner = host.owner().await;
    host.deploy(&owner, drawer::SLUG, drawer::files("none")).await;
    let seed = number("INN_FUZZ_SEED", 1);
    let mut dice = Dice(seed);
    let (mut kept, mut refused) = (0_u32, 0_u32);
    for case in 0..number("INN_FUZZ_CASES", 400) {
        let Sent { path, content_type, body } = sent(&mut dice);
        let what = || format!("seed {seed}, case {case}: {content_type}\n{}", String::from_utf8_lossy(&body));
        let before = total(&host, &owner).await;
        let call = host.door().call(Method::POST, format!("/apps/{}{path}", drawer::SLUG));
        let reply = call.header("content-type", content_type.clone()).body(body.clone()).by(&owner).send().await;
        match reply.status {
            200 => kept += 1,
            400 | 404 | 413 => {
                refused += 1;
                let told = reply.json();
                assert!(told["code"].is_string() && told["data"].is_object(), "{}\n{told}", what());
                assert_eq!(total(&host, &owner).await, before, "{}", what());
            }
            status => panic!("{status} {}\n{}", reply.text(), what()),
        }
    }
    assert!(kept > 20 && refused > 100, "{kept} kept and {refused} refused: too much of one kind to tell anything");
    // What can be read was written whole: every record comes back, and every file it names is there.
    let mut named = 0;
    for page in 1.. {
        let path = format!("{}?perPage=200&page={page}", drawer::docs());
        let found = host.door().get(path).by(&owner).send().await.expect(200);
        let records = found["items"].as_array().unwrap();
        if records.is_empty() {
            break;
        }
        for record in records {
            let single = ["one", "pdf", "safe"].map(|field| record[field].clone());
            for name in single.iter().chain(record["many"].as_array().unwrap()).filter(|name| *name != "") {
                let file = host.door().get(drawer::file(record, name)).by(&owner).send().await;
                assert_eq!(file.status, 200, "{name}: {}", file.text());
                named += 1;
            }
        }
    }
    until("files that nobody names to go", || async {
        (host.count("SELECT count(*) FROM inn.files WHERE state <> 'gone'").await == named).then_some(())
    })
    .await;
}

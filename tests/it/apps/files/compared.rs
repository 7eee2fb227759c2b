//! The same forms to a real PocketBase and to us: status, stored names, values, content types and error maps must agree.

use inn_tests::drawer::{self, Form};
use inn_tests::pocketbase::{PocketBase, binary};
use inn_tests::{Person, TestHost};
use regex::Regex;
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::{opened, skipped};

const RECORDS: &str = "/api/collections/docs/records";

/// Both sides with the same collection.
pub(super) struct Both {
    pub(super) theirs: PocketBase,
    pub(super) ours: TestHost,
    owner: Person,
    made_up: [(Regex, &'static str); 3],
    pub(super) differences: Vec<String>,
}

impl Both {
    pub(super) async fn start() -> Option<Self> {
        let Some(binary) = binary() else {
            skipped("forms are not compared with PocketBase, which ops/test installs");
            return None;
        };
        // A host first: it also chooses the TLS of this process.
        let (ours, owner) = opened().await;
        let theirs = PocketBase::start(&binary).await;
        let schema: Value = serde_json::from_slice(&drawer::files("none")["pb/pb_schema.json"]).unwrap();
        let token = Some(theirs.superuser());
        let (status, made) = theirs.ask_json(&Method::POST, "/api/collections", token, &schema[0]).await;
        assert_eq!(status, 200, "{made}");
        let made_up = [
            (Regex::new(r#"_[a-z0-9]{10}(\.|"|\\|$)"#).unwrap(), "_R$1"),
            (Regex::new(r"\b([a-z0-9_]{0,2})[a-z0-9]{10}_R").unwrap(), "${1}S_R"),
            (Regex::new(r"([a-z])[a-z0-9]{10}S_R").unwrap(), "${1}S_R"),
        ];
        Some(Self { theirs, ours, owner, made_up, differences: Vec::new() })
    }

    async fn send(&self, method: &Method, path: &str, form: &Form) -> [(u16, Value); 2] {
        let headers = [("content-type".to_owned(), form.content_type())];
        let token = Some(self.theirs.superuser());
        let theirs = self.theirs.ask(method, path, token, &headers, Some(form.body())).await;
        let target = format!("/apps/{}{path}", drawer::SLUG);
        let ours = form.call(self.ours.door(), method.clone(), target).by(&self.owner).send().await;
        [theirs, (ours.status, ours.json())]
    }

    fn compare(&mut self, what: &str, answers: &[(u16, Value); 2]) {
        let [theirs, ours] = answers.each_ref().map(|(status, body)| self.shown(*status, body));
        if theirs != ours {
            self.differences.push(format!("{what}\n  theirs {theirs}\n  ours   {ours}"));
        }
    }

    /// Without what is made up anew each time.
    fn shown(&self, status: u16, body: &Value) -> String {
        let fields = ["title", "num", "meta", "tags", "one", "many", "pdf", "safe", "data"];
        let picked: Map<String, Value> =
            fields.iter().filter_map(|name| Some(((*name).to_owned(), body.get(*name)?.clone()))).collect();
        let mut text = format!("{status} {}", Value::Object(picked));
        for (pattern, with) in &self.made_up {
            text = pattern.replace_all(&text, *with).into_owned();
        }
        text
    }

    pub(super) async fn create(&mut self, what: &str, form: &Form) -> [(u16, Value); 2] {
        let answers = self.send(&Method::POST, RECORDS, form).await;
        self.compare(what, &answers);
        answers
    }

    pub(super) fn end(self) {
        assert!(self.differences.is_empty(), "{}", self.differences.join("\n"));
    }
}

#[tokio::test]
async fn names_and_types_are_pocketbases() {
    let Some(mut both) = Both::start().await else { return };
    for name in [
        "Test Image.PNG",
        "a.txt",
        "../x",
        "..",
        "x",
        "..\\\\evil.txt",
        "myTestDB.tar.gz",
        "ABCDef.jpeg",
        "日本語.txt",
        "noext.",
        ".hidden",
        "we\\\"ird",
        "a b--c__d.t x t",
        "1.2.3.zip",
        "foo.p?hp",
        "a%2fb.txt",
        "a;b.txt",
        "A1B2c.D",
        "ÄpfelÖl.txt",
        "__x__.y",
        "mixedCASEName.JpG",
        "C:\\dir\\f.txt",
        "HTTPServer2Go.md",
        "a.#b",
        "-",
    ] {
        both.create(name, &Form::new().file("one", name, b"hello world")).await;
    }
    let png = drawer::png(2, 2);
    for content in [
        &b"hello"[..],
        b"",
        &png,
        b"%PDF-1.4 x",
        b"{\"a\":1}",
        b"{\"a\":1",
        b"[1,2]",
        b"\"x\"",
        b"<html><body>x",
        b"<p>x",
        b"<?xml version=\"1.0\"?><svg xmlns=\"http://www.w3.org/2000/svg\"></svg>",
        b"<svg></svg>",
        b"<?xml version=\"1.0\"?><a/>",
        b"PK\x03\x04aaaa",
        b"\0\x01\x02",
        b"GIF89a\x01\0\x01\0\0\0\0;",
        b"a,b\n1,2\n3,4\n",
        b"a,b\n1\n",
        b"a\tb\n1\t2\n",
        b"#!/bin/sh\necho",
        b"RIFF\0\0\0\0WEBPVP8 ",
        b"\xff\xd8\xff\xe0\0\x10JFIF",
        b"\x1f\x8b\x08\0aaaaaaaaaa",
        b"ID3\x03aaaa",
        b"\0\0\0\x18ftypmp42\0\0\0\0mp42",
        b"\0\0\0\x14ftypqt  \0\0\0\0",
        b"\xe9",
        b"\xc3\xa9",
        b"na\xc3\xafve text",
        b"\xef\xbb\xbfhi",
        b"\xff\xfeh\0i\0",
        b"MZaaaaaaa",
        b"{\\rtf1 x}",
        b"BEGIN:VCARD\nVERSION:3.0\n",
        b"WEBVTT\n\n",
        b"SQLite format 3\0aaaaaaaa",
        b"\0asm\x01\0\0\0",
        b"{\"type\":\"Point\"}",
        b"{\"a\":1}\n{\"b\":2}\n",
        b"\x89PNG",
        b"  %PDF-1.4",
        b"# a\n\ntext",
    ] {
        let what = String::from_utf8_lossy(content).into_owned();
        let answers = both.create(&what, &Form::new().file("one", "file", content)).await;
        let path = |(_, record): &(u16, Value)| drawer::own(record, &record["one"]);
        let theirs = reqwest::Client::builder().tls_certs_only([]).no_proxy().build().unwrap();
        let theirs = theirs.get(format!("{}{}", both.theirs.url(), path(&answers[0]))).send().await.unwrap();
        let ours = both.ours.door().get(path(&answers[1])).on_app(drawer::SLUG).send().await;
        for header in
            ["content-type", "content-length", "content-security-policy", "accept-ranges", "x-content-type-options"]
        {
            let theirs = theirs.headers().get(header).and_then(|value| value.to_str().ok());
            if theirs != ours.header(header) {
                both.differences.push(format!("{what}: {header} {theirs:?} {:?}", ours.header(header)));
            }
        }
        let shown = |value: Option<&str>| value.and_then(|value| value.split(';').next()).map(str::to_owned);
        let theirs = shown(theirs.headers().get("content-disposition").and_then(|value| value.to_str().ok()));
        assert_eq!(theirs, shown(ours.header("content-disposition")), "{what}");
    }
    both.end();
}

#[tokio::test]
async fn values_and_refusals_of_forms_are_pocketbases() {
    let Some(mut both) = Both::start().await else { return };
    let (large, png) = (vec![b'x'; 2001], drawer::png(3, 3));
    let texts = |pairs: &[(&str, &str)]| pairs.iter().fold(Form::new(), |form, (name, value)| form.text(name, value));
    for pairs in [
        &[("num", "12"), ("title", "2026")][..],
        &[("title", "true")],
        &[("title", "1e3")],
        &[("title", "1.50")],
        &[("title", "-0")],
        &[("title", " 5")],
        &[("title", "9007199254740993")],
        &[("title", "100000000000000000000000")],
        &[("tags", "a"), ("tags", "b")],
        &[("tags", "1")],
        &[("tags", "[\"a\",\"b\"]")],
        &[("tags", "zzz")],
        &[("meta", "{\"a\":1}")],
        &[("meta", "12")],
        &[("meta", "true")],
        &[("meta", "null")],
        &[("meta", "x")],
        &[("meta", "1"), ("meta", "2")],
        &[("@jsonPayload", "{\"title\":\"t\",\"num\":5}"), ("title", "other")],
        &[("@jsonPayload", "{\"title\":\"1\"}"), ("@jsonPayload", "{\"num\":2}")],
        &[("@jsonPayload", "[1]")],
        &[("@jsonPayload", "{bad")],
        &[("one", "nope.txt")],
        &[("one", "12")],
        &[("one", "null")],
        &[("one", "")],
        &[("one", "[]")],
        &[("many", "a"), ("many", "b")],
        &[("many", "[\"a\",\"b\"]")],
        &[("many-", "x")],
        &[("many+", "x")],
    ] {
        both.create(&format!("{pairs:?}"), &texts(pairs)).await;
    }
    let files: [(&str, Form); 8] = [
        ("too large", Form::new().file("many", "a.txt", &large)),
        ("too many", (0..4).fold(Form::new(), |form, n| form.file("many", &format!("{n}.txt"), b"x"))),
        ("a fake", Form::new().file("pdf", "x.pdf", &png)),
        ("several wrong", Form::new().file("pdf", "x.pdf", &png).file("many", "a.txt", &large)),
        ("two for one", Form::new().file("one", "a.txt", b"a").file("one", "b.txt", b"b")),
        ("no file name", Form::new().file("one", "", b"abc")),
        ("appended", Form::new().file("many+", "a.txt", b"a")),
        ("a name and a file", Form::new().text("many", "x").file("many", "a.txt", b"a")),
    ];
    for (what, form) in files {
        both.create(what, &form).await;
    }
    // One after the other on one record, each with the names that are stored by then.
    let start = both.create("start", &Form::new().file("many", "aa.txt", b"1").file("many", "bb.txt", b"2")).await;
    let ids = start.each_ref().map(|(_, record)| record["id"].as_str().unwrap().to_owned());
    let mut records = start.map(|(_, record)| record);
    type Step = fn(&dyn Fn(usize) -> String) -> Form;
    let steps: [(&str, Step); 10] = [
        ("append", |_| Form::new().file("many+", "cc.txt", b"3")),
        ("append too many", |_| Form::new().file("many+", "dd.txt", b"3")),
        ("remove", |name| Form::new().text("many-", &name(0))),
        ("prepend", |_| Form::new().file("+many", "pp.txt", b"4")),
        ("reorder", |name| Form::new().text("many", &name(2)).text("many", &name(0))),
        ("keep and add", |name| Form::new().text("many", &name(0)).file("many", "nn.txt", b"5")),
        ("remove and append", |name| Form::new().text("many-", &name(0)).file("many+", "qq.txt", b"6")),
        ("remove what is not there", |_| Form::new().text("many-", "zzz")),
        ("append a name", |_| Form::new().text("many+", "zzz")),
        ("clear", |_| Form::new().text("many", "")),
    ];
    for (what, step) in steps {
        let mut answers = Vec::new();
        for (side, id) in ids.iter().enumerate() {
            let name = |place: usize| records[side]["many"][place].as_str().unwrap_or("none").to_owned();
            let sent = both.send(&Method::PATCH, &format!("{RECORDS}/{id}"), &step(&name)).await;
            answers.push(sent.into_iter().nth(side).unwrap());
        }
        let answers: [(u16, Value); 2] = answers.try_into().unwrap();
        both.compare(what, &answers);
        for (record, (status, answer)) in records.iter_mut().zip(answers) {
            if status == 200 {
                *record = answer;
            }
        }
    }
    assert_eq!(records[1]["many"], json!([]));
    both.end();
}

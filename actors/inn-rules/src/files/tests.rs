use inn_protocol::model::{Collection, Model};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::guard::Mode;
use crate::values::{normalise_form, pb_data};

fn docs() -> Model {
    serde_json::from_value(json!({"collections": [{
        "id": "docs00000000001", "name": "docs", "type": "base", "fields": [
            {"id": "f0", "name": "id", "type": "text", "primaryKey": true, "system": true},
            {"id": "f1", "name": "title", "type": "text"},
            {"id": "f2", "name": "one", "type": "file", "maxSelect": 1},
            {"id": "f3", "name": "many", "type": "file", "maxSelect": 3, "maxSize": 2000, "thumbs": ["100x50t", "0x30"]},
            {"id": "f4", "name": "pdf", "type": "file", "maxSelect": 1, "mimeTypes": ["application/pdf", "text/plain"]},
            {"id": "f5", "name": "must", "type": "file", "maxSelect": 1},
        ],
    }]}))
    .unwrap()
}

fn collection(model: &Model) -> &Collection {
    model.collection("docs").unwrap()
}

fn upload(key: &str, name: &str) -> Upload {
    Upload {
        key: key.to_owned(),
        name: name.to_owned(),
        sent_as: format!("sent-{name}"),
        size: 10,
        media_type: "text/plain; charset=utf-8".to_owned(),
    }
}

fn run(body: &Value, uploads: &[Upload], row: Option<&Value>) -> Result<Map<String, Value>, Value> {
    let model = docs();
    let (body, row) = (body.as_object().unwrap(), row.and_then(Value::as_object));
    let mode = if row.is_some() { Mode::Update } else { Mode::Create };
    normalise_form(collection(&model), &model, body, uploads, mode, row)
        .map(|ready| ready.values)
        .map_err(|refusal| Value::Object(pb_data(&refusal.violations)))
}

/// Observed: reference binary 0.39.8.
#[test]
fn names_are_made_as_pocketbase_makes_them() {
    for (sent, expected) in [
        ("Test Image.PNG", "test_image_RRRRRRRRRR.PNG"),
        ("a.txt", "aSSSSSSSSSS_RRRRRRRRRR.txt"),
        ("../x", "xSSSSSSSSSS_RRRRRRRRRR.det"),
        ("..", "SSSSSSSSSS_RRRRRRRRRR.det"),
        ("", "SSSSSSSSSS_RRRRRRRRRR.det"),
        ("..\\\\evil.txt", "SSSSSSSSSS_RRRRRRRRRR.evil.txt"),
        ("myTestDB.tar.gz", "my_test_db_RRRRRRRRRR.tar.gz"),
        ("ABCDef.jpeg", "abcdef_RRRRRRRRRR.jpeg"),
        ("日本語.txt", "SSSSSSSSSS_RRRRRRRRRR.txt"),
        ("noext.", "noext_RRRRRRRRRR.det"),
        (".hidden", "SSSSSSSSSS_RRRRRRRRRR.hidden"),
        ("we\"ird", "we_ird_RRRRRRRRRR.det"),
        ("a b--c__d.t x t", "a_b_c_d_RRRRRRRRRR.txt"),
        ("1.2.3.zip", "1_2_RRRRRRRRRR.3.zip"),
        ("foo.p?hp", "foo_RRRRRRRRRR.php"),
        ("a%2fb.txt", "a_2fb_RRRRRRRRRR.txt"),
        ("C:\\Users\\me\\x.pdf", "c_users_me_x_RRRRRRRRRR.pdf"),
    ] {
        // 18 is `s`, 17 is `r`.
        let random: [u8; RANDOM_BYTES] = std::array::from_fn(|place| if place < 10 { 18 } else { 17 });
        let name = stored_name(sent, ".det", &random).replace(&"s".repeat(10), &"S".repeat(10));
        assert_eq!(name.replace(&"r".repeat(10), &"R".repeat(10)), expected, "{sent}");
    }
    let long = stored_name(&format!("{}.{}", "a".repeat(200), "e".repeat(40)), "", &[0; RANDOM_BYTES]);
    assert_eq!(long, format!("{}_{}.{}", "a".repeat(100), "a".repeat(10), "e".repeat(20)));
}

#[test]
fn content_says_what_a_file_is() {
    for (bytes, expected) in [
        (&b"hello"[..], "text/plain; charset=utf-8"),
        (b"", "text/plain"),
        (b"%PDF-1.4 x", "application/pdf"),
        (b"\x89PNG\r\n\x1a\n\0", "image/png"),
        (b"GIF89a\x01\0\x01\0", "image/gif"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        (b"{\"a\":1}", "application/json"),
        (b"{not json", "text/plain; charset=utf-8"),
        (b"<html><body>x", "text/html; charset=utf-8"),
        (b"  <!-- x --><p>", "text/html; charset=utf-8"),
        (b"<?xml version=\"1.0\"?><svg xmlns=\"http://www.w3.org/2000/svg\"></svg>", "image/svg+xml"),
        (b"<svg></svg>", "text/plain; charset=utf-8"),
        (b"<?xml version=\"1.0\"?><a/>", "text/xml; charset=utf-8"),
        (b"PK\x03\x04aaaa", "application/zip"),
        (
            b"PK\x03\x04bbbbbbbbbbbbbbbbbbbbbbbbbb[Content_Types].xmlPK\x03\x04bbbbbbbbbbbbbbbbbbbbbbbbbbword/document.xml",
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        ),
        (b"\0\x01\x02\x03", "application/octet-stream"),
        (b"a,b\n1,2\n3,4\n", "text/csv"),
        (b"a,b\n1\n", "text/plain; charset=utf-8"),
        (b"#!/bin/sh\necho", "text/x-shellscript"),
        (b"#!/usr/bin/env python3\n", "text/x-python"),
        (b"ID3\x03aaaa", "audio/mpeg"),
        (b"\0\0\0\x18ftypmp42\0\0", "video/mp4"),
        (b"\0\0\0\x18ftypavif\0\0", "image/avif"),
        (b"\xe9", "text/plain; charset=iso-8859-1"),
        (b"\xef\xbb\xbfhi", "text/plain; charset=utf-8"),
        (b"PK\x03\x04bbbbbbbbbbbbbbbbbbbbbbbbbbpassword/x", "application/zip"),
        (b"{\"type\": \"Point\", \"coordinates\": [1, 2]}", "application/geo+json"),
        (b"{\"a\":1}\n{\"b\":2}\n", "application/x-ndjson"),
        (b"1\n00:00:01,000 --> 00:00:02,000\nhi\n", "application/x-subrip"),
        (b"  %PDF-1.4", "application/pdf"),
        (b"\x89PNG", "text/plain"),
        (b"na\xc3\xafve text", "text/plain; charset=utf-8"),
        (b"\xc3\xa9", "text/plain; charset=iso-8859-1"),
        (b"a\x85b", "text/plain; charset=windows-1252"),
        (b"MZaaaaaaa", "application/vnd.microsoft.portable-executable"),
        (b"BMaaaaaaaaaaaaaaaaaaaaaaaa", "text/plain; charset=utf-8"),
    ] {
        assert_eq!(sniff(bytes, true).name, expected, "{}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn a_file_field_takes_uploads_and_keeps_names_it_has() {
    let row = json!({"id": "r", "one": "old.txt", "many": ["a.txt", "b.txt"], "pdf": "", "must": ""});
    let many =
        |body: Value, uploads: &[Upload]| run(&body, uploads, Some(&row)).map(|values| values.get("many").cloned());
    assert_eq!(many(json!({}), &[upload("many+", "c")]), Ok(Some(json!(["a.txt", "b.txt", "c"]))));
    assert_eq!(many(json!({}), &[upload("+many", "c")]), Ok(Some(json!(["c", "a.txt", "b.txt"]))));
    assert_eq!(many(json!({}), &[upload("many", "c")]), Ok(Some(json!(["c"]))));
    assert_eq!(many(json!({"many": "b.txt"}), &[upload("many", "c")]), Ok(Some(json!(["b.txt", "c"]))));
    assert_eq!(many(json!({"many": ["b.txt", "a.txt"]}), &[]), Ok(Some(json!(["b.txt", "a.txt"]))));
    assert_eq!(many(json!({"many-": "a.txt"}), &[upload("many+", "c")]), Ok(Some(json!(["b.txt", "c"]))));
    assert_eq!(many(json!({"many-": "zzz"}), &[]), Ok(Some(json!(["a.txt", "b.txt"]))));
    for cleared in [json!(""), json!(null), json!([]), json!("[]"), json!({"a": 1})] {
        assert_eq!(many(json!({"many": cleared}), &[]), Ok(Some(json!([]))), "{cleared}");
    }
    assert_eq!(many(json!({"title": "x"}), &[]), Ok(None));
    let one = |uploads: &[Upload]| run(&json!({}), uploads, Some(&row)).unwrap().get("one").cloned();
    assert_eq!(one(&[upload("one+", "n")]), Some(json!("n")));
    assert_eq!(one(&[upload("+one", "n")]), Some(json!("old.txt")), "the last one stays");
    assert_eq!(one(&[upload("one", "a"), upload("one", "b")]), Some(json!("b")));
}

#[test]
fn what_a_file_field_does_not_take_is_told_in_pocketbases_words() {
    let row = json!({"id": "r", "one": "old.txt", "many": ["a.txt", "b.txt"]});
    let told = |body: Value, uploads: &[Upload]| run(&body, uploads, Some(&row)).unwrap_err();
    assert_eq!(
        told(json!({"many+": "zzz"}), &[]),
        json!({"many": {"code": "validation_invalid_file", "message": "Invalid new files: [zzz].", "params": {"invalidFiles": ["zzz"]}}})
    );
    assert_eq!(told(json!({"many": ["x", "y"]}), &[])["many"]["message"], json!("Invalid new files: [x y]."));
    assert_eq!(
        told(json!({}), &[upload("many+", "c"), upload("many+", "d")]),
        json!({"many": {"code": "validation_too_many_files", "message": "The maximum allowed files is 3.", "params": {"maxSelect": 3}}})
    );
    let large = Upload { size: 2001, sent_as: "a.txt".to_owned(), ..upload("many", "c") };
    assert_eq!(
        told(json!({}), &[large]),
        json!({"many": {
            "code": "validation_file_size_limit",
            "message": "Failed to upload a.txt - the maximum allowed file size is 2000 bytes.",
            "params": {"file": "a.txt", "maxSize": 2000},
        }})
    );
    let fake = Upload { media_type: "image/png".to_owned(), ..upload("pdf", "x.pdf") };
    assert_eq!(
        told(json!({}), &[fake]),
        json!({"pdf": {
            "code": "validation_invalid_mime_type",
            "message": "\"x.pdf\" mime type must be one of: application/pdf, text/plain.",
        }})
    );
    let fields = told(json!({}), &[upload("title", "t"), upload("bogus", "t"), upload("many-", "t")]);
    let fields: Vec<_> = fields.as_object().unwrap().keys().cloned().collect();
    assert_eq!(fields, ["title", "bogus", "many-"]);
    // On create nothing is stored yet, so no name can be kept.
    assert_eq!(run(&json!({"one": 12}), &[], None).unwrap_err()["one"]["message"], "Invalid new files: [12].");
}

#[test]
fn a_required_file_is_missed_when_it_is_not_there() {
    let mut model = docs();
    model.collections[0].fields[5].required = true;
    let missing = normalise_form(&model.collections[0], &model, &Map::new(), &[], Mode::Create, None).unwrap_err();
    assert_eq!(pb_data(&missing.violations)["must"]["code"], "validation_required");
    let there = [upload("must", "m")];
    assert!(normalise_form(&model.collections[0], &model, &Map::new(), &there, Mode::Create, None).is_ok());
}

#[test]
fn an_update_reads_the_row_only_when_it_must() {
    let model = docs();
    let needs = |body: Value, uploads: &[Upload]| needs_row(collection(&model), body.as_object().unwrap(), uploads);
    for (body, uploads, expected) in [
        (json!({"title": "x"}), vec![], false),
        (json!({}), vec![upload("many", "c")], false),
        (json!({"many": ""}), vec![], false),
        (json!({"many": "a"}), vec![], true),
        (json!({"many-": "a"}), vec![], true),
        (json!({}), vec![upload("many+", "c")], true),
    ] {
        assert_eq!(needs(body.clone(), &uploads), expected, "{body}");
    }
}

#[test]
fn only_declared_thumbs_are_made() {
    let model = docs();
    let field = collection(&model).field("many").unwrap();
    for asked in ["100x100", "100x50t", "0x30"] {
        assert_eq!(ThumbSpec::declared(field, asked).map(|spec| spec.mark()), Some(asked.to_owned()));
    }
    for asked in ["100x50", "77x77", "", "0x0", "x", "100x100t", "../100x100", "99999999999x1"] {
        assert_eq!(ThumbSpec::declared(field, asked), None, "{asked}");
    }
    assert_eq!(ThumbSpec::declared(collection(&model).field("title").unwrap(), "100x100"), None);
    for text in ["0x0", "5000x1", "+1x1", "1x", "x1", "1x1x1", "1x1tt", "t", "f", "日"] {
        assert_eq!(ThumbSpec::parse(text), None, "{text}");
    }
}

#[test]
fn thumbs_show_the_part_that_was_asked_for() {
    let layout = |spec: &str, w, h| {
        let l = ThumbSpec::parse(spec).unwrap().layout(w, h);
        (l.left, l.top, l.cut_width, l.cut_height, l.width, l.height)
    };
    assert_eq!(layout("100x100", 300, 100), (100, 0, 100, 100, 100, 100));
    assert_eq!(layout("100x50", 200, 400), (0, 150, 200, 100, 100, 50));
    assert_eq!(layout("100x50t", 200, 400), (0, 0, 200, 100, 100, 50));
    assert_eq!(layout("100x50b", 200, 400), (0, 300, 200, 100, 100, 50));
    assert_eq!(layout("100x50f", 200, 100), (0, 0, 200, 100, 100, 50));
    assert_eq!(layout("100x50f", 20, 10), (0, 0, 20, 10, 20, 10), "never enlarged");
    assert_eq!(layout("0x30", 200, 100), (0, 0, 200, 100, 60, 30));
    assert_eq!(layout("30x0", 200, 100), (0, 0, 200, 100, 30, 15));
    assert_eq!(layout("0x4096", 60_000, 1), (0, 0, 60_000, 1, 4096, 4096));
}

#[test]
fn ranges_are_read_as_pocketbase_reads_them() {
    let part = |first, count| Part { first, count };
    let one = |first, count| Span::Part(part(first, count));
    for (header, expected) in [
        ("bytes=0-4", one(0, 5)),
        ("bytes=5-", one(5, 10)),
        ("bytes=-3", one(12, 3)),
        ("bytes=-99", one(0, 15)),
        ("bytes=0-999", one(0, 15)),
        ("bytes=0-14", one(0, 15)),
        (" bytes= 0 - 1 ", one(0, 2)),
        ("bytes=0-1,3-4", Span::Parts(vec![part(0, 2), part(3, 2)])),
        ("bytes=0-0, -1", Span::Parts(vec![part(0, 1), part(14, 1)])),
        ("bytes=14-,0-13", Span::Parts(vec![part(14, 1), part(0, 14)])),
        ("bytes=0-4,2-6", Span::Parts(vec![part(0, 5), part(2, 5)])),
        // More than the file itself.
        ("bytes=0-9,0-9", Span::Whole),
        // What is not there, or not written, does not count.
        ("bytes=0-1,100-200", one(0, 2)),
        ("bytes=,0-1,", one(0, 2)),
        ("bytes=,", Span::Whole),
        ("bytes=", Span::Whole),
        ("bytes=100-200", Span::Outside),
        ("bytes=100-200,300-", Span::Outside),
        ("bytes=0-1,x", Span::Outside),
        ("bytes=4-2", Span::Outside),
        ("bytes=-0", Span::Outside),
        ("bytes=x-", Span::Outside),
        ("bytes=1", Span::Outside),
        ("bytes=--1", Span::Outside),
        ("items=1-2", Span::Outside),
        ("Bytes=0-1", Span::Outside),
        ("bytes=18446744073709551615-18446744073709551615", Span::Outside),
        ("bytes=0-99999999999999999999999999", one(0, 15)),
    ] {
        assert_eq!(span(header, 15), expected, "{header}");
    }
    for header in ["bytes=0-", "bytes=-5", "bytes=0-0,1-1"] {
        assert_eq!(span(header, 0), Span::Whole, "of nothing there is no part: {header}");
    }
    let many = |count: usize| format!("bytes={}", vec!["0-0"; count].join(","));
    assert!(matches!(span(&many(64), 1000), Span::Parts(parts) if parts.len() == 64));
    assert_eq!(span(&many(65), 1000), Span::Whole);
}

#[test]
fn nothing_that_could_run_is_shown_in_place() {
    for shown in ["image/png", "application/pdf", "video/mp4", "audio/mpeg"] {
        assert!(inline(shown), "{shown}");
    }
    for saved in
        ["image/svg+xml", "text/html; charset=utf-8", "text/plain", "application/xhtml+xml", "text/javascript", ""]
    {
        assert!(!inline(saved), "{saved}");
    }
}

#[test]
fn a_forms_limit_follows_its_fields() {
    let model = docs();
    assert_eq!(body_limit(collection(&model)), (32 << 20) + 3 * (5 << 20) + 3 * 2000);
}

proptest! {
    #[test]
    fn a_name_never_leaves_its_alphabet(sent in ".{0,300}", extension in "(\\.[a-z]{1,5})?", random in any::<[u8; RANDOM_BYTES]>()) {
        let name = stored_name(&sent, &extension, &random);
        prop_assert!(name.len() <= 145, "{name}");
        prop_assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.*-+=#".contains(&b)), "{name}");
    }

    #[test]
    fn no_bytes_make_the_sniffer_fail(bytes in proptest::collection::vec(any::<u8>(), 0..4000), whole in any::<bool>()) {
        prop_assert!(!sniff(&bytes, whole).name.is_empty());
    }

    #[test]
    fn ranges_lie_within_their_file(header in "(bytes=)?[0-9,\\- ]{0,40}", size in prop_oneof![0_u64..30, any::<u64>()]) {
        let parts = match span(&header, size) {
            Span::Part(part) => vec![part],
            Span::Parts(parts) => parts,
            Span::Whole | Span::Outside => return Ok(()),
        };
        prop_assert!(parts.iter().all(|part| part.count > 0 && part.first.checked_add(part.count).is_some_and(|end| end <= size)));
        prop_assert!(parts.iter().map(|part| u128::from(part.count)).sum::<u128>() <= u128::from(size));
    }

    #[test]
    fn a_thumb_is_cut_from_within_the_picture(w in 1_u32..100_000, h in 1_u32..100_000, to_w in 0_u32..4097, to_h in 0_u32..4097, kind in "[tbf]?") {
        if let Some(spec) = ThumbSpec::parse(&format!("{to_w}x{to_h}{kind}")) {
            let l = spec.layout(w, h);
            prop_assert!(l.cut_width > 0 && l.cut_height > 0 && l.width > 0 && l.height > 0);
            prop_assert!(u64::from(l.left) + u64::from(l.cut_width) <= u64::from(w));
            prop_assert!(u64::from(l.top) + u64::from(l.cut_height) <= u64::from(h));
            prop_assert!(l.width <= 4096 && l.height <= 4096);
        }
    }
}

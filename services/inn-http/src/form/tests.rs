use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// One part as it was taken apart.
#[derive(Debug, PartialEq)]
struct Part {
    head: PartHead,
    content: Vec<u8>,
}

fn read(boundary: &str, pieces: &[&[u8]]) -> Result<(Vec<Part>, bool), Refusal> {
    let mut parser = Parser::new(boundary);
    let mut parts: Vec<Part> = Vec::new();
    let mut open = false;
    for piece in pieces {
        parser.push(piece);
        while let Some(event) = parser.next()? {
            match event {
                Event::Part(head) => {
                    assert!(!open);
                    open = true;
                    parts.push(Part { head, content: Vec::new() });
                }
                Event::Data(bytes) => {
                    assert!(open && !bytes.is_empty());
                    parts.last_mut().unwrap().content.extend_from_slice(&bytes);
                }
                Event::PartEnd => {
                    assert!(open);
                    open = false;
                }
                Event::End => assert!(!open),
            }
        }
    }
    Ok((parts, parser.is_done()))
}

fn form(parts: &[(&str, Option<&str>, &[u8])], boundary: &str) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, file, content) in parts {
        let file = file.map(|file| format!("; filename=\"{file}\"\r\nContent-Type: text/plain")).unwrap_or_default();
        body.extend(format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n").bytes());
        body.extend_from_slice(content);
        body.extend_from_slice(b"\r\n");
    }
    body.extend(format!("--{boundary}--\r\n").bytes());
    body
}

fn head(name: &str, file: Option<&str>) -> PartHead {
    PartHead { name: name.to_owned(), file_name: file.map(str::to_owned) }
}

#[test]
fn a_form_comes_apart_however_it_is_cut() {
    let tricky = b"a\r\n--x\r\n--boundary is not here\r\n\r\r\n-";
    let body =
        form(&[("title", None, b"Hello"), ("doc", Some("a.txt"), tricky), ("empty", Some("e"), b"")], "boundary9");
    let expected = vec![
        Part { head: head("title", None), content: b"Hello".to_vec() },
        Part { head: head("doc", Some("a.txt")), content: tricky.to_vec() },
        Part { head: head("empty", Some("e")), content: Vec::new() },
    ];
    assert_eq!(read("boundary9", &[&body]).unwrap(), (expected, true));
    for size in [1, 2, 3, 7, 40] {
        let pieces: Vec<&[u8]> = body.chunks(size).collect();
        assert_eq!(read("boundary9", &pieces).unwrap(), read("boundary9", &[&body]).unwrap(), "{size}");
    }
}

#[test]
fn a_preamble_an_epilogue_and_blanks_after_a_boundary_are_passed_over() {
    let body =
        b"preamble\r\n--b \t\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--b--\r\nepilogue\r\n--b\r\n";
    let (parts, done) = read("b", &[body]).unwrap();
    assert!(done && parts.len() == 1 && parts[0].content == b"1");
}

#[test]
fn a_form_that_is_cut_off_is_not_done() {
    let body = form(&[("a", None, b"1"), ("f", Some("f.txt"), &[7; 300])], "b");
    for length in 0..body.len() - 4 {
        let done = read("b", &[&body[..length]]).is_ok_and(|(_, done)| done);
        assert!(!done, "{length} of {}", body.len());
    }
    assert!(!read("other", &[&body]).unwrap().1);
    assert!(!read("b", &[b""]).unwrap().1);
}

#[test]
fn broken_heads_are_refused() {
    for lines in [
        "\r\n",
        "Content-Type: text/plain\r\n",
        "Content-Disposition: form-data\r\n",
        "Content-Disposition: form-data; name=\"\"\r\n",
        "Content-Disposition: attachment; name=\"a\"\r\n",
        "Content-Disposition: form-data; name=\"a\"\r\nContent-Disposition: form-data; name=\"b\"\r\n",
        "Content-Disposition: form-data; name=\"a\"\r\nContent-Transfer-Encoding: base64\r\n",
        "no colon\r\nContent-Disposition: form-data; name=\"a\"\r\n",
    ] {
        let body = format!("--b\r\n{lines}\r\n1\r\n--b--\r\n");
        assert_eq!(read("b", &[body.as_bytes()]).unwrap_err().code, Code::InvalidBody, "{lines}");
    }
    let long = format!("--b\r\nX: {}", "x".repeat(10_000));
    assert!(read("b", &[long.as_bytes()]).is_err(), "endless headers are not collected");
    let many = form(&vec![("a", None, &b"1"[..]); MOST_PARTS + 1], "b");
    assert!(read("b", &[&many]).is_err());
}

#[test]
fn names_of_files_lose_their_folders_and_keep_their_letters() {
    for (sent, expected) in [
        ("filename=\"../x\"", Some("x")),
        ("filename=\"..\\\\evil.txt\"", Some("..\\evil.txt")),
        ("filename=\"C:\\dev\\go.txt\"", Some("C:\\dev\\go.txt")),
        ("filename=\"we\\\"ird\"", Some("we\"ird")),
        ("filename=plain.txt", Some("plain.txt")),
        ("filename=\"a;b=c.txt\"", Some("a;b=c.txt")),
        ("filename=\"x\"; filename*=UTF-8''na%C3%AFve.txt", Some("naïve.txt")),
        ("filename=\"x\"; filename*=UTF-8''%zz", Some("x")),
        ("filename=\"\"", None),
        ("", None),
    ] {
        let body = format!("--b\r\ncontent-disposition: form-data; name=\"f\"; {sent}\r\n\r\n1\r\n--b--\r\n");
        let (parts, _) = read("b", &[body.as_bytes()]).unwrap();
        assert_eq!(parts[0].head, head("f", expected), "{sent}");
    }
}

#[test]
fn a_boundary_is_read_from_the_content_type() {
    for (content_type, expected) in [
        ("multipart/form-data; boundary=abc", Ok(Some("abc"))),
        ("Multipart/Form-Data; charset=utf-8; BOUNDARY=\"a b\"", Ok(Some("a b"))),
        ("application/json", Ok(None)),
        ("multipart/mixed; boundary=a", Ok(None)),
        ("multipart/form-data", Err(())),
        ("multipart/form-data; boundary=", Err(())),
        ("multipart/form-data; boundary=\"\r\n\"", Err(())),
    ] {
        let found = boundary(content_type);
        assert_eq!(found.as_ref().map(|b| b.as_deref()).map_err(|_| ()), expected, "{content_type}");
    }
    assert!(boundary(&format!("multipart/form-data; boundary={}", "x".repeat(71))).is_err());
}

fn body(texts: &[(&str, &str)]) -> Result<Value, Refusal> {
    let mut fields = Fields::default();
    for (name, text) in texts {
        fields.push((*name).to_owned(), (*text).to_owned());
    }
    fields.body().map(Value::Object)
}

/// Observed: reference binary 0.39.8.
#[test]
fn values_are_inferred_as_pocketbase_infers_them() {
    for (text, expected) in [
        ("12", json!(12)),
        ("2026", json!(2026)),
        ("-3.5", json!(-3.5)),
        ("true", json!(true)),
        ("1e3", json!("1e3")),
        ("1.50", json!("1.50")),
        ("-0", json!("-0")),
        ("00", json!("00")),
        (".5", json!(".5")),
        ("0x10", json!("0x10")),
        (" 5", json!(" 5")),
        ("Infinity", json!("Infinity")),
        ("9007199254740993", json!("9007199254740993")),
        ("null", json!("null")),
        ("True", json!("True")),
        ("", json!("")),
    ] {
        assert_eq!(body(&[("a", text)]).unwrap(), json!({"a": expected}), "{text}");
    }
    assert_eq!(body(&[("a", "x"), ("b", "1"), ("a", "2"), ("a", "y")]).unwrap(), json!({"a": ["x", 2, "y"], "b": 1}));
}

#[test]
fn a_json_payload_lies_over_the_other_values() {
    let read = body(&[
        ("@jsonPayload", "{\"a\":\"1\",\"c\":{\"x\":null}}"),
        ("a", "2"),
        ("b", "3"),
        ("@jsonPayload", "{\"b\":4}"),
    ]);
    assert_eq!(read.unwrap(), json!({"a": "1", "b": 4, "c": {"x": null}}));
    for broken in ["[1]", "{bad", "", "null", "1"] {
        assert_eq!(body(&[("@jsonPayload", broken)]).unwrap_err().code, Code::InvalidBody, "{broken}");
    }
    assert!(body(&[("@jsonPayload", &format!("{{\"a\":{}1{}}}", "[".repeat(5000), "]".repeat(5000)))]).is_err());
}

#[test]
fn an_urlencoded_form_is_read_like_the_other() {
    let read = urlencoded(b"title=a+b&num=3&tags=x&tags=y").unwrap().body().unwrap();
    assert_eq!(Value::Object(read), json!({"title": "a b", "num": 3, "tags": ["x", "y"]}));
    assert!(urlencoded("a=1&".repeat(MOST_PARTS + 1).as_bytes()).is_err());
}

proptest! {
    #[test]
    fn what_was_put_in_comes_out(
        parts in proptest::collection::vec(("[a-z]{1,10}", any::<bool>(), proptest::collection::vec(any::<u8>(), 0..200)), 0..6),
        cuts in proptest::collection::vec(1_usize..50, 1..20),
    ) {
        let listed: Vec<_> = parts.iter().map(|(name, file, content)| (name.as_str(), file.then_some("f.bin"), content.as_slice())).collect();
        let whole = form(&listed, "b0undary-that-is-not-in-there");
        let mut pieces: Vec<&[u8]> = Vec::new();
        let mut rest = whole.as_slice();
        for size in cuts.iter().cycle() {
            if rest.is_empty() { break; }
            let (piece, next) = rest.split_at((*size).min(rest.len()));
            pieces.push(piece);
            rest = next;
        }
        let (read, done) = read("b0undary-that-is-not-in-there", &pieces).unwrap();
        prop_assert!(done);
        let expected: Vec<Part> = parts.into_iter().map(|(name, file, content)| Part { head: head(&name, file.then_some("f.bin")), content }).collect();
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn no_bytes_make_the_parser_fail_or_loop(bytes in proptest::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), Just(b'-'), Just(b'b'), Just(b':'), any::<u8>()], 0..2000), size in 1_usize..100) {
        let start = b"--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n";
        let pieces: Vec<&[u8]> = std::iter::once(&start[..]).chain(bytes.chunks(size)).collect();
        let kept: Result<(Vec<Part>, bool), Refusal> = read("b", &pieces);
        if let Ok((parts, _)) = kept {
            prop_assert!(parts.iter().map(|part| part.content.len()).sum::<usize>() <= bytes.len());
        }
    }

    #[test]
    fn no_head_makes_the_reader_fail(text in "\\PC{0,200}") {
        let body = format!("--b\r\nContent-Disposition: form-data; {text}\r\n\r\n1\r\n--b--\r\n");
        let _: Result<(Vec<Part>, bool), Refusal> = read("b", &[body.as_bytes()]);
        let _: Result<Option<String>, Refusal> = boundary(&format!("multipart/form-data; {text}"));
    }
}

/// A part's bytes are handed on as they come, whatever its size.
#[test]
fn content_is_not_collected() {
    let mut parser = Parser::new("b");
    parser.push(b"--b\r\nContent-Disposition: form-data; name=\"a\"; filename=\"f\"\r\n\r\n");
    assert!(matches!(parser.next().unwrap(), Some(Event::Part(_))));
    for _ in 0..1000 {
        parser.push(&[b'x'; 1000]);
        let Some(Event::Data(bytes)) = parser.next().unwrap() else { panic!("the bytes come out again") };
        assert_eq!(bytes, Bytes::from(vec![b'x'; 1000]));
        assert_eq!(parser.next().unwrap(), None);
    }
}

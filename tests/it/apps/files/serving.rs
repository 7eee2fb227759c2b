use inn_tests::drawer::{self, Form};
use reqwest::Method;
use serde_json::json;

use super::{created, id, nothing_left, objects, opened, opened_with};

const POLICY: &str = "default-src 'none'; media-src 'self'; style-src 'unsafe-inline'; sandbox";

#[tokio::test]
async fn an_apps_own_origin_shows_pictures_and_saves_the_rest() {
    let (host, owner) = opened().await;
    let svg = b"<?xml version=\"1.0\"?><svg xmlns=\"http://www.w3.org/2000/svg\"><script>alert(1)</script></svg>";
    let cases: [(&str, Vec<u8>, &str, &str); 6] = [
        ("pic.png", drawer::png(2, 2), "image/png", "inline"),
        ("lie.png", b"<html><script>alert(1)</script>".to_vec(), "text/html; charset=utf-8", "attachment"),
        ("x.svg", svg.to_vec(), "image/svg+xml", "attachment"),
        ("x.js", b"alert(1)".to_vec(), "text/plain; charset=utf-8", "attachment"),
        ("x.pdf", b"%PDF-1.4".to_vec(), "application/pdf", "inline"),
        ("x.bin", vec![0, 1, 2], "application/octet-stream", "attachment"),
    ];
    for (name, content, media_type, disposition) in cases {
        let record = created(&host, &owner, &Form::new().file("one", name, &content)).await;
        let stored = record["one"].as_str().unwrap();
        let own = host.door().get(drawer::own(&record, &record["one"])).on_app(drawer::SLUG).send().await;
        assert_eq!((own.status, &own.body), (200, &content), "{name}");
        assert_eq!(own.header("content-type"), Some(media_type), "{name}");
        assert_eq!(own.header("content-disposition"), Some(format!("{disposition}; filename={stored}").as_str()));
        assert_eq!(own.header("content-security-policy"), Some(POLICY));
        assert_eq!(own.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(own.header("accept-ranges"), Some("bytes"));
        let saved =
            host.door().get(format!("{}?download=1", drawer::own(&record, &record["one"]))).on_app(drawer::SLUG);
        assert!(saved.send().await.header("content-disposition").unwrap().starts_with("attachment;"));
        // On the platform's own host nothing is shown in place.
        let below = host.door().get(drawer::file(&record, &record["one"])).by(&owner).send().await;
        assert_eq!((below.status, &below.body), (200, &content));
        assert!(below.header("content-disposition").unwrap().starts_with("attachment;"), "{name}");
        assert!(below.header("content-security-policy").unwrap().contains("sandbox"));
    }
}

#[tokio::test]
async fn parts_of_a_file_and_files_one_has_already() {
    let (host, owner) = opened().await;
    let record = created(&host, &owner, &Form::new().file("one", "t.txt", b"hello text file")).await;
    let path = drawer::file(&record, &record["one"]);
    let get = |name: &str, value: &str| host.door().get(&path).header(name, value).by(&owner).send();
    for (range, status, content, told) in [
        ("bytes=0-4", 206, "hello", Some("bytes 0-4/15")),
        ("bytes=5-", 206, " text file", Some("bytes 5-14/15")),
        ("bytes=-3", 206, "ile", Some("bytes 12-14/15")),
        ("bytes=0-9,0-9", 200, "hello text file", None),
        ("bytes=0-1,100-200", 206, "he", Some("bytes 0-1/15")),
        ("bytes=100-200", 416, "", Some("bytes */15")),
        ("items=1-2", 416, "", Some("bytes */15")),
    ] {
        let reply = get("range", range).await;
        assert_eq!(
            (reply.status, reply.text().as_str(), reply.header("content-range")),
            (status, content, told),
            "{range}"
        );
    }
    let whole = host.door().get(&path).by(&owner).send().await;
    let (tag, modified) = (whole.header("etag").unwrap(), whole.header("last-modified").unwrap());
    assert_eq!(whole.header("cache-control"), Some("private, max-age=2592000, stale-while-revalidate=86400"));
    for (name, value, status) in [
        ("if-none-match", tag, 304),
        ("if-none-match", "\"other\", *", 200),
        ("if-none-match", "*", 304),
        ("if-modified-since", modified, 304),
        ("if-modified-since", "Thu, 01 Jan 1970 00:00:00 GMT", 200),
    ] {
        let reply = get(name, value).await;
        assert_eq!((reply.status, reply.body.is_empty()), (status, status == 304), "{name}: {value}");
    }
    let if_range =
        |value: &str| host.door().get(&path).header("range", "bytes=0-1").header("if-range", value).by(&owner).send();
    assert_eq!(if_range(tag).await.status, 206);
    assert_eq!(if_range("\"old\"").await.status, 200);
    let head = host.door().call(Method::HEAD, &path).by(&owner).send().await;
    assert_eq!((head.status, head.header("content-length"), head.body.len()), (200, Some("15"), 0));
}

#[tokio::test]
async fn several_parts_come_in_one_answer_across_the_pieces_a_file_is_kept_in() {
    let (host, owner) = opened().await;
    let content: Vec<u8> = (0..9_000_000_u32).map(|at| u8::try_from(at % 251).unwrap()).collect();
    let picture = drawer::png(200, 100);
    let form = Form::new().file("one", "big.bin", &content).file("many", "pic.png", &picture);
    let record = created(&host, &owner, &form).await;
    let get = |path: String, range: &'static str| host.door().get(path).header("range", range).by(&owner).send();
    // Parts of a multipart answer: what each says of itself, and its bytes.
    let parts = |reply: &inn_tests::Reply| -> Vec<(String, Vec<u8>)> {
        let boundary = reply.header("content-type").unwrap().strip_prefix("multipart/byteranges; boundary=").unwrap();
        let body = reply.body.strip_prefix(format!("--{boundary}\r\n").as_bytes()).unwrap();
        let body = body.strip_suffix(format!("\r\n--{boundary}--\r\n").as_bytes()).unwrap();
        let (between, blank) = (format!("\r\n--{boundary}\r\n"), b"\r\n\r\n");
        let mut rest = body;
        let mut found = Vec::new();
        loop {
            let end = rest.windows(between.len()).position(|window| window == between.as_bytes());
            let part = rest.get(..end.unwrap_or(rest.len())).unwrap();
            let head = part.windows(4).position(|window| window == blank).unwrap();
            found.push((String::from_utf8(part[..head].to_vec()).unwrap(), part[head + 4..].to_vec()));
            match end {
                Some(end) => rest = &rest[end + between.len()..],
                None => return found,
            }
        }
    };
    let reply = get(drawer::file(&record, &record["one"]), "bytes=4000000-4400000,0-9,8388600-8388620,-5").await;
    assert_eq!((reply.status, reply.header("content-range")), (206, None));
    assert_eq!(reply.header("content-length"), Some(reply.body.len().to_string().as_str()));
    let found = parts(&reply);
    assert_eq!(found.len(), 4);
    for ((head, bytes), (first, last)) in
        found.iter().zip([(4_000_000, 4_400_000), (0, 9), (8_388_600, 8_388_620), (8_999_995, 8_999_999)])
    {
        let range = format!("Content-Range: bytes {first}-{last}/9000000");
        assert_eq!(head, &format!("{range}\r\nContent-Type: application/octet-stream"));
        assert!(*bytes == content[first..=last], "{range}");
    }
    let path = format!("{}?thumb=100x50", drawer::file(&record, &record["many"][0]));
    let thumb = host.door().get(&path).by(&owner).send().await.body;
    let found = parts(&get(path, "bytes=1-3,10-19").await);
    assert_eq!(found.iter().map(|(_, bytes)| bytes.as_slice()).collect::<Vec<_>>(), [&thumb[1..4], &thumb[10..20]]);
    // Only the head of it.
    let path = drawer::file(&record, &record["one"]);
    let head = host.door().call(Method::HEAD, path).header("range", "bytes=0-1,4-5").by(&owner).send().await;
    assert_eq!((head.status, head.body.len()), (206, 0));
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let (host, owner) = opened().await;
    let record = created(&host, &owner, &Form::new().file("one", "t.txt", b"x")).await;
    let other = created(&host, &owner, &Form::new().text("title", "other")).await;
    for path in [
        drawer::file(&record, &json!("nope.txt")),
        drawer::file(&other, &record["one"]),
        drawer::file(&json!({"id": "000000000000000"}), &record["one"]),
        format!("/apps/{}/api/files/nope/{}/{}", drawer::SLUG, id(&record), record["one"].as_str().unwrap()),
        format!("/apps/kanban/api/files/cards/{}/{}", id(&record), record["one"].as_str().unwrap()),
    ] {
        let reply = host.door().get(&path).by(&owner).send().await;
        assert_eq!((reply.status, &reply.json()["status"]), (404, &json!(404)), "{path}");
    }
    // Entities go by name in any letter case, and by id.
    for entity in ["DOCS", "c_docs"] {
        let path = drawer::file(&record, &record["one"]).replace("/docs/", &format!("/{entity}/"));
        assert_eq!(host.door().get(path).by(&owner).send().await.status, 200, "{entity}");
    }
    let post = host.door().post(drawer::file(&record, &record["one"]), &json!({})).by(&owner).send().await;
    assert_eq!(post.status, 404);
}

#[tokio::test]
async fn thumbs_are_those_the_field_declares() {
    let (host, owner) = opened().await;
    let form = Form::new().file("many", "pic.png", &drawer::png(200, 100)).file("many", "t.txt", b"text");
    let record = created(&host, &owner, &form).await;
    let thumb = |place: usize, asked: &str| {
        let path = format!("{}?thumb={asked}", drawer::file(&record, &record["many"][place]));
        let call = host.door().get(path).by(&owner);
        async move { call.send().await }
    };
    for (asked, size) in [
        ("100x100", (100, 100)),
        ("100x50", (100, 50)),
        ("100x50t", (100, 50)),
        ("100x50f", (100, 50)),
        ("0x30", (60, 30)),
        ("30x0", (30, 15)),
        // Not declared: the picture itself, as PocketBase answers.
        ("77x77", (200, 100)),
        ("100x100t", (200, 100)),
        ("0x0", (200, 100)),
        ("99999999999x1", (200, 100)),
        ("", (200, 100)),
    ] {
        let reply = thumb(0, asked).await;
        assert_eq!(reply.header("content-type"), Some("image/png"), "{asked}");
        let picture = image::load_from_memory(&reply.body).unwrap();
        assert_eq!((picture.width(), picture.height()), size, "{asked}");
        let named = reply.header("content-disposition").unwrap().contains(&format!("filename={asked}_pic_"));
        assert_eq!(named, size != (200, 100), "{asked}");
    }
    let (first, again) = (thumb(0, "100x100").await, thumb(0, "100x100").await);
    assert!(first.body == again.body && first.header("etag") == again.header("etag"));
    assert_ne!(first.header("etag"), thumb(0, "100x50").await.header("etag"));
    assert_eq!(thumb(1, "100x100").await.body, b"text", "what is no picture is served as it is");
    assert_eq!(objects(&host), 2 + 6, "each made once and kept");
    host.door().delete(drawer::doc(id(&record))).by(&owner).send().await.expect(204);
    nothing_left(&host).await;
}

#[tokio::test]
async fn a_picture_bomb_is_served_and_never_opened() {
    let (host, owner) = opened().await;
    let mut bomb = drawer::png(40, 40);
    bomb[16..20].copy_from_slice(&60_000_u32.to_be_bytes());
    bomb[20..24].copy_from_slice(&60_000_u32.to_be_bytes());
    let record = created(&host, &owner, &Form::new().file("many", "bomb.png", &bomb)).await;
    let path = format!("{}?thumb=100x100", drawer::file(&record, &record["many"][0]));
    let reply = host.door().get(path).by(&owner).send().await;
    assert_eq!((reply.status, &reply.body), (200, &bomb));
}

#[tokio::test]
async fn public_files_of_an_app_with_accounts_are_everybodys_and_those_of_a_members_app_are_not() {
    let public = |settings: &mut inn_server::Settings| {
        settings.http.listen = ([127, 0, 0, 1], inn_tests::host::free_port()).into();
        settings.http.public_url = Some("https://inn.example".parse().unwrap());
    };
    for (mode, status) in [("multi-user", 200), ("none", 401)] {
        let (host, owner) = opened_with(mode, public).await;
        let form = Form::new().text("title", "secret").file("one", "a.txt", b"a").file("safe", "b.txt", b"b");
        let record = created(&host, &owner, &form).await;
        for on_app in [true, false] {
            let get = |name: &serde_json::Value| {
                let call = if on_app {
                    host.door().get(drawer::own(&record, name)).on_app(drawer::SLUG)
                } else {
                    host.door().get(drawer::file(&record, name))
                };
                call.send()
            };
            let reply = get(&record["one"]).await;
            assert_eq!(reply.status, status, "{mode}: {}", reply.text());
            if status == 200 {
                assert_eq!(reply.header("cache-control"), Some("max-age=2592000, stale-while-revalidate=86400"));
            }
            // Protected, and not there at all, look the same.
            let code = if mode == "none" { (401, "unauthenticated") } else { (404, "not_found") };
            get(&record["safe"]).await.refused(code.0, code.1);
            get(&json!("nope.txt")).await.refused(code.0, code.1);
        }
    }
}

#[tokio::test]
async fn a_view_shows_the_files_of_the_records_it_reads() {
    let (host, owner) = opened().await;
    let viewer = host.viewer().await;
    let form = |code: &str, title: &str| {
        let form = Form::new().text("code", code).text("title", title).file("one", "a.txt", b"one");
        form.file("safe", "s.txt", b"safe").file("many", "p.png", &drawer::png(40, 20))
    };
    let shelf = |path: &str| path.replace("/docs/", "/shelf/");
    let get = |path: String| host.door().get(path).by(&viewer).send();
    let shown = created(&host, &owner, &form("shown", "open")).await;
    assert_eq!(get(shelf(&drawer::file(&shown, &shown["one"]))).await.body, b"one");
    assert_eq!(get(shelf(&drawer::file(&shown, &shown["safe"]))).await.body, b"safe");
    let thumb = get(format!("{}?thumb=30x0", shelf(&drawer::file(&shown, &shown["many"][0])))).await;
    assert_eq!(image::load_from_memory(&thumb.body).unwrap().width(), 30);
    // The view's own rule counts for what is protected, and rows it does not have show nothing.
    let hidden = created(&host, &owner, &form("hidden", "hidden here")).await;
    assert_eq!(get(shelf(&drawer::file(&hidden, &hidden["one"]))).await.status, 200);
    get(shelf(&drawer::file(&hidden, &hidden["safe"]))).await.refused(404, "not_found");
    let outside = created(&host, &owner, &form("not shown", "open")).await;
    for name in [&outside["one"], &outside["safe"]] {
        get(shelf(&drawer::file(&outside, name))).await.refused(404, "not_found");
        assert_eq!(get(drawer::file(&outside, name)).await.status, 200);
    }
    // Another record's file is not shown by this row.
    get(shelf(&drawer::file(&shown, &outside["one"]))).await.refused(404, "not_found");
}

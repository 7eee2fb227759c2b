//! The same platform on an S3-compatible store: moto, from a Python environment that `ops/test` lays out below the build
//! folder.

use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use inn_tests::drawer::{self, Form};
use inn_tests::until;
use serde_json::json;

use super::{created, id, opened_with, skipped};

/// A server of the test's own; stopped when dropped.
struct Moto {
    child: Child,
    url: String,
    _dir: tempfile::TempDir,
}

impl Drop for Moto {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn program() -> Option<PathBuf> {
    let named = std::env::var_os("INN_TEST_MOTO").map(PathBuf::from);
    let program = named.unwrap_or_else(|| inn_tests::built().join("s3-venv/bin/moto_server"));
    program.is_file().then_some(program)
}

impl Moto {
    async fn start() -> Option<Self> {
        let Some(program) = program() else {
            skipped("files in an object store need moto_server below the build folder, where ops/test installs it");
            return None;
        };
        let dir = tempfile::tempdir().unwrap();
        let port = inn_tests::host::free_port();
        let child = Command::new(program)
            .args(["-H", "127.0.0.1", "-p", &port.to_string()])
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("moto starts");
        let moto = Self { child, url: format!("http://127.0.0.1:{port}"), _dir: dir };
        until("the S3 server", || async { TcpStream::connect(("127.0.0.1", port)).ok() }).await;
        Some(moto)
    }

    async fn make_bucket(&self, http: &reqwest::Client, bucket: &str) {
        let made = http.put(format!("{}/{bucket}", self.url)).send().await.expect("the S3 server answers");
        assert!(made.status().is_success(), "{}", made.status());
    }

    /// Keys of all objects below a prefix.
    async fn keys(&self, http: &reqwest::Client, bucket: &str, prefix: &str) -> Vec<String> {
        let listed =
            http.get(format!("{}/{bucket}?list-type=2&prefix={prefix}", self.url)).send().await.expect("a listing");
        let text = listed.text().await.expect("a listing");
        let parts = text.split("<Key>").skip(1);
        parts.filter_map(|part| part.split("</Key>").next()).map(str::to_owned).collect()
    }
}

#[tokio::test]
async fn files_bundles_and_thumbs_lie_in_an_s3_store() {
    let Some(moto) = Moto::start().await else { return };
    let http = reqwest::Client::builder().tls_certs_only([]).no_proxy().build().unwrap();
    moto.make_bucket(&http, "inn").await;
    let endpoint = moto.url.clone();
    let (host, owner) = opened_with("none", move |settings| {
        settings.blobs.s3_bucket = Some("inn".to_owned());
        settings.blobs.s3_prefix = Some("one/platform".to_owned());
        settings.blobs.s3_endpoint = Some(endpoint.parse().unwrap());
        settings.blobs.s3_access_key = Some("key".to_owned());
        settings.blobs.s3_secret_key = Some("secret".to_owned());
    })
    .await;
    assert!(!moto.keys(&http, "inn", "one/platform/").await.is_empty(), "the bundle is there");
    let content: Vec<u8> = (0..5_000_000_u32).map(|n| u8::try_from(n % 253).unwrap()).collect();
    let form = Form::new().file("one", "big.bin", &content).file("many", "p.png", &drawer::png(60, 30));
    let record = created(&host, &owner, &form).await;
    assert_eq!(moto.keys(&http, "inn", "one/platform/files/").await.len(), 3, "two pieces and a picture");
    let path = drawer::file(&record, &record["one"]);
    let whole = host.door().get(&path).by(&owner).send().await;
    assert!(whole.status == 200 && whole.body == content);
    let part = host.door().get(&path).header("range", "bytes=4194300-4194309").by(&owner).send().await;
    assert_eq!((part.status, part.body.as_slice()), (206, &content[4_194_300..4_194_310]));
    let thumb = format!("{}?thumb=100x100", drawer::file(&record, &record["many"][0]));
    assert_eq!(host.door().get(thumb).by(&owner).send().await.header("content-type"), Some("image/png"));
    assert_eq!(moto.keys(&http, "inn", "one/platform/files/").await.len(), 4);
    let refused = Form::new().text("num", "abc").file("one", "x.bin", b"x").create(host.door()).by(&owner).send().await;
    refused.refused(400, "invalid_number");
    host.door().patch(drawer::doc(id(&record)), &json!({"many": []})).by(&owner).send().await.expect(200);
    host.door().delete(drawer::doc(id(&record))).by(&owner).send().await.expect(204);
    until("the bucket to be empty of files", || async {
        moto.keys(&http, "inn", "one/platform/files/").await.is_empty().then_some(())
    })
    .await;
    // A store that is gone is told, and nothing is half kept.
    let record = created(&host, &owner, &Form::new().file("one", "x.txt", b"x")).await;
    drop(moto);
    let path = drawer::file(&record, &record["one"]);
    host.door().get(path).by(&owner).send().await.refused(503, "unavailable");
    let upload = Form::new().file("one", "y.txt", b"y").create(host.door()).by(&owner).send().await;
    upload.refused(503, "unavailable");
    assert_eq!(host.door().get(drawer::docs()).by(&owner).send().await.expect(200)["totalItems"], 1);
}

#[tokio::test]
async fn a_bucket_without_its_keys_is_refused_at_start() {
    let mut settings = inn_server::Settings::default();
    let dir = tempfile::tempdir().unwrap();
    dir.path().clone_into(&mut settings.data.dir);
    settings.http.listen = ([127, 0, 0, 1], 0).into();
    settings.database.url = Some("postgres://nobody@127.0.0.1:1/nothing".to_owned());
    settings.blobs.s3_bucket = Some("inn".to_owned());
    settings.blobs.s3_access_key = Some("key".to_owned());
    let start = move || inn_server::Platform::start(settings, inn_server::Role::Serve { migrate: false });
    let error = tokio::task::spawn_blocking(start).await.unwrap().err().expect("it does not start");
    assert!(format!("{error:#}").contains("INN_S3_SECRET_KEY"), "{error:#}");
}

//! Files of records: forms that bring them, `/api/files/…` that serves them.

mod batches;
mod compared;
mod compared_serving;
mod faults;
mod forms;
mod protected;
mod s3;
mod serving;
mod settings;

use inn_tests::drawer::{self, Form};
use inn_tests::{Papers, Person, TestHost, until};
use serde_json::Value;

/// A host with the drawer, and its owner.
async fn opened() -> (TestHost, Person) {
    opened_with("none", |_| {}).await
}

async fn opened_with(mode: &str, change: impl FnOnce(&mut inn_server::Settings)) -> (TestHost, Person) {
    let host = TestHost::with(change).await;
    let owner = host.owner().await;
    host.deploy(&owner, drawer::SLUG, drawer::files(mode)).await;
    (host, owner)
}

async fn created(host: &TestHost, by: impl Into<Papers>, form: &Form) -> Value {
    form.create(host.door()).by(by).send().await.expect(200)
}

/// Said past the capture of the test harness, which shows nothing of a test that passes.
fn skipped(why: &str) {
    use std::io::Write as _;
    // Where it cannot be told, nobody listens.
    let _: std::io::Result<()> = std::io::stderr().write_all(format!("\n*** SKIPPED: {why}.\n").as_bytes());
}

fn id(record: &Value) -> &str {
    record["id"].as_str().expect("an id")
}

/// Objects of files that lie on disk.
fn objects(host: &TestHost) -> usize {
    fn count(dir: &std::path::Path) -> usize {
        let Ok(entries) = std::fs::read_dir(dir) else { return 0 };
        let paths = entries.map(|entry| entry.expect("an entry").path());
        paths.map(|path| if path.is_dir() { count(&path) } else { 1 }).sum()
    }
    count(&host.dir().join("blobs").join("files"))
}

/// Rows of files that may still become, or are, part of a record.
async fn rows(host: &TestHost) -> i64 {
    host.count("SELECT count(*) FROM inn.files WHERE state NOT IN ('doomed', 'gone')").await
}

/// Waits until nothing is left of any file.
async fn nothing_left(host: &TestHost) {
    until("the files to be gone", || async { (rows(host).await == 0 && objects(host) == 0).then_some(()) }).await;
}

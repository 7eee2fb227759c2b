use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use inn_embedded::{EmbeddedPostgres, Options};
use inn_tests::{AgentClient, Call, TestHost, kanban, until};
use serde_json::{Value, json};

/// What the callers were told.
#[derive(Default)]
struct Log {
    /// Names of boards that were said to be stored.
    accepted: Mutex<Vec<String>>,
    /// Keys of calls whose outcome nobody knew.
    unknown: Mutex<Vec<String>>,
    refused: AtomicUsize,
    lies: Mutex<Vec<String>>,
    enough: AtomicBool,
}

impl Log {
    fn accepted(&self) -> usize {
        self.accepted.lock().unwrap().len()
    }
}

fn write(agent: &AgentClient, key: &str) -> Call {
    kanban::create(&agent.door, "boards", &json!({"name": key}), agent).key(key)
}

/// One caller that writes again and again, each time something new.
async fn keep_writing(agent: AgentClient, caller: usize, log: Arc<Log>) {
    for number in 0.. {
        if log.enough.load(Ordering::Relaxed) {
            return;
        }
        let key = format!("caller-{caller}-write-{number}");
        let Ok(reply) = write(&agent, &key).try_send().await else {
            // No answer is no promise either.
            log.unknown.lock().unwrap().push(key);
            continue;
        };
        let body: Value = serde_json::from_slice(&reply.body).unwrap_or(Value::Null);
        match (reply.status, body["outcome"].as_str()) {
            (200, _) => log.accepted.lock().unwrap().push(key),
            (503 | 504, Some("unknown")) => log.unknown.lock().unwrap().push(key),
            (503 | 504, Some("none")) => {
                log.refused.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            _ => log.lies.lock().unwrap().push(format!("{key}: {} {}", reply.status, reply.text())),
        }
    }
}

#[tokio::test]
async fn a_database_that_is_killed_costs_nothing_that_was_promised() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::test(dir.path());
    let start = move || EmbeddedPostgres::start(options.clone()).expect("PostgreSQL starts");
    let begin = start.clone();
    let server = tokio::task::spawn_blocking(begin).await.unwrap();
    let host =
        TestHost::on_server(&server, |settings| settings.database.acquire_timeout = Duration::from_secs(1)).await;
    let owner = host.owner().await;
    let agent = host.agent(&owner, kanban::SCOPES).await;
    let log = Arc::new(Log::default());
    let callers: Vec<_> =
        (0..6).map(|caller| tokio::spawn(keep_writing(agent.clone(), caller, Arc::clone(&log)))).collect();
    until("the first writes", || async { (log.accepted() > 30).then_some(()) }).await;

    // Kill -9 in the middle of it, then look around while it is gone.
    let killed = std::process::Command::new("kill").args(["-9", &server.pid().to_string()]).status().unwrap();
    assert!(killed.success());
    until("refusals", || async { (log.refused.load(Ordering::Relaxed) > 5).then_some(()) }).await;
    let door = host.door();
    let read = door.get(kanban::records("boards")).by(&agent).send().await;
    assert_eq!((read.status, &read.json()["outcome"]), (503, &json!("none")), "{}", read.text());
    read.refused(503, read.json()["code"].as_str().unwrap());
    let sign_in = json!({"email": "owner@acme.example", "password": inn_tests::host::PASSWORD});
    let reply = door.post("/v1/session", &sign_in).send().await;
    assert_eq!(reply.status, 503, "never a false 401: {}", reply.text());
    assert_eq!(door.get("/healthz").send().await.status, 200, "the process lives");
    assert_eq!(door.get("/readyz").send().await.status, 503, "and says that it cannot work");
    let before = log.accepted();

    // It comes back by itself once the database does.
    let server = tokio::task::spawn_blocking(move || {
        drop(server);
        start()
    })
    .await
    .unwrap();
    until("writes again", || async { (log.accepted() > before + 30).then_some(()) }).await;
    assert_eq!(door.get("/readyz").send().await.status, 200);
    log.enough.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.await.unwrap();
    }
    assert_eq!(*log.lies.lock().unwrap(), Vec::<String>::new());

    // What was accepted is there; what is unknown becomes known by the same key, once.
    let unknown = log.unknown.lock().unwrap().clone();
    for key in &unknown {
        let reply = write(&agent, key).send().await;
        assert!(matches!(reply.status, 200 | 409), "{key}: {}", reply.text());
    }
    let schema = host.app_schema(kanban::SLUG).await;
    let sql = host.sql().await;
    let rows = sql.query(&format!("SELECT name FROM {schema}.boards ORDER BY name"), &[]).await.unwrap();
    let stored: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let mut promised: Vec<String> = log.accepted.lock().unwrap().iter().cloned().chain(unknown).collect();
    promised.sort_unstable();
    assert_eq!(stored, promised);

    // And the register has an entry for each, still whole.
    let entries: i64 = sql
        .query_one("SELECT count(*) FROM inn.entries WHERE action = 'records.create' AND outcome = 'done'", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(entries, i64::try_from(stored.len()).unwrap());
    let verified = door.get("/v1/audit/verify").by(&owner).send().await.expect(200);
    assert_eq!(verified["problems"], json!([]), "{verified}");
    drop(sql);
    drop(host);
    tokio::task::spawn_blocking(move || server.stop()).await.unwrap().unwrap();
}

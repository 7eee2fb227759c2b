use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::*;

/// A directory that the embedded database's own user can pass through.
fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    std::fs::set_permissions(home.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    home
}

fn settings(dir: &Path) -> Settings {
    let mut settings = Settings::default();
    settings.data.dir = dir.to_owned();
    settings.http.listen = "127.0.0.1:0".parse().unwrap();
    settings.http.workers = 1;
    settings
}

fn get(platform: &Platform, path: &str) -> String {
    get_at(platform, platform.url().strip_prefix("http://").unwrap(), path)
}

fn get_at(platform: &Platform, host: &str, path: &str) -> String {
    let authority = platform.url().strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(authority).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn two_nodes_on_one_database_run_in_one_process_and_a_second_start_finds_everything() {
    let home = home();
    let dir = home.path().join("data");
    let options = UpOptions { owner: Some("ada@example.org".to_owned()), password: None, demo: true };
    let first = Platform::start(settings(&dir), Role::Up(options.clone())).unwrap();
    assert_eq!(first.facts().owner.as_deref(), Some("ada@example.org"));
    let slugs: Vec<_> = first.facts().apps.iter().map(|app| app.slug.as_str()).collect();
    assert_eq!(slugs, ["expenses", "kanban"]);
    assert!(first.facts().apps.iter().all(|app| app.token_file.as_ref().is_some_and(|file| file.is_file())));
    assert!(first.welcome().password.is_some());

    let refused = Platform::start(settings(&dir), Role::Up(options)).err().unwrap().to_string();
    assert!(refused.contains("--data"), "{refused}");

    let mut beside = settings(&home.path().join("beside"));
    beside.database.url = Some(first.database_url().to_owned());
    let stranger = Platform::start(beside.clone(), Role::Serve { migrate: false }).err().unwrap().to_string();
    assert!(stranger.contains("INN_KEYS_DIR"), "{stranger}");
    beside.data.keys_dir = Some(dir.join("keys"));
    beside.data.blobs_dir = Some(dir.join("blobs"));
    let second = Platform::start(beside, Role::Serve { migrate: false }).unwrap();
    for platform in [&first, &second] {
        assert!(get(platform, "/readyz").starts_with("HTTP/1.1 200 "));
        let metrics = get(platform, "/metrics");
        for gauge in ["inn_stuck 0", "inn_pool_connections{state=\"idle\"} ", "inn_pool_waiting 0"] {
            assert!(metrics.contains(gauge), "{gauge} in {metrics}");
        }
        assert!(get(platform, "/").contains("text/html"), "the console is there");
        let kanban = format!("kanban.{}", platform.url().strip_prefix("http://").unwrap());
        let page = get_at(platform, &kanban, "/app.js");
        assert!(page.starts_with("HTTP/1.1 200 "), "both have the files of pages: {page}");
    }
    assert_eq!(second.facts().owner, None);
    second.stop().unwrap();
    assert!(get(&first, "/readyz").starts_with("HTTP/1.1 200 "), "one node's end is not the other's");
    first.stop().unwrap();

    let again = Platform::start(settings(&dir), Role::Up(UpOptions { demo: true, ..UpOptions::default() })).unwrap();
    assert_eq!(again.facts().owner.as_deref(), Some("ada@example.org"), "remembered");
    assert!(again.welcome().password.is_none(), "told once");
    assert_eq!(again.facts().apps.len(), 2);
    again.stop().unwrap();
}

#[test]
fn probes_and_metrics_answer_under_any_name_and_nothing_else_does() {
    let home = home();
    let platform = Platform::start(settings(&home.path().join("data")), Role::Up(UpOptions::default())).unwrap();
    for path in ["/healthz", "/readyz", "/metrics"] {
        for host in ["10.0.0.1", "10.0.0.1:8080", "[fd00::1]:8080", "inn.innkeeper.svc"] {
            let answer = get_at(&platform, host, path);
            assert!(answer.starts_with("HTTP/1.1 200 "), "{path} of {host}: {answer}");
        }
    }
    for path in ["/", "/v1/keys", "/v1/session"] {
        let answer = get_at(&platform, "10.0.0.1", path);
        assert!(answer.starts_with("HTTP/1.1 4"), "{path}: {answer}");
    }
    platform.stop().unwrap();
}

#[test]
fn calls_come_back_after_the_embedded_database_was_killed() {
    let home = home();
    let platform = Platform::start(settings(&home.path().join("data")), Role::Up(UpOptions::default())).unwrap();
    let pid = platform.facts().postgres_pid.unwrap();
    assert!(std::process::Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
    let next = platform.database_restarted().unwrap();
    assert_ne!(next, pid);
    let began = std::time::Instant::now();
    while !get(&platform, "/readyz").starts_with("HTTP/1.1 200 ") {
        assert!(began.elapsed() < Duration::from_secs(30), "it did not become ready again");
    }
    platform.stop().unwrap();
}

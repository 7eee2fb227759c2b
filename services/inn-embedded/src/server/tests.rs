use super::*;

fn test_server() -> (tempfile::TempDir, Options) {
    let dir = tempfile::tempdir().unwrap();
    // The unprivileged user must get through.
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let options = Options::test(dir.path());
    (dir, options)
}

/// One statement through psql, which comes with the server.
fn ask(server: &EmbeddedPostgres, sql: &str) -> Result<String, String> {
    let output = Command::new("psql").args(["-XAt", &server.url("postgres"), "-c", sql]).output().unwrap();
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

fn alive(pid: u32) -> bool {
    // A dead child of the guard is reaped by it, so an entry means a living process.
    Path::new(&format!("/proc/{pid}")).exists()
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < Duration::from_secs(20), "{what} did not happen");
        pause(Duration::from_millis(20));
    }
}

#[test]
fn a_temporary_server_starts_answers_opens_no_port_and_leaves_nothing_behind() {
    let server = EmbeddedPostgres::temporary().unwrap();
    assert_eq!(ask(&server, "SELECT current_user || ' ' || current_setting('server_encoding')").unwrap(), "inn UTF8");
    assert_eq!(ask(&server, "SHOW listen_addresses").unwrap(), "");
    assert_eq!(fs::metadata(server.socket_dir()).unwrap().permissions().mode() & 0o777, 0o700);
    let (pid, dir) = (server.pid(), server.data_dir().parent().unwrap().to_owned());
    assert!(alive(pid) && dir.exists());
    server.stop().unwrap();
    assert!(!alive(pid));
    assert!(!dir.exists());
}

#[test]
fn what_was_committed_is_there_after_a_kill_of_server_and_guard() {
    let (_dir, options) = test_server();
    let options = Options { durability: Durability::Full, ..options };
    let mut server = EmbeddedPostgres::start(options.clone()).unwrap();
    ask(&server, "CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)").unwrap();
    let pid = server.pid();
    kill(pid);
    until("the guard's end", || server.guard.try_wait().unwrap().is_some());
    drop(server);
    assert!(options.data_dir.join("postmaster.pid").exists(), "the lock file is stale");
    let again = EmbeddedPostgres::start(options).unwrap();
    assert_eq!(ask(&again, "SELECT n FROM kept").unwrap(), "7");
    again.stop().unwrap();
}

fn kill(pid: u32) {
    assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
}

#[test]
fn a_killed_server_is_noticed_and_comes_back_at_the_same_address_with_what_was_committed() {
    let (dir, options) = test_server();
    // A temporary socket directory is the harder case: it goes with the server.
    let long = dir.path().join("x".repeat(100));
    let options = Options { durability: Durability::Full, socket_dir: long, ..options };
    let mut server = EmbeddedPostgres::start(options).unwrap();
    ask(&server, "CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)").unwrap();
    assert!(server.ended().is_none());
    let address = server.url("postgres");
    // The guard's death leaves a server without one, which must not stay.
    for victim in [EmbeddedPostgres::pid, |server: &EmbeddedPostgres| server.guard.id()] {
        let pid = server.pid();
        kill(victim(&server));
        until("the end of the guard", || server.ended().is_some());
        server.restart().unwrap();
        // An orphan nobody reaps keeps its entry, but has no working directory any more.
        assert!(server.ended().is_none() && fs::read_link(format!("/proc/{pid}/cwd")).is_err());
        assert_eq!(server.url("postgres"), address);
        assert_eq!(ask(&server, "SELECT n FROM kept").unwrap(), "7");
    }
    let socket = server.socket_dir().to_owned();
    server.stop().unwrap();
    assert!(!socket.exists(), "still removed at the end");
}

#[test]
fn a_restart_that_fails_says_why_and_can_be_tried_again() {
    let (_dir, options) = test_server();
    let options = Options { durability: Durability::Full, ..options };
    let mut server = EmbeddedPostgres::start(options.clone()).unwrap();
    let conf = options.data_dir.join("postgresql.conf");
    let good = fs::read(&conf).unwrap();
    fs::write(&conf, "no_such_setting = 1\n").unwrap();
    kill(server.pid());
    until("its end", || server.ended().is_some());
    assert!(server.restart().unwrap_err().to_string().contains("no_such_setting"));
    fs::write(&conf, good).unwrap();
    server.restart().unwrap();
    assert_eq!(ask(&server, "SELECT 1").unwrap(), "1");
}

#[test]
fn the_data_of_a_temporary_server_goes_with_it() {
    let mut server = EmbeddedPostgres::temporary().unwrap();
    kill(server.pid());
    until("its end", || server.ended().is_some());
    assert!(server.restart().unwrap_err().to_string().contains("temporary"));
}

#[test]
fn a_directory_of_somebody_else_is_no_socket_directory() {
    let dir = tempfile::tempdir().unwrap();
    let (fresh, link) = (dir.path().join("fresh"), dir.path().join("link"));
    private_dir(&fresh, None).unwrap();
    private_dir(&fresh, None).unwrap();
    assert_eq!(fs::metadata(&fresh).unwrap().permissions().mode() & 0o777, 0o700);
    std::os::unix::fs::symlink(&fresh, &link).unwrap();
    assert!(private_dir(&link, None).unwrap_err().to_string().contains("somebody else"));
}

#[test]
fn it_is_backed_up_while_it_runs_and_the_copy_starts() {
    let (dir, options) = test_server();
    let options = Options { durability: Durability::Full, ..options };
    let server = EmbeddedPostgres::start(options).unwrap();
    ask(&server, "CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)").unwrap();
    let copy = dir.path().join("copy");
    let data = copy.join("postgres");
    fs::create_dir(&copy).unwrap();
    let mut program = Command::new("pg_basebackup");
    program.arg("-d").arg(server.url("postgres")).arg("-D").arg(&data).args(["-X", "stream", "-c", "fast"]);
    let output = program.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    server.stop().unwrap();
    if let Some(account) = Account::choose().unwrap() {
        let owner = format!("{}:{}", account.uid, account.gid);
        assert!(Command::new("chown").args(["-R", &owner]).arg(&data).status().unwrap().success());
    }
    let again = EmbeddedPostgres::start(Options { durability: Durability::Full, ..Options::below(&copy) }).unwrap();
    assert_eq!(ask(&again, "SELECT n FROM kept").unwrap(), "7");
    again.stop().unwrap();
}

#[test]
fn the_server_stops_when_the_pipe_of_its_owner_closes() {
    let (_dir, options) = test_server();
    let mut server = EmbeddedPostgres::start(options).unwrap();
    let pid = server.pid();
    assert!(alive(pid));
    // What the kernel does to our end of the pipe when we are killed.
    drop(server.guard.stdin.take());
    until("the shutdown", || !alive(pid));
}

#[test]
fn a_second_server_waits_for_the_first_to_go() {
    let (_dir, options) = test_server();
    let options = Options { durability: Durability::Full, ..options };
    let first = EmbeddedPostgres::start(options.clone()).unwrap();
    let pid = first.pid();
    let second = std::thread::spawn(move || EmbeddedPostgres::start(options));
    pause(Duration::from_millis(300));
    assert!(!second.is_finished(), "it waits while the first one runs");
    first.stop().unwrap();
    let second = second.join().unwrap().unwrap();
    assert_ne!(second.pid(), pid);
}

#[test]
fn a_long_socket_path_is_replaced_by_a_private_directory() {
    let (dir, options) = test_server();
    let long = dir.path().join("x".repeat(100));
    let server = EmbeddedPostgres::start(Options { socket_dir: long.clone(), ..options }).unwrap();
    let socket = server.socket_dir().to_owned();
    assert_ne!(socket, long);
    assert_eq!(ask(&server, "SELECT 1").unwrap(), "1");
    server.stop().unwrap();
    assert!(!socket.exists(), "the private directory is removed");
}

#[test]
fn paths_with_quotes_and_spaces_work() {
    let (dir, options) = test_server();
    let odd = dir.path().join("it's a \"b\"");
    let options = Options { data_dir: odd.join("d"), socket_dir: odd.join("s"), ..options };
    let server = EmbeddedPostgres::start(options).unwrap();
    assert_eq!(ask(&server, "SELECT 1").unwrap(), "1");
    server.stop().unwrap();
}

#[test]
fn a_folder_with_other_files_is_refused_and_left_alone() {
    let (_dir, options) = test_server();
    fs::create_dir_all(&options.data_dir).unwrap();
    let precious = options.data_dir.join("thesis.txt");
    fs::write(&precious, "x").unwrap();
    match EmbeddedPostgres::start(options) {
        Err(EmbeddedError::NotOurs { .. }) => assert!(precious.exists()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_server_that_cannot_start_says_why() {
    let (_dir, options) = test_server();
    let options = Options { durability: Durability::Full, ..options };
    EmbeddedPostgres::start(options.clone()).unwrap().stop().unwrap();
    fs::write(options.data_dir.join("postgresql.conf"), "no_such_setting = 1\n").unwrap();
    match EmbeddedPostgres::start(options) {
        Err(EmbeddedError::Start(why)) => assert!(why.contains("no_such_setting"), "{why}"),
        other => panic!("{other:?}"),
    }
}

use super::*;
use serde_json::json;
use std::time::Instant;

fn sh(script: &str) -> Program {
    Program { argv: ["sh", "-c", script].map(str::to_owned).to_vec(), env: vec![("INN_AGENT", "bot".to_owned())] }
}

async fn run(script: &str) -> (Ended, Option<Progress>) {
    let (sender, receiver) = watch::channel(None);
    let ended = sh(script)
        .run(&json!({"id": "req_1"}), &[("INN_APP_URL", "http://x")], "t", sender, &CancellationToken::new())
        .await;
    let newest = receiver.borrow().clone();
    (ended, newest)
}

#[tokio::test]
async fn input_goes_in_and_progress_and_result_come_out() {
    let (ended, newest) = run("input=$(cat); echo 'progress: 10 a'; echo 'progress: 60 b'; printf '{\"in\":%s,\"as\":\"%s %s\"}' \"$input\" \"$INN_AGENT\" \"$INN_APP_URL\"").await;
    assert_eq!(ended, Ended::Result(json!({"in": {"id": "req_1"}, "as": "bot http://x"})));
    assert_eq!(newest, Some(Progress { percent: 60, step: "b".to_owned() }));
}

#[tokio::test]
async fn an_exit_code_is_a_failure_with_the_last_line_of_the_log_as_reason() {
    assert_eq!(run("echo one >&2; echo two >&2; echo '{}'; exit 3").await.0, Ended::Failed("two".to_owned()));
    let Ended::Failed(reason) = run("exit 3").await.0 else { panic!("a failure") };
    assert!(reason.contains('3'), "{reason}");
    assert!(matches!(run("true").await.0, Ended::Failed(reason) if reason.contains("no result")));
}

#[tokio::test]
async fn a_program_that_is_not_there_is_a_failure_that_names_it() {
    let program = Program { argv: vec!["/nonexistent/agent".to_owned()], env: Vec::new() };
    let ended = program.run(&json!({}), &[], "t", watch::channel(None).0, &CancellationToken::new()).await;
    assert!(matches!(ended, Ended::Failed(reason) if reason.contains("/nonexistent/agent")));
}

#[tokio::test]
async fn output_without_end_is_cut_off() {
    let Ended::Failed(reason) = run("yes '{}'").await.0 else { panic!("a failure") };
    assert!(reason.contains("more than"), "{reason}");
}

#[tokio::test]
async fn too_much_output_is_the_reason_even_when_the_program_ends_by_itself() {
    let reason = |ended| match ended {
        Ended::Failed(reason) => reason,
        ended => panic!("{ended:?}"),
    };
    let finished = reason(run("head -c 1100000 /dev/zero | tr '\\0' x; echo").await.0);
    assert!(finished.contains("more than"), "{finished}");
}

#[tokio::test]
async fn stopping_reaches_what_the_program_started() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("alive");
    let script = format!("(sleep 2; touch {}) & sleep 60", mark.display());
    let stop = CancellationToken::new();
    let later = stop.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(200)).await;
        later.cancel();
    });
    let begun = Instant::now();
    let ended = sh(&script).run(&json!({}), &[], "t", watch::channel(None).0, &stop).await;
    assert_eq!(ended, Ended::Stopped);
    assert!(begun.elapsed() < Duration::from_secs(10));
    tokio::time::sleep(Duration::from_millis(2500)).await;
    assert!(!mark.exists(), "the background child was stopped too");
}

#[tokio::test]
async fn what_stays_behind_does_not_hold_the_result() {
    let begun = Instant::now();
    let (ended, _) = run("sleep 60 & echo '{\"a\":1}'").await;
    assert_eq!(ended, Ended::Result(json!({"a": 1})));
    assert!(begun.elapsed() < Duration::from_secs(10));
}

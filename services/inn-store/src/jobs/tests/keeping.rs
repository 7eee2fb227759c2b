use inn_ports::{Jobs, Requests};
use inn_protocol::job::{Job, JobState};
use inn_protocol::{AppId, Code, JobId};

use super::{of_job, said, seen};
use crate::people::fixture::{World, code};

async fn asked(world: &World) -> JobId {
    let job = JobId::new();
    world.asked(&of_job(world, job)).await;
    job
}

async fn refuses(world: &World, text: &str) {
    world.admin.batch_execute(text).await.unwrap_err();
}

/// What no code of ours may do.
async fn force(world: &World, text: &str) {
    let text = format!("SET session_replication_role = replica; {text}; SET session_replication_role = origin");
    world.admin.batch_execute(&text).await.unwrap();
}

#[tokio::test]
async fn what_has_ended_never_changes_and_leaves_only_for_the_history() {
    let world = World::new().await;
    let job = asked(&world).await;
    world.store.cancel_job(&world.call("x"), world.app.id, job, "r").await.unwrap();
    refuses(&world, "UPDATE inn.jobs SET state = 'queued', ended_at = NULL").await;
    refuses(&world, "DELETE FROM inn.jobs").await;
    let before = (seen(&world, job).await, said(&world, job).await);
    force(&world, "UPDATE inn.jobs SET ended_at = now() - interval '11 minutes'").await;
    world.store.sweep_jobs().await.unwrap();
    assert_eq!(world.count("SELECT count(*) FROM inn.jobs").await, 0);
    assert_eq!(world.count("SELECT count(*) FROM inn.job_lines").await, 0);
    let after = seen(&world, job).await;
    assert_eq!((after.state, after.error, after.updated_at), (before.0.state, before.0.error, before.0.updated_at));
    assert_eq!(said(&world, job).await, before.1, "its log goes with it");
    refuses(&world, "UPDATE inn.jobs_history SET state = 'completed'").await;
    refuses(&world, "DELETE FROM inn.jobs_history").await;
    assert_eq!(code(world.store.cancel_job(&world.call("x"), world.app.id, job, "r").await), Code::Conflict);
}

#[tokio::test]
async fn apps_do_not_see_each_others_jobs() {
    let world = World::new().await;
    let job = asked(&world).await;
    let other = AppId::new();
    assert!(world.store.job(other, job).await.unwrap().is_none());
    assert!(world.store.jobs(other, None, None, 10).await.unwrap().is_empty());
    assert!(world.store.job_lines(other, job, 0, 10).await.unwrap().is_empty());
    assert_eq!(code(world.store.cancel_job(&world.call("x"), other, job, "r").await), Code::NotFound);
    assert_eq!(seen(&world, job).await.state, JobState::Queued);
}

#[tokio::test]
async fn a_list_is_newest_first_and_can_be_narrowed() {
    let world = World::new().await;
    let first = asked(&world).await;
    let second = asked(&world).await;
    world.store.cancel_job(&world.call("x"), world.app.id, first, "r").await.unwrap();
    let list = |state, requester, limit| {
        let world = &world;
        async move {
            let jobs = world.store.jobs(world.app.id, state, requester, limit).await.unwrap();
            jobs.into_iter().map(|job| job.id).collect::<Vec<_>>()
        }
    };
    assert_eq!(list(None, None, 10).await, [second, first]);
    assert_eq!(list(None, None, 1).await, [second]);
    assert_eq!(list(Some(JobState::Canceled), None, 10).await, [first]);
    assert_eq!(list(None, Some(world.owner), 10).await, [second, first]);
    assert!(list(None, Some(inn_protocol::UserId::new()), 10).await.is_empty());
}

#[tokio::test]
async fn a_log_keeps_its_newest_lines() {
    let world = World::new().await;
    let job = asked(&world).await;
    let most = Job::MOST_LINES;
    let (id, last) = (job.uuid(), most + 5);
    let text = format!("SELECT inn.job_say('{id}', 'log', 'line ' || n, NULL) FROM generate_series(2, {last}) n");
    world.admin.batch_execute(&text).await.unwrap();
    let lines = said(&world, job).await;
    assert_eq!((lines.len(), lines[0].as_str()), (1_000, "log line 6"));
    let after = world.store.job_lines(world.app.id, job, most + 3, 10).await.unwrap();
    assert_eq!(after.iter().map(|line| line.seq).collect::<Vec<_>>(), [most + 4, most + 5]);
}

#[tokio::test]
async fn a_job_whose_request_is_gone_is_counted_as_stuck() {
    let world = World::new().await;
    let job = asked(&world).await;
    assert_eq!(world.store.stuck_jobs().await.unwrap(), 0);
    force(&world, "DELETE FROM inn.requests").await;
    assert_eq!(world.store.stuck_jobs().await.unwrap(), 1, "{job}");
}

#[tokio::test]
async fn a_removed_app_ends_its_jobs() {
    let world = World::new().await;
    let job = asked(&world).await;
    world.admin.batch_execute("UPDATE inn.apps SET status = 'removed'").await.unwrap();
    world.store.sweep_requests().await.unwrap();
    let ended = seen(&world, job).await;
    assert_eq!((ended.state, ended.error.unwrap().code.as_str()), (JobState::Canceled, "app_removed"));
}

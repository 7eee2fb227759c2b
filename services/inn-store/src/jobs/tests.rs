mod following;
mod keeping;
mod running;

use inn_ports::Jobs;
use inn_protocol::JobId;
use inn_protocol::job::{Job, NewJob};
use inn_protocol::request::NewRequest;

use crate::people::fixture::World;

/// A request of the owner's that is a job of the operation `board.sum-up`.
fn of_job(world: &World, job: JobId) -> NewRequest {
    let new = NewJob { id: job, operation: "board.sum-up".to_owned(), agent: None, retry_of: None };
    NewRequest { job: Some(new), attempts: 2, ..world.request() }
}

async fn seen(world: &World, job: JobId) -> Job {
    world.store.job(world.app.id, job).await.unwrap().unwrap()
}

/// Its log, in words.
async fn said(world: &World, job: JobId) -> Vec<String> {
    let lines = world.store.job_lines(world.app.id, job, 0, 1_000).await.unwrap();
    assert!(lines.windows(2).all(|pair| pair[1].seq == pair[0].seq + 1), "numbered without gaps: {lines:?}");
    lines.into_iter().map(|line| format!("{} {}", line.kind.as_str(), line.text)).collect()
}

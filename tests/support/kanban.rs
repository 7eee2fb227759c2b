//! The kanban demo, which the template has installed.

use serde_json::{Value, json};

use crate::bundle::{self, Files};
use crate::call::{Call, Door, Papers};

pub const SLUG: &str = "kanban";

/// Scopes an agent of a kanban board asks for.
pub const SCOPES: &[&str] = &[
    "data:boards:read",
    "data:boards:write",
    "data:lists:read",
    "data:lists:write",
    "data:cards:read",
    "data:cards:write",
    "op:cards.add",
    "op:cards.move",
    "op:cards.archive",
    "op:cards.list-urgent",
    "op:cards.delete-archived",
    "op:board.sum-up",
    "queue:summarise-board",
];

pub fn files() -> Files {
    bundle::folder("ops/demo/kanban")
}

/// Path of an entity's records on the platform's face.
pub fn records(entity: &str) -> String {
    format!("/apps/{SLUG}/api/collections/{entity}/records")
}

pub fn record(entity: &str, id: &str) -> String {
    format!("{}/{id}", records(entity))
}

pub fn create(door: &Door, entity: &str, body: &Value, by: impl Into<Papers>) -> Call {
    door.post(records(entity), body).by(by)
}

/// A board with one list; answers their ids.
pub async fn board(door: &Door, by: impl Into<Papers>) -> (String, String) {
    let by = by.into();
    let board = create(door, "boards", &json!({"name": "House"}), by.clone()).send().await.expect(200);
    let board = id(&board);
    let list = json!({"title": "To Do", "board": board});
    let list = create(door, "lists", &list, by).send().await.expect(200);
    (board, id(&list))
}

/// A card in that list; answers its id.
pub async fn card(door: &Door, by: impl Into<Papers>, list: &str, title: &str) -> String {
    let card = create(door, "cards", &json!({"title": title, "list": list}), by).send().await.expect(200);
    id(&card)
}

pub fn id(record: &Value) -> String {
    record["id"].as_str().unwrap_or_else(|| panic!("no id in {record}")).to_owned()
}

/// A summary wanted of that board; answers the request's id.
pub async fn ask(door: &Door, by: impl Into<Papers>, board: &str) -> String {
    let body = json!({"capability": "summarise-board", "payload": {"board": board}});
    let task = door.post(format!("/apps/{SLUG}/api/_a2app/tasks"), &body).by(by).send().await.expect(201);
    id(&task)
}

/// The same as an operation; answers the job's id.
pub async fn sum_up(door: &Door, by: impl Into<Papers>, board: &str) -> String {
    let call = door.post(format!("/apps/{SLUG}/api/ops/board.sum-up"), &json!({"board": board}));
    let job = call.by(by).send().await.expect(202);
    job["jobId"].as_str().unwrap_or_else(|| panic!("no job in {job}")).to_owned()
}

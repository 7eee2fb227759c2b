//! `expand`: relations filled in, forward and back, as far as the caller may look.

use inn_tests::{Person, TestHost, kanban};
use serde_json::{Value, json};

struct World {
    host: TestHost,
    owner: Person,
    board: String,
    lists: Vec<String>,
}

/// One board with two lists, "To Do" with the cards A and B and "Done" without any.
async fn board() -> World {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let door = host.door();
    let (board, first) = kanban::board(door, &owner).await;
    let done = json!({"title": "Done", "board": board});
    let done = kanban::id(&kanban::create(door, "lists", &done, &owner).send().await.expect(200));
    for title in ["A", "B"] {
        kanban::card(door, &owner, &first, title).await;
    }
    World { host, owner, board, lists: vec![first, done] }
}

impl World {
    async fn view(&self, entity: &str, id: &str, expand: &str) -> Value {
        let path = format!("{}?expand={expand}", kanban::record(entity, id));
        self.host.door().get(path).by(&self.owner).send().await.expect(200)
    }
}

/// The titles at a path of members, lists walked through.
fn titles(value: &Value, path: &[&str]) -> Vec<String> {
    match (value, path) {
        (Value::Array(items), _) => items.iter().flat_map(|item| titles(item, path)).collect(),
        (_, []) => vec![value["title"].as_str().or_else(|| value["name"].as_str()).unwrap_or("?").to_owned()],
        (_, [name, rest @ ..]) => value["expand"].get(name).map_or_else(Vec::new, |next| titles(next, rest)),
    }
}

#[tokio::test]
async fn relations_are_followed_forward_and_back_over_several_levels() {
    let it = board().await;
    let board = it.view("boards", &it.board, "lists_via_board.cards_via_list.list.board").await;
    assert_eq!(titles(&board, &["lists_via_board"]), ["To Do", "Done"], "in the order of their insertion");
    assert_eq!(titles(&board, &["lists_via_board", "cards_via_list"]), ["A", "B"]);
    let deep = ["lists_via_board", "cards_via_list", "list", "board"];
    assert_eq!(titles(&board, &deep), ["House", "House"]);
    let done = &board["expand"]["lists_via_board"][1];
    assert_eq!(done["expand"], json!({}), "asked for and empty is an empty member: {done}");
    let old = it.view("boards", &it.board, "lists(board)").await;
    assert_eq!(titles(&old, &["lists(board)"]), ["To Do", "Done"], "the form of old");
}

#[tokio::test]
async fn paths_that_begin_alike_are_put_together() {
    let it = board().await;
    let board =
        it.view("boards", &it.board, "lists_via_board.board,lists_via_board.cards_via_list,lists_via_board").await;
    let first = &board["expand"]["lists_via_board"][0]["expand"];
    assert_eq!(first["board"]["name"], "House");
    assert_eq!(first["cards_via_list"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_path_that_cannot_be_followed_is_as_if_not_asked_for() {
    let it = board().await;
    for expand in
        ["bogus", "title", "list.bogus", "cards_via_title", "nope_via_list", "lists_via_board.cards_via_board"]
    {
        let entity = if expand.starts_with("lists_via") { "boards" } else { "lists" };
        let id = if entity == "boards" { &it.board } else { &it.lists[0] };
        let record = it.view(entity, id, expand).await;
        assert!(record.get("expand").is_none(), "{expand}: {record}");
    }
    let record = it.view("lists", &it.lists[0], "board.bogus,cards_via_list").await;
    assert_eq!(titles(&record, &["cards_via_list"]), ["A", "B"], "the other path stands");
    assert!(record["expand"].get("board").is_none(), "a nested mistake drops its whole path: {record}");
    let record = it.view("lists", &it.lists[1], "cards_via_list.bogus").await;
    assert_eq!(record["expand"], json!({}), "nothing is there that the mistake could be made on");
}

#[tokio::test]
async fn six_levels_are_followed_and_no_seventh() {
    let it = board().await;
    let seven = "cards_via_list.list.cards_via_list.list.cards_via_list.list.board";
    let mut record = it.view("lists", &it.lists[0], seven).await;
    for level in 0..6 {
        let name = if level % 2 == 0 { "cards_via_list" } else { "list" };
        let next = &record["expand"][name];
        record = next.get(0).unwrap_or(next).clone();
        assert!(record["id"].is_string(), "level {level}");
    }
    assert!(record.get("expand").is_none(), "{record}");
}

#[tokio::test]
async fn what_an_agent_may_not_read_is_left_out_without_a_word() {
    let it = board().await;
    let agent = it.host.agent(&it.owner, &["data:lists:read", "data:boards:read"]).await;
    let path = format!("{}?expand=board,cards_via_list", kanban::record("lists", &it.lists[0]));
    let record = it.host.door().get(&path).by(&agent).send().await.expect(200);
    assert_eq!(record["expand"]["board"]["name"], "House");
    assert!(record["expand"].get("cards_via_list").is_none(), "{record}");
    let path = format!("{}?expand=cards_via_list", kanban::record("lists", &it.lists[0]));
    let record = it.host.door().get(&path).by(&agent).send().await.expect(200);
    assert!(record.get("expand").is_none(), "{record}");
}

#[tokio::test]
async fn fields_pick_within_what_was_expanded() {
    let it = board().await;
    let query = "?perPage=1&sort=title&expand=list.board&fields=title,expand.list.expand.board.name";
    let page =
        it.host.door().get(format!("{}{query}", kanban::records("cards"))).by(&it.owner).send().await.expect(200);
    let expected = json!({"title": "A", "expand": {"list": {"expand": {"board": {"name": "House"}}}}});
    assert_eq!(page["items"], json!([expected]));
    assert_eq!(page["totalItems"], 2, "the page itself stays whole");
}

#[tokio::test]
async fn a_back_relation_brings_a_thousand_records_at_most() {
    let it = board().await;
    let client = it.host.sql().await;
    let schema = it.host.app_schema(kanban::SLUG).await;
    let insert = format!(
        "INSERT INTO \"{schema}\".\"cards\" (id, title, list) SELECT 'card' || lpad(n::text, 11, '0'), 'n' || n, $1 FROM generate_series(1, 1100) n"
    );
    client.execute(&insert, &[&it.lists[1]]).await.unwrap();
    let record = it.view("lists", &it.lists[1], "cards_via_list").await;
    let cards = record["expand"]["cards_via_list"].as_array().unwrap();
    assert_eq!((cards.len(), &cards[0]["title"], &cards[999]["title"]), (1000, &json!("n1"), &json!("n1000")));
}

#[tokio::test]
async fn more_than_an_answer_can_hold_is_refused() {
    let it = board().await;
    let client = it.host.sql().await;
    let schema = it.host.app_schema(kanban::SLUG).await;
    let lists = format!(
        "INSERT INTO \"{schema}\".\"lists\" (id, title, board) SELECT 'list' || lpad(n::text, 11, '0'), 'n' || n, $1 FROM generate_series(1, 51) n"
    );
    client.execute(&lists, &[&it.board]).await.unwrap();
    let cards = format!(
        "INSERT INTO \"{schema}\".\"cards\" (id, title, list) SELECT 'card' || lpad(n::text, 11, '0'), 'n', 'list' || lpad((n % 51 + 1)::text, 11, '0') FROM generate_series(1, 51000) n"
    );
    client.execute(&cards, &[]).await.unwrap();
    let page = format!("{}?perPage=100&expand=cards_via_list", kanban::records("lists"));
    let refused = it.host.door().get(page).by(&it.owner).send().await.refused(413, "too_large");
    assert!(refused["message"].as_str().unwrap().contains("cards"), "{refused}");
    let page = format!("{}?perPage=10&expand=cards_via_list&fields=id", kanban::records("lists"));
    it.host.door().get(page).by(&it.owner).send().await.expect(200);
}

//! Filter, sort, paging, fields, expand.

use inn_tests::{Call, Person, TestHost, kanban};
use serde_json::{Value, json};

struct Board {
    host: TestHost,
    owner: Person,
    list: String,
}

/// Five cards, A to E, with priorities and positions.
async fn board() -> Board {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let door = host.door();
    let (board, list) = kanban::board(door, &owner).await;
    let label = json!({"name": "Food", "board": board});
    let label = kanban::id(&kanban::create(door, "labels", &label, &owner).send().await.expect(200));
    for (title, priority, position, due) in [
        ("A", "low", 5, "2026-01-01"),
        ("B", "high", 4, ""),
        ("C", "high", 3, "2026-07-31 12:00:00.000Z"),
        ("D", "", 2, ""),
        ("E", "urgent", 1, "2027-01-01"),
    ] {
        let body = json!({"title": title, "list": list, "priority": priority, "position": position, "due_date": due, "labels": [label]});
        kanban::create(door, "cards", &body, &owner).send().await.expect(200);
    }
    Board { host, owner, list }
}

impl Board {
    fn call(&self, pairs: &[(&str, &str)]) -> Call {
        let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        self.host.door().get(format!("{}?{query}", kanban::records("cards"))).by(&self.owner)
    }

    async fn list(&self, pairs: &[(&str, &str)]) -> Value {
        self.call(pairs).send().await.expect(200)
    }

    async fn titles(&self, pairs: &[(&str, &str)]) -> String {
        titles(&self.list(pairs).await)
    }
}

fn titles(page: &Value) -> String {
    page["items"].as_array().unwrap().iter().map(|card| card["title"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn filters_pick_rows() {
    let it = board().await;
    for (filter, titles) in [
        ("", "ABCDE"),
        ("title = 'C'", "C"),
        ("title != 'C'", "ABDE"),
        ("position > 2 && position <= 4", "BC"),
        ("priority = 'high' || title = \"E\"", "BCE"),
        ("(priority = 'high' && position = 3) || position = 1", "CE"),
        ("title ~ 'c'", "C"),
        ("title !~ 'c'", "ABDE"),
        ("priority = ''", "D"),
        ("due_date > '2026-06-01'", "CE"),
        ("due_date = ''", "BD"),
        ("archived = false", "ABCDE"),
        ("archived = true", ""),
    ] {
        assert_eq!(it.titles(&[("filter", filter), ("sort", "title")]).await, titles, "{filter}");
    }
}

#[tokio::test]
async fn filters_that_are_none_are_refused_with_a_reason() {
    let it = board().await;
    let mut wrong = Vec::new();
    for filter in [
        "title =",
        "= 'x'",
        "title == 'x'",
        "title = 'x",
        "title = 'x' &&",
        "(title = 'x'",
        "nothing = 1",
        "title.nothing = 1",
        "tokenKey = 1",
        "constructor = 1",
        "__proto__ = 1",
        "title = 'x'; DROP TABLE cards",
        "title = 'x' UNION SELECT 1",
        "1=1) OR (1=1",
        "title = 'x' --",
        "pg_sleep(10) = 1",
        "title::text = 'x'",
        "title = $1",
        "\u{0}",
    ] {
        let reply = it.call(&[("filter", filter)]).send().await;
        let body = reply.json();
        if reply.status != 400 || body["code"] != "invalid_filter" || body["message"].as_str().is_none_or(str::is_empty)
        {
            wrong.push(format!("{filter:?}: {} {body}", reply.status));
        }
    }
    let long = "title = 'x' || ".repeat(400) + "title = 'x'";
    assert_eq!(it.call(&[("filter", &long)]).send().await.status, 400, "a filter has an end");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(it.titles(&[("sort", "title")]).await, "ABCDE");
}

#[tokio::test]
async fn text_in_a_filter_is_text_and_nothing_else() {
    let it = board().await;
    for filter in [
        "title = \"' OR '1'='1\"",
        "title = \"x'; DELETE FROM cards; --\"",
        "title = '%'",
        "title = '_'",
        "title = '$$'",
        "title ~ '_'",
    ] {
        assert_eq!(it.titles(&[("filter", filter)]).await, "", "{filter}");
    }
    assert_eq!(it.titles(&[("sort", "title")]).await, "ABCDE");
}

#[tokio::test]
async fn only_owners_may_filter_by_who_asks() {
    let it = board().await;
    let viewer = it.host.viewer().await;
    let agent = it.host.agent(&it.owner, kanban::SCOPES).await;
    let path = format!("{}?filter=%40request.auth.id%20%3D%20%27%27", kanban::records("cards"));
    it.host.door().get(&path).by(&viewer).send().await.refused(403, "forbidden");
    it.host.door().get(&path).by(&agent).send().await.refused(403, "forbidden");
}

#[tokio::test]
async fn sorting_goes_by_several_keys_and_both_ways() {
    let it = board().await;
    for (sort, titles) in [
        ("position", "EDCBA"),
        ("-position", "ABCDE"),
        ("priority,-title", "DCBAE"),
        ("-priority,title", "EABCD"),
        ("+title", "ABCDE"),
    ] {
        assert_eq!(it.titles(&[("sort", sort)]).await, titles, "{sort}");
    }
    for sort in ["nothing", "title desc", "title;drop", "constructor"] {
        let reply = it.call(&[("sort", sort)]).send().await;
        assert_eq!(reply.status, 400, "{sort}: {}", reply.text());
    }
}

#[tokio::test]
async fn pages_cover_everything_once() {
    let it = board().await;
    let mut seen = String::new();
    for page in ["1", "2", "3"] {
        let found = it.list(&[("perPage", "2"), ("page", page), ("sort", "title")]).await;
        assert_eq!((&found["totalItems"], &found["totalPages"], &found["perPage"]), (&json!(5), &json!(3), &json!(2)));
        seen += &titles(&found);
    }
    assert_eq!(seen, "ABCDE");
    let beyond = it.list(&[("page", "99")]).await;
    assert_eq!((&beyond["items"], &beyond["totalItems"]), (&json!([]), &json!(5)));
    let quick = it.list(&[("skipTotal", "1")]).await;
    assert_eq!((&quick["totalItems"], &quick["totalPages"]), (&json!(-1), &json!(-1)));
    let default = it.list(&[]).await;
    assert_eq!((&default["page"], &default["perPage"]), (&json!(1), &json!(30)));
    assert_eq!(it.list(&[("perPage", "5000")]).await["perPage"], 1000);
    for pair in [("page", "x"), ("perPage", "many"), ("skipTotal", "maybe")] {
        it.call(&[pair]).send().await.refused(400, "invalid_parameter");
    }
}

#[tokio::test]
async fn fields_and_expand_shape_the_answer() {
    let it = board().await;
    let page = it.list(&[("fields", "id,title"), ("sort", "title")]).await;
    let mut keys: Vec<&String> = page["items"][0].as_object().unwrap().keys().collect();
    keys.sort_unstable();
    assert_eq!(keys, ["id", "title"]);
    let page = it.list(&[("expand", "list,labels"), ("sort", "title")]).await;
    let expand = &page["items"][0]["expand"];
    assert_eq!((&expand["list"]["title"], &expand["list"]["id"]), (&json!("To Do"), &json!(it.list)));
    assert_eq!(expand["labels"][0]["name"], "Food");
    // What an agent may not view is left out, without a word.
    let agent = it.host.agent(&it.owner, &["data:cards:read"]).await;
    let page =
        it.host.door().get(format!("{}?expand=list", kanban::records("cards"))).by(&agent).send().await.expect(200);
    assert!(page["items"][0]["expand"].get("list").is_none(), "{page}");
}

//! View collections: a SELECT of the app's, read like every other collection.

use inn_tests::{Person, TestHost, bundle};
use serde_json::{Value, json};

const SLUG: &str = "fleet";

const STATS: &str = "SELECT s.id, s.title, s.tons, COUNT(v.id) AS visits, TOTAL(v.stars) AS stars, MAX(v.note) AS last,
    s.afloat, s.tags, (s.tons / 2) AS half, s.title || '!' AS loud, s.id AS ship
    FROM ships s LEFT JOIN visits v ON v.ship = s.id GROUP BY s.id";

fn collections(views: &[(&str, &str)]) -> Value {
    let rules = json!({"listRule": "", "viewRule": "", "createRule": "", "updateRule": "", "deleteRule": ""});
    let base = |id: &str, name: &str, fields: Value| {
        let mut collection = rules.clone();
        collection["id"] = id.into();
        collection["name"] = name.into();
        collection["type"] = "base".into();
        collection["fields"] = fields;
        collection
    };
    let mut all = vec![
        base(
            "c_ships",
            "ships",
            json!([
                {"id": "s1", "name": "title", "type": "text"},
                {"id": "s2", "name": "tons", "type": "number"},
                {"id": "s3", "name": "afloat", "type": "bool"},
                {"id": "s4", "name": "tags", "type": "select", "values": ["a", "b"], "maxSelect": 2},
                {"id": "s5", "name": "secret", "type": "text", "hidden": true},
            ]),
        ),
        base(
            "c_visits",
            "visits",
            json!([
                {"id": "v1", "name": "ship", "type": "relation", "collectionId": "c_ships", "maxSelect": 1, "cascadeDelete": true},
                {"id": "v2", "name": "stars", "type": "number"},
                {"id": "v3", "name": "note", "type": "text"},
            ]),
        ),
    ];
    for (name, query) in views {
        all.push(json!({
            "id": format!("c_{name}"), "name": name, "type": "view", "viewQuery": query, "listRule": "", "viewRule": "",
        }));
    }
    json!(all)
}

struct Fleet {
    host: TestHost,
    owner: Person,
}

impl Fleet {
    /// Two ships, Argo with two visits and Bounty without any.
    async fn new(views: &[(&str, &str)]) -> Self {
        let host = TestHost::start().await;
        let owner = host.owner().await;
        host.deploy(&owner, SLUG, bundle::project(SLUG, "none", &collections(views))).await;
        let it = Self { host, owner };
        let ship = json!({"id": "ship00000000001", "title": "Argo", "tons": 5, "afloat": true, "tags": ["b", "a"], "secret": "x"});
        it.create("ships", ship).await;
        it.create("ships", json!({"id": "ship00000000002", "title": "10", "tons": 2.5})).await;
        it.create("visits", json!({"ship": "ship00000000001", "stars": 3, "note": "first"})).await;
        it.create("visits", json!({"ship": "ship00000000001", "stars": 4, "note": "second"})).await;
        it
    }

    async fn create(&self, entity: &str, body: Value) {
        let path = format!("/apps/{SLUG}/api/collections/{entity}/records");
        self.host.door().post(path, &body).by(&self.owner).send().await.expect(200);
    }

    async fn get(&self, below: &str) -> Value {
        let path = format!("/apps/{SLUG}/api/collections/{below}");
        self.host.door().get(path).by(&self.owner).send().await.expect(200)
    }

    async fn redeploy(&self, query: &str, views: &[(&str, &str)]) -> inn_tests::Reply {
        let packed = bundle::pack(bundle::project(SLUG, "none", &collections(views)));
        let call = self.host.door().call(reqwest::Method::POST, format!("/v1/apps?slug={SLUG}{query}"));
        call.header("content-type", "application/octet-stream").body(packed).by(&self.owner).send().await
    }
}

#[tokio::test]
async fn a_view_is_listed_viewed_filtered_and_expanded() {
    let it = Fleet::new(&[("stats", STATS)]).await;
    let page = it.get("stats/records").await;
    let expected = json!([
        {"afloat": true, "collectionId": "c_stats", "collectionName": "stats", "half": 2, "id": "ship00000000001",
         "last": "second", "loud": "Argo!", "ship": "ship00000000001", "stars": 7, "tags": ["b", "a"], "title": "Argo",
         "tons": 5, "visits": 2},
        {"afloat": false, "collectionId": "c_stats", "collectionName": "stats", "half": 1.25, "id": "ship00000000002",
         "last": null, "loud": "10!", "ship": "ship00000000002", "stars": 0, "tags": [], "title": "10",
         "tons": 2.5, "visits": 0},
    ]);
    assert_eq!(page["items"], expected);
    assert_eq!(it.get("stats/records/ship00000000001").await, expected[0]);
    for (filter, count) in
        [("visits%20%3E%201", 1), ("title%20~%20%27argo%27", 1), ("tons%20%3C%203", 1), ("loud%20%3D%20%27Argo!%27", 1)]
    {
        assert_eq!(it.get(&format!("stats/records?filter={filter}")).await["totalItems"], count, "{filter}");
    }
    let sorted = it.get("stats/records?sort=-tons,id&fields=id").await;
    assert_eq!(sorted["items"], json!([{"id": "ship00000000001"}, {"id": "ship00000000002"}]));
    let record = it.get("stats/records/ship00000000001?expand=ship&fields=id,expand.ship.title").await;
    assert_eq!(record, json!({"id": "ship00000000001", "expand": {"ship": {"title": "Argo"}}}));
    let ship = it.get("ships/records/ship00000000001?expand=stats_via_ship&fields=expand.stats_via_ship.visits").await;
    assert_eq!(ship, json!({"expand": {"stats_via_ship": [{"visits": 2}]}}));
}

#[tokio::test]
async fn nothing_is_written_to_a_view() {
    let it = Fleet::new(&[("stats", STATS)]).await;
    let records = format!("/apps/{SLUG}/api/collections/stats/records");
    let record = format!("{records}/ship00000000001");
    let door = it.host.door();
    for call in
        [door.post(&records, &json!({"title": "x"})), door.patch(&record, &json!({"title": "x"})), door.delete(&record)]
    {
        let refused = call.by(&it.owner).send().await.refused(400, "invalid_body");
        assert!(refused["message"].as_str().unwrap().starts_with("Unsupported collection type."), "{refused}");
    }
    for (method, url) in
        [("PUT", "records"), ("PATCH", "records/ship00000000001"), ("DELETE", "records/ship00000000001")]
    {
        let url = format!("/api/collections/stats/{url}");
        let body = json!({"requests": [{"method": method, "url": url, "body": {"id": "ship00000000001"}}]});
        let refused = door.post(format!("/apps/{SLUG}/api/batch"), &body).by(&it.owner).send().await;
        assert_eq!(refused.refused(400, "batch_failed")["refusal"]["code"], "invalid_body", "{method}");
    }
}

#[tokio::test]
async fn sqlite_words_mean_what_they_mean_there() {
    let it = Fleet::new(&[(
        "words",
        "SELECT (ROW_NUMBER() OVER ()) AS id, UPPER(title) AS up, LENGTH(title) AS len, SUBSTR(title, 1, 2) AS head,
         CASE WHEN tons > 3 THEN 'big' ELSE 'small' END AS size, IFNULL(NULLIF(title, '10'), 'none') AS other,
         afloat = 1 AS up_to_date, 7 / 2 AS whole, 7 / 2.0 AS real, tons / 0 AS gone, title LIKE 'ARG%' AS likes,
         (SELECT COUNT(*) FROM visits v WHERE v.ship = ships.id) AS n, ROUND(tons) AS r, COALESCE(tons, 0) + 1 AS more
         FROM ships WHERE afloat OR tons BETWEEN 2 AND 3 ORDER BY title DESC",
    )])
    .await;
    let page = it.get("words/records").await;
    let shown = |item: &Value| {
        ["id", "up", "len", "head", "size", "other", "up_to_date", "whole", "real", "gone", "likes", "n", "r", "more"]
            .map(|name| item[name].clone())
    };
    let items: Vec<_> = page["items"].as_array().unwrap().iter().map(shown).collect();
    assert_eq!(
        items,
        [
            [
                json!("1"),
                json!("ARGO"),
                json!(4),
                json!("Ar"),
                json!("big"),
                json!("Argo"),
                json!(1),
                json!(3),
                json!(3.5),
                json!(null),
                json!(1),
                json!(2),
                json!(5),
                json!(6)
            ],
            [
                json!("2"),
                json!(10),
                json!(2),
                json!(10),
                json!("small"),
                json!("none"),
                json!(0),
                json!(3),
                json!(3.5),
                json!(null),
                json!(0),
                json!(0),
                json!(3),
                json!(3.5)
            ],
        ]
    );
}

#[tokio::test]
async fn selects_are_put_together_and_views_read_views_above_them() {
    let it = Fleet::new(&[
        ("names", "SELECT id, title FROM ships UNION ALL SELECT id, note FROM visits"),
        ("totals", "SELECT q.id, q.n FROM (SELECT ship AS id, COUNT(*) AS n FROM visits GROUP BY ship) q"),
        ("many", "SELECT i.id, i.n FROM totals i WHERE i.n > 1"),
    ])
    .await;
    assert_eq!(it.get("names/records").await["totalItems"], 4);
    let many = it.get("many/records").await;
    assert_eq!(
        many["items"],
        json!([{"collectionId": "c_many", "collectionName": "many", "id": "ship00000000001", "n": 2}])
    );
}

#[tokio::test]
async fn a_view_that_cannot_be_built_fails_the_deploy_by_name() {
    let it = Fleet::new(&[("stats", STATS)]).await;
    for (query, code, named) in [
        ("SELECT id FROM pg_authid", "invalid_bundle", "pg_authid"),
        ("SELECT id, secret AS s FROM inn.users", "invalid_bundle", "`inn.`"),
        ("SELECT title FROM ships", "invalid_bundle", "`id`"),
        ("SELECT id, pg_sleep(10) AS s FROM ships", "deploy_failed", "pg_sleep()"),
        ("SELECT id, strftime('%Y', title) AS y FROM ships", "deploy_failed", "strftime()"),
        ("SELECT id, title FROM ships WHERE title = 3", "deploy_failed", "CAST"),
        ("SELECT s.id, v.note FROM ships s JOIN visits v ON v.ship = s.id GROUP BY s.id", "deploy_failed", "GROUP BY"),
    ] {
        let reply = it.redeploy("", &[("stats", query)]).await;
        let refused = reply.json();
        assert_eq!(refused["code"], code, "{query}: {refused}");
        let message = refused["message"].as_str().unwrap();
        assert!(message.contains(named) && message.contains("stats"), "{query}: {message}");
    }
    assert_eq!(it.get("stats/records").await["totalItems"], 2, "what was there still is");
}

#[tokio::test]
async fn a_view_follows_its_query_and_goes_without_loss() {
    let it = Fleet::new(&[("stats", STATS)]).await;
    let reply = it.redeploy("", &[("stats", "SELECT id, title FROM ships WHERE afloat = TRUE")]).await.expect(201);
    assert_eq!(reply["changes"], json!(["Make the view stats"]));
    assert_eq!(it.get("stats/records").await["totalItems"], 1);
    let reply = it.redeploy("", &[]).await.expect(201);
    assert_eq!(reply["changes"], json!(["Drop the view stats"]));
    let path = format!("/apps/{SLUG}/api/collections/stats/records");
    it.host.door().get(path).by(&it.owner).send().await.refused(404, "unknown_entity");
    assert_eq!(it.get("ships/records").await["totalItems"], 2);
}

#[tokio::test]
async fn tables_change_below_a_view_and_a_rollback_brings_it_back() {
    let it = Fleet::new(&[("stats", STATS)]).await;
    let before = it.get("stats/records").await;
    let deployed = it.host.door().get(format!("/v1/apps/{SLUG}")).by(&it.owner).send().await.expect(200);
    let mut next = collections(&[("stats", STATS)]);
    next[0]["fields"].as_array_mut().unwrap().push(json!({"id": "s6", "name": "flag", "type": "text"}));
    next[0]["fields"][1]["onlyInt"] = false.into();
    let release = |collections: &Value| {
        let packed = bundle::pack(bundle::project(SLUG, "none", collections));
        let call = it.host.door().call(reqwest::Method::POST, format!("/v1/apps?slug={SLUG}&allowDestructive=true"));
        call.header("content-type", "application/octet-stream").body(packed).by(&it.owner).send()
    };
    release(&next).await.expect(201);
    assert_eq!(it.get("stats/records").await, before, "a table grew below it");
    release(&collections(&[])).await.expect(201);
    let back = json!({"release": deployed["release"]});
    let path = format!("/v1/apps/{SLUG}/releases/rollback");
    it.host.door().post(path, &back).by(&it.owner).send().await.expect(200);
    assert_eq!(it.get("stats/records").await, before);
}

#[tokio::test]
async fn what_is_hidden_in_a_table_is_hidden_in_a_view() {
    let it = Fleet::new(&[("stats", "SELECT id, title, secret FROM ships")]).await;
    let editor = it.host.editor().await;
    let path = format!("/apps/{SLUG}/api/collections/stats/records");
    let page = it.host.door().get(&path).by(&editor).send().await.expect(200);
    assert!(page["items"][0].get("secret").is_none(), "{page}");
    assert_eq!(it.get("stats/records?sort=id").await["items"][0]["secret"], "x", "owners see everything");
}

use inn_tests::agent::Consent;
use inn_tests::bundle::{self, Files};
use inn_tests::{Call, Person, TestHost, kanban};
use reqwest::Method;
use serde_json::{Value, json};

fn deploy(host: &TestHost, by: &Person, query: &str, files: Files) -> Call {
    host.door().call(Method::POST, format!("/v1/apps?{query}")).body(bundle::pack(files)).by(by)
}

async fn release(host: &TestHost, by: &Person, slug: &str) -> String {
    let app = host.door().get(format!("/v1/apps/{slug}")).by(by).send().await.expect(200);
    app["release"].as_str().unwrap().to_owned()
}

/// The kanban demo with its `cards` changed.
fn changed(change: impl FnOnce(&mut Value)) -> Files {
    let mut files = kanban::files();
    let mut schema: Value = serde_json::from_slice(&files["pb/pb_schema.json"]).unwrap();
    change(schema.as_array_mut().unwrap().iter_mut().find(|collection| collection["name"] == "cards").unwrap());
    files.insert("pb/pb_schema.json".to_owned(), schema.to_string().into_bytes());
    files
}

/// One more field.
fn with_field() -> Files {
    let effort = json!({"id": "number9000000001", "name": "effort", "type": "number", "required": false});
    changed(|cards| cards["fields"].as_array_mut().unwrap().push(effort))
}

/// One field less.
fn without_field() -> Files {
    let mut files =
        changed(|cards| cards["fields"].as_array_mut().unwrap().retain(|field| field["name"] != "description"));
    let mut operations: Value = serde_json::from_slice(&files["operations.json"]).unwrap();
    for operation in operations["operations"].as_array_mut().unwrap() {
        operation["params"].as_object_mut().unwrap().remove("description");
    }
    files.insert("operations.json".to_owned(), operations.to_string().into_bytes());
    files
}

#[tokio::test]
async fn an_app_is_deployed_and_answers_at_once() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let deployed = host.deploy(&owner, "second-board", kanban::files()).await;
    assert_eq!((&deployed["slug"], &deployed["unchanged"]), (&json!("second-board"), &json!(false)));
    assert!(!deployed["changes"].as_array().unwrap().is_empty(), "{deployed}");
    let door = host.door();
    let page = door.get("/apps/second-board/api/collections/cards/records").by(&owner).send().await.expect(200);
    assert_eq!(page["totalItems"], 0);
    // The same bundle under another slug is another app: they never meet.
    kanban::board(door, &owner).await;
    let page = door.get("/apps/second-board/api/collections/boards/records").by(&owner).send().await.expect(200);
    assert_eq!(page["totalItems"], 0);
    let list = door.get("/v1/apps").by(&owner).send().await.expect(200);
    let mut slugs: Vec<&str> =
        list["items"].as_array().unwrap().iter().map(|app| app["slug"].as_str().unwrap()).collect();
    slugs.sort_unstable();
    assert_eq!(slugs, ["kanban", "second-board"]);
}

#[tokio::test]
async fn the_same_bundle_again_changes_nothing() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let again = deploy(&host, &owner, "slug=kanban", kanban::files()).send().await.expect(200);
    assert_eq!(again["unchanged"], true);
    let releases = host.door().get("/v1/apps/kanban/releases").by(&owner).send().await.expect(200);
    assert_eq!(releases["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_new_release_keeps_the_records_and_a_rollback_brings_the_old_one_back() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let door = host.door();
    let (_, list) = kanban::board(door, &owner).await;
    let card = kanban::card(door, &owner, &list, "Eat chicken").await;
    let first = release(&host, &owner, "kanban").await;
    deploy(&host, &owner, "slug=kanban", with_field()).send().await.expect(201);
    let second = release(&host, &owner, "kanban").await;
    assert_ne!(first, second);
    let change = json!({"effort": 3});
    let patched = door.patch(kanban::record("cards", &card), &change).by(&owner).send().await.expect(200);
    assert_eq!((&patched["title"], &patched["effort"]), (&json!("Eat chicken"), &json!(3)));

    let back = |to: &str| door.post("/v1/apps/kanban/releases/rollback", &json!({"release": to})).by(&owner);
    back(&first).send().await.expect(200);
    assert_eq!(release(&host, &owner, "kanban").await, first);
    let record = door.get(kanban::record("cards", &card)).by(&owner).send().await.expect(200);
    assert!(record.get("effort").is_none(), "{record}");
    door.patch(kanban::record("cards", &card), &change).by(&owner).send().await.refused(400, "unknown_field");
    // Forward again: what was kept in the meantime is there.
    back(&second).send().await.expect(200);
    let record = door.get(kanban::record("cards", &card)).by(&owner).send().await.expect(200);
    assert_eq!(record["effort"], 3);
    back(&"0".repeat(64)).send().await.refused(404, "not_found");
    let releases = door.get("/v1/apps/kanban/releases").by(&owner).send().await.expect(200);
    let active: Vec<&Value> =
        releases["items"].as_array().unwrap().iter().filter(|release| release["active"] == true).collect();
    assert_eq!(active.len(), 1, "{releases}");
}

#[tokio::test]
async fn what_would_lose_data_needs_a_yes() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let first = release(&host, &owner, "kanban").await;
    let dry = deploy(&host, &owner, "slug=kanban&dryRun=true&allowDestructive=true", without_field())
        .send()
        .await
        .expect(200);
    assert!(dry["changes"].to_string().contains("description"), "{dry}");
    let refusal = deploy(&host, &owner, "slug=kanban", without_field()).send().await.refused(409, "destructive_change");
    assert!(refusal.to_string().contains("description"), "{refusal}");
    assert_eq!(release(&host, &owner, "kanban").await, first);
    deploy(&host, &owner, "slug=kanban&allowDestructive=true", without_field()).send().await.expect(201);
    assert_ne!(release(&host, &owner, "kanban").await, first);
}

#[tokio::test]
async fn a_failed_deploy_leaves_the_old_release_serving_and_keeps_the_reason() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let door = host.door();
    let (_, list) = kanban::board(door, &owner).await;
    // Two cards with one title, and a release that wants titles unique.
    kanban::card(door, &owner, &list, "Twin").await;
    kanban::card(door, &owner, &list, "Twin").await;
    let first = release(&host, &owner, "kanban").await;
    let unique = json!("CREATE UNIQUE INDEX `idx_title` ON `cards` (`title`)");
    let files = changed(|cards| cards["indexes"].as_array_mut().unwrap().push(unique));
    let refusal = deploy(&host, &owner, "slug=kanban", files).send().await.refused(422, "deploy_failed");
    assert_eq!(release(&host, &owner, "kanban").await, first);
    let page = door.get(kanban::records("cards")).by(&owner).send().await.expect(200);
    assert_eq!(page["totalItems"], 2);
    let releases = door.get("/v1/apps/kanban/releases").by(&owner).send().await.expect(200);
    let failed = releases["items"].as_array().unwrap().iter().find(|release| release["failure"].is_string());
    let failed = failed.unwrap_or_else(|| panic!("no failed release in {releases}, though {refusal}"));
    assert_eq!(failed["active"], false);
    let failed = failed["release"].as_str().unwrap();
    let reply = door.post("/v1/apps/kanban/releases/rollback", &json!({"release": failed})).by(&owner).send().await;
    assert!(reply.status >= 400, "a release that never worked is no place to go back to: {}", reply.text());
}

#[tokio::test]
async fn a_rule_that_cannot_be_evaluated_fails_the_deploy_by_name() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    for (rule, code) in [
        ("@collection.nothing.name = 'x'", "invalid_filter"),
        ("nothing = 1", "invalid_filter"),
        ("title = ", "invalid_filter"),
    ] {
        let files = changed(|cards| cards["listRule"] = rule.into());
        let refusal = deploy(&host, &owner, "slug=ruled", files).send().await.refused(400, code);
        assert!(refusal["violations"].to_string().contains("cards.listRule"), "{refusal}");
    }
    host.door().get("/v1/apps/ruled").by(&owner).send().await.refused(404, "unknown_app");
}

#[tokio::test]
async fn a_dry_run_says_what_would_change_and_changes_nothing() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let dry = deploy(&host, &owner, "slug=new-app&dryRun=true", kanban::files()).send().await.expect(200);
    assert_eq!(dry["dryRun"], true);
    assert!(dry["changes"].to_string().contains("cards"), "{dry}");
    host.door().get("/v1/apps/new-app").by(&owner).send().await.refused(404, "unknown_app");
    assert_eq!(host.count("SELECT count(*) FROM inn.apps").await, 1);
}

/// An app with two collections of these ids and names.
fn two(named: [(&str, &str); 2]) -> Files {
    let collections = named.map(|(id, name)| {
        json!({"id": id, "name": name, "type": "base", "listRule": "", "viewRule": "", "createRule": "", "updateRule": "",
            "deleteRule": "", "indexes": [], "fields": [
                {"id": format!("{id}_text"), "name": "text", "type": "text"}]})
    });
    bundle::project("ledger", "none", &json!(collections))
}

#[tokio::test]
async fn a_grant_follows_its_collection_and_never_covers_what_only_took_its_name() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let door = host.door();
    let records = |entity: &str| format!("/apps/ledger/api/collections/{entity}/records");
    host.deploy(&owner, "ledger", two([("c_notes", "notes"), ("c_salaries", "salaries")])).await;
    door.post(records("notes"), &json!({"text": "a note"})).by(&owner).send().await.expect(200);
    door.post(records("salaries"), &json!({"text": "a salary"})).by(&owner).send().await.expect(200);
    let mut agent = host.new_agent().await;
    agent.obtain(&owner, "ledger", &["data:notes:read"], &Consent::default()).await;
    door.get(records("notes")).by(&agent).send().await.expect(200);
    door.get(records("salaries")).by(&agent).send().await.refused(403, "insufficient_scope");

    host.deploy(&owner, "ledger", two([("c_notes", "salaries"), ("c_salaries", "notes")])).await;
    door.get(records("notes")).by(&agent).send().await.refused(401, "token_revoked");
    agent.token = agent.new_token().await;
    door.get(records("notes")).by(&agent).send().await.refused(403, "insufficient_scope");
    let page = door.get(records("salaries")).by(&agent).send().await.expect(200);
    assert_eq!(page["items"][0]["text"], "a note", "what was consented to, by its new name");

    let files = two([("c_notes", "memos"), ("c_other", "salaries")]);
    let answer = deploy(&host, &owner, "slug=ledger&allowDestructive=true", files).send().await.expect(201);
    agent.token = agent.new_token().await;
    door.get(records("salaries")).by(&agent).send().await.refused(403, "insufficient_scope");
    let page = door.get(records("memos")).by(&agent).send().await.expect(200);
    assert_eq!(page["totalItems"], 1, "{answer}");
}

#[tokio::test]
async fn a_deploy_says_which_scopes_it_takes_from_agents() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    host.deploy(&owner, "ledger", two([("c_notes", "notes"), ("c_salaries", "salaries")])).await;
    let mut agent = host.new_agent().await;
    agent.obtain(&owner, "ledger", &["data:notes:read"], &Consent::default()).await;
    let files = || two([("c_new", "notes"), ("c_salaries", "salaries")]);
    let dry = deploy(&host, &owner, "slug=ledger&allowDestructive=true&dryRun=true", files()).send().await.expect(200);
    assert!(dry["changes"].to_string().contains("Take data:notes:read from the agents"), "{dry}");
    host.door().get("/apps/ledger/api/collections/notes/records").by(&agent).send().await.expect(200);
    let real = deploy(&host, &owner, "slug=ledger&allowDestructive=true", files()).send().await.expect(201);
    assert_eq!(real["changes"], dry["changes"]);
    agent.token = agent.new_token().await;
    let records = host.door().get("/apps/ledger/api/collections/notes/records");
    records.by(&agent).send().await.refused(403, "insufficient_scope");
}

#[tokio::test]
async fn a_removed_app_is_gone_and_its_slug_stays_its_tenants() {
    let host = TestHost::start().await;
    let (owner, rival) = (host.owner().await, host.rival().await);
    let agent = host.agent(&owner, kanban::SCOPES).await;
    let door = host.door();
    door.delete("/v1/apps/kanban").by(&rival).send().await.refused(404, "unknown_app");
    let receipt = door.delete("/v1/apps/kanban").by(&owner).send().await.expect(200);
    assert!(receipt["sentence"].as_str().unwrap().contains("kanban"), "{receipt}");
    door.get("/v1/apps/kanban").by(&owner).send().await.refused(404, "unknown_app");
    door.get(kanban::records("cards")).by(&owner).send().await.refused(404, "unknown_app");
    let reply = door.get(kanban::records("cards")).by(&agent).send().await;
    assert!(matches!(reply.status, 401 | 404), "{}", reply.text());
    deploy(&host, &rival, "slug=kanban", kanban::files()).send().await.refused(409, "slug_taken");
    // The owner may use it again: a new app, without the old one's records and grants.
    host.deploy(&owner, "kanban", kanban::files()).await;
    assert_eq!(door.get(kanban::records("boards")).by(&owner).send().await.expect(200)["totalItems"], 0);
    let reply = door.get(kanban::records("boards")).by(&agent).send().await;
    assert!(matches!(reply.status, 401 | 403 | 404), "an old grant does not open a new app: {}", reply.text());
}

#[tokio::test]
async fn a_slug_belongs_to_one_tenant() {
    let host = TestHost::start().await;
    let rival = host.rival().await;
    deploy(&host, &rival, "slug=kanban", kanban::files()).send().await.refused(409, "slug_taken");
    host.deploy(&rival, "rivals-board", kanban::files()).await;
    let owner = host.owner().await;
    host.door().get("/v1/apps/rivals-board").by(&owner).send().await.refused(404, "unknown_app");
    let page = host.door().get("/apps/rivals-board/api/collections/cards/records").by(&owner).send().await;
    assert_eq!(page.status, 404, "{}", page.text());
    for slug in ["", "Kanban", "-a", "a-", "a.b", "a_b", "%2e%2e", &"a".repeat(41)] {
        deploy(&host, &rival, &format!("slug={slug}"), kanban::files()).send().await.refused(400, "invalid_parameter");
    }
}

#[tokio::test]
async fn consent_to_capabilities_is_given_by_name() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let door = host.door();
    let none = "slug=quiet&capabilities=";
    deploy(&host, &owner, none, kanban::files()).send().await.expect(201);
    let app = door.get("/v1/apps/quiet").by(&owner).send().await.expect(200);
    assert_eq!(app["capabilities"][0]["consented"], false);
    let body = json!({"capability": "summarise-board", "payload": {"board": "a".repeat(15)}});
    door.post("/apps/quiet/api/_a2app/tasks", &body).by(&owner).send().await.refused(403, "not_consented");
    let unknown = deploy(&host, &owner, "slug=loud&capabilities=dig-a-hole", kanban::files()).send().await;
    unknown.refused(400, "invalid_parameter");
}

#[tokio::test]
async fn only_owners_deploy_roll_back_and_remove() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let agent = host.agent(&owner, kanban::SCOPES).await;
    let door = host.door();
    let first = release(&host, &owner, "kanban").await;
    let back = json!({"release": first});
    for person in [host.editor().await, host.viewer().await] {
        deploy(&host, &person, "slug=mine", kanban::files()).send().await.refused(403, "forbidden");
        door.post("/v1/apps/kanban/releases/rollback", &back).by(&person).send().await.refused(403, "forbidden");
        door.delete("/v1/apps/kanban").by(&person).send().await.refused(403, "forbidden");
        door.get("/v1/apps/kanban").by(&person).send().await.expect(200);
    }
    let packed = bundle::pack(kanban::files());
    let by_agent = door.call(Method::POST, "/v1/apps?slug=mine").body(packed).by(&agent).send().await;
    assert!(matches!(by_agent.status, 401 | 403), "{}", by_agent.text());
    door.get("/v1/apps/mine").by(&owner).send().await.refused(404, "unknown_app");
}

#[tokio::test]
async fn an_app_is_described_in_sentences() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let reply = host.door().get("/v1/apps/kanban").by(&owner).send().await;
    reply.expect(200);
    insta::assert_snapshot!(inn_tests::snapshot::of(&reply, host.door()));
}

#[tokio::test]
async fn a_project_zip_is_packed_on_the_way() {
    use std::io::Write as _;
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (path, bytes) in kanban::files() {
        writer.start_file(path, zip::write::SimpleFileOptions::default()).unwrap();
        writer.write_all(&bytes).unwrap();
    }
    let bytes = writer.finish().unwrap().into_inner();
    let reply = host.door().call(Method::POST, "/v1/apps?slug=zipped").body(bytes).by(&owner).send().await;
    let deployed = reply.expect(201);
    assert_eq!(deployed["release"], release(&host, &owner, "kanban").await, "the same content has the same name");
}

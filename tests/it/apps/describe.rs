use inn_tests::{TestHost, kanban, snapshot};
use serde_json::{Value, json};

/// The kanban demo's schema version: whoever computes it by the published recipe gets this.
const SCHEMA_VERSION: &str = "sv_c28c7d1f";

#[tokio::test]
async fn identity_and_describe_are_made_from_the_live_schema() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let door = host.door();
    let identity = door.get("/apps/kanban/api/_a2app").by(&owner).send().await;
    assert_eq!(identity.expect(200)["schemaVersion"], SCHEMA_VERSION);
    insta::assert_snapshot!("identity", snapshot::of(&identity, door));
    let describe = door.get("/apps/kanban/api/_a2app/describe").by(&owner).send().await;
    assert_eq!(describe.expect(200)["schemaVersion"], SCHEMA_VERSION);
    insta::assert_snapshot!("describe", snapshot::of(&describe, door));
}

#[tokio::test]
async fn operations_are_served_as_the_author_wrote_them() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let served = host.door().get("/apps/kanban/api/_ops").by(&owner).send().await.expect(200);
    let written: Value = serde_json::from_slice(&kanban::files()["operations.json"]).unwrap();
    assert_eq!(served["operations"], written["operations"]);
}

#[tokio::test]
async fn whoami_says_who_the_app_takes_one_for() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let agent = host.agent(&owner, &["data:cards:read"]).await;
    let ask = || host.door().get("/apps/kanban/api/_a2app/whoami");
    let person = ask().by(&owner).send().await.expect(200);
    assert_eq!((&person["principal"], &person["role"]), (&json!(owner.user), &json!("owner")));
    let as_agent = ask().by(&agent).send().await.expect(200);
    assert_eq!((&as_agent["principal"], &as_agent["credentialId"]), (&json!(owner.user), &json!(agent.grant)));
    assert_eq!(as_agent["scopes"], json!(["data:cards:read"]));
    assert_eq!(ask().send().await.expect(200)["principal"], Value::Null);
}

#[tokio::test]
async fn what_is_not_there_is_told_so() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let door = host.door();
    door.get("/apps/nothing/api/_a2app").by(&owner).send().await.refused(404, "unknown_app");
    door.get("/api/_a2app").on_app("nothing").send().await.refused(404, "unknown_app");
    door.get("/apps/kanban/api/nothing").by(&owner).send().await.refused(404, "not_found");
    door.get(kanban::records("nothing")).by(&owner).send().await.refused(404, "unknown_entity");
    door.get(kanban::records("_superusers")).by(&owner).send().await.refused(404, "unknown_entity");
}

use chrono::{TimeDelta, Utc};
use inn_grants::token::{Narrowing, attenuate};
use inn_tests::{AgentClient, Papers, Person, TestHost, kanban};
use serde_json::json;

fn with_token(agent: &AgentClient, token: String) -> AgentClient {
    AgentClient { token, ..agent.clone() }
}

fn narrow(token: &str, scopes: Option<&[&str]>, seconds: Option<i64>) -> String {
    let scopes = scopes.map(|scopes| scopes.iter().map(|scope| scope.parse().unwrap()).collect());
    let expires = seconds.map(|seconds| Utc::now() + TimeDelta::seconds(seconds));
    attenuate(token, &Narrowing { scopes, expires }, rand::random()).unwrap()
}

async fn ready() -> (TestHost, Person, AgentClient) {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let agent = host.agent(&owner, &["data:boards:read", "data:boards:write", "data:cards:read"]).await;
    (host, owner, agent)
}

#[tokio::test]
async fn a_token_of_another_agent_is_refused() {
    let (host, owner, agent) = ready().await;
    let other = host.agent(&owner, kanban::SCOPES).await;
    let stolen = with_token(&agent, other.token);
    host.door().get(kanban::records("boards")).by(&stolen).send().await.refused(401, "invalid_token");
}

#[tokio::test]
async fn a_token_of_another_app_is_refused() {
    let (host, owner, _) = ready().await;
    host.deploy(&owner, "second", kanban::files()).await;
    let mut agent = host.new_agent().await;
    agent.obtain(&owner, "second", kanban::SCOPES, &inn_tests::Consent::default()).await;
    let reply = host.door().get(kanban::records("boards")).by(&agent).send().await;
    assert!(matches!(reply.status, 401 | 403), "{}", reply.text());
    let reply = kanban::create(host.door(), "boards", &json!({"name": "x"}), &agent).send().await;
    assert!(matches!(reply.status, 401 | 403), "{}", reply.text());
    host.door().get("/apps/second/api/collections/boards/records").by(&agent).send().await.expect(200);
}

#[tokio::test]
async fn a_token_of_another_tenant_opens_nothing_here() {
    let (host, owner, _) = ready().await;
    let rival = host.rival().await;
    host.deploy(&rival, "rivals", kanban::files()).await;
    let mut agent = host.new_agent().await;
    agent.obtain(&rival, "rivals", kanban::SCOPES, &inn_tests::Consent::default()).await;
    let reply = host.door().get(kanban::records("boards")).by(&agent).send().await;
    assert!(matches!(reply.status, 401 | 403 | 404), "{}", reply.text());
    let path = format!("/v1/grants/{}", agent.grant);
    host.door().get(&path).by(&owner).send().await.refused(404, "not_found");
}

#[tokio::test]
async fn a_token_minted_by_somebody_else_is_refused() {
    let (host, owner, agent) = ready().await;
    let elsewhere = TestHost::with(|settings| settings.data.keys_dir = None).await;
    // Keys of the template are shared, so a platform with keys of its own plays the forger.
    let keys = inn_grants::token::RootKeys::new(1, &inn_grants::SigningKey::from_seed(rand::random()), &[]).unwrap();
    drop(elsewhere);
    let claims = inn_grants::token::TokenClaims {
        grant: agent.grant.parse().unwrap(),
        grant_epoch: 1,
        agent: inn_protocol::AgentId::parse(&agent.id).unwrap(),
        user: owner.user.parse().unwrap(),
        app: inn_protocol::AppId::new(),
        tenant: inn_protocol::TenantId::new(),
        scopes: std::sync::Arc::new(["data:boards:read".parse().unwrap()].into()),
        expires: Utc::now() + TimeDelta::minutes(5),
        plain: true,
    };
    let forged = inn_grants::token::mint(&keys, &claims, rand::random()).unwrap();
    host.door()
        .get(kanban::records("boards"))
        .by(&with_token(&agent, forged.clone()))
        .send()
        .await
        .refused(401, "invalid_token");
    host.door().get(kanban::records("boards")).by(Papers::Bearer(forged)).send().await.refused(401, "invalid_token");
}

#[tokio::test]
async fn a_narrowed_token_does_less_and_never_more() {
    let (host, _, agent) = ready().await;
    let door = host.door();
    let reader = with_token(&agent, narrow(&agent.token, Some(&["data:boards:read"]), None));
    door.get(kanban::records("boards")).by(&reader).send().await.expect(200);
    kanban::create(door, "boards", &json!({"name": "x"}), &reader).send().await.refused(403, "insufficient_scope");
    door.get(kanban::records("cards")).by(&reader).send().await.refused(403, "insufficient_scope");
    // Narrowing again to what the first narrowing left out gives nothing.
    let none = with_token(&agent, narrow(&reader.token, Some(&["data:boards:write"]), None));
    kanban::create(door, "boards", &json!({"name": "x"}), &none).send().await.refused(403, "insufficient_scope");
    door.get(kanban::records("boards")).by(&none).send().await.refused(403, "insufficient_scope");
    // Scopes the token never had do not appear.
    let more = with_token(&agent, narrow(&agent.token, Some(&["data:lists:read"]), None));
    door.get(kanban::records("lists")).by(&more).send().await.refused(403, "insufficient_scope");
}

#[tokio::test]
async fn a_token_ends_when_it_says() {
    let (host, _, agent) = ready().await;
    let ended = with_token(&agent, narrow(&agent.token, None, Some(-5)));
    let reply = host.door().get(kanban::records("boards")).by(&ended).send().await;
    // The end that a narrowing sets is a check like its scopes: one of these two words tells it.
    assert!(
        ["token_expired", "insufficient_scope"].contains(&reply.json()["code"].as_str().unwrap()),
        "{}",
        reply.text()
    );
    let later = with_token(&agent, narrow(&agent.token, None, Some(300)));
    host.door().get(kanban::records("boards")).by(&later).send().await.expect(200);
}

#[tokio::test]
async fn a_broken_token_is_refused() {
    let (host, _, agent) = ready().await;
    let mut flipped = agent.token.clone().into_bytes();
    let middle = flipped.len() / 2;
    flipped[middle] = if flipped[middle] == b'A' { b'B' } else { b'A' };
    let flipped = String::from_utf8(flipped).unwrap();
    let cut: String = agent.token.chars().take(agent.token.len() - 8).collect();
    for token in [flipped, cut, "AAAA".to_owned(), format!("{}A", agent.token), "e".repeat(9000)] {
        let reply = host.door().get(kanban::records("boards")).by(&with_token(&agent, token.clone())).send().await;
        assert!(matches!(reply.status, 400 | 401 | 431), "{token}: {}", reply.text());
    }
}

#[tokio::test]
async fn a_key_alone_reaches_no_app() {
    let (host, _, agent) = ready().await;
    host.door().get(kanban::records("boards")).by(agent.key_papers()).send().await.refused(401, "unauthenticated");
}

/// What a holder can append to a token to cost, lie or reach further.
#[tokio::test]
async fn hostile_blocks_are_refused_before_they_are_evaluated() {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let (host, _, agent) = ready().await;
    for (name, datalog) in [
        ("a cross join", "check if name($a), name($b), name($c), name($d), name($e), name($f), $a != $f"),
        ("a closure", "check if reads($r), $r.any($x -> $x == \"cards\")"),
        ("a regular expression", "check if action($a), $a.matches(\"(a+)+$\")"),
        ("a fact", "action(\"data:lists:read\"); check if kind(\"read\")"),
        ("a rule", "kind(\"write\") <- kind(\"read\"); check if kind(\"write\")"),
    ] {
        let bytes = URL_SAFE_NO_PAD.decode(&agent.token).unwrap();
        let biscuit = biscuit_auth::UnverifiedBiscuit::from(bytes).unwrap();
        let block = biscuit_auth::builder::BlockBuilder::new().code(datalog).unwrap();
        let hostile = URL_SAFE_NO_PAD.encode(biscuit.append(block).unwrap().to_vec().unwrap());
        let reply = host.door().get(kanban::records("boards")).by(&with_token(&agent, hostile)).send().await;
        let refusal = reply.refused(401, "invalid_token");
        assert!(refusal["message"].as_str().unwrap().contains("block 1"), "{name}: {refusal}");
    }
}

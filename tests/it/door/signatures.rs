use inn_tests::call::fresh_nonce;
use inn_tests::{AgentClient, Papers, Signing, TestHost, kanban};
use serde_json::json;

struct Ready {
    host: TestHost,
    agent: AgentClient,
}

async fn ready() -> Ready {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let agent = host.agent(&owner, kanban::SCOPES).await;
    Ready { host, agent }
}

impl Ready {
    fn read(&self) -> inn_tests::Call {
        self.host.door().get(format!("{}?perPage=5", kanban::records("boards"))).by(&self.agent)
    }

    fn write(&self) -> inn_tests::Call {
        kanban::create(self.host.door(), "boards", &json!({"name": "House"}), &self.agent)
    }

    async fn boards(&self) -> i64 {
        let schema = self.host.app_schema(kanban::SLUG).await;
        self.host.count(&format!("SELECT count(*) FROM {schema}.boards")).await
    }
}

#[tokio::test]
async fn a_signed_call_gets_in() {
    let it = ready().await;
    it.read().send().await.expect(200);
    it.write().send().await.expect(200);
    assert_eq!(it.boards().await, 1);
}

#[tokio::test]
async fn a_token_without_a_signature_is_worth_nothing() {
    let it = ready().await;
    let bare = || Papers::Bearer(it.agent.token.clone());
    it.host.door().get(kanban::records("boards")).by(bare()).send().await.refused(401, "signature_required");
    kanban::create(it.host.door(), "boards", &json!({"name": "x"}), bare())
        .send()
        .await
        .refused(401, "signature_required");
    it.host
        .door()
        .get(kanban::records("boards"))
        .by(Papers::Bearer("nonsense".into()))
        .send()
        .await
        .refused(401, "invalid_token");
    // Unless its owner said so for this grant.
    let owner = it.host.owner().await;
    let mut plain = it.host.new_agent().await;
    let consent = inn_tests::Consent { plain_token: true, ..Default::default() };
    plain.obtain(&owner, kanban::SLUG, kanban::SCOPES, &consent).await;
    it.host.door().get(kanban::records("boards")).by(Papers::Bearer(plain.token)).send().await.expect(200);
}

#[tokio::test]
async fn a_replayed_nonce_is_refused_for_reads_and_writes() {
    let it = ready().await;
    let (first, second) = it.read().send_twice().await;
    first.expect(200);
    second.refused(401, "replayed_nonce");
    let (first, second) = it.write().send_twice().await;
    first.expect(200);
    second.refused(401, "replayed_nonce");
    assert_eq!(it.boards().await, 1);
    // The nonce counts, whatever else is signed with it.
    let nonce = Some(fresh_nonce());
    let again = || Signing { nonce: nonce.clone(), ..Signing::default() };
    it.read().signing(again()).send().await.expect(200);
    it.write().signing(again()).send().await.refused(401, "replayed_nonce");
    assert_eq!(it.boards().await, 1);
    // So does that of a call that was refused for another reason.
    let nonce = Some(fresh_nonce());
    let again = || Signing { nonce: nonce.clone(), ..Signing::default() };
    let wrong = kanban::create(it.host.door(), "boards", &json!({"nme": "x"}), &it.agent);
    wrong.signing(again()).send().await.refused(400, "unknown_field");
    it.write().signing(again()).send().await.refused(401, "replayed_nonce");
    // And the nonce of one agent is none of another's business.
    let owner = it.host.owner().await;
    let other = it.host.agent(&owner, kanban::SCOPES).await;
    it.host.door().get(kanban::records("boards")).by(&other).signing(again()).send().await.expect(200);
}

#[tokio::test]
async fn queue_calls_are_replayed_by_nobody_either() {
    let it = ready().await;
    let (first, second) = it.agent.queue("claim", &json!({})).send_twice().await;
    first.expect(200);
    second.refused(401, "replayed_nonce");
    let (first, second) = it.agent.take_token().send_twice().await;
    first.expect(200);
    second.refused(401, "replayed_nonce");
    let unknown = AgentClient::unknown(it.host.door());
    let (first, second) = unknown.registration("Robo").send_twice().await;
    first.expect(201);
    second.refused(401, "replayed_nonce");
}

#[tokio::test]
async fn a_signature_has_its_time() {
    let it = ready().await;
    for (created, lifetime, code) in [
        (-120, 60, Some("signature_expired")),
        (-61, 60, Some("signature_expired")),
        (-30, 20, Some("signature_expired")),
        (120, 60, Some("signature_expired")),
        (20, 60, None),
        (-50, 60, None),
    ] {
        let reply = it.write().signing(Signing { created, lifetime, ..Signing::default() }).send().await;
        match code {
            None => drop(reply.expect(200)),
            Some(_) if created > 0 => {
                // Made in the future: either name is honest, a way in is not.
                let code = reply.json()["code"].as_str().unwrap().to_owned();
                assert!(["signature_expired", "invalid_signature"].contains(&code.as_str()), "{}", reply.text());
                reply.refused(401, &code);
            }
            Some(code) => drop(reply.refused(401, code)),
        }
    }
    assert_eq!(it.boards().await, 2);
}

#[tokio::test]
async fn a_longer_life_than_a_minute_is_refused() {
    let it = ready().await;
    // The signer refuses to make one, so the parameter is stretched afterwards; the signature no longer fits, and the
    // host must not get as far as thinking it does.
    let probe = it.read();
    let now = inn_tests::call::now();
    let input = format!(
        "sig1=(\"@method\" \"@authority\" \"@path\" \"@query\" \"innkeeper-token-digest\");created={now};expires={};nonce=\"{}\";keyid=\"{}\";alg=\"ed25519\";tag=\"innkeeper\"",
        now + 3600,
        fresh_nonce(),
        it.agent.id
    );
    let refusal = probe.late_header("signature-input", input).send().await.refused(401, "invalid_signature");
    assert!(refusal["message"].as_str().unwrap().contains("60"), "{refusal}");
}

#[tokio::test]
async fn what_was_not_signed_is_not_what_was_asked() {
    let it = ready().await;
    let signing = |change: fn(&mut Signing)| {
        let mut signing = Signing::default();
        change(&mut signing);
        signing
    };
    for (what, signing) in [
        ("another method", signing(|s| s.method = Some("DELETE".into()))),
        ("another path", signing(|s| s.path = Some("/apps/kanban/api/collections/cards/records".into()))),
        ("another query", signing(|s| s.query = Some("?perPage=500".into()))),
        ("no query", signing(|s| s.query = Some("?".into()))),
        ("another host", signing(|s| s.authority = Some("other.example".into()))),
        ("the token left out", signing(|s| s.uncovered = Some("innkeeper-token-digest"))),
    ] {
        let reply = it.read().signing(signing).send().await;
        assert_eq!(reply.status, 401, "{what}: {}", reply.text());
        reply.refused(401, "invalid_signature");
    }
    for header in ["content-type", "content-digest", "idempotency-key"] {
        let signing = Signing { uncovered: Some(header), ..Signing::default() };
        let reply = it.write().key("k").signing(signing).send().await;
        assert_eq!(reply.status, 401, "{header} uncovered: {}", reply.text());
    }
    assert_eq!(it.boards().await, 0);
}

#[tokio::test]
async fn what_is_changed_on_the_way_is_noticed() {
    let it = ready().await;
    it.write().late_body("{\"name\":\"Evil\"}").send().await.refused(401, "digest_mismatch");
    let digest = inn_grants::signature::content_digest(b"{\"name\":\"Evil\"}");
    let both = it.write().late_body("{\"name\":\"Evil\"}").late_header("content-digest", digest);
    both.send().await.refused(401, "invalid_signature");
    it.write().late_header("content-type", "text/plain").send().await.refused(401, "invalid_signature");
    it.write().key("mine").late_header("idempotency-key", "other").send().await.refused(401, "invalid_signature");
    it.write().late_header("idempotency-key", "slipped-in").send().await.refused(401, "invalid_signature");
    let owner = it.host.owner().await;
    let other = it.host.agent(&owner, kanban::SCOPES).await;
    let swapped = it.write().late_header("authorization", format!("Bearer {}", other.token));
    let reply = swapped.send().await;
    assert_eq!(reply.status, 401, "{}", reply.text());
    it.write().late_header("signature", format!("sig1=:{}:", "A".repeat(88))).send().await;
    for broken in ["", "sig1", "sig1=::", "sig1=:AAAA:", "sig2=:AAAA:"] {
        it.write().late_header("signature", broken).send().await.refused(401, "invalid_signature");
    }
    for broken in ["", "sig1", "sig1=()", "sig1=(\"@method\");tag=\"innkeeper\"", "sig1=(\"@method\" \"@method\")"] {
        it.write().late_header("signature-input", broken).send().await.refused(401, "invalid_signature");
    }
    assert_eq!(it.boards().await, 0);
}

#[tokio::test]
async fn a_body_without_its_digest_is_refused() {
    let it = ready().await;
    // Signed as if there were no body, and one is added on the way.
    let call = it.host.door().call(reqwest::Method::POST, kanban::records("boards")).by(&it.agent);
    call.late_body("{\"name\":\"Smuggled\"}").send().await.refused(401, "digest_mismatch");
    assert_eq!(it.boards().await, 0);
}

#[tokio::test]
async fn strangers_with_bad_papers_are_counted_and_not_written_down() {
    let it = ready().await;
    let before = it.host.count("SELECT count(*) FROM inn.entries").await;
    let unknown = AgentClient { token: it.agent.token.clone(), ..AgentClient::unknown(it.host.door()) };
    it.host.door().get(kanban::records("boards")).by(&unknown).send().await.refused(401, "unknown_agent");
    it.read()
        .late_header("signature", format!("sig1=:{}==:", "A".repeat(86)))
        .send()
        .await
        .refused(401, "invalid_signature");
    it.host
        .door()
        .get(kanban::records("boards"))
        .by(Papers::Session("ses_nobody".into()))
        .send()
        .await
        .refused(401, "unauthenticated");
    assert_eq!(it.host.count("SELECT count(*) FROM inn.entries").await, before);
}

use inn_http::api::endpoint::ENDPOINTS;
use inn_tests::TestHost;

#[tokio::test]
async fn the_document_is_what_was_agreed() {
    let host = TestHost::start().await;
    let document = host.door().get("/v1/openapi.json").send().await.expect(200);
    insta::assert_snapshot!(serde_json::to_string_pretty(&document).unwrap());
}

#[tokio::test]
async fn every_endpoint_is_in_the_document() {
    let host = TestHost::start().await;
    let document = host.door().get("/v1/openapi.json").send().await.expect(200);
    for endpoint in ENDPOINTS {
        let operation = &document["paths"][endpoint.path][endpoint.method.to_lowercase()];
        assert!(
            operation["summary"].as_str().is_some_and(|summary| !summary.is_empty()),
            "{} {}",
            endpoint.method,
            endpoint.path
        );
    }
}

#[tokio::test]
async fn keys_health_and_help_are_for_everybody() {
    let host = TestHost::start().await;
    let door = host.door();
    let keys = door.get("/v1/keys").send().await.expect(200);
    for used in ["token", "register"] {
        let key = keys["keys"].as_array().unwrap().iter().find(|key| key["use"] == used).expect("a key");
        assert_eq!((&key["kty"], &key["crv"]), (&"OKP".into(), &"Ed25519".into()));
        assert_eq!(key["x"].as_str().unwrap().len(), 43);
        assert!(key.get("d").is_none(), "a private key was published");
    }
    assert_eq!(door.get("/healthz").send().await.status, 200);
    assert_eq!(door.get("/readyz").send().await.status, 200);
    let metrics = door.get("/metrics").send().await;
    assert_eq!(metrics.status, 200);
    assert!(metrics.text().contains("inn_"), "{}", metrics.text());
    for code in inn_protocol::Code::ALL {
        let page = door.get(format!("/help/{}", code.as_str())).send().await;
        assert_eq!(page.status, 200, "{}", code.as_str());
        assert!(page.text().starts_with(&format!("## {}", code.as_str())));
    }
    door.get("/help/nothing").send().await.refused(404, "not_found");
    door.get("/v1/nothing").send().await.refused(404, "not_found");
    let wrong = door.delete("/v1/apps").by(&host.owner().await).send().await.refused(405, "method_not_allowed");
    assert!(wrong["message"].as_str().unwrap().contains("POST"), "{wrong}");
}

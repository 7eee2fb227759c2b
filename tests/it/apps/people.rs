//! What a person meets who comes with a browser and not with a program.

use inn_tests::host::TestHost;

const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

#[tokio::test]
async fn a_browser_is_shown_a_refusal_as_a_page_and_a_program_as_json() {
    let host = TestHost::start().await;
    for (slug, path, status, code, words) in [
        ("nowhere", "/", 404, "unknown_app", "To the front page"),
        ("kanban", "/_inn/enter?code=used", 401, "wrong_credentials", "used already"),
    ] {
        let ask = || host.door().get(path).on_app(slug);
        let page = ask().header("accept", BROWSER).send().await;
        assert_eq!(page.status, status, "{}", page.text());
        assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
        assert!(page.header("content-security-policy").unwrap().starts_with("default-src 'none'"));
        let text = page.text();
        assert!(text.contains(words) && text.contains(&format!("/help/{code}")), "{text}");
        assert!(text.contains(page.call_id()), "{text}");
        ask().send().await.refused(status, code);
        ask().header("accept", "application/json").send().await.refused(status, code);
    }
}

#[tokio::test]
async fn what_a_browser_sends_stays_text_on_the_page() {
    let host = TestHost::start().await;
    let page =
        host.door().get("/no/such/<script>alert(1)</script>").on_app("kanban").header("accept", BROWSER).send().await;
    assert!(!page.text().contains("<script>alert"), "{}", page.text());
}

#[tokio::test]
async fn the_api_answers_browsers_with_what_programs_see() {
    let host = TestHost::start().await;
    let reply =
        host.door().get("/api/collections/nothing/records").on_app("kanban").header("accept", BROWSER).send().await;
    assert_eq!(reply.header("content-type"), Some("application/json"));
}

#[tokio::test]
async fn help_is_a_page_for_browsers_and_markdown_for_everybody_else() {
    let host = TestHost::start().await;
    let page = host.door().get("/help/unknown_field").header("accept", BROWSER).send().await;
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert!(page.text().contains("<h1><code>unknown_field</code></h1>"), "{}", page.text());
    assert!(page.text().contains("<code>GET /api/_a2app/describe</code>"), "{}", page.text());
    let text = host.door().get("/help/unknown_field").send().await;
    assert_eq!(text.header("content-type"), Some("text/markdown; charset=utf-8"));
    assert!(text.text().starts_with("## unknown_field"));
}

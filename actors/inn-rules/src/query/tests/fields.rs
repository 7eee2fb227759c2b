use proptest::prelude::*;
use serde_json::{Value, json};

use crate::query::pick_fields;

fn picked(spec: &str) -> Value {
    let mut record = json!({
        "id": "r1",
        "title": "Alpha",
        "body": "<p>Hello <b>World</b></p>\n<p>Good&nbsp;day &amp; night</p>",
        "meta": {"a": 1, "b": {"c": "x", "d": "y"}},
        "expand": {"labels": [{"id": "l1", "name": "red"}, {"id": "l2", "name": "blue"}], "list": {"id": "q1", "name": "To Do"}},
    });
    pick_fields(&mut record, spec).unwrap();
    record
}

#[test]
fn names_dots_and_stars_pick_their_level() {
    let cases = [
        ("id,title", json!({"id": "r1", "title": "Alpha"})),
        (" id , nope , ", json!({"id": "r1"})),
        ("meta.b.c", json!({"meta": {"b": {"c": "x"}}})),
        ("meta.*", json!({"meta": {"a": 1, "b": {"c": "x", "d": "y"}}})),
        ("expand.labels.name", json!({"expand": {"labels": [{"name": "red"}, {"name": "blue"}]}})),
        ("expand.*.id", json!({"expand": {}})),
        ("title.x", json!({"title": "Alpha"})),
        ("nope", json!({})),
    ];
    for (spec, expected) in cases {
        assert_eq!(picked(spec), expected, "{spec}");
    }
    assert_eq!(picked(""), picked("*"));
    assert_eq!(
        picked("*,expand.list.name")["expand"],
        json!({"list": {"name": "To Do"}}),
        "a named path narrows the star"
    );
}

#[test]
fn an_excerpt_is_the_plain_text_cut_by_characters() {
    let cases = [
        ("body:excerpt(5,true)", "Hello..."),
        ("body:excerpt(5)", "Hello"),
        ("body:excerpt(6,false)", "Hello"),
        ("body:excerpt(100,true)", "Hello World Good\u{a0}day & night"),
    ];
    for (spec, expected) in cases {
        assert_eq!(picked(spec), json!({ "body": expected }), "{spec}");
    }
    assert_eq!(picked("*:excerpt(2)")["title"], json!("Al"));
}

#[test]
fn an_excerpt_skips_what_is_not_text() {
    let cases = [
        ("a<script>alert(1)</script>b", "a b"),
        ("<style>p{}</STYLE>x", "x"),
        ("<!-- no -->x<br>y", "xy"),
        ("1 < 2 & 3 > 2", "1 < 2 & 3 > 2"),
        ("&lt;b&gt; &#65;&#x42; &nope;", "<b> AB &nope;"),
        ("<a title=\"x>y\">z</a>", "z"),
        ("open <p", "open"),
    ];
    for (html, expected) in cases {
        let mut record = json!({ "t": html });
        pick_fields(&mut record, "t:excerpt(100)").unwrap();
        assert_eq!(record, json!({ "t": expected }), "{html}");
    }
}

#[test]
fn a_modifier_that_is_not_one_is_refused() {
    for spec in [
        "a:nope",
        "a:excerpt",
        "a:excerpt()",
        "a:excerpt(0)",
        "a:excerpt(-1)",
        "a:excerpt(5,maybe)",
        "a:excerpt(5,true,1)",
    ] {
        let refusal = pick_fields(&mut json!({}), spec).unwrap_err();
        assert_eq!(refusal.violations[0].field, "fields", "{spec}");
    }
    assert!(pick_fields(&mut json!({}), &(0..201).map(|n| format!("f{n}")).collect::<Vec<_>>().join(",")).is_err());
}

proptest! {
    #[test]
    fn any_html_gives_at_most_the_asked_length(html in "[<>/!a-c&;#x\"' é-]{0,80}", max in 1_usize..20) {
        let mut record = json!({ "t": html });
        pick_fields(&mut record, &format!("t:excerpt({max},true)")).unwrap();
        prop_assert!(record["t"].as_str().unwrap().chars().count() <= max + 3);
    }
}

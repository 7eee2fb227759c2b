//! Sections A.5 to A.7: paths over relations, `@collection` and the call itself.

use std::sync::Arc;

use inn_protocol::call::RequestFacts;
use proptest::prelude::*;
use serde_json::json;

use super::{compiled, compiled_as, model, now, posts};
use crate::filter::{AuthFacts, Expr, FilterError, Link, Scope, Start, compile, compile_client};

fn walk_of(text: &str) -> crate::filter::Walk {
    let Expr::Compare(comparison) = compiled(text).unwrap() else { panic!("{text} is one comparison") };
    comparison.left.fields().first().unwrap().walk.clone()
}

fn asking(body: &serde_json::Value) -> AuthFacts {
    let query = [("q".to_owned(), "7".to_owned())].into();
    let body = body.as_object().cloned().unwrap();
    let facts = RequestFacts { method: "PATCH".into(), context: "default".into(), query, body, ..Default::default() };
    AuthFacts::nobody().asking(Arc::new(facts))
}

#[test]
fn a_path_follows_its_relations() {
    let walk = walk_of("author.boss.name = 'x'");
    let links: Vec<_> = walk.hops.iter().map(|hop| (hop.link, hop.field.as_str())).collect();
    assert_eq!(links, [(Link::One, "author"), (Link::One, "boss")]);
    assert!(!walk.many);
    assert!(walk_of("author.id = 'x'").is_here(), "the id of a single related record is the stored value");
    assert_eq!(walk_of("author.id:length ~ 'x'").hops.len(), 1);
    let back = walk_of("author.posts_via_author.title = 'x'");
    assert!(back.many && back.hops.last().unwrap().link == Link::BackOne);
    let all = walk_of("@collection.authors:other.level > 1");
    assert!(all.many && matches!(all.start, Start::Collection { .. }));
}

#[test]
fn six_relations_are_the_limit() {
    assert!(compiled("author.boss.boss.boss.boss.boss.name = ''").is_ok());
    assert!(matches!(compiled("author.boss.boss.boss.boss.boss.boss.name = ''"), Err(FilterError::Invalid { .. })));
}

#[test]
fn paths_to_nothing_are_refused() {
    for text in [
        "author.nope = 1",
        "title.name = 1",
        "posts_via_author.title = 1",
        "nope_via_author.id = 1",
        "author.posts_via_title.id = 1",
        "author.posts_via_author = 1",
        "@collection.nope.id = 1",
        "@collection.authors = 1",
        "@collection.authors:.level > 1",
        "@collection.authors:one:two.level > 1",
        "@collection.:other.level > 1",
    ] {
        assert!(compiled(text).is_err(), "{text}");
    }
}

#[test]
fn whoever_may_not_see_everything_is_bound_by_the_list_rules_of_what_is_joined() {
    let (collection, mut model, auth) = (posts(), model(), AuthFacts::nobody());
    let client = |model: &inn_protocol::model::Model, filter: Option<&str>, sort: &[&str]| {
        compile_client(
            filter,
            sort,
            &Scope { collection: &collection, model, now: now(), auth: &auth, see_hidden: false },
        )
    };
    for (filter, sort) in [(Some("author.name = 'x'"), &[][..]), (None, &["author.name"][..])] {
        let expr = client(&model, filter, sort).unwrap();
        assert!(format!("{expr:?}").contains("level"), "{expr:?}");
    }
    assert!(matches!(client(&model, Some("author.secret = 'x'"), &[]), Err(FilterError::Hidden(_))));
    assert!(
        compile(
            "author.secret = 'x'",
            &Scope { collection: &collection, model: &model, now: now(), auth: &auth, see_hidden: true }
        )
        .is_ok()
    );
    model.collections.last_mut().unwrap().list_rule = None;
    assert!(matches!(client(&model, Some("author.name = 'x'"), &[]), Err(FilterError::Hidden(_))));
    assert!(client(&model, Some("author = 'x'"), &[]).is_ok(), "the stored id joins nothing");
}

#[test]
fn the_call_itself_is_put_in_as_values() {
    let facts = asking(&json!({"title": "New", "num": "12", "msel": ["a", "b"], "meta": {"a": [1, 2]}}));
    for text in [
        "@request.method = 'PATCH' && @request.context = 'default'",
        "@request.query.q = '7' && @request.query.nope = ''",
        "@request.headers.x_token:isset = false",
        "@request.body.title = 'New' && @request.body.title:lower = 'new'",
        "@request.body.num = 12",
        "@request.body.msel:length = 2 && @request.body.sel:length = 0",
        "@request.body.meta.a.1 = 2",
        "@request.body.title:isset = true && @request.body.done:isset = false",
        "@request.body.done:changed = false",
    ] {
        assert_eq!(compiled_as(text, &facts, true), Ok(Expr::Always), "{text}");
    }
    let changed = compiled_as("@request.body.title:changed = true", &facts, true).unwrap();
    assert_eq!(changed, compiled("'New' != title").unwrap());
    assert_eq!(compiled_as("@request.body.title:changed = false", &facts, true), compiled("'New' = title"));
    assert!(compiled_as("@request.body.title:each = 'x'", &facts, true).is_err());
}

#[test]
fn a_body_that_adds_to_the_stored_value_is_refused_where_a_rule_asks_for_it() {
    let facts = asking(&json!({"num+": 1}));
    assert!(matches!(compiled_as("@request.body.num > 1", &facts, true), Err(FilterError::Unsupported(_))));
    assert!(compiled_as("@request.body.title = ''", &facts, true).is_ok());
    assert_eq!(
        compiled_as("@request.body.num:isset = true", &facts, true),
        Ok(Expr::Always),
        "it is sent all the same"
    );
}

fn token() -> impl Strategy<Value = String> {
    let tokens = [
        "author",
        "author.name",
        "author.boss.boss.name",
        "posts_via_author",
        ".",
        ".id",
        ":each",
        ":length",
        "title",
        "=",
        "?=",
        "!~",
        "&&",
        "||",
        "(",
        ")",
        "'",
        "'x'",
        "\"",
        "1",
        "-",
        "null",
        "@collection.authors.id",
        "@request.auth.id",
        "@request.body.title:changed",
        "@request.",
        "geoDistance(",
        "strftime(",
        ",",
        "//",
        "\n",
        "\\",
        "é",
        "\0",
    ];
    prop_oneof![9 => proptest::sample::select(tokens.to_vec()).prop_map(str::to_owned), 1 => ".{0,3}"]
}

proptest! {
    #[test]
    fn whatever_is_written_is_read_or_refused(
        tokens in proptest::collection::vec(token(), 0..60),
        blanks in any::<bool>(),
    ) {
        let text = tokens.join(if blanks { " " } else { "" });
        if let Ok(expr) = compiled(&text) {
            prop_assert_eq!(compiled(&text), Ok(expr), "the same text means the same");
        }
    }
}

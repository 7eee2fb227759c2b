//! Whatever somebody writes for a filter: it is refused or becomes one query, of a size that follows from its own, in which
//! nothing of it stands.

use inn_protocol::AppId;
use inn_protocol::model::{Collection, Model};
use inn_rules::filter::{AuthFacts, FilterError, Scope, compile, compile_client};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::columns::fixture::{collection, posts};

/// What a hostile text is marked with; it must not be found in any query.
const MARK: &str = "zzmark";
/// Most bytes of SQL for each byte of a filter: seven hops of a path, walked anew for match-all on both sides.
const GROWTH: usize = 60;
/// Of what stands around any condition.
const AROUND: usize = 2_000;

fn authors() -> Collection {
    collection(json!({
        "id": "c_authors", "name": "authors", "type": "auth", "listRule": "best.title != '' && name ~ 'a'",
        "fields": [
            {"id": "a1", "name": "id", "type": "text", "primaryKey": true, "system": true},
            {"id": "a2", "name": "name", "type": "text"},
            {"id": "a3", "name": "email", "type": "email", "system": true},
            {"id": "a4", "name": "emailVisibility", "type": "bool", "system": true},
            {"id": "a5", "name": "friends", "type": "relation", "collectionId": "c_authors", "maxSelect": 9},
            {"id": "a6", "name": "best", "type": "relation", "collectionId": "c_posts", "maxSelect": 9},
        ],
    }))
}

/// What stands for a value, all of it as it should be.
const VALUES: &[&str] = &[
    "id",
    "title",
    "num",
    "done",
    "due",
    "msel",
    "meta",
    "loc",
    "author",
    "tagsm",
    "author.title",
    "tagsm.num",
    "author.author.author.author.author.author.title",
    "tagsm.tagsm.tagsm.tagsm.tagsm.tagsm.title",
    "msel:each",
    "tagsm:each",
    "title:lower",
    "msel:length",
    "meta.a.0.b",
    "loc.lon",
    "posts_via_author.title",
    "posts_via_tagsm.tagsm.num",
    "authors_via_best.friends.friends.email",
    "@collection.authors.name",
    "@collection.authors:x.friends.name",
    "@collection.posts.tagsm.posts_via_tagsm.title",
    "@request.auth.name",
    "@request.auth.friends.best.title",
    "@request.body.tagsm.title",
    "@request.body.msel:each",
    "@request.query.q",
    "@request.headers.h",
    "@request.method",
    "@now",
    "@year",
    "null",
    "TRUE",
    "'x'",
    "\"y\"",
    "''",
    "'zzmark'",
    "\"zzmark';--\"",
    "'%_'",
    "0",
    "-1.5",
    "99999999999999999999",
    "geoDistance(loc.lon, loc.lat, 1, num)",
    "strftime('%Y', due)",
    "strftime('zzmark %Y', tagsm.due, 'zzmark')",
];
/// What does not.
const OTHERS: &[&str] = &[
    "secret",
    "author.password",
    "author.tokenKey",
    "nothing",
    "@request.body.title:changed",
    "@request.",
    "@collection.",
    "@random",
    "@rowid",
    "strftime(",
    "geoDistance(",
    "f(",
    ",",
    "title:none",
    "posts_via_",
    "a.b.c",
    "'",
    "\"x",
];
const SIGNS: &[&str] = &[
    "=", "!=", ">", ">=", "<", "<=", "~", "!~", "?=", "?!=", "?>", "?~", "?!~", "&&", "||", "(", ")", "//", "\n", ".",
    ":", "'", "\\", "==", "&", "\0", "\u{e4}", "zzmark",
];

fn value() -> impl Strategy<Value = String> {
    proptest::sample::select(VALUES).prop_map(str::to_owned)
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![2 => value(), 1 => proptest::sample::select(OTHERS).prop_map(str::to_owned)]
}

/// A filter as it is meant to be.
fn written() -> impl Strategy<Value = String> {
    let operator = proptest::sample::select(&SIGNS[..13]);
    let comparison = (value(), operator, value()).prop_map(|(left, op, right)| format!("{left} {op} {right}"));
    comparison.prop_recursive(3, 40, 8, |inner| {
        (proptest::collection::vec(inner, 1..8), any::<bool>())
            .prop_map(|(parts, all)| format!("({})", parts.join(if all { " && " } else { " || " })))
    })
}

/// The same with some of its bytes dropped, doubled, swapped or changed for others.
fn damaged() -> impl Strategy<Value = String> {
    let sign = prop_oneof![3 => proptest::sample::select(SIGNS).prop_map(str::to_owned), 2 => word(), 1 => "\\PC{0,4}"];
    (written(), proptest::collection::vec((any::<prop::sample::Index>(), 0_u8..4, sign), 1..6)).prop_map(
        |(text, changes)| {
            let mut letters: Vec<String> = text.chars().map(String::from).collect();
            for (place, what, with) in changes {
                if letters.is_empty() {
                    break;
                }
                let at = place.index(letters.len());
                match what {
                    0 => drop(letters.remove(at)),
                    1 => letters.truncate(at),
                    2 => letters.insert(at, with),
                    _ => letters[at] = with,
                }
            }
            letters.concat()
        },
    )
}

fn anything() -> impl Strategy<Value = String> {
    let tokens = prop_oneof![word(), proptest::sample::select(SIGNS).prop_map(str::to_owned)];
    prop_oneof![
        4 => written(),
        4 => damaged(),
        2 => proptest::collection::vec(tokens, 0..80).prop_map(|tokens| tokens.join(" ")),
        1 => "\\PC{0,200}",
        1 => any::<Vec<u8>>().prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
    ]
}

fn auth() -> AuthFacts {
    let facts = inn_protocol::call::RequestFacts {
        method: "PATCH".to_owned(),
        context: "default".to_owned(),
        query: [("q".to_owned(), MARK.to_owned())].into(),
        headers: [("h".to_owned(), MARK.to_owned())].into(),
        body: json!({"title": MARK, "tagsm": [MARK, "b"], "msel": ["a", MARK], "num": 1}).as_object().cloned().unwrap(),
    };
    let record = json!({"id": "u1", "name": MARK, "friends": ["u2"], "email": MARK});
    AuthFacts::of_record(record.as_object().cloned().unwrap()).asking(facts.into())
}

/// The query of what was compiled: one, whole, and no larger than it may be.
fn check(expr: &Expr, length: usize) -> Result<(), TestCaseError> {
    let mut params = SqlParams::starting_at(3);
    let sql = render(expr, AppId::new(), "t", &mut params);
    prop_assert!(!sql.contains(MARK), "{}", sql);
    prop_assert!(sql.len() <= AROUND + GROWTH * length, "{} bytes for {}", sql.len(), length);
    for place in 3..3 + params.values().len() {
        prop_assert!(sql.contains(&format!("${place}::")), "${} has no type: {}", place, sql);
    }
    prop_assert!(!sql.contains(&format!("${}::", 3 + params.values().len())), "{}", sql);
    // Brackets of every kind are closed, so it stays within the place it is put into.
    let bare: String = sql.split('\'').step_by(2).collect();
    for (open, close) in [('(', ')'), ('[', ']')] {
        prop_assert_eq!(bare.matches(open).count(), bare.matches(close).count(), "{}", sql);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_becomes_one_query_or_a_refusal(text in anything(), sort in word(), see_hidden: bool) {
        let (mut posts, auth) = (posts(), auth());
        posts.list_rule = Some("title != 'x' || tagsm.num ?= 1".to_owned());
        let model = Model { collections: vec![posts.clone(), authors()] };
        let now = chrono::DateTime::UNIX_EPOCH;
        let scope = Scope { collection: &posts, model: &model, now, auth: &auth, see_hidden };
        let length = text.len() + sort.len() + 200;
        match compile(&text, &scope) {
            Ok(expr) => check(&expr, length)?,
            Err(FilterError::Invalid { at, .. }) => prop_assert!(at <= text.len(), "{} beyond {}", at, text.len()),
            Err(_) => {}
        }
        if let Ok(expr) = compile_client(Some(&text), &[&sort], &scope) {
            // The list rules of what it leads to come on top, one for each.
            check(&expr, length * 2)?;
        }
        if let Ok(keys) = inn_rules::query::sort(&sort, &scope) {
            let mut params = SqlParams::starting_at(1);
            let sql = order_by(&keys, AppId::new(), "t", &mut params);
            prop_assert!(!sql.contains(MARK) && sql.len() < 4_000, "{}", sql);
        }
    }
}

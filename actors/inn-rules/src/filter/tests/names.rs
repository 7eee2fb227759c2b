//! Sections A.5 and A.6: what names mean, and who may use them.

use inn_protocol::Code;
use inn_protocol::model::Model;
use serde_json::{Map, json};

use super::{auth_collection, compiled, compiled_as, model, now, posts};
use crate::filter::{AuthFacts, Expr, FilterError, Scope, check_rule, compile, compile_unsaved, matches};

fn record(value: &serde_json::Value) -> Map<String, serde_json::Value> {
    value.as_object().cloned().unwrap()
}

#[test]
fn macros_are_computed_from_the_given_moment() {
    let yes = [
        "@now = '2026-11-30 22:30:00.000Z'",
        "@yesterday = '2026-11-29 22:30:00.000Z'",
        "@tomorrow = '2026-12-01 22:30:00.000Z'",
        "@todayStart = '2026-11-30 00:00:00.000Z'",
        "@todayEnd = '2026-11-30 23:59:59.999Z'",
        "@monthStart = '2026-11-01 00:00:00.000Z'",
        "@monthEnd = '2026-11-30 23:59:59.999Z'",
        "@yearStart = '2026-01-01 00:00:00.000Z'",
        "@yearEnd = '2026-12-31 23:59:59.999Z'",
        "@second = 0 && @minute = 30 && @hour = 22 && @day = 30 && @month = 11 && @weekday = 1 && @year = 2026",
        "@month != '11'",
    ];
    for text in yes {
        assert_eq!(compiled(text), Ok(Expr::Always), "{text}");
    }
    assert_eq!(compiled("@month = '11'"), Ok(Expr::Never));
    assert!(compiled("@Now = 1").is_err(), "macro names are case sensitive");
}

#[test]
fn keywords_ignore_case_and_stand_behind_fields() {
    assert_eq!(compiled("NULL = '' && True = 1 && faLse = 0"), Ok(Expr::Always));
    assert_eq!(compiled("title = null"), compiled("title = NULL"));
}

#[test]
fn without_login_every_auth_path_is_null() {
    for text in ["@request.auth.id = ''", "@request.auth.role = null", "@request.auth.prefs.a.b = null"] {
        assert_eq!(compiled(text), Ok(Expr::Always), "{text}");
    }
    assert_eq!(compiled("@request.auth.id != ''"), Ok(Expr::Never));
    assert_eq!(compiled("@request.auth.id:isset = true"), Ok(Expr::Never));
}

#[test]
fn auth_paths_are_the_values_of_the_callers_record() {
    let facts = AuthFacts::of_record(record(&json!({
        "id": "u1", "email": "Ann@example.com", "role": "a", "teams": ["x", "y"], "prefs": {"n": [7]},
    })));
    let yes = [
        "@request.auth.id = 'u1'",
        "@request.auth.email:lower = 'ann@example.com'",
        "@request.auth.teams = '[\"x\",\"y\"]'",
        "@request.auth.teams:length = 2 && @request.auth.role:length = 1",
        // A column, on which the modifier does nothing; and text is not true.
        "@request.auth.role:isset != true && @request.auth.role:isset = 'a'",
    ];
    for text in yes {
        assert_eq!(compiled_as(text, &facts, true), Ok(Expr::Always), "{text}");
    }
    let mine = compiled_as("author = @request.auth.id", &facts, true).unwrap();
    assert!(matches(&mine, &record(&json!({"author": "u1"}))));
    assert!(!matches(&mine, &record(&json!({"author": "u2"}))));
}

#[test]
fn a_record_of_which_only_the_id_is_known_never_counts_as_empty() {
    let facts = AuthFacts::of_id("u1");
    assert_eq!(compiled_as("@request.auth.id = 'u1'", &facts, true), Ok(Expr::Always));
    // The rest is looked up where it is stored.
    let open = compiled_as("@request.auth.role != 'blocked'", &facts, true).unwrap();
    assert!(!open.is_local());
    assert!(!matches(&open, &Map::new()), "what needs other rows is never yes in memory");
}

#[test]
fn a_value_of_the_callers_record_is_compared_as_its_column() {
    let facts = AuthFacts::of_record(record(&json!({"id": "u1", "name": "1_", "level": 3, "role": ""})));
    let row = record(&json!({"title": "1_", "num": 1, "sel": ""}));
    for (text, holds) in [
        // N : t converts, as with a literal 3 it would not.
        ("@request.auth.level = '3'", true),
        ("@request.auth.level = '3.0'", true),
        ("@request.auth.name = 1", false),
        // Field against field: no affinity.
        ("num = @request.auth.name", false),
        ("sel = @request.auth.role", true),
        ("title = @request.auth.name", true),
        // Wildcards of a column count.
        ("'12' ~ @request.auth.name", true),
        ("'12' ~ '1_'", false),
        // The id is put in as a value.
        ("'12' ~ @request.auth.id", false),
    ] {
        let expr = compiled_as(text, &facts, true).unwrap();
        assert!(expr.is_local(), "known values need no query: {text}");
        assert_eq!(matches(&expr, &row), holds, "{text}");
    }
}

/// Recorded from PocketBase 0.39.8: `!=` on the left of a word asks for truth, `=` for equality.
#[test]
fn isset_on_the_right_is_a_word_and_not_a_number() {
    let facts = AuthFacts::nobody();
    for (title, not_false, is_false) in [
        ("", false, false),
        ("a", false, false),
        ("10", true, false),
        (" 1x", true, false),
        ("0", false, true),
        ("0.0e5", false, false),
        ("-.5e1x", true, false),
        ("1e-999", false, false),
    ] {
        let row = record(&json!({"title": title, "meta": title}));
        let holds = |text: &str| matches(&compiled_as(text, &facts, true).unwrap(), &row);
        assert_eq!(holds("title != @request.query.none:isset"), not_false, "{title:?}");
        assert_eq!(holds("title = @request.query.none:isset"), is_false, "{title:?}");
        assert_eq!(holds("meta = @request.query.none:isset"), !not_false, "{title:?}");
        assert!(holds("@request.query.none:isset != title") != is_false, "{title:?}");
    }
    assert_eq!(compiled_as("@request.query.q != @request.query.none:isset", &facts, true), Ok(Expr::Never));
    assert!(compiled_as("@request.method:lower = 'get'", &facts, true).is_err());
}

#[test]
fn moments_are_left_to_the_database_and_their_arguments_checked_here() {
    let expr = compiled("strftime('%Y', due) = '2024' || 1 = 2").unwrap();
    assert!(!expr.is_local());
    assert!(!compiled("strftime('%Y') = '2024'").unwrap().is_local(), "nor is a moment of now known here");
    assert_eq!(check_rule("strftime('%Y', due, 'start of year') = '2024'", &posts(), &model()), Ok(()));
    for text in [
        "strftime() = ''",
        "strftime(title) = ''",
        "strftime('%Y', due, 1) = ''",
        "strftime('%Y', due, title) = ''",
        "strftime('%Y', strftime('%Y')) = ''",
        "strftime('%Y', nope) = ''",
        "strftime('%Y', @request.body.title:changed) = ''",
        "strftime('%Y','','','','','','','','','','') = ''",
        "geoDistance(@request.body.title:changed, 1, 2, 3) = 1",
        // Also when an earlier part has decided the answer.
        "1 = 1 || strftime() = ''",
    ] {
        assert!(matches!(compiled(text), Err(FilterError::Invalid { .. } | FilterError::UnknownField(_))), "{text}");
    }
    // What is bound becomes a pattern by itself, so nothing can match it.
    for text in ["title ~ strftime('%Y', '2024-01-01')", "title ~ strftime('%Y', due, '+1 day')"] {
        assert_eq!(compiled(text).unwrap(), compiled("title ~ null").unwrap(), "{text}");
    }
}

#[test]
fn unknown_names_and_modifiers_are_refused() {
    for text in
        ["nope = 1", "title.x = 1", "collectionId = 'x'", "expand = 'x'", "#a = 1", "@rowid = 1", "__proto__ = 1"]
    {
        assert!(matches!(compiled(text), Err(FilterError::UnknownField(_))), "{text}");
    }
    for text in ["title:nope = 1", "title:lower:length = 1", "@request.foo = 1", "@request.auth = 1"] {
        assert!(compiled(text).is_err(), "{text}");
    }
}

#[test]
fn hidden_fields_are_for_rules_and_owners_and_secrets_for_nobody() {
    assert!(compiled("secret = 'x'").is_ok());
    let refused = compiled_as("secret = 'x'", &AuthFacts::nobody(), false);
    assert_eq!(refused, Err(FilterError::Hidden("secret".to_owned())));
    let unknown = compiled_as("secrex = 'x'", &AuthFacts::nobody(), false).unwrap_err().to_string();
    assert_eq!(refused.unwrap_err().to_string().replace("secret", "secrex"), unknown, "both read the same outside");
    let users = auth_collection();
    for text in ["password ~ '$2a'", "tokenKey ~ 'a'", "@request.auth.tokenKey ~ 'a'"] {
        assert!(matches!(check_rule(text, &users, &model()), Err(FilterError::Hidden(_))), "{text}");
    }
}

#[test]
fn an_email_matches_only_when_its_owner_shows_it() {
    let (users, model, auth) = (auth_collection(), model(), AuthFacts::nobody());
    let scope = |see_hidden| Scope { collection: &users, model: &model, now: now(), auth: &auth, see_hidden };
    let quiet = record(&json!({"email": "a@example.com", "emailVisibility": false}));
    let shown = record(&json!({"email": "a@example.com", "emailVisibility": true}));
    let client = compile("email = 'a@example.com'", &scope(false)).unwrap();
    assert!(!matches(&client, &quiet) && matches(&client, &shown));
    let owner = compile("email = 'a@example.com'", &scope(true)).unwrap();
    assert!(matches(&owner, &quiet));
}

#[test]
fn refusals_carry_the_code_and_the_place() {
    let refusal: inn_protocol::Refusal = compiled("title = ").unwrap_err().into();
    assert_eq!(refusal.code, Code::InvalidFilter);
    let refusal = FilterError::Unsupported("`x`".to_owned()).into_rule_refusal("posts.listRule");
    assert_eq!(refusal.code, Code::UnsupportedRule);
    assert_eq!(refusal.violations[0].field, "posts.listRule");
    assert!(refusal.message.contains("`x`"), "{}", refusal.message);
}

#[test]
fn an_empty_rule_and_the_common_ones_pass_the_deploy_check() {
    for rule in ["", "@request.auth.id != \"\"", "author = @request.auth.id || done = true"] {
        assert_eq!(check_rule(rule, &posts(), &Model::default()), Ok(()), "{rule}");
    }
    assert!(check_rule(" ", &posts(), &Model::default()).is_err());
}

#[test]
fn values_of_a_record_that_is_not_stored_yet_are_compared_as_what_they_are() {
    let (posts, model, auth) = (posts(), model(), AuthFacts::nobody());
    let scope = Scope { collection: &posts, model: &model, now: now(), auth: &auth, see_hidden: true };
    let row = record(&json!({"title": "", "num": 10, "done": true}));
    for (text, stored, unsaved) in [
        ("title < false", true, false),
        ("num = '10'", true, false),
        ("num < 'a'", true, true),
        ("num = 10", true, true),
        ("title < 'a'", true, true),
        ("done = true", true, true),
        ("done = '1'", true, false),
    ] {
        assert_eq!(matches(&compile(text, &scope).unwrap(), &row), stored, "stored: {text}");
        assert_eq!(matches(&compile_unsaved(text, &scope).unwrap(), &row), unsaved, "unsaved: {text}");
    }
}

//! The data model, normalised to what PocketBase does.

use inn_protocol::model::{Collection, CollectionKind, FieldKind};
use proptest::prelude::*;

use super::*;
use crate::{Index, IndexColumn, parse_index};

fn model_of(collections: &Value) -> Vec<Collection> {
    loaded(with_collections(collections)).model.collections
}

fn collection(spoil: impl FnOnce(&mut Value)) -> Files {
    let mut one = json!({"name": "cards", "fields": [{"name": "title", "type": "text"}]});
    spoil(&mut one);
    with_collections(&json!([one]))
}

#[test]
fn a_bare_collection_gets_what_pocketbase_gives_it() {
    let model = model_of(&json!([{"name": "cards", "fields": [
        {"name": "title", "type": "text", "required": true, "max": 120, "min": null, "presentable": true},
        {"name": "state", "type": "select", "values": ["open", "done"]},
        {"name": "file", "type": "file"},
        {"name": "body", "type": "editor"},
        {"name": "meta", "type": "json"},
        {"name": "created", "type": "autodate", "onCreate": true},
    ]}]));
    let cards = &model[0];
    assert_eq!(cards.id, "pbc_3481593366", "pbc_ and the CRC-32 of type and name");
    assert_eq!(cards.kind, CollectionKind::Base);
    assert_eq!(cards.list_rule, None, "no rule lets nobody through");
    let id = &cards.fields[0];
    assert_eq!((id.name.as_str(), id.id.as_str(), id.required, id.system), ("id", "text3208210256", true, true));
    let FieldKind::Text { min: 15, max: 15, pattern, autogenerate_pattern, primary_key: true } = &id.kind else {
        panic!("{id:?}")
    };
    assert_eq!((pattern.as_str(), autogenerate_pattern.as_str()), ("^[a-z0-9]+$", "[a-z0-9]{15}"));
    assert_eq!(cards.field("title").unwrap().id, "text724990059");
    assert!(matches!(cards.field("state").unwrap().kind, FieldKind::Select { max_select: 1, .. }));
    assert!(matches!(cards.field("file").unwrap().kind, FieldKind::File { max_select: 1, max_size: 5_242_880, .. }));
    assert!(matches!(cards.field("body").unwrap().kind, FieldKind::Editor { max_size: 5_242_880 }));
    assert!(matches!(cards.field("meta").unwrap().kind, FieldKind::Json { max_size: 1_048_576 }));
}

#[test]
fn users_is_always_there_with_pocketbases_ids() {
    let model = model_of(&json!([{"name": "cards"}]));
    let users = model.last().unwrap();
    assert_eq!((users.id.as_str(), users.name.as_str()), ("_pb_users_auth_", "users"));
    let fields: Vec<_> = users.fields.iter().map(|field| (field.name.as_str(), field.id.as_str())).collect();
    let expected = [
        ("id", "text3208210256"),
        ("password", "password901924565"),
        ("tokenKey", "text2504183744"),
        ("email", "email3885137012"),
        ("emailVisibility", "bool1547992806"),
        ("verified", "bool256245529"),
        ("name", "text1579384326"),
        ("avatar", "file376926767"),
        ("created", "autodate2990389176"),
        ("updated", "autodate3332085495"),
    ];
    assert_eq!(fields, expected);
    assert_eq!(users.list_rule.as_deref(), Some("id = @request.auth.id"));
    assert_eq!(users.create_rule.as_deref(), Some(""));
    assert!(users.field("password").unwrap().hidden && users.field("tokenKey").unwrap().hidden);
    let indexes = [
        "CREATE UNIQUE INDEX `idx_tokenKey__pb_users_auth_` ON `users` (`tokenKey`)",
        "CREATE UNIQUE INDEX `idx_email__pb_users_auth_` ON `users` (`email`) WHERE `email` != ''",
    ];
    assert_eq!(users.indexes, indexes);
    assert_eq!(loaded(aip53_app()).model.collections.len(), 1, "also in an app without a model");
}

#[test]
fn an_apps_own_users_stays_the_apps_own() {
    let model = model_of(&json!([{"name": "users", "type": "auth", "listRule": "", "authRule": "", "manageRule": null,
        "oauth2": {"enabled": false}, "passwordAuth": {"enabled": true, "identityFields": ["email"]},
        "fields": [{"name": "nick", "type": "text"}, {"name": "email", "type": "email", "required": false}],
        "indexes": ["CREATE UNIQUE INDEX idx_own ON users (email) WHERE email != ''"]}]));
    assert_eq!(model.len(), 1);
    assert_eq!(model[0].id, "_pb_users_auth_");
    assert!(!model[0].field("email").unwrap().required && model[0].field("email").unwrap().system);
    assert!(model[0].field("tokenKey").unwrap().hidden);
    assert_eq!(model[0].indexes.len(), 2, "its own index on email is enough: {:?}", model[0].indexes);
}

#[test]
fn the_system_collections_of_an_export_are_passed_over() {
    let model = model_of(&json!({"collections": [
        {"name": "_superusers", "type": "auth", "system": true, "fields": []}, {"name": "cards"}]}));
    let names: Vec<_> = model.iter().map(|collection| collection.name.as_str()).collect();
    assert_eq!(names, ["cards", "users"]);
}

#[test]
fn relations_may_name_their_target() {
    let relation = |target: &str| json!({"name": target, "type": "relation", "collectionId": target, "maxSelect": 3});
    let model = model_of(&json!([
        {"name": "lists", "id": "lists0000000001"},
        {"name": "cards", "fields": [relation("lists0000000001"), relation("Lists"), relation("users"), relation("cards")]}]));
    let targets = model[1].fields.iter().filter_map(|field| match &field.kind {
        FieldKind::Relation { collection_id, max_select: 3, .. } => Some(collection_id.as_str()),
        _ => None,
    });
    let targets: Vec<_> = targets.collect();
    assert_eq!(targets, ["lists0000000001", "lists0000000001", "_pb_users_auth_", "pbc_3481593366"]);
}

#[test]
fn collection_rules_are_kept() {
    type Spoil = fn(&mut Value);
    let cases: &[(Spoil, &str)] = &[
        (|c| c["name"] = json!("bad name"), "letters, digits"),
        (|c| c["name"] = json!("a".repeat(64)), "1 to 63"),
        (|c| c["name"] = json!("_hidden"), "not start with `_`"),
        (|c| c["name"] = json!("a_via_b"), "_via_"),
        (|c| c["name"] = json!("users"), "auth collection"),
        (|c| c["name"] = json!("naïve"), "letters, digits"),
        (|c| c["type"] = json!("table"), "base"),
        (|c| c["schema"] = json!([]), "before 0.23"),
        (|c| c["id"] = json!("a b"), "letters, digits"),
        (|c| c["listRule"] = json!(7), "text"),
        (|c| c["listRule"] = json!("x".repeat(4001)), "0 to 4000"),
        (|c| c["fields"] = json!({}), "list"),
        (|c| c["fields"] = json!([7]), "object"),
    ];
    for (spoil, what) in cases {
        assert_violation(&load_refusal(collection(spoil)), "app/pb/pb_schema.json#[0]", what);
    }
    let view = with_collections(&json!([{"name": "stats", "type": "view", "viewQuery": "SELECT id FROM cards"}]));
    let stats = loaded(view).model.collection("stats").cloned().unwrap();
    assert_eq!((stats.view_query.as_deref(), stats.fields.len()), (Some("SELECT id FROM cards"), 0));
    let twice = with_collections(&json!([{"name": "cards"}, {"name": "Cards"}]));
    assert_violation(&load_refusal(twice), "app/pb/pb_schema.json#[1]", "two collections called");
    let same_id = with_collections(&json!([{"name": "a", "id": "x"}, {"name": "b", "id": "x"}]));
    assert_violation(&load_refusal(same_id), "app/pb/pb_schema.json#[1]", "already the id or name");
    let not_a_list = with_collections(&json!({"tables": []}));
    assert_violation(&load_refusal(not_a_list), "app/pb/pb_schema.json#collections", "required");
}

#[test]
fn ways_of_signing_in_that_would_be_dropped_or_cannot_work_are_refused() {
    for (key, value, why) in [
        ("oauth2", json!({"enabled": true}), "other providers"),
        ("mfa", json!({"enabled": true}), "two ways"),
        ("mfa", json!({"enabled": true, "duration": 1}), "whole number"),
        ("otp", json!({"enabled": true, "length": 3}), "whole number"),
        ("otp", json!({"enabled": "yes"}), "true or false"),
        ("authToken", json!({"duration": 1}), "whole number"),
        ("authRule", json!(7), "text"),
        ("passwordAuth", json!({"enabled": true, "identityFields": []}), "must name a field"),
        ("passwordAuth", json!({"enabled": true, "identityFields": ["username"]}), "text or email field"),
        ("passwordAuth", json!({"enabled": true, "identityFields": ["tokenKey"]}), "text or email field"),
        ("passwordAuth", json!({"enabled": true, "identityFields": ["title"]}), "unique index"),
    ] {
        let files = collection(|c| {
            c["type"] = json!("auth");
            c[key] = value.clone();
        });
        assert_violation(&load_refusal(files), "app/pb/pb_schema.json#[0]", why);
    }
}

#[test]
fn how_people_sign_in_is_kept_with_pocketbases_defaults() {
    let model = model_of(&json!([{"name": "people", "type": "auth"}, {"name": "staff", "type": "auth",
        "authRule": null, "manageRule": "@request.auth.id != ''", "authToken": {"duration": 100},
        "passwordAuth": {"enabled": true, "identityFields": ["nick", "email"]},
        "otp": {"enabled": true, "length": 6, "emailTemplate": {"subject": "Code", "body": "{OTP}"}},
        "mfa": {"enabled": true, "rule": "verified = true"},
        "verificationTemplate": {"subject": "", "body": ""},
        "fields": [{"name": "nick", "type": "text"}],
        "indexes": ["CREATE UNIQUE INDEX idx_nick ON staff (nick)"]}]));
    let plain = model[0].auth_options();
    assert_eq!(plain, inn_protocol::auth_options::AuthOptions::default());
    assert_eq!((plain.auth_rule.as_deref(), plain.auth_token.duration), (Some(""), 432_000));
    let staff = model[1].auth_options();
    assert_eq!((staff.auth_rule, staff.manage_rule.as_deref()), (None, Some("@request.auth.id != ''")));
    assert_eq!((staff.auth_token.duration, staff.otp.length, staff.otp.duration), (100, 6, 180));
    assert_eq!(staff.password_auth.identity_fields, ["nick", "email"]);
    assert_eq!(staff.otp.email_template.unwrap().body, "{OTP}");
    assert_eq!((staff.mfa.enabled, staff.mfa.rule.as_str()), (true, "verified = true"));
    assert!(staff.verification_template.is_none(), "a template with nothing in it is none");
}

#[test]
fn field_rules_are_kept() {
    for (field, what) in [
        (json!({"type": "text"}), "required"),
        (json!({"name": "a b", "type": "text"}), "letters, digits"),
        (json!({"name": "a_via_b", "type": "text"}), "_via_"),
        (json!({"name": "expand", "type": "text"}), "reserved"),
        (json!({"name": "NULL", "type": "text"}), "reserved"),
        (json!({"name": "collectionId", "type": "text"}), "reserved"),
        (json!({"name": "Title", "type": "text"}), "two fields called"),
        (json!({"name": "a", "type": "text", "id": "text724990059"}), "two fields with the id"),
        (json!({"name": "a", "type": "vector"}), "unknown variant"),
        (json!({"name": "a"}), "required"),
        (json!({"name": "a", "type": "text", "min": "3"}), "cannot be read"),
        (json!({"name": "a", "type": "text", "min": -1}), "cannot be read"),
        (json!({"name": "a", "type": "text", "min": 5, "max": 3}), "larger than"),
        (json!({"name": "a", "type": "text", "pattern": "("}), "regular expression"),
        (json!({"name": "a", "type": "text", "pattern": "((a{100}){100}){100}"}), "regular expression"),
        (json!({"name": "a", "type": "number", "min": 5, "max": 3}), "larger than"),
        (json!({"name": "a", "type": "select"}), "1 to 500 values"),
        (json!({"name": "a", "type": "select", "values": ["x", ""]}), "not empty"),
        (json!({"name": "a", "type": "select", "values": ["x", "x"]}), "different"),
        (json!({"name": "a", "type": "select", "values": ["x"], "maxSelect": 2}), "number of values"),
        (json!({"name": "a", "type": "relation"}), "collectionId"),
        (json!({"name": "a", "type": "relation", "collectionId": "ghosts"}), "no collection"),
        (json!({"name": "a", "type": "relation", "collectionId": "cards", "minSelect": 2}), "larger than"),
        (json!({"name": "a", "type": "email", "onlyDomains": ["a"], "exceptDomains": ["b"]}), "exclude each other"),
        (json!({"name": "a", "type": "autodate"}), "onCreate"),
        (json!({"name": "id", "type": "number"}), "of type text"),
        (json!({"name": "ID", "type": "text"}), "spelled `id`"),
    ] {
        let refusal = load_refusal(collection(|c| c["fields"].as_array_mut().unwrap().push(field.clone())));
        assert_violation(&refusal, "app/pb/pb_schema.json#[0]", what);
    }
    let taken = collection(|c| {
        c["type"] = json!("auth");
        c["fields"] = json!([{"name": "email", "type": "text"}]);
    });
    assert_violation(&load_refusal(taken), "app/pb/pb_schema.json#[0]", "of type email");
}

#[test]
fn names_that_are_special_elsewhere_are_plain_here() {
    let model = model_of(&json!([{"name": "constructor", "fields": [{"name": "__proto__", "type": "text"}]}]));
    assert!(model[0].field("__proto__").is_some());
}

#[test]
fn an_own_id_field_keeps_its_options() {
    let model = model_of(&json!([{"name": "c", "fields": [{"name": "t", "type": "text"},
        {"name": "id", "type": "text", "min": 3, "max": 30, "pattern": "^[a-z]+$", "autogeneratePattern": ""}]}]));
    let id = model[0].field("id").unwrap();
    assert!(id.system && id.required);
    let FieldKind::Text { min: 3, max: 30, pattern, autogenerate_pattern, primary_key: true } = &id.kind else {
        panic!("{id:?}")
    };
    assert_eq!((pattern.as_str(), autogenerate_pattern.as_str()), ("^[a-z]+$", ""));
}

#[test]
fn indexes_of_the_one_form_are_read_whatever_the_quotes() {
    for statement in [
        "CREATE INDEX i ON cards (title)",
        "create unique index if not exists `i` on `cards` (`title`, [id]);",
        "CREATE UNIQUE INDEX \"i\" ON \"cards\" (\n  \"title\"\n) WHERE `title` != ''",
        "CREATE INDEX i ON Cards (title) WHERE title <> ''",
        "CREATE UNIQUE INDEX i ON cards (title collate nocase desc, `id` COLLATE BINARY ASC)",
    ] {
        let model = loaded(collection(|c| c["indexes"] = json!([statement]))).model.collections;
        let index = parse_index(&model[0].indexes[0]).unwrap();
        assert_eq!((index.name.as_str(), index.table.as_str()), ("i", "cards"));
        assert_eq!(index.to_sql(), model[0].indexes[0], "kept in one canonical spelling");
    }
    let folded = "create unique index i on cards (title collate nocase desc, id asc)";
    let model = loaded(collection(|c| c["indexes"] = json!([folded]))).model.collections;
    assert_eq!(model[0].indexes[0], "CREATE UNIQUE INDEX `i` ON `cards` (`title` COLLATE NOCASE DESC, `id`)");
}

#[test]
fn other_indexes_are_refused_by_name() {
    for (statement, what) in [
        ("DROP TABLE cards", "nothing else is understood"),
        ("CREATE INDEX i ON cards (title); DROP TABLE cards", "nothing else is understood"),
        ("CREATE INDEX i ON cards (lower(title))", "nothing else is understood"),
        ("CREATE INDEX i ON cards (title COLLATE RTRIM)", "nothing else is understood"),
        ("CREATE INDEX i ON cards (title COLLATE)", "nothing else is understood"),
        ("CREATE INDEX i ON cards (title NOCASE)", "nothing else is understood"),
        ("CREATE INDEX i ON cards (title DESC ASC)", "nothing else is understood"),
        ("CREATE INDEX i ON cards (title COLLATE NOCASE, title)", "listed twice"),
        ("CREATE INDEX i ON cards (title) WHERE title = 'x'", "character or a quote"),
        ("CREATE INDEX i ON cards (title) WHERE title != '' AND id != ''", "nothing else is understood"),
        ("CREATE INDEX i ON cards (title) -- comment", "character or a quote"),
        ("CREATE INDEX `i` ON cards (`ti`tle`)", ""),
        ("CREATE INDEX `i\"; DROP` ON cards (title)", "character or a quote"),
        ("CREATE INDEX i ON cards ()", "nothing else is understood"),
        ("CREATE INDEX i ON lists (title)", "stands in `cards`"),
        ("CREATE INDEX i ON cards (ghost)", "no field `ghost`"),
        ("CREATE INDEX i ON cards (title, title)", "listed twice"),
        ("CREATE INDEX i ON cards (title) WHERE rank != ''", "not a text"),
        ("", "nothing else is understood"),
    ] {
        let refusal = load_refusal(collection(|c| {
            c["fields"].as_array_mut().unwrap().push(json!({"name": "rank", "type": "number"}));
            c["indexes"] = json!([statement]);
        }));
        assert_violation(&refusal, "app/pb/pb_schema.json#[0]", what);
    }
    let twice = json!(["CREATE INDEX i ON cards (title)", "CREATE INDEX I ON cards (id)"]);
    assert_violation(&load_refusal(collection(|c| c["indexes"] = twice)), "app/pb/pb_schema.json#[0]", "two indexes");
}

proptest! {
    #[test]
    fn an_index_reads_back_what_it_wrote(unique: bool, names in prop::collection::vec("[a-z_][a-z0-9_]{0,9}", 3..6), filled: bool, nocase: bool, descending: bool) {
        let column = |name: &String| IndexColumn { name: name.clone(), nocase, descending };
        let index = Index {
            name: names[0].clone(),
            table: names[1].clone(),
            unique,
            columns: names[2..].iter().map(column).collect(),
            where_filled: filled.then(|| names[2].clone()),
        };
        prop_assert_eq!(parse_index(&index.to_sql()), Ok(index));
    }

    #[test]
    fn any_index_statement_is_answered(statement in "(?i)(create|unique|index|on|where|[`\"\\[\\](),;'!=a-z_ é])*") {
        let _ = parse_index(&statement);
    }
}

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::guard::{Kind, guard};

/// The `posts` collection of the observed cases (reference notes, H.4).
fn model() -> Model {
    serde_json::from_value(json!({"collections": [
        {"id": "pbc_posts", "name": "posts", "type": "base", "fields": [
            {"id": "a", "name": "id", "type": "text", "system": true, "primaryKey": true, "required": true,
             "min": 15, "max": 15, "pattern": "^[a-z0-9]+$", "autogeneratePattern": "[a-z0-9]{15}"},
            {"id": "b", "name": "title", "type": "text", "max": 30},
            {"id": "c", "name": "num", "type": "number"},
            {"id": "d", "name": "whole", "type": "number", "onlyInt": true, "min": -100, "max": 1_000_000},
            {"id": "e", "name": "done", "type": "bool"},
            {"id": "f", "name": "due", "type": "date", "max": "2030-01-01"},
            {"id": "g", "name": "sel", "type": "select", "maxSelect": 1, "values": ["a", "b", "c"]},
            {"id": "h", "name": "msel", "type": "select", "maxSelect": 3, "values": ["a", "b", "c", "aa"]},
            {"id": "i", "name": "author", "type": "relation", "collectionId": "pbc_authors", "maxSelect": 1},
            {"id": "j", "name": "tagsm", "type": "relation", "collectionId": "pbc_tags", "maxSelect": 5},
            {"id": "k", "name": "meta", "type": "json"},
            {"id": "l", "name": "link", "type": "url"},
            {"id": "m", "name": "mail", "type": "email"},
            {"id": "n", "name": "loc", "type": "geoPoint"},
            {"id": "o", "name": "code", "type": "text", "autogeneratePattern": "[a-z]{4}"},
            {"id": "p", "name": "pic", "type": "file", "maxSelect": 1},
            {"id": "q", "name": "body", "type": "editor", "maxSize": 10},
            {"id": "r", "name": "short", "type": "text", "min": 2, "pattern": "^[A-Z]"},
            {"id": "s", "name": "created", "type": "autodate", "onCreate": true},
        ]},
        {"id": "pbc_authors", "name": "authors", "type": "base"},
        {"id": "pbc_tags", "name": "tags", "type": "base"},
        {"id": "_pb_users_auth_", "name": "users", "type": "auth", "fields": [
            {"id": "a", "name": "id", "type": "text", "system": true, "primaryKey": true, "required": true},
            {"id": "b", "name": "password", "type": "password", "system": true, "hidden": true, "required": true},
            {"id": "c", "name": "tokenKey", "type": "text", "system": true, "hidden": true, "required": true},
            {"id": "d", "name": "email", "type": "email", "system": true, "required": true},
            {"id": "e", "name": "emailVisibility", "type": "bool", "system": true},
            {"id": "f", "name": "verified", "type": "bool", "system": true},
            {"id": "g", "name": "name", "type": "text"},
        ]},
    ]}))
    .unwrap()
}

fn run(name: &str, body: &Value, mode: Mode, current: Option<&Value>) -> Result<Normalised, Refusal> {
    let model = model();
    let collection = model.collection(name).unwrap();
    normalise(collection, &model, body.as_object().unwrap(), mode, current.map(|row| row.as_object().unwrap()))
}

fn create(body: &Value) -> Result<Normalised, Refusal> {
    run("posts", body, Mode::Create, None)
}

fn problem(result: Result<Normalised, Refusal>) -> Value {
    Value::Object(pb_data(&result.unwrap_err().violations))
}

#[test]
fn values_are_stored_as_pocketbase_was_observed_to_store_them() {
    for (case, field, sent, stored) in [
        ("w1", "title", json!(123), json!("123")),
        ("w3", "title", json!(1e21), json!("1000000000000000000000")),
        ("", "title", json!(true), json!("true")),
        ("", "title", json!(["a"]), json!("")),
        ("", "title", json!(" a "), json!(" a ")),
        ("w5", "num", json!("abc"), json!(0)),
        ("w7", "num", json!("1_000"), json!(1000)),
        ("w11", "num", json!(9_007_199_254_740_993_i64), json!(9_007_199_254_740_992_i64)),
        ("", "num", json!("12.5"), json!(12.5)),
        ("", "num", json!("1e3"), json!(1000)),
        ("", "num", json!(".5"), json!(0.5)),
        ("", "num", json!("010"), json!(10)),
        ("", "num", json!(true), json!(1)),
        ("", "num", json!(null), json!(0)),
        ("w15", "done", json!("yes"), json!(false)),
        ("w17", "done", json!(2), json!(true)),
        ("", "done", json!("True"), json!(true)),
        ("w19", "due", json!("2024-01-10T10:00:00+02:00"), json!("2024-01-10 08:00:00.000Z")),
        ("w23", "due", json!("2024-02-30"), json!("")),
        ("w25", "due", json!("10 Jan 2024"), json!("2024-01-10 00:00:00.000Z")),
        ("", "due", json!(20_240_110), json!("")),
        ("w29", "msel", json!("[\"a\",\"b\"]"), json!(["a", "b"])),
        ("w31", "msel", json!(["a", null, "", "a"]), json!(["a"])),
        ("", "msel", json!({"a": 1}), json!([])),
        ("", "sel", json!(["a", "b"]), json!("b")),
        ("w33", "author", json!(["u1", "u2"]), json!("u2")),
        ("w35", "tagsm", json!(["t2", "t1", "t2"]), json!(["t2", "t1"])),
        ("w37", "meta", json!("12"), json!(12)),
        ("w39", "meta", json!("true"), json!(true)),
        ("w41", "meta", json!({"b": 1, "a": {"d": 1, "c": 2}}), json!({"a": {"c": 2, "d": 1}, "b": 1})),
        ("", "meta", json!("012"), json!("012")),
        ("", "meta", json!("True"), json!("True")),
        ("", "meta", json!(""), json!("")),
        ("w49", "loc", json!({"lon": 1}), json!({"lon": 1, "lat": 0})),
        ("", "loc", json!("{\"lon\":1.5,\"lat\":2}"), json!({"lon": 1.5, "lat": 2})),
    ] {
        let values = create(&json!({ field: sent })).unwrap().values;
        assert_eq!(values[field], stored, "{case} {field} {sent}");
        assert_eq!(values[field].to_string(), stored.to_string(), "{case}: also as text (1, not 1.0; key order)");
    }
}

#[test]
fn what_the_guard_admits_is_kept_where_pocketbase_would_lose_it() {
    for (field, sent, stored) in [
        ("due", json!("2024-01-10 10:00"), json!("2024-01-10 10:00:00.000Z")),
        ("num", json!("0x1F"), json!(31)),
        ("num", json!(" 5 "), json!(5)),
    ] {
        assert_eq!(create(&json!({ field: sent })).unwrap().values[field], stored);
    }
}

#[test]
fn problems_carry_pocketbases_code_message_and_params() {
    for (case, body, data) in [
        (
            "w9",
            json!({"num": "Infinity"}),
            json!({"num": {"code": "validation_not_a_number", "message": "The submitted number is not properly formatted."}}),
        ),
        (
            "w13",
            json!({"whole": -101}),
            json!({"whole": {"code": "validation_min_number_constraint", "message": "Must be greater or equal than -100.", "params": {"min": -100}}}),
        ),
        (
            "",
            json!({"whole": 1.5}),
            json!({"whole": {"code": "validation_only_int_constraint", "message": "Decimal numbers are not allowed."}}),
        ),
        (
            "",
            json!({"whole": 1_000_001}),
            json!({"whole": {"code": "validation_max_number_constraint", "message": "Must be less or equal than 1000000.", "params": {"max": 1_000_000}}}),
        ),
        (
            "w27",
            json!({"sel": "zzz"}),
            json!({"sel": {"code": "validation_invalid_value", "message": "Invalid value zzz.", "params": {"value": "zzz"}}}),
        ),
        (
            "",
            json!({"msel": ["a", ["b"]]}),
            json!({"msel": {"code": "validation_invalid_value", "message": "Invalid value [\"b\"].", "params": {"value": "[\"b\"]"}}}),
        ),
        (
            "",
            json!({"msel": ["a", "b", "c", "aa"]}),
            json!({"msel": {"code": "validation_too_many_values", "message": "Select no more than 3.", "params": {"maxSelect": 3}}}),
        ),
        (
            "w43",
            json!({"meta": "x\u{1}"}),
            json!({"meta": {"code": "validation_invalid_json", "message": "Must be a valid json value."}}),
        ),
        (
            "",
            json!({"meta": {"a": ["\u{0}"]}}),
            json!({"meta": {"code": "validation_invalid_json", "message": "Must be a valid json value."}}),
        ),
        (
            "w45",
            json!({"link": "x.y"}),
            json!({"link": {"code": "validation_invalid_url", "message": "Must be a valid url."}}),
        ),
        (
            "w47",
            json!({"mail": "a@b"}),
            json!({"mail": {"code": "validation_is_email", "message": "Must be a valid email address."}}),
        ),
        (
            "w51",
            json!({"loc": {"lon": 181, "lat": 0}}),
            json!({"loc": {"code": "validation_invalid_longitude", "message": "Longitude must be between -180 and 180 degrees."}}),
        ),
        (
            "w55",
            json!({"id": "short"}),
            json!({"id": {"code": "validation_min_text_constraint", "message": "Must be at least 15 character(s).", "params": {"min": 15}}}),
        ),
        (
            "",
            json!({"id": "ABCDEFGHIJKLMNO"}),
            json!({"id": {"code": "validation_invalid_format", "message": "Invalid value format."}}),
        ),
        (
            "",
            json!({"title": "x".repeat(31)}),
            json!({"title": {"code": "validation_max_text_constraint", "message": "Must be no more than 30 character(s).", "params": {"max": 30}}}),
        ),
        (
            "",
            json!({"title": "a\u{0}b"}),
            json!({"title": {"code": "validation_invalid_value", "message": "Must not contain NUL characters."}}),
        ),
        (
            "",
            json!({"short": "A"}),
            json!({"short": {"code": "validation_min_text_constraint", "message": "Must be at least 2 character(s).", "params": {"min": 2}}}),
        ),
        (
            "",
            json!({"short": "ab"}),
            json!({"short": {"code": "validation_invalid_format", "message": "Invalid value format."}}),
        ),
        (
            "",
            json!({"body": "01234567890"}),
            json!({"body": {"code": "validation_content_size_limit", "message": "The maximum allowed content size is 10 bytes.", "params": {"maxSize": 10}}}),
        ),
        (
            "",
            json!({"due": "2031-01-01"}),
            json!({"due": {"code": "validation_max_less_equal_than_required", "message": "Must be no greater than 2030-01-01 00:00:00 +0000 UTC.", "params": {"threshold": "2030-01-01T00:00:00Z"}}}),
        ),
        (
            "",
            json!({"loc": "here"}),
            json!({"loc": {"code": "validation_invalid_geo_point", "message": "Must be an object with the numbers lon and lat."}}),
        ),
        (
            "",
            json!({"pic": "a.png"}),
            json!({"pic": {"code": "validation_invalid_file", "message": "Invalid new files: [a.png].", "params": {"invalidFiles": ["a.png"]}}}),
        ),
        (
            "",
            json!({"meta": "x".repeat(1 << 20)}),
            json!({"meta": {"code": "validation_json_size_limit", "message": "The maximum allowed JSON size is 1048576 bytes.", "params": {"maxSize": 1_048_576}}}),
        ),
    ] {
        assert_eq!(problem(create(&body)), data, "{case}");
    }
}

#[test]
fn a_single_choice_that_looks_like_a_list_is_not_read_twice() {
    for sent in [json!([[]]), json!(["[]"]), json!(["[\"a\"]"])] {
        assert_eq!(problem(create(&json!({ "sel": sent })))["sel"]["code"], "validation_invalid_value", "{sent}");
        let references = create(&json!({ "author": sent })).unwrap().references;
        assert_eq!(references[0].ids.len(), 1, "the store must look for it and not find it: {sent}");
    }
}

#[test]
fn all_problems_are_in_one_answer() {
    let refusal = create(&json!({"num": "NaN", "sel": "x", "mail": "y", "id": "!"})).unwrap_err();
    let fields: Vec<_> = refusal.violations.iter().map(|violation| violation.field.as_str()).collect();
    assert_eq!(fields, ["id", "num", "sel", "mail"]);
    assert_eq!(refusal.code.status(), 400);
    assert!(
        refusal.message.starts_with("Rejected by a2app (invalid_value): field \"id\" expects "),
        "{}",
        refusal.message
    );
}

#[test]
fn a_new_record_has_a_value_in_every_column_and_an_update_only_what_was_sent() {
    let new = create(&json!({"unknown": 1})).unwrap();
    assert_eq!(
        Value::Object(new.values),
        json!({
            "title": "", "num": 0, "whole": 0, "done": false, "due": "", "sel": "", "msel": [], "author": "", "tagsm": [],
            "meta": null, "link": "", "mail": "", "loc": {"lon": 0, "lat": 0}, "pic": "", "body": "", "short": "",
        })
    );
    assert_eq!(new.id, None);
    assert_eq!(new.generate, [Generate { field: "code".into(), prefix: String::new(), pattern: "[a-z]{4}".into() }]);
    let update = run("posts", &json!({"title": "", "created": "x"}), Mode::Update, None).unwrap();
    assert_eq!(Value::Object(update.values), json!({"title": ""}));
    assert!(update.generate.is_empty());
}

#[test]
fn required_refuses_what_pocketbase_calls_blank() {
    let mut model = model();
    for field in &mut model.collections[0].fields {
        field.required = !["id", "created", "pic", "code"].contains(&field.name.as_str());
    }
    let body = json!({"num": 0, "done": false, "meta": {}, "loc": {}, "msel": [null], "title": null});
    let collection = &model.collections[0];
    let refusal = normalise(collection, &model, body.as_object().unwrap(), Mode::Create, None).unwrap_err();
    let data = pb_data(&refusal.violations);
    for field in ["num", "whole", "done", "meta", "loc", "msel", "title", "due", "author"] {
        assert_eq!(data[field], json!({"code": "validation_required", "message": "Cannot be blank."}), "{field}");
    }
}

#[test]
fn references_name_the_collection_and_only_new_ids() {
    let new = create(&json!({"author": "u1", "tagsm": ["t1", "t2"]})).unwrap();
    let reference = |field: &str, collection: &str, ids: &[&str]| Reference {
        field: field.into(),
        collection: collection.into(),
        ids: ids.iter().map(|&id| id.to_owned()).collect(),
    };
    assert_eq!(new.references, [reference("author", "authors", &["u1"]), reference("tagsm", "tags", &["t1", "t2"])]);
    let row = json!({"id": "p1", "tagsm": ["t1"]});
    let update = run("posts", &json!({"tagsm+": "t2"}), Mode::Update, Some(&row)).unwrap();
    assert_eq!(update.values["tagsm"], json!(["t1", "t2"]));
    assert_eq!(update.references, [reference("tagsm", "tags", &["t2"])]);
    assert_eq!(
        Value::Object(pb_data(&[missing_reference("author", "authors", &json!("u9"))]))["author"]["code"],
        "validation_missing_rel_records"
    );
}

#[test]
fn modifiers_change_what_is_stored() {
    let row = json!({"id": "p1", "num": 5, "msel": ["a", "b"], "sel": "a"});
    for (body, field, after) in [
        (json!({"msel+": ["c", "a"]}), "msel", json!(["a", "b", "c"])),
        (json!({"+msel": "b"}), "msel", json!(["b", "a"])),
        (json!({"msel-": ["a", "zzz"]}), "msel", json!(["b"])),
        (json!({"sel+": "b"}), "sel", json!("b")),
        (json!({"sel-": "a"}), "sel", json!("")),
        (json!({"num+": "3"}), "num", json!(8)),
        (json!({"num-": 0.5}), "num", json!(4.5)),
        (json!({"num+": 1, "num": 1}), "num", json!(2)),
    ] {
        let update = run("posts", &body, Mode::Update, Some(&row)).unwrap();
        assert_eq!(update.values[field], after, "{body}");
    }
}

#[test]
fn a_number_change_without_the_row_is_left_to_the_store() {
    let update = run("posts", &json!({"num+": 2, "num-": 5}), Mode::Update, None).unwrap();
    assert_eq!(update.modifiers, [NumberChange { field: "num".into(), delta: -3.0 }]);
    assert!(update.values.is_empty());
    let told = run("posts", &json!({"num": 1, "num+": 5}), Mode::Update, None).unwrap();
    assert_eq!((told.values["num"].clone(), told.modifiers.len()), (json!(6), 0));
    assert!(run("posts", &json!({"msel+": "a"}), Mode::Update, None).is_err(), "a list cannot be changed blindly");
    assert_eq!(create(&json!({"num+": 5, "msel+": "a"})).unwrap().values["msel"], json!(["a"]));
}

#[test]
fn an_id_is_chosen_once() {
    let row = json!({"id": "abcdefghijklmno"});
    assert_eq!(create(&json!({"id": "abcdefghijklmno"})).unwrap().id.as_deref(), Some("abcdefghijklmno"));
    assert_eq!(create(&json!({"id": ""})).unwrap().id, None);
    assert!(run("posts", &json!({"id": "abcdefghijklmno"}), Mode::Update, Some(&row)).is_ok());
    for id in ["", "other0000000000"] {
        let data = problem(run("posts", &json!({ "id": id }), Mode::Update, Some(&row)));
        assert_eq!(data["id"]["code"], "validation_pk_change");
        let blind = run("posts", &json!({ "id": id }), Mode::Update, None).unwrap();
        let refusal = blind.check_own_id("abcdefghijklmno").unwrap_err();
        assert_eq!(pb_data(&refusal.violations)["id"]["code"], "validation_pk_change");
    }
    assert!(run("posts", &json!({"title": "x"}), Mode::Update, None).unwrap().check_own_id("abcdefghijklmno").is_ok());
}

#[test]
fn passwords_are_kept_apart_and_never_told_back() {
    let body = json!({"email": "a@example.org", "password": "12345678", "passwordConfirm": "12345678"});
    let new = run("users", &body, Mode::Create, None).unwrap();
    assert_eq!(Value::Object(new.secrets), json!({"password": "12345678"}));
    assert_eq!(
        Value::Object(new.values),
        json!({"email": "a@example.org", "emailVisibility": false, "verified": false, "name": ""})
    );
    for (change, field, code) in [
        (json!({"password": "1234567", "passwordConfirm": "1234567"}), "password", "validation_min_text_constraint"),
        (
            json!({"password": "x".repeat(72), "passwordConfirm": "x".repeat(72)}),
            "password",
            "validation_max_text_constraint",
        ),
        (json!({"password": "12345678", "passwordConfirm": "other"}), "passwordConfirm", "validation_values_mismatch"),
        (json!({"password": "12345678"}), "passwordConfirm", "validation_required"),
        (json!({}), "password", "validation_required"),
    ] {
        let mut body = json!({"email": "a@example.org"});
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let refusal = run("users", &body, Mode::Create, None).unwrap_err();
        assert!(!serde_json::to_string(&refusal).unwrap().contains("1234567\""), "{refusal:?}");
        assert_eq!(pb_data(&refusal.violations)[field]["code"], code, "{change}");
    }
    let update = json!({"password": "new-password", "passwordConfirm": "new-password", "oldPassword": "old"});
    let update = run("users", &update, Mode::Update, None).unwrap();
    assert_eq!(Value::Object(update.secrets), json!({"password": "new-password", "oldPassword": "old"}));
}

#[test]
fn only_a_manager_verifies_and_changes_emails() {
    let model = model();
    let users = model.collection("users").unwrap();
    let row = json!({"id": "u1", "email": "a@example.org", "verified": false});
    let row = row.as_object();
    let check = |body: &Value, mode| {
        let normalised = normalise(users, &model, body.as_object().unwrap(), mode, row).unwrap();
        check_auth_form(users, &normalised, mode, row).map_err(|refusal| refusal.violations[0].field.clone())
    };
    let form =
        json!({"email": "a@example.org", "password": "12345678", "passwordConfirm": "12345678", "verified": true});
    assert_eq!(check(&form, Mode::Create), Err("verified".to_owned()));
    assert_eq!(check(&json!({"email": "b@example.org"}), Mode::Update), Err("email".to_owned()));
    assert_eq!(check(&json!({"email": "a@example.org", "verified": false, "name": "x"}), Mode::Update), Ok(()));
    let form = json!({"password": "12345678", "passwordConfirm": "12345678"});
    assert_eq!(check(&form, Mode::Update), Err("oldPassword".to_owned()));
}

#[test]
fn what_was_asked_for_and_is_not_there_is_lost() {
    let model = model();
    let body = json!({
        "title": "a", "due": "2024-02-30", "num": 0, "done": false, "msel": [], "tagsm": ["", null], "meta": "null",
        "sel": null, "created": "2024-01-01", "msel+": "a", "bogus": 1, "author": {"id": "u1"},
    });
    let fields = read_back_fields(&model.collections[0], body.as_object().unwrap());
    assert_eq!(fields, ["title", "due", "num", "done", "author"]);
    let stored = create(&body).unwrap().values;
    let lost = lost(&fields, &stored);
    let names: Vec<_> = lost.iter().map(|violation| violation.field.as_str()).collect();
    assert_eq!(names, ["due", "author"]);
    let refusal = not_stored(lost);
    assert_eq!((refusal.code.as_str(), refusal.code.status()), ("not_stored", 422));
    assert!(refusal.message.contains("did not store due, author"));
}

#[test]
fn a_record_is_shown_in_alphabetical_order_without_its_secrets() {
    let model = model();
    let row = json!({
        "tokenKey": "t", "password": "hash", "email": "a@example.org", "emailVisibility": false, "verified": true,
        "name": "Ann", "id": "u1",
    });
    let users = model.collection("users").unwrap();
    let shown =
        |hidden, email| Value::Object(render_record(users, row.as_object().unwrap(), hidden, email)).to_string();
    assert_eq!(
        shown(true, false),
        r#"{"collectionId":"_pb_users_auth_","collectionName":"users","emailVisibility":false,"id":"u1","name":"Ann","verified":true}"#
    );
    assert!(shown(false, true).contains("a@example.org"));
    let mut open = row.clone();
    open["emailVisibility"] = json!(true);
    assert!(render_record(users, open.as_object().unwrap(), false, false).contains_key("email"));

    let mut posts = model.collections[0].clone();
    posts.fields[1].hidden = true;
    let row = json!({"num": 3.0, "title": "t", "meta": null});
    let record = render_record(&posts, row.as_object().unwrap(), false, false);
    assert_eq!(
        (record["num"].to_string(), record["meta"].clone(), record["msel"].clone()),
        ("3".into(), json!(null), json!([]))
    );
    assert!(!record.contains_key("title"));
    assert!(render_record(&posts, row.as_object().unwrap(), true, false).contains_key("title"));
}

#[test]
fn a_violated_unique_index_is_told_on_every_column() {
    let refusal = not_unique(["a", "b"]);
    let data = pb_data(&refusal.violations);
    assert_eq!(data["a"], json!({"code": "validation_not_unique", "message": "Value must be unique."}));
    assert_eq!((data["a"].clone(), refusal.code.as_str()), (data["b"].clone(), "not_unique"));
}

#[test]
fn an_id_has_no_sign_and_is_no_word_that_a_path_would_trip_over() {
    let mut collection = model().collections.remove(0);
    let inn_protocol::model::FieldKind::Text { min, max, pattern, .. } = &mut collection.fields[0].kind else {
        panic!("the id")
    };
    (*min, *max) = (1, 40);
    "^[\\s\\S]+$".clone_into(pattern);
    let model = Model { collections: vec![collection.clone()] };
    for (id, told) in [
        (
            "a/b",
            Some(
                json!({"code": "validation_forbidden_pk_character", "message": "'/' is not a valid primary key character.", "params": {"ch": "/"}}),
            ),
        ),
        (
            "..",
            Some(
                json!({"code": "validation_forbidden_pk_character", "message": "'.' is not a valid primary key character.", "params": {"ch": "."}}),
            ),
        ),
        (
            " $",
            Some(
                json!({"code": "validation_forbidden_pk_character", "message": "'$' is not a valid primary key character.", "params": {"ch": "$"}}),
            ),
        ),
        (
            "a b",
            Some(
                json!({"code": "validation_forbidden_pk_character", "message": "' ' is not a valid primary key character.", "params": {"ch": " "}}),
            ),
        ),
        (
            "lpt1",
            Some(
                json!({"code": "validation_reserved_pk", "message": "The primary key 'LPT1' is reserved and cannot be used.", "params": {"reserved": "LPT1"}}),
            ),
        ),
        ("a#b", Some(json!({"code": "validation_invalid_format", "message": "Invalid value format."}))),
        ("Abc", None),
        ("\u{e4}-_@~", None),
        ("com0", None),
    ] {
        let body = json!({"id": id, "title": "x"}).as_object().cloned().unwrap();
        let found = normalise(&collection, &model, &body, Mode::Create, None);
        let found = found.err().map(|refusal| Value::Object(pb_data(&refusal.violations))["id"].clone());
        assert_eq!(found, told, "{id:?}");
    }
}

#[test]
fn an_id_of_another_account_is_told_in_pocketbases_words() {
    let refusal = taken_account_id("a00000000000000");
    let told =
        json!({"id": {"code": "validation_invalid_auth_id", "message": "Invalid or duplicated auth record id."}});
    assert_eq!(Value::Object(pb_data(&refusal.violations)), told);
    assert_eq!(refusal.code.as_str(), "not_unique");
}

fn any_json() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        any::<String>(),
        "[0-9eE+._xX -]{0,8}",
        "[0-9]{4}-[0-9]{2}-[0-9]{2}[ T]?([0-9]{2}:[0-9]{2}(:[0-9]{2})?)?Z?",
        "[\\[{\"].{0,10}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text.prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((any::<String>(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn any_body() -> impl Strategy<Value = Map<String, Value>> {
    let name = proptest::sample::select(vec![
        "id",
        "title",
        "num",
        "whole",
        "done",
        "due",
        "sel",
        "msel",
        "author",
        "tagsm",
        "meta",
        "link",
        "mail",
        "loc",
        "code",
        "pic",
        "body",
        "short",
        "created",
        "num+",
        "num-",
        "msel+",
        "+msel",
        "tagsm-",
        "code:autogenerate",
        "email",
        "password",
        "passwordConfirm",
        "constructor",
    ]);
    let key = prop_oneof![9 => name.prop_map(str::to_owned), 1 => any::<String>()];
    proptest::collection::vec((key, any_json()), 0..8).prop_map(|members| members.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_body_makes_guard_or_normalise_panic(body in any_body(), update: bool) {
        let model = model();
        let (mode, row) = if update { (Mode::Update, Some(&body)) } else { (Mode::Create, None) };
        for collection in &model.collections {
            for kind in [Kind::Json, Kind::Multipart] {
                if let Err(refusal) = guard(collection, &body, mode, kind, false, chrono::DateTime::UNIX_EPOCH) {
                    prop_assert!(pb_data(&refusal.violations).len() <= refusal.violations.len());
                }
            }
            match normalise(collection, &model, &body, mode, row) {
                Ok(normalised) => {
                    let fields = read_back_fields(collection, &body);
                    let _ = lost(&fields, &normalised.values);
                    let _ = render_record(collection, &normalised.values, true, true);
                }
                Err(refusal) => prop_assert!(!refusal.violations.is_empty()),
            }
        }
    }

    /// The guard promises that what it lets through can be kept: dates and numbers above all.
    #[test]
    fn what_the_guard_lets_through_is_not_lost(field in proptest::sample::select(vec!["title", "num", "done", "due", "sel"]), value in any_json()) {
        let model = model();
        let posts = &model.collections[0];
        let body: Map<String, Value> = [(field.to_owned(), value)].into_iter().collect();
        if guard(posts, &body, Mode::Update, Kind::Json, false, chrono::DateTime::UNIX_EPOCH).is_ok()
            && let Ok(normalised) = normalise(posts, &model, &body, Mode::Update, None)
        {
            prop_assert_eq!(lost(&read_back_fields(posts, &body), &normalised.values), vec![]);
        }
    }

    /// Except for texts that are read as JSON: those change their meaning once.
    #[test]
    fn a_value_that_was_normalised_stays_as_it_is(body in any_body()) {
        let model = model();
        let posts = &model.collections[0];
        if let Ok(once) = normalise(posts, &model, &body, Mode::Update, Some(&Map::new())) {
            let values: Map<_, _> = once.values.into_iter().filter(|(name, value)| name != "meta" && !value.as_str().is_some_and(|text| text.starts_with('['))).collect();
            let twice = normalise(posts, &model, &values, Mode::Update, Some(&Map::new())).unwrap();
            prop_assert_eq!(twice.values, values);
        }
    }
}

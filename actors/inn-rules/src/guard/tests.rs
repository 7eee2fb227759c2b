use chrono::TimeZone;
use serde_json::json;

use super::*;

fn cards() -> Collection {
    serde_json::from_value(json!({
        "id": "pbc_1", "name": "cards", "type": "base", "fields": [
            {"id": "id", "name": "id", "type": "text", "system": true, "primaryKey": true, "required": true},
            {"id": "f1", "name": "title", "type": "text", "required": true, "max": 255},
            {"id": "f2", "name": "due_date", "type": "date"},
            {"id": "f3", "name": "position", "type": "number"},
            {"id": "f4", "name": "archived", "type": "bool"},
            {"id": "f5", "name": "priority", "type": "select", "maxSelect": 1, "values": ["low", "high", "5"]},
            {"id": "f6", "name": "tags", "type": "select", "maxSelect": 3, "values": ["a", "b"]},
            {"id": "f7", "name": "day", "type": "text", "max": 10},
            {"id": "f8", "name": "list", "type": "relation", "collectionId": "pbc_2", "maxSelect": 1},
            {"id": "f9", "name": "meta", "type": "json"},
            {"id": "f10", "name": "secret", "type": "text", "hidden": true},
            {"id": "f11", "name": "created", "type": "autodate", "onCreate": true},
        ]
    }))
    .unwrap()
}

fn users() -> Collection {
    serde_json::from_value(json!({
        "id": "_pb_users_auth_", "name": "users", "type": "auth", "fields": [
            {"id": "a", "name": "id", "type": "text", "system": true, "primaryKey": true, "required": true},
            {"id": "b", "name": "password", "type": "password", "system": true, "hidden": true, "required": true},
            {"id": "c", "name": "tokenKey", "type": "text", "system": true, "hidden": true, "required": true},
            {"id": "d", "name": "email", "type": "email", "system": true, "required": true},
            {"id": "e", "name": "emailVisibility", "type": "bool", "system": true},
            {"id": "f", "name": "verified", "type": "bool", "system": true},
            {"id": "g", "name": "name", "type": "text"},
        ]
    }))
    .unwrap()
}

fn now() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 7, 30, 9, 15, 0).unwrap()
}

fn run(collection: &Collection, body: &Value, mode: Mode, kind: Kind) -> Result<(), Refusal> {
    guard(collection, body.as_object().unwrap(), mode, kind, false, now())
}

fn codes(body: &Value) -> Vec<(String, String)> {
    match run(&cards(), body, Mode::Update, Kind::Json) {
        Ok(()) => Vec::new(),
        Err(refusal) => refusal.violations.iter().map(|v| (v.field.clone(), v.code.as_str().to_owned())).collect(),
    }
}

#[test]
fn each_type_takes_what_the_protocol_names_and_nothing_else() {
    for (field, good, bad, code) in [
        (
            "due_date",
            vec![
                json!("2026-07-30"),
                json!("2026-07-30 00:00:00.000Z"),
                json!("2026-07-30T10:00+02:00"),
                json!("2024-02-29"),
            ],
            vec![
                json!("tomorrow"),
                json!("2026-02-29"),
                json!(20_260_730),
                json!("2026-7-30"),
                json!(true),
                json!([]),
                json!("30.07.2026"),
                json!("2026-07-30T25:00Z"),
            ],
            "invalid_date",
        ),
        (
            "day",
            vec![json!("2026-07-30")],
            vec![json!("2026-07-30T00:00Z"), json!("today"), json!(7)],
            "invalid_daykey",
        ),
        (
            "position",
            vec![json!(1.5), json!("12"), json!(" 5 "), json!("1e3"), json!("0x10"), json!("-.5"), json!("Infinity")],
            vec![
                json!("abc"),
                json!("  "),
                json!(true),
                json!([1]),
                json!("1_000"),
                json!("nan"),
                json!("inf"),
                json!("0x"),
                json!("1e"),
            ],
            "invalid_number",
        ),
        (
            "archived",
            vec![json!(true), json!("true"), json!("false")],
            vec![json!("maybe"), json!(1), json!("TRUE"), json!({})],
            "invalid_boolean",
        ),
        (
            "priority",
            vec![json!("low"), json!(5), json!(["low"])],
            vec![json!("urgent"), json!("LOW"), json!(["low", "high"]), json!({})],
            "invalid_enum",
        ),
        (
            "title",
            vec![json!("a"), json!(" ")],
            vec![json!(1), json!(true), json!(["a"]), json!({"a": 1})],
            "invalid_string",
        ),
        ("created", vec![], vec![json!("2026-07-30"), json!(null), json!("")], "read_only_field"),
    ] {
        for value in good {
            assert_eq!(codes(&json!({ field: value })), [], "{field} {value}");
        }
        for value in bad {
            assert_eq!(codes(&json!({ field: value })), [(field.to_owned(), code.to_owned())], "{field} {value}");
        }
    }
}

#[test]
fn blank_clears_a_field_and_unchecked_types_pass() {
    for field in ["due_date", "day", "position", "archived", "priority", "title", "tags", "list", "meta"] {
        assert_eq!(codes(&json!({ field: null })), [], "{field}");
        assert_eq!(codes(&json!({ field: "" })), [], "{field}");
    }
    assert_eq!(codes(&json!({"tags": ["zzz"], "list": 5, "meta": {"a": [1]}})), []);
}

#[test]
fn names_javascript_objects_are_born_with_are_unknown_fields() {
    for name in ["bogus", "constructor", "__proto__", "toString", "hasOwnProperty", "title.x", "Title", ""] {
        assert_eq!(codes(&json!({ name: 1 })), [(name.to_owned(), "unknown_field".to_owned())]);
    }
}

#[test]
fn a_field_really_called_constructor_is_a_field() {
    let mut collection = cards();
    let mut field = collection.fields[1].clone();
    field.name = "constructor".to_owned();
    collection.fields.push(field);
    assert!(run(&collection, &json!({"constructor": "x"}), Mode::Update, Kind::Json).is_ok());
}

#[test]
fn every_violation_is_in_one_answer() {
    let refusal = run(
        &cards(),
        &json!({"due_date": "tomorrow", "position": "abc", "archived": "maybe", "bogus": 1}),
        Mode::Create,
        Kind::Json,
    )
    .unwrap_err();
    let listed: Vec<_> = refusal.violations.iter().map(|v| v.code.as_str()).collect();
    assert_eq!(listed, ["invalid_date", "invalid_number", "invalid_boolean", "unknown_field", "missing_required"]);
    assert_eq!(refusal.code, Code::InvalidDate);
    assert_eq!(
        refusal.message,
        "Rejected by a2app (invalid_date): field \"due_date\" expects an ISO 8601 date; got \"tomorrow\". \
         Example: \"2026-07-30\". Server time is 2026-07-30 09:15:00Z."
    );
    let unknown = refusal.violations[3].expected.as_deref().unwrap();
    assert_eq!(unknown, "one of: title, due_date, position, archived, priority, tags, day, list, meta");
}

#[test]
fn required_fields_must_be_sent_on_create_only() {
    for body in [json!({}), json!({"title": null}), json!({"title": ""})] {
        let refusal = run(&cards(), &body, Mode::Create, Kind::Json).unwrap_err();
        assert_eq!((refusal.code, refusal.violations.len()), (Code::MissingRequired, 1), "{body}");
        assert!(run(&cards(), &body, Mode::Update, Kind::Json).is_ok(), "{body}");
    }
}

#[test]
fn modifier_keys_pass_for_the_fields_that_define_them() {
    for key in ["position+", "position-", "tags+", "+tags", "tags-", "list+", "+list", "list-"] {
        assert_eq!(codes(&json!({ key: 1 })), [], "{key}");
    }
    for key in ["+position", "title+", "title-", "archived+", "meta+", "+", "-", "++tags", "created+", "id-"] {
        assert_eq!(codes(&json!({ key: 1 })), [(key.to_owned(), "unknown_field".to_owned())], "{key}");
    }
    assert_eq!(codes(&json!({"position+": "abc"})), [("position+".to_owned(), "invalid_number".to_owned())]);
}

#[test]
fn a_form_may_carry_a_number_for_a_text_field() {
    assert!(run(&cards(), &json!({"title": 2026}), Mode::Create, Kind::Multipart).is_ok());
    assert!(run(&cards(), &json!({"title": true, "position": "12"}), Mode::Create, Kind::Multipart).is_ok());
    assert!(run(&cards(), &json!({"title": ["a"]}), Mode::Create, Kind::Multipart).is_err());
}

#[test]
fn the_sign_up_form_passes_and_the_token_key_does_not() {
    let form = json!({"email": "a@example.org", "password": "12345678", "passwordConfirm": "12345678", "name": "Ann"});
    assert!(run(&users(), &form, Mode::Create, Kind::Json).is_ok());
    let refusal =
        run(&users(), &json!({"tokenKey": "x", "password": 12_345_678}), Mode::Update, Kind::Json).unwrap_err();
    let listed: Vec<_> = refusal.violations.iter().map(|v| v.code.as_str()).collect();
    assert_eq!(listed, ["read_only_field", "invalid_string"]);
    let missing = run(&users(), &json!({}), Mode::Create, Kind::Json).unwrap_err();
    let fields: Vec<_> = missing.violations.iter().map(|v| v.field.as_str()).collect();
    assert_eq!(fields, ["password", "email"]);
    assert!(run(&cards(), &json!({"password": "x"}), Mode::Update, Kind::Json).is_err());
}

#[test]
fn hidden_fields_exist_for_owners_only() {
    let body = json!({"secret": "x"});
    let body = body.as_object().unwrap();
    let refusal = guard(&cards(), body, Mode::Update, Kind::Json, false, now()).unwrap_err();
    assert_eq!(refusal.code, Code::UnknownField);
    assert!(!refusal.violations[0].expected.as_deref().unwrap().contains("secret"));
    assert!(guard(&cards(), body, Mode::Update, Kind::Json, true, now()).is_ok());
}

#[test]
fn the_answer_stays_small_whatever_was_sent() {
    let body: Map<_, _> = (0..10_000).map(|n| ("k".repeat(500) + &n.to_string(), json!("v".repeat(1000)))).collect();
    let refusal = guard(&cards(), &body, Mode::Update, Kind::Json, false, now()).unwrap_err();
    assert_eq!(refusal.violations.len(), MAX_VIOLATIONS);
    assert!(serde_json::to_string(&refusal).unwrap().len() < 100_000);
}

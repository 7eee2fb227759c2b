use super::*;
use serde_json::json;

fn today() -> NaiveDate {
    "2026-07-30".parse().unwrap()
}

fn of(kind: &str) -> Field {
    Field { name: "f".to_owned(), kind: kind.to_owned(), ..Field::default() }
}

fn value(field_: &Field, text: &str) -> Value {
    match field(field_, text, today()).unwrap() {
        Coerced::Value(value) => value,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_type_decides_and_never_the_look_of_the_text() {
    for (kind, text, expected) in [
        ("string", "2026", json!("2026")),
        ("string", "true", json!("true")),
        ("string", "null", json!("null")),
        ("string", "tomorrow", json!("tomorrow")),
        ("number", "42", json!(42)),
        ("number", "-1.5", json!(-1.5)),
        ("boolean", "true", json!(true)),
        ("datetime", "tomorrow", json!("2026-07-31 00:00:00.000Z")),
        ("datetime", "2026-02-30", json!("2026-02-30")),
        ("datetime", "2026-07-31T10:00:00+02:00", json!("2026-07-31T10:00:00+02:00")),
        ("json", "{\"a\":[1]}", json!({"a": [1]})),
        ("number", "", json!(null)),
        ("datetime", "null", json!(null)),
        ("string", "", json!("")),
    ] {
        assert_eq!(value(&of(kind), text), expected, "{kind} {text}");
    }
    let day_key = Field { format: Some("YYYY-MM-DD".to_owned()), ..of("string") };
    assert_eq!(value(&day_key, "next friday"), "2026-07-31");
    assert_eq!(value(&day_key, "2026-07-31 10:00:00Z"), "2026-07-31");
}

#[test]
fn what_does_not_fit_is_refused_here_with_its_code() {
    for (kind, text, code) in [
        ("number", "many", "invalid_number"),
        ("number", "inf", "invalid_number"),
        ("number", "NaN", "invalid_number"),
        ("number", "0x10", "invalid_number"),
        ("boolean", "yes", "invalid_boolean"),
        ("datetime", "soonish", "invalid_date"),
        ("json", "{", "invalid_body"),
        ("binary", "a.png", "not_implemented"),
    ] {
        let error = field(&of(kind), text, today()).unwrap_err();
        assert!(matches!(error, CliError::Local { code: found, .. } if found == code), "{kind} {text}: {error:?}");
        assert_eq!(error.exit(), 1);
    }
}

#[test]
fn a_choice_must_be_one_of_the_values() {
    let priority = Field { values: vec!["low".to_owned(), "high".to_owned()], ..of("enum") };
    assert_eq!(value(&priority, "high"), "high");
    assert!(field(&priority, "High", today()).unwrap_err().text().contains("low, high"));
    let several = Field { kind: "list<enum>".to_owned(), ..priority };
    assert_eq!(value(&several, "low, high"), json!(["low", "high"]));
    assert!(field(&several, "low,none", today()).is_err());
}

#[test]
fn an_id_stays_an_id_and_anything_else_is_a_label_to_look_up() {
    let list = Field { entity: Some("lists".to_owned()), ..of("ref") };
    assert_eq!(value(&list, "abc123def456ghi"), "abc123def456ghi");
    let found = field(&list, "To Do", today()).unwrap();
    assert_eq!(found, Coerced::Ref { entity: "lists".to_owned(), label: "To Do".to_owned() });
    let labels = Field { kind: "list<ref>".to_owned(), ..list };
    assert_eq!(value(&labels, "abc123def456ghi,abc123def456ghj"), json!(["abc123def456ghi", "abc123def456ghj"]));
    let found = field(&labels, "home, garden", today()).unwrap();
    assert_eq!(
        found,
        Coerced::Refs { entity: "lists".to_owned(), labels: vec!["home".to_owned(), "garden".to_owned()] }
    );
}

#[test]
fn params_are_checked_against_what_the_operation_declares() {
    let declared = json!({
        "title": {"type": "string", "required": true},
        "count": {"type": "number"},
        "done": {"type": "boolean", "required": true, "default": true},
    });
    let given = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<Vec<_>>()
    };
    let done = params(&declared, &given(&[("title", "7"), ("count", "7")])).unwrap();
    assert_eq!(Value::Object(done), json!({"title": "7", "count": 7}));
    assert!(params(&declared, &given(&[])).unwrap_err().text().contains("--p title=…"));
    assert!(
        params(&declared, &given(&[("title", "x"), ("titel", "y")])).unwrap_err().text().contains("no param titel")
    );
    assert!(params(&declared, &given(&[("title", "x"), ("title", "y")])).is_err());
    assert!(params(&Value::Null, &given(&[("a", "b")])).unwrap_err().text().contains("It takes none."));
}

use chrono::TimeZone;
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn model() -> Model {
    serde_json::from_value(json!({"collections": [
        {"id": "c", "name": "cards", "type": "base", "fields": [
            {"id": "1", "name": "title", "type": "text", "required": true},
            {"id": "2", "name": "list", "type": "relation", "collectionId": "l", "maxSelect": 1},
            {"id": "3", "name": "labels", "type": "relation", "collectionId": "l", "maxSelect": 9},
            {"id": "4", "name": "due_date", "type": "date"},
            {"id": "5", "name": "start_day", "type": "text", "max": 10},
            {"id": "6", "name": "priority", "type": "select", "maxSelect": 1, "values": ["high"]},
            {"id": "7", "name": "archived", "type": "bool"},
            {"id": "8", "name": "position", "type": "number"},
            {"id": "9", "name": "meta", "type": "json"},
            {"id": "10", "name": "secret", "type": "date", "hidden": true},
        ]},
        {"id": "l", "name": "lists", "type": "base", "fields": [{"id": "1", "name": "title", "type": "text"}]},
        {"id": "e", "name": "entries", "type": "base", "fields": [
            {"id": "1", "name": "date", "type": "date"},
            {"id": "2", "name": "owner", "type": "relation", "collectionId": "u", "maxSelect": 1},
        ]},
        {"id": "u", "name": "users", "type": "auth", "fields": [
            {"id": "1", "name": "email", "type": "email", "required": true, "system": true},
            {"id": "2", "name": "password", "type": "password", "system": true},
        ]},
    ]}))
    .unwrap()
}

fn tell(verb: Verb, entity: &str, row: &Value, labels: &Value, changed: &[&str]) -> String {
    let model = model();
    let changed: Vec<_> = changed.iter().map(|&name| name.to_owned()).collect();
    let shape = shape(verb, model.collection(entity).unwrap(), &model, &changed);
    let at = Utc.with_ymd_and_hms(2026, 7, 30, 9, 0, 0).unwrap();
    sentence(&shape, row.as_object().unwrap(), labels.as_object().unwrap(), at)
}

fn row() -> Value {
    json!({
        "id": "crd000000000001", "title": "Eat chicken", "list": "lst1", "labels": ["a"], "due_date": "2026-07-31 00:00:00.000Z",
        "start_day": "", "priority": "high", "archived": true, "position": 3, "meta": {"a": 1}, "secret": "2026-01-01 00:00:00.000Z",
    })
}

#[test]
fn the_example_of_the_protocol_is_told_word_for_word() {
    assert_eq!(
        tell(Verb::Create, "cards", &row(), &json!({"list": "To Do"}), &[]),
        "Added \"Eat chicken\" to To Do, due Fri 31 Jul"
    );
    assert_eq!(
        tell(Verb::Delete, "cards", &row(), &json!({"list": "To Do"}), &["title"]),
        "Deleted \"Eat chicken\" from To Do"
    );
}

#[test]
fn an_update_tells_what_was_changed_and_to_what() {
    let labels = json!({"list": "Done"});
    for (changed, told) in [
        (vec!["due_date"], "Changed due_date of \"Eat chicken\" to Fri 31 Jul"),
        (vec!["start_day"], "Cleared start_day of \"Eat chicken\""),
        (vec!["priority"], "Changed priority of \"Eat chicken\" to \"high\""),
        (vec!["archived"], "Changed archived of \"Eat chicken\" to true"),
        (vec!["position"], "Changed position of \"Eat chicken\" to 3"),
        (vec!["list"], "Changed list of \"Eat chicken\" to Done"),
        (vec!["labels"], "Changed labels of \"Eat chicken\""),
        (vec!["meta"], "Changed meta of \"Eat chicken\""),
        (vec!["title"], "Changed title to \"Eat chicken\""),
        (vec!["due_date", "list"], "Changed due_date and list of \"Eat chicken\""),
        (vec!["due_date", "list", "meta"], "Changed due_date, list and meta of \"Eat chicken\""),
        (
            vec!["title", "list", "labels", "due_date", "priority", "meta"],
            "Changed title, list, labels, due_date and 2 more of \"Eat chicken\"",
        ),
        (vec!["secret"], "Changed \"Eat chicken\""),
        (vec![], "Changed \"Eat chicken\""),
    ] {
        assert_eq!(tell(Verb::Update, "cards", &row(), &labels, &changed), told);
    }
}

#[test]
fn without_labels_the_id_and_the_entity_are_named() {
    let row = json!({"id": "abc", "date": "2025-01-02 00:00:00.000Z", "owner": "u1"});
    assert_eq!(tell(Verb::Create, "entries", &row, &json!({}), &[]), "Added abc to entries, on Thu 2 Jan 2025");
    assert_eq!(tell(Verb::Delete, "entries", &json!({}), &json!({}), &[]), "Deleted a record from entries");
}

#[test]
fn what_others_may_not_see_is_not_in_a_sentence() {
    let row = json!({"id": "u1", "email": "a@example.org", "password": "hash"});
    assert_eq!(tell(Verb::Create, "users", &row, &json!({}), &[]), "Added u1 to users");
    assert_eq!(tell(Verb::Update, "users", &row, &json!({}), &["email", "password"]), "Changed u1");
    let model = model();
    let entries = shape(Verb::Create, model.collection("entries").unwrap(), &model, &[]);
    assert!(entries.refs.is_empty(), "a user's label would be the email");
}

#[test]
fn a_label_cannot_break_out_of_its_sentence() {
    let mut row = row();
    row["title"] = json!("a\"\u{1b}[2J b\n\tc\u{202e}d\0");
    row["due_date"] = json!("");
    assert_eq!(tell(Verb::Create, "cards", &row, &json!({"list": "x\r\ny"}), &[]), "Added \"a'[2J b cd\" to x y");
    row["title"] = json!("é".repeat(100));
    let told = tell(Verb::Create, "cards", &row, &json!({}), &[]);
    assert_eq!(told, format!("Added \"{}…\" to cards", "é".repeat(79)));
    row["title"] = json!(" \u{200b}\n");
    assert_eq!(tell(Verb::Create, "cards", &row, &json!({}), &[]), "Added crd000000000001 to cards");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_sentence_is_one_short_printable_line(title: String, list: String, due: String, verb in 0..3) {
        let verb = [Verb::Create, Verb::Update, Verb::Delete][usize::try_from(verb).unwrap()];
        let row = json!({"id": "x", "title": title, "due_date": due, "start_day": due});
        let told = tell(verb, "cards", &row, &json!({"list": list}), &["due_date"]);
        prop_assert!(told.chars().count() < 400 && !told.chars().any(char::is_control), "{told:?}");
    }
}

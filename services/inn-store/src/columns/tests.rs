use inn_protocol::{Code, Digest};
use serde_json::json;

use super::fixture::{collection, filled, insert, model, posts, read_all, rows, tables};
use super::*;
use crate::testdb::TestDb;

#[test]
fn names_are_quoted_and_never_meet_a_name_of_postgresql() {
    for (name, quoted) in [
        ("title", "\"title\""),
        ("Select", "\"Select\""),
        ("a\"; DROP TABLE x; --", "\"a\"\"; DROP TABLE x; --\""),
        ("xmin", "\"xmin~\""),
        ("ctid", "\"ctid~\""),
        ("_row", "\"_row~\""),
        ("a\0b", "\"a~b\""),
    ] {
        assert_eq!(ident(name), quoted);
    }
}

#[test]
fn long_names_stay_apart_within_63_bytes() {
    let (one, two) = ("x".repeat(70), format!("{}y", "x".repeat(69)));
    assert_ne!(ident(&one), ident(&two));
    for name in [one, two, "ä".repeat(40)] {
        assert!(stored_name(&name).len() <= LONGEST_NAME, "{}", stored_name(&name));
    }
}

#[test]
fn fingerprints_keep_parts_apart() {
    assert_ne!(fingerprint(&["a", "bc"]), fingerprint(&["ab", "c"]));
    assert_eq!(fingerprint(&["a"]).len(), 16);
}

#[test]
fn values_of_the_wrong_kind_and_nul_are_refused_by_field() {
    let posts = posts();
    for (field, value, code) in [
        ("title", json!(1), Code::InvalidString),
        ("title", json!("a\0b"), Code::InvalidString),
        ("num", json!("1"), Code::InvalidNumber),
        ("done", json!("true"), Code::InvalidBoolean),
        ("msel", json!("a"), Code::InvalidValue),
        ("msel", json!(["a", 1]), Code::InvalidValue),
        ("msel", json!(["a\0"]), Code::InvalidString),
        ("meta", json!({"a": ["\0"]}), Code::InvalidString),
        ("meta", json!({"a\0": 1}), Code::InvalidString),
        ("loc", json!([1, 2]), Code::InvalidValue),
    ] {
        let violation = param(posts.field(field).unwrap(), &value).unwrap_err();
        assert_eq!((violation.code, violation.field.as_str()), (code, field), "{value}");
    }
}

#[test]
fn numbers_in_json_are_kept_in_pocketbases_spelling_and_keys_in_their_order() {
    let posts = posts();
    let stored = |value| param(posts.field("meta").unwrap(), &value).unwrap();
    for (value, text) in [
        (
            json!({"b": 1e20, "a": [1e21, 1e-7, 0.1, 1.0, -0.5]}),
            r#"{"b":100000000000000000000,"a":[1e+21,1e-7,0.1,1,-0.5]}"#,
        ),
        (json!(9_007_199_254_740_993_i64), "9007199254740993"),
        (json!("1e20 \u{1F600} \"x\""), "\"1e20 \u{1F600} \\\"x\\\"\""),
    ] {
        assert_eq!(stored(value), SqlValue::Json(Some(text.to_owned())));
    }
}

#[test]
fn zero_values_stand_for_null_and_minus_zero_is_zero() {
    let posts = posts();
    let stored = |field: &str, value| param(posts.field(field).unwrap(), &value).unwrap();
    assert_eq!(stored("title", json!(null)), SqlValue::Text(String::new()));
    assert_eq!(stored("msel", json!(null)), SqlValue::List(vec![]));
    assert_eq!(stored("meta", json!(null)), SqlValue::Json(None));
    assert_eq!(
        stored("loc", json!({"lat": 2, "lon": 1, "x": 3})),
        SqlValue::Json(Some(r#"{"lon":1,"lat":2}"#.to_owned()))
    );
    let SqlValue::Number(zero) = stored("num", json!(-0.0)) else { panic!("a number") };
    assert!(zero.is_sign_positive());
}

#[tokio::test]
async fn what_is_stored_is_read_back() {
    let (store, _db) = TestDb::new().await;
    let (app, posts) = filled(&store).await;
    let read = read_all(&store, app, &posts).await;
    assert_eq!(read.len(), 20);
    for row in rows() {
        let found = read.iter().find(|found| found["id"] == row["id"]).unwrap();
        assert!(
            found
                .keys()
                .map(String::as_str)
                .eq(std::iter::once("id").chain(stored_fields(&posts).map(|f| f.name.as_str())))
        );
        for (name, value) in &row {
            match (value.as_f64(), found[name].as_f64()) {
                (Some(sent), Some(kept)) => assert!((sent - kept).abs() <= f64::EPSILON * sent.abs(), "{name}"),
                _ => assert_eq!(&found[name], value, "{name} of {}", row["id"]),
            }
        }
    }
    let blank = read.iter().find(|row| row["id"] == "p18").unwrap();
    assert_eq!(
        serde_json::to_string(blank).unwrap(),
        r#"{"id":"p18","title":"axb","num":6,"done":false,"due":"","sel":"","msel":[],"author":"","tagsm":[],"meta":null,"loc":{"lon":0,"lat":0},"secret":""}"#
    );
}

#[tokio::test]
async fn awkward_names_and_wide_collections_work_like_others() {
    let (store, _db) = TestDb::new().await;
    let mut fields: Vec<serde_json::Value> = (0..120)
        .map(|number| json!({"id": format!("f{number}"), "name": format!("field_{number}"), "type": "text"}))
        .collect();
    for (number, name) in ["xmin", "_row", "select", "Order", &"x".repeat(63)].into_iter().enumerate() {
        fields.push(json!({"id": format!("odd{number}"), "name": name, "type": "text"}));
    }
    let wide = collection(json!({"id": "c_wide", "name": "wide", "type": "base", "fields": fields}));
    let app = tables(&store, &model(vec![wide.clone()])).await;
    let mut row = serde_json::Map::from_iter([("id".to_owned(), json!("r1"))]);
    row.extend(
        stored_fields(&wide).map(|field| (field.name.clone(), json!(Digest::of(field.name.as_bytes()).to_string()))),
    );
    insert(&store, app, &wide, &row).await;
    assert_eq!(read_all(&store, app, &wide).await, [row]);
}

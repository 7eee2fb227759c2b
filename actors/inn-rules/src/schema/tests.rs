use inn_protocol::model::{Collection, Field, Model};
use serde_json::{Value, json};

use super::*;

fn model(collections: &Value) -> Model {
    serde_json::from_value(json!({ "collections": collections })).unwrap()
}

fn boards() -> Model {
    model(&json!([
        {"id": "c1", "name": "lists", "type": "base", "fields": [
            {"id": "f0", "name": "id", "type": "text", "primaryKey": true, "system": true},
            {"id": "f1", "name": "title", "type": "text"},
            {"id": "f2", "name": "board", "type": "relation", "collectionId": "c2", "maxSelect": 1},
            {"id": "f3", "name": "tags", "type": "select", "maxSelect": 3, "values": ["a", "b"]},
            {"id": "f4", "name": "labels", "type": "relation", "collectionId": "c3", "maxSelect": 9},
        ], "indexes": ["CREATE UNIQUE INDEX `idx_t` ON `lists` (`title`, board)"]},
        {"id": "c2", "name": "boards", "type": "base", "fields": [{"id": "g1", "name": "name", "type": "text"}]},
        {"id": "c3", "name": "labels", "type": "base"},
    ]))
}

fn steps(old: &Model, new: &Model) -> Vec<String> {
    diff(Some(old), new).unwrap().iter().map(Change::sentence).collect()
}

#[test]
fn a_first_model_is_created_with_its_own_and_its_automatic_indexes() {
    let changes = diff(None, &boards()).unwrap();
    let sentences: Vec<_> = changes.iter().map(Change::sentence).collect();
    assert_eq!(
        sentences,
        [
            "Add the collection lists",
            "Add the collection boards",
            "Add the collection labels",
            "Make title with board unique in lists",
            "Add the index auto_rel_c1_f2 to lists",
            "Add the index auto_gin_c1_f4 to lists",
        ]
    );
    assert!(changes.iter().all(|change| !change.destructive()));
    assert_eq!(steps(&boards(), &boards()), [""; 0]);
}

#[test]
fn a_rename_is_recognised_by_id_and_keeps_indexes() {
    let mut new = boards();
    new.collections[0].name = "columns".to_owned();
    new.collections[0].fields[1].name = "name".to_owned();
    new.collections[0].indexes = vec!["CREATE UNIQUE INDEX idx_t ON columns (name, board)".to_owned()];
    assert_eq!(steps(&boards(), &new), ["Rename the collection lists to columns", "Rename title of columns to name"]);
}

#[test]
fn names_may_be_swapped() {
    let mut new = boards();
    new.collections[0].name = "boards".to_owned();
    new.collections[1].name = "lists".to_owned();
    let renames: Vec<_> = diff(Some(&boards()), &new)
        .unwrap()
        .into_iter()
        .map(|change| match change {
            Change::RenameCollection { id, from, to } => (id, from, to),
            other => panic!("{other:?}"),
        })
        .collect();
    let step = |id: &str, from: &str, to: &str| (id.to_owned(), from.to_owned(), to.to_owned());
    assert_eq!(
        renames,
        [step("c1", "lists", "__renamed_1"), step("c2", "boards", "lists"), step("c1", "__renamed_1", "boards")]
    );
}

#[test]
fn dropping_frees_the_name_before_it_is_used_again_and_is_destructive() {
    let mut new = boards();
    new.collections[0].fields[1] = field(&json!({"id": "f9", "name": "title", "type": "number"}));
    let changes = diff(Some(&boards()), &new).unwrap();
    let sentences: Vec<_> = changes.iter().map(|change| (change.sentence(), change.destructive())).collect();
    assert_eq!(
        sentences,
        [
            ("Drop the index idx_t of lists".to_owned(), false),
            ("Drop title of lists with all its values".to_owned(), true),
            ("Add title to lists".to_owned(), false),
            ("Make title with board unique in lists".to_owned(), false),
        ]
    );
    new.collections.remove(2);
    new.collections[0].fields.remove(4);
    let changes = diff(Some(&boards()), &new).unwrap();
    assert!(
        changes.iter().any(|c| c.destructive() && c.sentence() == "Drop the collection labels with all its records")
    );
}

fn field(value: &Value) -> Field {
    serde_json::from_value(value.clone()).unwrap()
}

#[test]
fn each_way_to_alter_a_field_asks_of_the_rows_what_it_must() {
    let select = |max: u32, values: &[&str]| json!({"type": "select", "maxSelect": max, "values": values});
    for (from, to, needs, destructive) in [
        (json!({"type": "text"}), json!({"type": "text", "hidden": true}), Some(Needs::None), false),
        (json!({"type": "text", "required": true}), json!({"type": "text"}), Some(Needs::None), false),
        (json!({"type": "text"}), json!({"type": "text", "required": true}), Some(Needs::Check), false),
        (json!({"type": "text"}), json!({"type": "text", "max": 5}), Some(Needs::Check), false),
        (json!({"type": "text"}), json!({"type": "email"}), Some(Needs::Check), false),
        (select(1, &["a"]), select(2, &["a"]), Some(Needs::Rewrite), false),
        (select(2, &["a"]), select(1, &["a"]), Some(Needs::Rewrite), true),
        (select(2, &["a"]), select(3, &["a"]), Some(Needs::Check), false),
        (json!({"type": "text"}), json!({"type": "number"}), None, true),
        (json!({"type": "json"}), json!({"type": "text"}), None, true),
        (json!({"type": "text"}), json!({"type": "password"}), None, true),
        (json!({"type": "text"}), json!({"type": "file"}), None, true),
        (json!({"type": "date"}), json!({"type": "autodate"}), Some(Needs::Check), false),
        (json!({"type": "text"}), select(1, &["a"]), Some(Needs::Check), false),
        (json!({"type": "text"}), select(2, &["a"]), None, true),
        (json!({"type": "text"}), json!({"type": "relation", "collectionId": "c"}), None, true),
    ] {
        let with = |kind: &Value| {
            let mut fields = json!({"id": "x", "name": "x"});
            fields.as_object_mut().unwrap().extend(kind.as_object().unwrap().clone());
            model(&json!([{"id": "c", "name": "c", "type": "base", "fields": [fields]}]))
        };
        let changes = diff(Some(&with(&from)), &with(&to)).unwrap();
        assert_eq!(changes.iter().any(Change::destructive), destructive, "{from} {to}");
        match (&changes[..], needs) {
            ([Change::AlterField { needs: found, .. }], Some(needs)) => assert_eq!(*found, needs, "{from} {to}"),
            ([Change::DropField { .. }, Change::AddField { .. }, ..], None) => {}
            other => panic!("{from} {to}: {other:?}"),
        }
    }
}

#[test]
fn a_relation_that_becomes_a_list_gets_the_other_kind_of_index() {
    let mut old = boards();
    old.collections[0].indexes.clear();
    let mut new = old.clone();
    new.collections[0].fields[2] =
        field(&json!({"id": "f2", "name": "board", "type": "relation", "collectionId": "c2", "maxSelect": 2}));
    assert_eq!(
        steps(&old, &new),
        [
            "Drop the index auto_rel_c1_f2 of lists",
            "Change board of lists to hold a list",
            "Add the index auto_gin_c1_f2 to lists",
        ]
    );
}

#[test]
fn changed_rules_are_told() {
    let mut new = boards();
    new.collections[1].list_rule = Some(String::new());
    let changes = diff(Some(&boards()), &new).unwrap();
    assert_eq!(changes, [Change::RulesOnly { collection_id: "c2".into(), collection: "boards".into() }]);
}

#[test]
fn a_model_that_cannot_be_built_is_refused_by_name() {
    let bad = model(&json!([
        {"id": "c1", "name": "a", "type": "base", "indexes": ["CREATE INDEX i ON a (nope)"]},
        {"id": "c2", "name": "A", "type": "base"},
        {"id": "c3", "name": "c", "type": "base", "fields": [
            {"id": "f", "name": "x", "type": "text"},
            {"id": "g", "name": "X", "type": "text"},
            {"id": "h", "name": "expand", "type": "text"},
            {"id": "i", "name": "a\"b", "type": "text"},
            {"id": "j", "name": "to", "type": "relation", "collectionId": "nowhere"},
            {"id": "k", "name": "code", "type": "text", "pattern": "(?=a)"},
            {"id": "l", "name": "auto", "type": "text", "autogeneratePattern": "^a$"},
        ]},
        {"id": "c4", "name": "d", "type": "base", "indexes": ["CREATE INDEX i ON d (id)"]},
        {"id": "c5", "name": "e", "type": "base", "indexes": ["CREATE INDEX I ON e (id)"]},
        {"id": "c6", "name": "f", "type": "view"},
        {"id": "c7", "name": "a_via_b", "type": "base"},
        {"id": "c8", "name": "g", "type": "base", "indexes": ["CREATE INDEX j ON e (id)", "CREATE INDEX J ON e (id)"]},
    ]));
    let refusal = diff(None, &bad).unwrap_err();
    let places: Vec<_> = refusal.violations.iter().map(|violation| violation.field.as_str()).collect();
    assert_eq!(places, ["a", "A", "c.X", "c.expand", "c.a\"b", "c.to", "c.code", "c.auto", "e", "f", "a_via_b", "g"]);
    assert!(refusal.message.contains("\"nope\""), "{}", refusal.message);
    assert_eq!(check_model(&boards()), []);
}

#[test]
fn an_index_text_is_read() {
    let spec = parse_index(
        "CREATE UNIQUE INDEX IF NOT EXISTS `main`.`i` ON [t] (`a` COLLATE NOCASE DESC, \"b\" ASC) WHERE (`a` != '');",
    )
    .unwrap();
    assert_eq!(
        spec,
        IndexSpec {
            name: "i".to_owned(),
            unique: true,
            method: IndexMethod::Btree,
            columns: vec![
                IndexColumn { name: "a".to_owned(), nocase: true, descending: true },
                IndexColumn { name: "b".to_owned(), nocase: false, descending: false },
            ],
            where_not_empty: Some("a".to_owned()),
        }
    );
    assert_eq!(parse_index("create index x on t(a)where a<>''").unwrap().where_not_empty.as_deref(), Some("a"));
}

#[test]
fn anything_else_is_refused_with_what_was_found() {
    for (text, said) in [
        ("", "expected CREATE, found the end"),
        ("DROP TABLE t", "expected CREATE, found \"DROP\""),
        ("CREATE INDEX ON t (a)", "expected ON, found \"t\""),
        ("CREATE INDEX i ON t ()", "expected a name, found )"),
        ("CREATE INDEX i ON t (lower(a))", "lower(…) is an expression"),
        ("CREATE INDEX i ON t (a COLLATE german)", "collation german is not known"),
        ("CREATE INDEX i ON t (a) WHERE a > 5", "not of the form column != ''"),
        ("CREATE INDEX i ON t (a) WHERE a != '' OR 1", "unexpected \"OR\""),
        ("CREATE INDEX i ON t (a); DROP TABLE t", "unexpected \"DROP\""),
        ("CREATE INDEX i ON t (`a", "` is missing at the end"),
        ("CREATE INDEX i ON t (a -- x", "expected ), found -"),
        (&format!("CREATE INDEX {} ON t (a)", "n".repeat(64)), "longer than 63 bytes"),
    ] {
        let error = parse_index(text).unwrap_err();
        assert!(error.contains(said), "{text}: {error}");
    }
}

#[test]
fn an_automatic_index_is_left_out_where_the_app_has_one_that_begins_with_it() {
    let mut collection: Collection = boards().collections[0].clone();
    collection.indexes = vec!["CREATE INDEX i ON lists (board, title)".to_owned()];
    let names: Vec<_> = auto_indexes(&collection).into_iter().map(|index| index.name).collect();
    assert_eq!(names, ["auto_gin_c1_f4"]);
    collection.id = "x".repeat(80);
    assert!(auto_indexes(&collection)[0].name.len() <= 63);
}

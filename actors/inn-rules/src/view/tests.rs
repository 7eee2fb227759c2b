use inn_protocol::model::{FieldKind, Model};
use serde_json::json;

use super::{Expr, infer, parse, sources};

#[test]
fn a_select_is_read_into_its_parts() {
    let query = parse(
        "SELECT p.id, COUNT(c.id) AS total, [p].\"title\" name -- a comment
         FROM posts p LEFT JOIN comments AS c ON c.post = p.id, (SELECT id FROM tags) t
         WHERE p.num > 1 AND NOT p.done OR p.title LIKE '%it''s%' AND p.num BETWEEN 1 AND 3 AND p.id NOT IN ('a', 'b')
         GROUP BY p.id HAVING COUNT(*) >= 2 ORDER BY total DESC, p.id LIMIT 10 OFFSET 5;",
    )
    .unwrap();
    let names: Vec<_> = query.first.columns.iter().map(|column| (&*column.name, &*column.text)).collect();
    assert_eq!(names, [("id", "p.id"), ("total", "COUNT(c.id)"), ("name", "[p].\"title\"")]);
    let aliases: Vec<_> = query.first.from.iter().map(|source| &*source.alias).collect();
    assert_eq!(aliases, ["p", "c", "t"]);
    assert_eq!((query.order.len(), query.limit, query.offset), (2, Some(10), Some(5)));
    let mut read: Vec<_> = sources(&query).into_iter().collect();
    read.sort_unstable();
    assert_eq!(read, ["comments", "posts", "tags"]);
}

#[test]
fn a_named_query_is_as_good_as_written_where_its_name_stands() {
    let named =
        parse("WITH x AS (SELECT id FROM tags), y AS (SELECT x.id FROM x) SELECT y.id FROM y JOIN x a ON a.id = y.id");
    let inner = "(SELECT x.id FROM (SELECT id FROM tags) x) y";
    let written = parse(&format!("SELECT y.id FROM {inner} JOIN (SELECT id FROM tags) a ON a.id = y.id"));
    assert_eq!(named.unwrap(), written.unwrap());
    let local = parse("SELECT id FROM (WITH x AS (SELECT id FROM tags) SELECT id FROM x) q, x").unwrap();
    assert!(sources(&local).contains("x"), "outside of its query the name means nothing");
    let doubling: Vec<String> =
        (1..40).map(|n| format!("x{n} AS (SELECT a.id FROM x{} a, x{} b)", n - 1, n - 1)).collect();
    let many = format!("WITH x0 AS (SELECT id FROM t), {} SELECT id FROM x39", doubling.join(", "));
    assert!(parse(&many).unwrap_err().contains("at most"));
}

#[test]
fn and_binds_closer_than_or_and_a_product_closer_than_a_sum() {
    let condition = |text: &str| parse(&format!("SELECT id FROM t WHERE {text}")).unwrap().first.condition.unwrap();
    assert_eq!(condition("a = 1 OR b = 2 AND c = 3"), condition("(a = 1) OR ((b = 2) AND (c = 3))"));
    assert_eq!(condition("a + b * c || d < 4"), condition("(a + (b * (c || d))) < 4"));
    assert_eq!(condition("NOT a = 1 AND b"), condition("(NOT (a = 1)) AND b"));
    assert_eq!(condition("a IS NOT NULL"), condition("(a) IS NOT NULL"));
    assert!(matches!(condition("NOT EXISTS (SELECT id FROM u)"), Expr::Not(_)));
}

#[test]
fn what_a_view_cannot_hold_is_refused_by_name() {
    for (text, named) in [
        ("", "SELECT"),
        ("DELETE FROM tags", "DELETE"),
        ("SELECT id FROM tags; DROP TABLE tags", "DROP"),
        ("SELECT * FROM tags", "`*`"),
        ("SELECT t.* FROM tags t", "`*`"),
        ("SELECT id FROM tags UNION SELECT id FROM x EXCEPT SELECT id FROM y", "EXCEPT"),
        ("WITH RECURSIVE x AS (SELECT id FROM tags) SELECT id FROM x", "RECURSIVE"),
        ("WITH x AS (SELECT id FROM tags), SELECT id FROM x", "name"),
        ("SELECT id FROM a RIGHT JOIN b ON a.id = b.id", "RIGHT"),
        ("SELECT id FROM a JOIN b USING (id)", "USING"),
        ("SELECT id FROM a LEFT JOIN b", "LEFT JOIN"),
        ("SELECT id FROM inn.users", "`inn.`"),
        ("SELECT id FROM (SELECT id FROM a)", "needs a name"),
        ("SELECT id, num % 2 AS m FROM a", "`%`"),
        ("SELECT id FROM a WHERE x = 'open", "quote"),
        ("SELECT id FROM a /* open", "comment"),
        ("SELECT id FROM a WHERE x = 1e5", "1e5"),
        ("SELECT id FROM a WHERE x = $1", "`$`"),
        ("SELECT id FROM a WHERE x = 0x1F", "0x1F"),
        ("SELECT id FROM a LIMIT x", "whole number"),
        ("SELECT COUNT(*) FILTER (WHERE a) AS n FROM a", "FILTER"),
    ] {
        let why = parse(text).unwrap_err();
        assert!(why.contains(named), "{text}: {why}");
    }
    let deep = format!("SELECT {}1{} AS id FROM a", "(".repeat(500), ")".repeat(500));
    assert!(parse(&deep).unwrap_err().contains("deep"));
    let long = format!("SELECT id FROM a WHERE b = 1{}", " AND b = 1".repeat(200));
    assert!(parse(&long).unwrap_err().contains("operators"));
    assert!(parse(&"SELECT ".repeat(2_000)).unwrap_err().contains("bytes"));
    assert!(parse(&format!("SELECT {} AS id FROM a", "+".repeat(2_500))).is_err());
}

fn model(query: &str) -> Model {
    serde_json::from_value(json!({"collections": [
        {"id": "c_posts", "name": "posts", "type": "base", "fields": [
            {"id": "f0", "name": "id", "type": "text", "primaryKey": true},
            {"id": "f1", "name": "title", "type": "text"},
            {"id": "f2", "name": "num", "type": "number"},
            {"id": "f3", "name": "author", "type": "relation", "collectionId": "c_users", "maxSelect": 1},
            {"id": "f4", "name": "secret", "type": "text", "hidden": true},
        ]},
        {"id": "c_users", "name": "users", "type": "auth", "fields": [
            {"id": "u0", "name": "id", "type": "text", "primaryKey": true},
            {"id": "u1", "name": "password", "type": "password"},
            {"id": "u2", "name": "tokenKey", "type": "text"},
            {"id": "u3", "name": "email", "type": "email"},
        ]},
        {"id": "c_view", "name": "stats", "type": "view", "viewQuery": query, "fields": [
            {"id": "kept", "name": "cnt", "type": "json", "hidden": true},
        ]},
    ]}))
    .unwrap()
}

#[test]
fn fields_are_inferred_as_pocketbase_infers_them() {
    let mut model = model(
        "SELECT p.id, p.title AS name, p.num, p.author, p.secret, p.id AS pid, u.id AS uid, COUNT(p.id) AS cnt,
         TOTAL(p.num) AS tot, SUM(p.num) AS s, CAST(SUM(p.num) AS INT) AS ci, CAST(p.num AS REAL) AS cr,
         CAST(p.num AS TEXT) AS ct, CAST(p.num AS BOOL) AS cb, (p.title) AS par, 'x' AS lit
         FROM posts p LEFT JOIN users u ON p.author = u.id GROUP BY p.id",
    );
    infer(&mut model).unwrap();
    let view = model.collection("stats").unwrap();
    let kind = |name: &str| match &view.field(name).unwrap().kind {
        FieldKind::Text { primary_key: true, .. } => "key".to_owned(),
        FieldKind::Text { .. } => "text".to_owned(),
        FieldKind::Number { only_int, .. } => format!("number {only_int}"),
        FieldKind::Bool {} => "bool".to_owned(),
        FieldKind::Json { .. } => "json".to_owned(),
        FieldKind::Relation { collection_id, max_select: 1, .. } => format!("relation {collection_id}"),
        other => format!("{other:?}"),
    };
    for (name, expected) in [
        ("id", "key"),
        ("name", "text"),
        ("num", "number false"),
        ("author", "relation c_users"),
        ("pid", "relation c_posts"),
        ("uid", "relation c_users"),
        ("cnt", "number true"),
        ("tot", "number false"),
        ("s", "json"),
        ("ci", "number true"),
        ("cr", "number false"),
        ("ct", "text"),
        ("cb", "bool"),
        ("par", "json"),
        ("lit", "json"),
    ] {
        assert_eq!(kind(name), expected, "{name}");
    }
    assert!(view.field("secret").unwrap().hidden, "what is hidden stays hidden");
    let counted = view.field("cnt").unwrap();
    assert_eq!((counted.id.as_str(), counted.hidden), ("kept", true), "what was declared of a field counts");
}

#[test]
fn a_view_sees_its_own_app_and_no_secrets() {
    for (query, named) in [
        ("SELECT id FROM nope", "`nope`"),
        ("SELECT id FROM pg_catalog", "`pg_catalog`"),
        ("SELECT id FROM stats", "`stats`"),
        ("SELECT title FROM posts", "`id`"),
        ("SELECT ID, title FROM posts", "`id`"),
        ("SELECT id, nope FROM posts", "`nope`"),
        ("SELECT id, num + 1 FROM posts", "needs a name"),
        ("SELECT p.id, x.title FROM posts p", "`x.title`"),
        ("SELECT id, password FROM users", "`password`"),
        ("SELECT id, 'x' || password AS p FROM users", "`password`"),
        ("SELECT id FROM users WHERE tokenKey = 'x'", "`tokenKey`"),
        ("SELECT id FROM posts WHERE EXISTS (SELECT id FROM users u WHERE u.password = 'x')", "`password`"),
        ("SELECT id, title, num AS Title FROM posts", "`Title`"),
        ("SELECT id, title AS `a b` FROM posts", "`a b`"),
        ("SELECT p.id FROM posts p, users p", "`p`"),
    ] {
        let refusal = infer(&mut model(query)).unwrap_err();
        assert!(refusal.message.contains(named), "{query}: {}", refusal.message);
        assert_eq!(refusal.violations[0].field, "stats.viewQuery");
    }
}

proptest::proptest! {
    #[test]
    fn whatever_is_written_the_reader_ends(words in proptest::collection::vec(proptest::sample::select(&[
        "SELECT", "FROM", "WHERE", "(", ")", ",", "a", "b.c", "'t'", "\"q\"", "`x", "1", "1.5", "=", "<>", "||", "*", "/", "-", "+",
        "AND", "OR", "NOT", "IN", "LIKE", "BETWEEN", "IS", "NULL", "CASE", "WHEN", "THEN", "ELSE", "END", "CAST", "AS", "COUNT",
        "OVER", "GROUP", "BY", "ORDER", "LIMIT", "UNION", "ALL", "JOIN", "LEFT", "ON", "WITH", "EXISTS", "--", "/*", "*/", ";", "é",
    ][..]), 0..200)) {
        let text = words.join(" ");
        let read = parse(&text);
        let again = parse(&format!("SELECT id FROM t WHERE {text}"));
        // What was read is a whole tree: walking it ends, too.
        for query in read.into_iter().chain(again) {
            proptest::prop_assert!(sources(&query).len() <= 200);
        }
    }

    #[test]
    fn any_text_at_all_is_read_or_refused(text in "\\PC{0,300}") {
        if let Err(why) = parse(&text) {
            proptest::prop_assert!(!why.is_empty());
        }
    }
}

use inn_protocol::AppId;
use inn_rules::filter::{AuthFacts, Comparison, Op, Operand, Scope, compile, matches};
use serde_json::{Map, Value, json};

use super::observed::found;
use super::*;
use crate::columns::fixture::{filled, insert, model, posts, read_all};
use crate::columns::table;
use crate::testdb::TestDb;

fn compiled(filter: &str) -> Expr {
    let posts = posts();
    let model = model(vec![posts.clone()]);
    let auth = AuthFacts::nobody();
    let scope =
        Scope { collection: &posts, model: &model, now: chrono::DateTime::UNIX_EPOCH, auth: &auth, see_hidden: true };
    compile(filter, &scope).unwrap_or_else(|error| panic!("{filter}: {error}"))
}

fn rendered(filter: &str) -> (String, Vec<SqlValue>) {
    let mut params = SqlParams::starting_at(1);
    let sql = render(&compiled(filter), AppId::new(), "t", &mut params);
    (sql, params.values().to_vec())
}

#[test]
fn equality_of_a_text_column_stays_plain_for_indexes() {
    assert_eq!(
        rendered("author = 'u1' && done = false"),
        ("(t.\"author\" = $1::text AND NOT t.\"done\")".to_owned(), vec![SqlValue::Text("u1".to_owned())])
    );
    let (sql, _) = rendered("author = 'u1' && msel:each ?= 'a'");
    assert_eq!(sql, "(t.\"author\" = $1::text AND t.\"msel\" @> $2::text[])");
    let (sql, _) = rendered("author = 'u1' && msel:each = 'a'");
    assert!(sql.starts_with("(t.\"author\" = $1::text AND (t.\"msel\" @> $3::text[] AND NOT EXISTS "), "{sql}");
}

#[test]
fn relations_become_semi_joins_that_an_index_serves() {
    let shape = |filter: &str| {
        let app = AppId::new();
        let mut params = SqlParams::starting_at(1);
        render(&compiled(filter), app, "t", &mut params).replace(&format!("\"{app}\"."), "")
    };
    assert_eq!(
        shape("author.title = 'x'"),
        "EXISTS (SELECT 1 FROM \"posts\" AS _j1 WHERE _j1.\"id\" = t.\"author\" AND _j1.\"title\" = $1::text)"
    );
    assert_eq!(
        shape("tagsm.title ?= 'x'"),
        "t.\"tagsm\" && ARRAY(SELECT _j1.\"id\" FROM \"posts\" AS _j1 WHERE _j1.\"title\" = $1::text)"
    );
    assert_eq!(
        shape("posts_via_author.num > 1"),
        "(EXISTS (SELECT 1 FROM \"posts\" AS _j2 WHERE _j2.\"author\" = t.\"id\" AND _j2.\"num\" > $2::float8) \
         AND NOT EXISTS (SELECT 1 FROM \"posts\" AS _j1 WHERE _j1.\"author\" = t.\"id\" AND NOT (_j1.\"num\" > $1::float8)))"
    );
    // The same row, so one join; alternatives and other relations on their own.
    let same = shape("posts_via_author.num ?> 1 && posts_via_author.title ?= 'x'");
    assert_eq!(same.matches("SELECT").count(), 1, "{same}");
    let apart = shape("author.title = 'x' || tagsm.title ?= 'x'");
    assert_eq!(apart.matches("SELECT").count(), 2, "{apart}");
}

#[tokio::test]
async fn relations_find_what_pocketbase_finds() {
    let (store, _db) = TestDb::new().await;
    let (app, posts) = filled(&store).await;
    let rows = [
        json!({"id": "u1", "title": "Ann", "author": "", "tagsm": ["t1", "t2"]}),
        json!({"id": "u2", "title": "bob", "author": "u1", "tagsm": ["t2"]}),
        json!({"id": "w1", "title": "Cy", "tagsm": ["t1", "p9"]}),
        json!({"id": "t1", "title": "red", "num": 1}),
        json!({"id": "t2", "title": "green", "num": 2}),
    ];
    for row in &rows {
        insert(&store, app, &posts, row.as_object().unwrap()).await;
    }
    let table = table(app, &posts);
    for (filter, wanted) in [
        ("author.title = 'Ann'", &["p1", "p5", "u2"][..]),
        ("author.author.title = 'Ann'", &["p3", "p20"]),
        ("author.title != '' && author.title != 'Ann'", &["p3", "p20"]),
        ("tagsm.title ?= 'red' && tagsm.title ?= 'green'", &[]),
        ("tagsm.title ?= 'red'", &["p1", "p5", "p20", "u1", "w1"]),
        ("tagsm.title = 'green'", &["p3", "u2"]),
        ("tagsm.title ?= 'green' && tagsm.num ?= 2", &["p1", "p3", "u1", "u2"]),
        ("posts_via_author.num = 10 || posts_via_author.num ?= 8", &["u2"]),
        ("posts_via_tagsm.id ?= 'u2'", &["t2"]),
        ("@collection.posts.title ?= 'Ann' && id = 'u1'", &["u1"]),
        ("@collection.posts.title = 'Ann'", &[]),
        ("geoDistance(loc.lon, loc.lat, 23.32, 42.69) < 1 && loc.lon != 0", &["p1"]),
        ("meta.a !~ null", &[]),
        // NULL against NULL is no failure of match-all.
        ("strftime('%F', due) = tagsm.num && id = 'p2'", &["p2"]),
        ("strftime('%F', due) = tagsm.num && id = 'u1'", &[]),
        ("tagsm:length <= '' && id = 'u1'", &["u1"]),
        // One value is empty and one is not: nothing fails against a moment that is none, in whichever way it is none.
        ("tagsm.title = strftime('_%d_', null) && id = 'w1'", &["w1"]),
        ("strftime('%I', '2024-13-01') = tagsm.title && id = 'w1'", &["w1"]),
        ("strftime('x%%y', @request.query.none) != @collection.posts.title && id = 'w1'", &["w1"]),
        ("'' != @collection.posts.title && id = 'w1'", &[]),
    ] {
        let mut params = SqlParams::starting_at(1);
        let condition = render(&compiled(filter), app, "t", &mut params);
        let sql = format!("SELECT t.\"id\" FROM {table} AS t WHERE {condition} ORDER BY t.\"_row\"");
        let rows = store.client().await.unwrap().query_typed(&sql, &params.typed()).await;
        let rows = rows.unwrap_or_else(|error| panic!("{filter}\n{sql}\n{error:?}"));
        let ids: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        assert_eq!(ids, wanted, "{filter}\n{sql}");
    }
}

#[test]
fn nothing_of_a_request_becomes_text_of_a_query() {
    let hostile = "x') OR 1=1; DROP TABLE posts; --";
    for filter in [
        format!("title = \"{hostile}\""),
        format!("title ~ \"{hostile}\""),
        format!("title !~ \"%{hostile}\""),
        format!("num > \"{hostile}\""),
        format!("meta.a = \"{hostile}\""),
        format!("msel:each = \"{hostile}\""),
        format!("\"{hostile}\" ~ title"),
        "meta.drop_table_posts = 123456".to_owned(),
        "title = 123456".to_owned(),
        "title ~ 123456".to_owned(),
    ] {
        let (sql, params) = rendered(&filter);
        assert!(!sql.to_lowercase().contains("drop") && !sql.contains("123456"), "{sql}");
        assert!(!params.is_empty(), "{filter}");
    }
}

#[test]
fn parameters_are_numbered_from_the_given_place() {
    let mut params = SqlParams::starting_at(7);
    let sql = render(&compiled("title = 'a' && num = 2"), AppId::new(), "x", &mut params);
    assert_eq!(sql, "(x.\"title\" = $7::text AND x.\"num\" = $8::float8)");
}

#[tokio::test]
async fn texts_with_nul_and_huge_numbers_do_not_break_a_query() {
    let (store, _db) = TestDb::new().await;
    let (app, posts) = filled(&store).await;
    let table = table(app, &posts);
    for title in ["1e999", "-1e999", "1e-999", "0e999", "1e200", "1".repeat(400).as_str(), "0.1e5", "١"] {
        let row = json!({"id": format!("x{title}"), "title": title, "meta": title});
        insert(&store, app, &posts, row.as_object().unwrap()).await;
    }
    for filter in ["title = 'a\0b'", "title ~ 'a\0b'", "num > 'a\0'", "num >= title", "meta >= num", "num ~ title"] {
        found(&store, &table, &compiled(filter)).await;
    }
    // A pattern that ends in a lone backslash cannot be written in this version of the language, but may be bound.
    for (op, count) in [(Op::Like, 0), (Op::NotLike, 28)] {
        let Expr::Compare(title) = compiled("title ~ 'x'") else { panic!("a comparison") };
        let lone = Comparison { op, right: Operand::Text("%x\\".to_owned()), ..title };
        assert_eq!(found(&store, &table, &Expr::Compare(lone)).await.len(), count);
    }
    assert_eq!(found(&store, &table, &compiled("num < title && title = '1e999'")).await, ["x1e999"]);
    assert_eq!(found(&store, &table, &compiled("num > title && title = '-1e999'")).await, ["x-1e999"]);
}

/// Numbers from a fixed seed: every run sees the same filters.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % sides
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.roll(from.len())]
    }
}

const PATHS: &[&str] = &[
    "id",
    "title",
    "num",
    "done",
    "due",
    "sel",
    "msel",
    "author",
    "tagsm",
    "meta",
    "loc",
    "title:lower",
    "num:lower",
    "done:lower",
    "sel:length",
    "msel:length",
    "tagsm:length",
    "msel:each",
    "tagsm:each",
    "meta.a",
    "meta.b",
    "meta.b.c",
    "meta.arr",
    "meta.arr.0",
    "meta.a.0.b",
    "meta.9.x",
    "meta:lower",
    "meta.a:lower",
    "msel:lower",
    "loc.lon",
    "loc.lat",
];
const LITERALS: &[&str] = &[
    "''",
    "null",
    "true",
    "false",
    "0",
    "1",
    "2",
    "10",
    "1.5",
    "-5",
    "123",
    "0.1",
    "100000000000000000000",
    "'1'",
    "'10'",
    "' 10 '",
    "'1.0'",
    "'a'",
    "'A'",
    "'aa'",
    "'b'",
    "'u1'",
    "'t1'",
    "'%a%'",
    "'a_b'",
    "'[]'",
    "'[\"a\",\"b\"]'",
    "'{}'",
    "'true'",
    "'null'",
    "'Alpha'",
    "'äpfel'",
    "'2024-01-10'",
    "'123.0'",
    "'1e2'",
    "'.5'",
    "'0x1'",
    "'100%'",
    "'\"'",
    "'q'",
];
const OPERATORS: &[&str] = &["=", "!=", ">", ">=", "<", "<=", "~", "!~"];

fn random_filter(dice: &mut Dice, depth: usize) -> String {
    if depth > 0 && dice.roll(3) == 0 {
        let parts: Vec<String> = (0..2 + dice.roll(2)).map(|_| random_filter(dice, depth - 1)).collect();
        return format!("({})", parts.join(if dice.roll(2) == 0 { " && " } else { " || " }));
    }
    let path = (*dice.pick(PATHS)).to_owned();
    let other = (*if dice.roll(5) == 0 { dice.pick(PATHS) } else { dice.pick(LITERALS) }).to_owned();
    let (left, right) = if dice.roll(6) == 0 { (other, path) } else { (path, other) };
    let any = if dice.roll(3) == 0 { "?" } else { "" };
    format!("{left} {any}{} {right}", dice.pick(OPERATORS))
}

fn random_row(dice: &mut Dice, number: usize) -> Map<String, Value> {
    let texts = [
        "", "a", "A", "b", "aa", "1", "10", "1.0", "123", "123.0", " 10 ", ".5", "1e2", "ä", "Ä", "a_b", "a%b", "c\\",
        "u1", "t1", "%",
    ];
    let numbers = [
        json!(0),
        json!(1),
        json!(-1),
        json!(1.5),
        json!(10),
        json!(123),
        json!(1e20),
        json!(1e-7),
        json!(0.1),
        json!(123.45),
    ];
    let metas = [
        json!(null),
        json!(true),
        json!(false),
        json!(0),
        json!(1),
        json!(1.0),
        json!(10),
        json!(1e20),
        json!(""),
        json!("a"),
        json!("1"),
        json!("10"),
        json!("1.0"),
        json!([]),
        json!({}),
        json!({"a": 1, "b": {"c": "x"}}),
        json!({"a": null}),
        json!({"a": "a", "b": true}),
        json!({"arr": ["a", 1]}),
        json!({"arr": []}),
        json!({"a": [{"b": "q"}]}),
        json!([1, "two"]),
        json!("a_b"),
        json!(0.1),
        json!(-5),
    ];
    let lists: [&[&str]; 7] = [&[], &["a"], &["a", "b"], &["b", "a"], &["aa"], &["a", "aa", "c"], &["t1", "u1"]];
    let points = [json!({"lon": 0, "lat": 0}), json!({"lon": 1.5, "lat": 10}), json!({"lon": 1, "lat": -1})];
    let row = json!({
        "id": format!("r{number:03}"), "title": dice.pick(&texts), "num": dice.pick(&numbers), "done": dice.roll(2) == 0,
        "due": dice.pick(&["", "2024-01-10 00:00:00.000Z", "2024-01-09 23:59:59.999Z"]), "sel": dice.pick(&["", "a", "b", "c"]),
        "msel": dice.pick(&lists), "author": dice.pick(&["", "u1", "u2"]), "tagsm": dice.pick(&lists), "meta": dice.pick(&metas),
        "loc": dice.pick(&points),
    });
    row.as_object().unwrap().clone()
}

#[tokio::test]
async fn sql_and_memory_agree_on_random_filters() {
    let (store, _db) = TestDb::new().await;
    let (app, posts) = filled(&store).await;
    let mut dice = Dice(20_241_130);
    for number in 0..60 {
        insert(&store, app, &posts, &random_row(&mut dice, number)).await;
    }
    let rows = read_all(&store, app, &posts).await;
    let table = table(app, &posts);
    let (mut wrong, mut telling) = (Vec::new(), 0);
    for _ in 0..2500 {
        let filter = random_filter(&mut dice, 2);
        let expr = compiled(&filter);
        let mut by_sql = found(&store, &table, &expr).await;
        by_sql.sort_unstable();
        let in_memory: Vec<&str> =
            rows.iter().filter(|row| matches(&expr, row)).map(|row| row["id"].as_str().unwrap()).collect();
        telling += usize::from(!in_memory.is_empty() && in_memory.len() < rows.len());
        if by_sql != in_memory {
            let only =
                |a: &[String], b: &[&str]| a.iter().filter(|id| !b.contains(&id.as_str())).cloned().collect::<Vec<_>>();
            let memory: Vec<&&str> = in_memory.iter().filter(|id| !by_sql.iter().any(|found| found == *id)).collect();
            wrong.push(format!(
                "{filter}\n  only in SQL: {:?}\n  only in memory: {memory:?}",
                only(&by_sql, &in_memory)
            ));
        }
    }
    assert!(telling > 700, "only {telling} filters choose between rows");
    assert!(
        wrong.is_empty(),
        "{} filters differ:\n{}",
        wrong.len(),
        wrong.iter().take(15).cloned().collect::<Vec<_>>().join("\n")
    );
}

//! Creating, changing and deleting, with good values, bad values and values that are nearly good.

use serde_json::{Map, Value, json};

use super::ask::{Ask, Who};
use super::category::Category;
use super::dice::Dice;
use super::rows::resolved;
use super::schema::id;
use super::suite::Case;

const WHO: Who = Who::Superuser;

/// Values for each field of `forms`: some fit, some do not.
#[rustfmt::skip]
fn values(field: &str) -> Vec<Value> {
    match field {
        "short" => vec![json!("abc"), json!("ab"), json!("abcdef"), json!("a"), json!("abcdefg"), json!("ABC"), json!("ab1"), json!(""), json!("\u{e4}bc"), json!(null)],
        "free" | "hush" => vec![
            json!("x"), json!(""), json!(" padded "), json!("line\nbreak"), json!("\u{1f6a2}"), json!("x".repeat(5000)), json!("x".repeat(5001)),
            json!("\u{e4}".repeat(5000)), json!("<b>&"), json!("quote ' \" \\"), json!(null), json!(12), json!(1.5), json!(true), json!([1]), json!({"a": 1}),
        ],
        "whole" => vec![json!(1), json!(0), json!(-100), json!(-101), json!(1000), json!(1001), json!(1.5), json!("7"), json!("1.0"), json!(null), json!(1e3)],
        "any" => vec![
            json!(1), json!(0), json!(-1.5), json!(1e20), json!(1e-7), json!(0.1), json!(1e300), json!(-0.0), json!("12.5"), json!("1e3"), json!(".5"),
            json!("010"), json!("1_000"), json!("abc"), json!("Infinity"), json!("NaN"), json!(""), json!(" 5 "), json!(true), json!(null), json!([]), json!(9_007_199_254_740_993_i64),
        ],
        "flag" => vec![json!(true), json!(false), json!("true"), json!("false"), json!("1"), json!("t"), json!(1), json!(0), json!(2), json!("yes"), json!(""), json!(null)],
        "day" => vec![
            json!("2024-03-05 07:08:09.123Z"), json!("2020-01-01 00:00:00.000Z"), json!("2019-12-31 23:59:59.999Z"), json!("2030-01-01 00:00:00.000Z"),
            json!("2030-01-01 00:00:00.001Z"), json!("2025-06-07"), json!(""), json!(null),
        ],
        "when" => vec![
            json!("2024-01-10"), json!("2024-01-10T10:00:00"), json!("2024-01-10T10:00:00Z"), json!("2024-01-10T10:00:00+02:00"), json!("2024-01-10 10:00:00"),
            json!("2024-01-10 10:00:00.1239Z"), json!("2024-01-10T10:00:00.5+05:30"), json!("1969-07-20 20:17:40Z"), json!("9999-12-31 23:59:59.999Z"),
            json!("0001-01-02 00:00:00Z"), json!("2024-02-29"), json!("2024-01-10 10:00:00 +0200"), json!("10 Jan 2024"), json!("tomorrow"), json!("2024-02-30"), json!(""), json!(null),
        ],
        "one" => vec![json!("a"), json!("b"), json!("z"), json!(""), json!(null), json!(["a"]), json!(["a", "b"]), json!([]), json!("[\"c\"]"), json!(1)],
        "some" => vec![
            json!(["a"]), json!(["a", "b", "c"]), json!(["c", "a"]), json!(["a", "a"]), json!(["a", "b", "c", "aa"]), json!(["z"]), json!([]), json!("a"), json!(""), json!(null),
            json!("[\"a\",\"b\"]"), json!(["a", "", null]), json!([1]), json!("a,b"),
        ],
        "crew" => vec![json!("#c1"), json!("#c2"), json!("zzz"), json!(""), json!(null), json!(["#c1"]), json!(["#c1", "#c2"]), json!([])],
        "flags" | "pair" => vec![
            json!(["#f1"]), json!(["#f2", "#f1"]), json!(["#f1", "#f2", "#f3"]), json!(["#f1", "#f2", "#f3", "#f4"]), json!(["#f1", "#f1"]), json!(["zzz"]), json!([]), json!("#f1"), json!(""), json!(null),
        ],
        "data" => vec![
            json!({"b": 1, "a": {"d": [], "c": null}}), json!([1, "two", null, 1.5]), json!("text"), json!("12"), json!("true"), json!("[1,2]"), json!("{\"z\":1,\"y\":2}"), json!("012"), json!("True"),
            json!("\"quoted\""), json!(""), json!(null), json!(0), json!(true), json!(1e21), json!(1e-7), json!("x".repeat(1995)), json!("x".repeat(2000)), json!({"a": "x".repeat(2000)}), json!(" 12"), json!("-"),
            json!({"": 1, "a.b": 2}), json!("a\tb"), json!([[[[1]]]]), json!(12_345_678_901_i64), json!("<i>&"),
        ],
        "place" => vec![json!({"lon": 1.5, "lat": -2.25}), json!({"lon": 180, "lat": 90}), json!({"lon": 181, "lat": 0}), json!({"lon": 0, "lat": -90.5}), json!({"lon": 1}), json!("{\"lon\":3,\"lat\":4}"), json!(null), json!("")],
        "link" => vec![
            json!("https://x.example/a?b=1#c"), json!("http://localhost:80"), json!("ftp://x.y"), json!("mailto:a@b.c"), json!("x.y"), json!("//a.b"), json!("https://bad.example/x"), json!("javascript:alert(1)"),
            json!("https://"), json!(""), json!("https://x.example/\u{e4}"), json!("HTTPS://X.EXAMPLE"),
        ],
        "mail" => vec![json!("a@good.example"), json!("A.b+c@good.example"), json!("a@bad.example"), json!("a@good"), json!("a"), json!("@good.example"), json!(""), json!(" a@good.example"), json!("a@GOOD.example")],
        "body" => vec![json!("<p>x</p>"), json!("x".repeat(100)), json!("x".repeat(101)), json!("\u{e4}".repeat(51)), json!("<script>alert(1)</script>"), json!("")],
        "auto" => vec![json!("given"), json!("")],
        _ => vec![json!(1)],
    }
}

const FORM_FIELDS: &[&str] = &[
    "short", "free", "whole", "any", "flag", "day", "when", "one", "some", "crew", "flags", "pair", "data", "place",
    "link", "mail", "body", "hush",
];

/// Everything but [`unique`]; lives as many as a tenth of the filters.
pub(crate) fn all(dice: &mut Dice, filters: u64) -> Vec<Vec<Case>> {
    let lives = usize::try_from(filters / 10).expect("a small number");
    let mut stories: Vec<_> = (0..lives).map(|number| life(dice, number)).collect();
    stories.extend(each_value());
    stories.extend(required());
    stories.extend(ids());
    stories.extend(deletes());
    stories.extend(bodies());
    stories
}

/// Every value of every field by itself: made, read back, and found by a filter.
fn each_value() -> Vec<Vec<Case>> {
    let mut stories = Vec::new();
    for field in FORM_FIELDS {
        for value in values(field) {
            let id = id(&format!("e{}x", stories.len()));
            let body = resolved(&json!({"id": id, "auto": "set", *field: value}));
            stories.push(vec![
                Case::new(Category::Create, Ask::create(WHO, "forms", body)),
                Case::new(Category::Create, Ask::view(WHO, "forms", &id)),
            ]);
        }
    }
    stories
}

/// A record is made, changed some times and deleted.
fn life(dice: &mut Dice, number: usize) -> Vec<Case> {
    let id = id(&format!("w{number}x"));
    let mut body = some_values(dice);
    body.insert("id".to_owned(), json!(id));
    body.entry("auto").or_insert(json!("set"));
    let mut story = vec![Case::new(Category::Create, Ask::create(WHO, "forms", body.into()))];
    for _ in 0..dice.below(4) {
        let (category, body) = if dice.chance(50) {
            (Category::Update, some_values(dice))
        } else {
            (Category::Modifiers, modifiers(dice))
        };
        story.push(Case::new(category, Ask::update(WHO, "forms", &id, body.into())));
    }
    story.push(Case::new(Category::Update, Ask::view(WHO, "forms", &id)));
    if dice.chance(30) {
        story.push(Case::new(Category::Delete, Ask::delete(WHO, "forms", &id)));
        story.push(Case::new(Category::Delete, Ask::view(WHO, "forms", &id)));
        story.push(Case::new(Category::Delete, Ask::delete(WHO, "forms", &id)));
    }
    story
}

fn some_values(dice: &mut Dice) -> Map<String, Value> {
    (0..=dice.below(3))
        .map(|_| {
            let field = dice.pick(FORM_FIELDS);
            let all = values(field);
            // The first ones fit.
            let fitting = if dice.chance(70) { all.len().min(3) } else { all.len() };
            (field.to_owned(), resolved(&all[dice.below(fitting)]))
        })
        .collect()
}

fn modifiers(dice: &mut Dice) -> Map<String, Value> {
    let numbers = [json!(1), json!(-2.5), json!("3"), json!(0), json!(1e10), json!("abc"), json!(null)];
    let options =
        [json!("a"), json!("b"), json!(["a", "c"]), json!("z"), json!([]), json!(""), json!(["b", "a", "aa"])];
    let flags = [json!("#f1"), json!(["#f2", "#f3"]), json!("zzz"), json!([]), json!("")];
    let crews = [json!("#c1"), json!("#c2"), json!("")];
    let mut body = Map::new();
    for _ in 0..=dice.below(2) {
        let (key, all): (&str, &[Value]) = match dice.below(14) {
            0 => ("any+", &numbers),
            1 => ("any-", &numbers),
            2 => ("whole+", &numbers),
            3 => ("whole-", &numbers),
            4 => ("some+", &options),
            5 => ("+some", &options),
            6 => ("some-", &options),
            7 => ("flags+", &flags),
            8 => ("+flags", &flags),
            9 => ("flags-", &flags),
            10 => ("one+", &options),
            11 => ("one-", &options),
            12 => ("crew+", &crews),
            _ => ("crew-", &crews),
        };
        // PocketBase takes two modifiers of one field in the order of a Go map, which is another one each time.
        let field = key.trim_matches(['+', '-']);
        if !body.keys().any(|other: &String| other.trim_matches(['+', '-']) == field) {
            body.insert(key.to_owned(), resolved(dice.of(all)));
        }
    }
    body
}

/// Each required field left out, empty, and its zero.
fn required() -> Vec<Vec<Case>> {
    let whole = json!({
        "title": "t", "tons": 1, "afloat": true, "launched": "2024-01-01", "gear": ["a"], "log": 1, "owner": "#c1",
    });
    let mut stories = Vec::new();
    let mut story = |change: &dyn Fn(&mut Value)| {
        let id = id(&format!("r{}x", stories.len()));
        let mut body = resolved(&whole);
        body["id"] = json!(id);
        change(&mut body);
        stories.push(vec![Case::new(Category::Required, Ask::create(WHO, "musts", body))]);
    };
    story(&|_| {});
    for (field, values) in [
        ("title", vec![json!(""), json!(" "), json!(null)]),
        ("tons", vec![json!(0), json!("0"), json!(-1)]),
        ("afloat", vec![json!(false), json!("true")]),
        ("launched", vec![json!(""), json!(null)]),
        ("gear", vec![json!([]), json!(""), json!("a"), json!(["a", "b", "c"])]),
        ("log", vec![json!(null), json!(""), json!([]), json!({}), json!(0), json!(false), json!("x")]),
        ("owner", vec![json!(""), json!([]), json!("zzz"), json!(null)]),
    ] {
        story(&|body| drop(body.as_object_mut().expect("an object").remove(field)));
        for value in values {
            story(&|body| body[field] = value.clone());
        }
    }
    story(&|body| *body = json!({"id": id("rempty")}));
    // What is there already may be cleared no more.
    for field in ["title", "tons", "afloat", "launched", "gear", "log", "owner"] {
        let id = id(&format!("k{field}"));
        let mut body = resolved(&whole);
        body["id"] = json!(id);
        stories.push(vec![
            Case::new(Category::Required, Ask::create(WHO, "musts", body)),
            Case::new(Category::Required, Ask::update(WHO, "musts", &id, json!({field: null}))),
        ]);
    }
    stories
}

/// Ids of one's own, and bodies that are none.
fn ids() -> Vec<Vec<Case>> {
    let one = |ask| vec![Case::new(Category::Ids, ask)];
    let mut stories: Vec<Vec<Case>> = [
        json!("short"),
        json!("toolong000000000"),
        json!("UPPER0000000000"),
        json!("with-dash000000"),
        json!("\u{e4}00000000000000"),
        json!(123_456_789_012_345_i64),
        json!(12),
        json!("s10000000000000"),
        json!("               "),
    ]
    .into_iter()
    .map(|id| one(Ask::create(WHO, "crates", json!({"id": id, "code": id, "row": id}))))
    .collect();
    // Where the app's own pattern lets everything through.
    for key in [
        "a", "Key", "a/b", "..", "a b", "a\tb", "x%y", "x?y", "$", "'q'", "`", "con", "LPT9", "com0", "nul", "-_@~",
        "\u{e4}", "a\\b", "a:b", "<a>", "a|b", "a*", " a", "\"",
    ] {
        stories.push(one(Ask::create(WHO, "keys", json!({"id": key, "name": key}))));
    }
    let made = id("idmade");
    let create = |ask| Case::new(Category::Ids, ask);
    stories.push(vec![
        create(Ask::create(WHO, "crates", json!({"id": made, "code": "idmade", "row": "idmade"}))),
        create(Ask::create(WHO, "crates", json!({"id": made, "code": "other", "row": "other"}))),
        create(Ask::update(WHO, "crates", &made, json!({"id": made}))),
        create(Ask::update(WHO, "crates", &made, json!({}))),
    ]);
    stories.push(vec![create(Ask::update(WHO, "crates", "none00000000000", json!({"code": "x"})))]);
    stories.push(vec![create(Ask::delete(WHO, "crates", "none00000000000"))]);
    stories.push(vec![create(Ask::create(WHO, "none", json!({})))]);
    for value in ["other0000000000", ""] {
        let made = id(&format!("idkept{}", value.len()));
        stories.push(vec![
            create(Ask::create(WHO, "crates", json!({"id": made, "code": made, "row": made}))),
            create(Ask::update(WHO, "crates", &made, json!({"id": value}))),
        ]);
    }
    stories
}

/// Unique indexes: single, over two columns, and over those that are filled.
pub(crate) fn unique() -> Vec<Case> {
    let mut number = 0;
    let mut make = |body: Value| {
        number += 1;
        let mut body = body;
        body["id"] = json!(id(&format!("u{number}x")));
        Case::new(Category::Unique, Ask::create(WHO, "crates", body))
    };
    let mut story = vec![
        make(json!({"code": "k1", "row": "a", "shelf": 1, "tag": "x"})),
        make(json!({"code": "k1", "row": "b", "shelf": 1})),
        make(json!({"code": "K1", "row": "b", "shelf": 1})),
        make(json!({"code": "k2", "row": "a", "shelf": 1})),
        make(json!({"code": "k2", "row": "a", "shelf": 2, "tag": ""})),
        make(json!({"code": "k3", "row": "a", "shelf": 3, "tag": ""})),
        make(json!({"code": "k4", "row": "a", "shelf": 4, "tag": "x"})),
        make(json!({"code": "", "row": "a", "shelf": 5})),
        make(json!({"code": "", "row": "a", "shelf": 6})),
    ];
    // Letter case of ASCII does not count, that of other letters does.
    for (place, nick) in ["Hi", "HI", "hi ", "\u{c9}", "\u{e9}", "", ""].iter().enumerate() {
        let code = format!("n{place}");
        story.push(make(json!({"code": code, "row": code, "nick": nick})));
    }
    story.push(Case::new(Category::Unique, Ask::update(WHO, "crates", &id("u3x"), json!({"code": "k1"}))));
    story.push(Case::new(Category::Unique, Ask::update(WHO, "crates", &id("u3x"), json!({"row": "a", "shelf": 1}))));
    story.push(Case::new(Category::Unique, Ask::update(WHO, "crates", &id("u3x"), json!({"code": "K1"}))));
    story
}

/// What hangs on a ship when it goes. Each ship has a tale of its own.
fn deletes() -> Vec<Vec<Case>> {
    let make = |collection: &str, short: &str, body: Value| {
        let mut body = resolved(&body);
        body["id"] = json!(id(short));
        Case::new(Category::Delete, Ask::create(WHO, collection, body))
    };
    let see = |collection: &str, short: &str| Case::new(Category::Delete, Ask::view(WHO, collection, &id(short)));
    let remove = |collection: &str, short: &str| Case::new(Category::Delete, Ask::delete(WHO, collection, &id(short)));
    let ships = |prefix: &str, count: usize| -> Vec<Case> {
        (1..=count).map(|n| make("ships", &format!("{prefix}{n}"), json!({"title": prefix}))).collect()
    };
    let mut stories = Vec::new();
    let mut tale = |prefix: &str, count: usize, rest: Vec<Case>| stories.push([ships(prefix, count), rest].concat());
    tale(
        "da",
        1,
        vec![
            make("anchors", "daa1", json!({"ships": "#da1"})),
            make("knots", "dak1", json!({"anchor": "#daa1"})),
            remove("ships", "da1"),
            see("ships", "da1"),
            see("anchors", "daa1"),
            see("knots", "dak1"),
        ],
    );
    tale(
        "db",
        2,
        vec![
            make("ropes", "dbr1", json!({"ships": ["#db1"]})),
            make("ropes", "dbr2", json!({"ships": ["#db1", "#db2"]})),
            remove("ships", "db1"),
            see("ropes", "dbr1"),
            see("ropes", "dbr2"),
            remove("ships", "db2"),
            see("ropes", "dbr2"),
        ],
    );
    tale(
        "dc",
        1,
        vec![
            make("locks", "dcl1", json!({"ships": "#dc1"})),
            make("anchors", "dca1", json!({"ships": "#dc1"})),
            make("links", "dcn1", json!({"ships": ["#dc1"]})),
            remove("ships", "dc1"),
            see("ships", "dc1"),
            see("anchors", "dca1"),
            see("links", "dcn1"),
            remove("locks", "dcl1"),
            remove("ships", "dc1"),
            see("anchors", "dca1"),
            see("links", "dcn1"),
        ],
    );
    tale(
        "dd",
        2,
        vec![
            make("chains", "ddc1", json!({"ships": ["#dd1", "#dd2"]})),
            remove("ships", "dd1"),
            see("chains", "ddc1"),
            remove("ships", "dd2"),
            see("ships", "dd2"),
            see("chains", "ddc1"),
        ],
    );
    tale(
        "de",
        2,
        vec![
            make("links", "den1", json!({"ships": ["#de2", "#de1", "#s1"]})),
            make("visits", "dev1", json!({"ship": "#de1", "note": "x"})),
            make("papers", "dep1", json!({"ship": "#de1"})),
            make("papers", "dep2", json!({"ship": "#de1"})),
            remove("ships", "de1"),
            see("links", "den1"),
            see("visits", "dev1"),
        ],
    );
    stories
}

/// Bodies, methods and addresses that are wrong before anything is looked at.
fn bodies() -> Vec<Vec<Case>> {
    let one = |ask: Ask| vec![Case::new(Category::Bodies, ask)];
    let by = |method: &str, path: &str| {
        let mut ask = Ask::post(WHO, path, json!({"code": "x"}));
        ask.method = method.parse().expect("a method");
        ask
    };
    let mut stories = vec![
        one(by("PUT", "/api/collections/crates/records/none00000000000")),
        one(by("POST", "/api/collections/crates/records/none00000000000")),
        one(by("DELETE", "/api/collections/crates/records")),
        one(by("PATCH", "/api/collections/crates/records")),
        one(by("PUT", "/api/collections/crates/records")),
        one(Ask::update(WHO, "none", "none00000000000", json!({}))),
        one(Ask::delete(WHO, "none", "none00000000000")),
    ];
    let json = Some("application/json");
    #[rustfmt::skip]
    let raw: &[(Option<&str>, &str)] = &[
        (json, "{"), (json, "[]"), (json, "\"x\""), (json, "1"), (json, "true"), (json, "null"), (json, ""), (json, "  "), (json, "{}"),
        (json, "{'name':'x'}"), (json, "{\"name\":\"x\""), (json, "{\"name\":\"x\"}{}"), (json, "{\"name\":\"x\"} rubbish"),
        (json, "{\"name\":\"x\",}"), (json, "{\"name\":1e999}"), (json, "\u{feff}{}"), (json, "{\"name\":\"a\\ud800b\"}"),
        (json, "{\"name\":\"first\",\"name\":\"last\"}"), (Some("application/json; charset=utf-8"), "{\"name\":\"x\"}"),
        (Some("APPLICATION/JSON"), "{\"name\":\"x\"}"), (Some("text/plain"), "{\"name\":\"x\"}"), (Some("application/xml"), "<name>x</name>"),
        (None, "{\"name\":\"x\"}"), (None, ""), (Some("rubbish"), "{}"),
        (Some("application/x-www-form-urlencoded"), "name=x"), (Some("application/x-www-form-urlencoded"), "name=true"),
        (Some("application/x-www-form-urlencoded"), "name=12&ships=zzz"), (Some("application/x-www-form-urlencoded"), ""),
        (Some("application/x-www-form-urlencoded"), "%zz"), (Some("multipart/form-data"), "x"),
    ];
    for (index, (content_type, body)) in raw.iter().enumerate() {
        // Always the same record: an id that comes from chance would differ.
        let id = id(&format!("b{index}x"));
        stories.push(vec![
            Case::new(Category::Bodies, Ask::create(WHO, "links", json!({"id": id}))),
            Case::new(Category::Bodies, Ask::update(WHO, "links", &id, json!({})).raw(*content_type, body.as_bytes())),
        ]);
    }
    stories
}

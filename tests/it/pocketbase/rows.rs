//! What lies in the harbour: values chosen so that near misses of every kind meet.

use serde_json::{Value, json};

use super::schema::id;

/// Collection, short id, values. Texts that start with `#` are ids.
pub(crate) type Row = (&'static str, &'static str, Value);

/// Rows in the order they are made.
pub(crate) fn harbour() -> Vec<Row> {
    let mut rows = vec![
        ("flags", "f1", json!({"name": "red", "weight": 1})),
        ("flags", "f2", json!({"name": "green", "weight": 2})),
        ("flags", "f3", json!({"name": "Red", "weight": 2})),
        ("flags", "f4", json!({"name": "", "weight": 0})),
        ("crews", "c1", json!({"name": "Ada", "grade": 3, "skills": ["#f1", "#f2"], "salary": 10})),
        ("crews", "c2", json!({"name": "bo", "grade": 1, "captain": "#c1", "skills": ["#f2"], "salary": 20})),
        ("crews", "c3", json!({"name": "Cy", "grade": 2, "captain": "#c2", "skills": ["#f3", "#f1", "#f4"]})),
        ("crews", "c4", json!({"name": "ada", "grade": 0, "captain": "#c2"})),
        ("crews", "c5", json!({"name": "", "grade": -1.5, "captain": "#c1", "skills": ["#f4"]})),
    ];
    rows.extend(ships());
    rows.extend([
        ("visits", "v1", json!({"ship": "#s1", "note": "first", "good": true, "by": "#c1", "stars": 5})),
        ("visits", "v2", json!({"ship": "#s1", "note": "second", "good": false, "by": "#c2", "stars": 2})),
        ("visits", "v3", json!({"ship": "#s2", "note": "first", "good": true, "by": "#c2", "stars": 0})),
        ("visits", "v4", json!({"ship": "#s3", "note": "only", "good": false, "stars": 1})),
        ("visits", "v5", json!({"note": "nowhere", "good": true, "by": "#c3", "stars": 5})),
        ("visits", "v6", json!({"ship": "#s5", "note": "", "good": true, "by": "#c4", "stars": -2})),
        ("visits", "v7", json!({"ship": "#s5", "note": "", "good": true, "by": "#c4", "stars": 5})),
        ("papers", "p1", json!({"ship": "#s1", "serial": "A1"})),
        ("papers", "p2", json!({"ship": "#s2", "serial": ""})),
        ("papers", "p3", json!({"ship": "#s4", "serial": "a1"})),
        ("papers", "p4", json!({"ship": "", "serial": "lost"})),
        ("teams", "t1", json!({"label": "north", "members": ["#c1", "#c2"], "lead": "#c1"})),
        ("teams", "t2", json!({"label": "south", "members": ["#c2", "#c3", "#c4"], "lead": "#c3"})),
        ("teams", "t3", json!({"label": "", "members": [], "lead": "#c1"})),
    ]);
    rows
}

#[rustfmt::skip]
fn ships() -> Vec<Row> {
    vec![
        ("ships", "s1", json!({
            "title": "Argo", "code": "10", "tons": 10, "berths": 1, "afloat": true, "launched": "2024-03-05 07:08:09.123Z",
            "rig": "sloop", "gear": ["oar", "sail"], "owner": "#c1", "marks": ["#f1", "#f2"],
            "log": {"a": 1, "b": {"c": "x"}, "list": [1, "two", null]}, "berth": {"lon": 23.5, "lat": 42.25},
            "site": "https://argo.example/x?y=1", "mail": "argo@sea.example", "notes": "<p>Fast &amp; <b>light</b></p>",
            "secret": "s1",
        })),
        ("ships", "s2", json!({
            "title": "argo", "code": "9", "tons": 9.5, "berths": 2, "launched": "2024-03-05 07:08:09.124Z", "rig": "brig",
            "gear": ["oars"], "owner": "#c2", "marks": ["#f2"], "log": "text", "berth": {"lon": 24.0, "lat": 42.0}, "secret": "s2",
        })),
        ("ships", "s3", json!({
            "title": "Boreas", "code": "100%", "tons": -5, "berths": 3, "afloat": true, "launched": "2023-12-31 23:59:59.999Z",
            "gear": ["oar", "oars", "sail"], "owner": "#c3", "marks": ["#f3", "#f1"], "log": 12,
        })),
        ("ships", "s4", json!({
            "title": "a_b", "code": "axb", "tons": 0.1, "berths": 4, "rig": "bark", "owner": "#c4", "log": [3, 1, 2],
            "berth": {"lon": -179.5, "lat": -89.0},
        })),
        ("ships", "s5", json!({
            "title": "", "code": "", "tons": 0, "berths": 5, "marks": ["#f4"], "owner": "#c5", "log": null,
        })),
        ("ships", "s6", json!({"title": "\u{c4}gir", "code": " 10", "tons": 1e20, "berths": 6, "log": true, "gear": ["mast"]})),
        ("ships", "s7", json!({"title": "\u{e4}gir", "code": "10.0", "tons": 123, "berths": 7, "log": "10", "owner": "#c1"})),
        ("ships", "s8", json!({"title": "it's", "code": "1e1", "tons": 123.45, "berths": 8, "log": {}, "marks": ["#f4", "#f3"]})),
        ("ships", "s9", json!({"title": "say \"ho\"", "code": "-5", "tons": -0.5, "berths": 9, "log": [], "afloat": true})),
        ("ships", "sa", json!({"title": "back\\slash", "code": "\\", "tons": 1, "berths": 10, "log": ""})),
        ("ships", "sb", json!({
            "title": "true", "code": "1", "tons": 1, "berths": 11, "log": "true", "afloat": true, "rig": "sloop",
            "launched": "2024-03-05 00:00:00.000Z",
        })),
        ("ships", "sc", json!({"title": "null", "code": "null", "tons": 2, "berths": 12, "log": false})),
        ("ships", "sd", json!({"title": "10", "code": "0", "tons": 1e-7, "berths": 13, "log": {"a": "1", "b": null, "list": []}})),
        ("ships", "se", json!({"title": "10.0", "code": "0x10", "tons": 1_234_567.891, "berths": 14, "log": {"a": [{"b": "q"}, {"b": "r"}]}})),
        ("ships", "sf", json!({"title": " lead", "code": "\u{1f6a2}", "tons": 9_007_199_254_740_991_i64, "berths": 15, "log": 1.5})),
        ("ships", "sg", json!({"title": "a b\nc", "code": "tab\t", "tons": -1e15, "berths": 16, "log": {"a": true, "b": {"c": 5}}})),
        ("ships", "sh", json!({
            "title": "zebra <i>&", "code": "Zz", "tons": 5, "berths": 17, "gear": ["sail", "oar"], "marks": ["#f2", "#f1", "#f3"],
            "owner": "#c2", "launched": "2024-02-29 12:00:00.000Z", "notes": "<ul><li>one</li><li>two</li></ul> tail text", "rig": "brig",
        })),
    ]
}

/// Who can sign in: short id, which is the first part of the address too, and the crew.
pub(crate) const USERS: &[(&str, &str)] = &[("ann", "c1"), ("ben", "c3")];

pub(crate) const PASSWORD: &str = "fair winds and following seas";

pub(crate) fn users() -> Vec<Row> {
    let user = |(short, crew): &(&'static str, &'static str)| {
        let body = json!({
            "email": format!("{short}@sea.example"), "password": PASSWORD, "passwordConfirm": PASSWORD, "name": short,
            "verified": *short == "ann", "emailVisibility": *short == "ben", "crew": format!("#{crew}"),
            "level": if *short == "ann" { 10 } else { 0 }, "badge": if *short == "ann" { "10" } else { "_e" },
        });
        ("users", *short, body)
    };
    USERS.iter().map(user).collect()
}

/// What lies behind each gate.
pub(crate) fn gated() -> Vec<Value> {
    vec![
        json!({"title": "Argo", "tons": 10, "afloat": true, "rig": "sloop", "gear": ["oar", "sail"], "owner": "#c1", "user": "#ann", "marks": ["#f1", "#f2"], "log": {"a": 1}}),
        json!({"title": "argo", "tons": -5, "gear": ["oars"], "owner": "#c2", "user": "#ben", "marks": ["#f2"]}),
        json!({"title": "ann", "tons": 0, "afloat": true, "rig": "brig", "owner": "#c3", "marks": ["#f3", "#f1", "#f4"], "log": {"a": "x"}}),
        json!({"title": "", "tons": 123, "user": "#ann", "gear": ["mast", "oar", "sail"]}),
        json!({"title": "Ben", "tons": 1.5, "afloat": true, "owner": "#c4", "user": "#ben", "rig": "bark"}),
        json!({"title": "key", "tons": 2, "owner": "#c5", "marks": ["#f4"], "log": "text"}),
    ]
}

/// Ids instead of their short forms.
pub(crate) fn resolved(value: &Value) -> Value {
    match value {
        Value::String(text) => text.strip_prefix('#').map_or_else(|| value.clone(), |short| id(short).into()),
        Value::Array(items) => items.iter().map(resolved).collect(),
        Value::Object(members) => {
            members.iter().map(|(key, value)| (key.clone(), resolved(value))).collect::<serde_json::Map<_, _>>().into()
        }
        _ => value.clone(),
    }
}

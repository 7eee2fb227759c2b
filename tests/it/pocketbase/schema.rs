//! The collections both sides get: a harbour, with every type of field and every kind of relation.

use serde_json::{Value, json};

/// Fifteen characters, as PocketBase wants ids.
pub(crate) fn id(short: &str) -> String {
    format!("{short:0<15}")
}

fn field(kind: &str, name: &str, options: Value) -> Value {
    let mut field = json!({"name": name, "type": kind});
    let Value::Object(options) = options else { panic!("the options of {name} are no object") };
    for (key, value) in options {
        field[key] = value;
    }
    field
}

fn text(name: &str) -> Value {
    field("text", name, json!({}))
}

fn number(name: &str) -> Value {
    field("number", name, json!({}))
}

fn boolean(name: &str) -> Value {
    field("bool", name, json!({}))
}

fn relation(name: &str, to: &str, most: u32, options: Value) -> Value {
    let to = if to == "users" { "_pb_users_auth_".to_owned() } else { format!("pbc_{to}") };
    let mut field = field("relation", name, options);
    field["collectionId"] = json!(to);
    field["maxSelect"] = json!(most);
    field
}

fn to_one(name: &str, to: &str) -> Value {
    relation(name, to, 1, json!({}))
}

/// The five rules of a collection: list, view, create, update, delete.
pub(crate) type Rules = [Option<String>; 5];

pub(crate) fn everybody() -> Rules {
    [const { Some(String::new()) }; 5]
}

pub(crate) fn collection(name: &str, rules: Rules, fields: Vec<Value>) -> Value {
    let [list, view, create, update, delete] = rules;
    let mut collection = json!({
        "id": format!("pbc_{name}"), "name": name, "type": "base", "indexes": [],
        "listRule": list, "viewRule": view, "createRule": create, "updateRule": update, "deleteRule": delete,
    });
    collection["fields"] = fields.into();
    collection
}

fn with_indexes(mut collection: Value, indexes: &[&str]) -> Value {
    collection["indexes"] = json!(indexes);
    collection
}

fn with_list_rule(mut collection: Value, rule: Option<&str>) -> Value {
    collection["listRule"] = json!(rule);
    collection
}

/// The fields of a ship: one of each type that needs no upload.
pub(crate) fn ship_fields() -> Vec<Value> {
    vec![
        text("title"),
        text("code"),
        number("tons"),
        number("berths"),
        boolean("afloat"),
        field("date", "launched", json!({})),
        field("select", "rig", json!({"values": ["sloop", "brig", "bark"], "maxSelect": 1})),
        field("select", "gear", json!({"values": ["oar", "oars", "sail", "mast"], "maxSelect": 3})),
        to_one("owner", "crews"),
        relation("marks", "flags", 5, json!({})),
        field("json", "log", json!({})),
        field("geoPoint", "berth", json!({})),
        field("url", "site", json!({})),
        field("email", "mail", json!({})),
        field("editor", "notes", json!({})),
        field("text", "secret", json!({"hidden": true})),
        field("autodate", "made", json!({"onCreate": true, "onUpdate": false})),
        field("autodate", "changed", json!({"onCreate": true, "onUpdate": true})),
    ]
}

/// What is read in most cases.
pub(crate) fn harbour() -> Vec<Value> {
    vec![
        collection("flags", everybody(), vec![text("name"), number("weight")]),
        collection(
            "crews",
            everybody(),
            vec![
                text("name"),
                number("grade"),
                to_one("captain", "crews"),
                relation("skills", "flags", 5, json!({})),
                field("number", "salary", json!({"hidden": true})),
            ],
        ),
        collection("ships", everybody(), ship_fields()),
        with_list_rule(
            collection(
                "visits",
                everybody(),
                vec![to_one("ship", "ships"), text("note"), boolean("good"), to_one("by", "crews"), number("stars")],
            ),
            Some("good = true"),
        ),
        with_indexes(
            collection("papers", everybody(), vec![to_one("ship", "ships"), text("serial")]),
            &["CREATE UNIQUE INDEX `idx_papers_ship` ON `papers` (`ship`)"],
        ),
        with_list_rule(
            collection(
                "teams",
                everybody(),
                vec![text("label"), relation("members", "crews", 5, json!({})), to_one("lead", "crews")],
            ),
            None,
        ),
    ]
}

/// What is written to: constraints, unique indexes, and everything that can happen when a ship is deleted.
pub(crate) fn yard() -> Vec<Value> {
    let mut all = harbour();
    all.push(collection("forms", everybody(), form_fields()));
    all.push(collection(
        "musts",
        everybody(),
        vec![
            field("text", "title", json!({"required": true})),
            field("number", "tons", json!({"required": true})),
            field("bool", "afloat", json!({"required": true})),
            field("date", "launched", json!({"required": true})),
            field("select", "gear", json!({"values": ["a", "b", "c"], "maxSelect": 2, "required": true})),
            field("json", "log", json!({"required": true})),
            relation("owner", "crews", 1, json!({"required": true})),
        ],
    ));
    let mut capped = everybody();
    capped[3] = Some("@request.body.level < 100".to_owned());
    all.push(collection("gauges", capped, vec![number("level")]));
    all.push(with_indexes(
        collection("crates", everybody(), vec![text("code"), text("row"), number("shelf"), text("tag"), text("nick")]),
        &[
            "CREATE UNIQUE INDEX `idx_crates_code` ON `crates` (`code`)",
            "CREATE UNIQUE INDEX `idx_crates_place` ON `crates` (`row`, `shelf`)",
            "CREATE UNIQUE INDEX `idx_crates_tag` ON `crates` (`tag`) WHERE `tag` != ''",
            "CREATE UNIQUE INDEX `idx_crates_nick` ON `crates` (`nick` COLLATE NOCASE) WHERE `nick` != ''",
        ],
    ));
    let mut own_key = field("text", "id", json!({"min": 1, "max": 40, "pattern": "^[\\s\\S]+$"}));
    for (flag, value) in [("system", json!(true)), ("primaryKey", json!(true)), ("required", json!(true))] {
        own_key[flag] = value;
    }
    own_key["autogeneratePattern"] = json!("[a-z0-9]{15}");
    all.push(collection("keys", everybody(), vec![own_key, text("name")]));
    let to_ships = |name: &str, most: u32, options: Value| {
        collection(name, everybody(), vec![text("name"), relation("ships", "ships", most, options)])
    };
    all.push(to_ships("anchors", 1, json!({"cascadeDelete": true})));
    all.push(to_ships("ropes", 3, json!({"cascadeDelete": true})));
    all.push(to_ships("locks", 1, json!({"required": true})));
    all.push(to_ships("chains", 3, json!({"required": true})));
    all.push(to_ships("links", 3, json!({})));
    all.push(collection(
        "knots",
        everybody(),
        vec![text("name"), relation("anchor", "anchors", 1, json!({"cascadeDelete": true}))],
    ));
    all
}

fn form_fields() -> Vec<Value> {
    vec![
        field("text", "short", json!({"min": 2, "max": 6, "pattern": "^[a-z]+$"})),
        text("free"),
        field("number", "whole", json!({"onlyInt": true, "min": -100, "max": 1000})),
        number("any"),
        boolean("flag"),
        field("date", "day", json!({"min": "2020-01-01 00:00:00.000Z", "max": "2030-01-01 00:00:00.000Z"})),
        field("date", "when", json!({})),
        field("select", "one", json!({"values": ["a", "b", "c"], "maxSelect": 1})),
        field("select", "some", json!({"values": ["a", "b", "c", "aa", "1"], "maxSelect": 3})),
        to_one("crew", "crews"),
        relation("flags", "flags", 3, json!({"minSelect": 0})),
        relation("pair", "flags", 3, json!({"minSelect": 2})),
        field("json", "data", json!({"maxSize": 2000})),
        field("geoPoint", "place", json!({})),
        field("url", "link", json!({"exceptDomains": ["bad.example"]})),
        field("email", "mail", json!({"onlyDomains": ["good.example"]})),
        field("editor", "body", json!({"maxSize": 100})),
        field("text", "auto", json!({"autogeneratePattern": "[a-z]{8}"})),
        field("text", "hush", json!({"hidden": true})),
        field("autodate", "made", json!({"onCreate": true, "onUpdate": false})),
        field("autodate", "changed", json!({"onCreate": true, "onUpdate": true})),
    ]
}

/// A view of each kind of column: counted, plain, a foreign id, and one that is an expression.
pub(crate) fn views() -> Vec<Value> {
    let view = |name: &str, query: &str| {
        json!({
            "id": format!("pbc_{name}"), "name": name, "type": "view", "viewQuery": query, "listRule": "", "viewRule": "",
        })
    };
    vec![
        view("ship_names", "SELECT id, title, tons, owner, launched, log FROM ships"),
        view(
            "ship_papers",
            "SELECT s.id, s.title, p.serial, CAST(s.tons AS TEXT) AS weight, CAST(s.code AS INT) AS number, \
             (s.tons + 1) AS more FROM ships s LEFT JOIN papers p ON p.ship = s.id",
        ),
        view(
            "ship_visits",
            "SELECT s.id, s.title, COUNT(v.id) AS visits FROM ships s LEFT JOIN visits v ON v.ship = s.id GROUP BY s.id",
        ),
    ]
}

/// `users` as every PocketBase has it, and with the crew a user belongs to.
pub(crate) fn users() -> Value {
    let images = ["image/jpeg", "image/png", "image/svg+xml", "image/gif", "image/webp"];
    let own = "id = @request.auth.id";
    json!({
        "id": "_pb_users_auth_", "name": "users", "type": "auth", "indexes": [],
        "listRule": own, "viewRule": own, "createRule": "", "updateRule": own, "deleteRule": own,
        "authRule": "", "manageRule": null,
        "fields": [
            field("text", "name", json!({"max": 255})),
            field("file", "avatar", json!({"maxSelect": 1, "maxSize": 0, "mimeTypes": images})),
            to_one("crew", "crews"),
            number("level"),
            text("badge"),
            field("autodate", "created", json!({"onCreate": true, "onUpdate": false})),
            field("autodate", "updated", json!({"onCreate": true, "onUpdate": true})),
        ],
    })
}

/// Other accounts beside [`users`].
pub(crate) fn pilots() -> Value {
    json!({
        "id": "pbc_pilots", "name": "pilots", "type": "auth", "indexes": [],
        "listRule": "", "viewRule": "", "createRule": "", "updateRule": null, "deleteRule": null,
        "authRule": "", "manageRule": null, "fields": [text("name")],
    })
}

/// Guarded by the rules given, and otherwise all the same.
pub(crate) fn gate(index: usize, rules: Rules) -> Value {
    let fields = vec![
        text("title"),
        number("tons"),
        boolean("afloat"),
        field("select", "rig", json!({"values": ["sloop", "brig", "bark"], "maxSelect": 1})),
        field("select", "gear", json!({"values": ["oar", "oars", "sail", "mast"], "maxSelect": 3})),
        to_one("owner", "crews"),
        to_one("user", "users"),
        relation("marks", "flags", 5, json!({})),
        field("json", "log", json!({})),
    ];
    collection(&format!("gate{index}"), rules, fields)
}

//! The SDKs that apps use, against ours: first the real PocketBase must pass every step, so that a step asks for nothing it
//! does not give.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use inn_tests::host::PASSWORD;
use inn_tests::{built, pocketbase};
use serde_json::{Value, json};

use super::schema;
use super::world::{self, Side, World};

/// Steps that ours must pass with every SDK.
const IN_FORCE: &[&str] =
    &["health", "superuser", "auth", "stale", "crud", "lists", "expand", "batch", "realtime", "reconnect", "files"];

/// One program that speaks through an SDK.
struct Client {
    name: &'static str,
    command: fn(&Path) -> Command,
    /// What must be there for it to run.
    needs: &'static str,
}

const CLIENTS: &[Client] = &[
    Client { name: "js-newest", command: |folder| javascript(folder, "pocketbase"), needs: "node_modules/pocketbase" },
    Client {
        name: "js-0.26",
        command: |folder| javascript(folder, "pocketbase-0.26"),
        needs: "node_modules/pocketbase-0.26",
    },
    Client { name: "python", command: python, needs: "venv/bin/python" },
];

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("clients")
}

fn javascript(folder: &Path, package: &str) -> Command {
    let mut command = Command::new("node");
    command.arg(sources().join("sdk.mjs")).arg(folder).arg(package);
    command
}

fn python(folder: &Path) -> Command {
    let mut command = Command::new(folder.join("venv/bin/python"));
    command.arg(sources().join("smoke.py"));
    command
}

/// Users who post, and comment on what others have posted.
fn collections() -> Vec<Value> {
    let field = |kind: &str, name: &str, options: Value| {
        let mut field = json!({"name": name, "type": kind});
        field.as_object_mut().expect("an object").extend(options.as_object().expect("options").clone());
        field
    };
    let signed_in = || Some("@request.auth.id != ''".to_owned());
    let own = || Some("author = @request.auth.id".to_owned());
    let users = "_pb_users_auth_";
    let mut posts = vec![
        field("text", "title", json!({"required": true})),
        field("number", "rank", json!({})),
        field("relation", "author", json!({"collectionId": users, "maxSelect": 1})),
        field("select", "tags", json!({"values": ["a", "b", "c"], "maxSelect": 3})),
        field("bool", "done", json!({})),
        field("date", "due", json!({})),
        field("json", "extra", json!({})),
    ];
    posts.extend([
        field("file", "papers", json!({"maxSelect": 3, "maxSize": 2048})),
        field("file", "secret", json!({"maxSelect": 1, "maxSize": 2048, "protected": true})),
    ]);
    posts.push(field("autodate", "created", json!({"onCreate": true, "onUpdate": false})));
    let comments = vec![
        field("relation", "post", json!({"collectionId": "pbc_posts", "maxSelect": 1, "cascadeDelete": true})),
        field("text", "text", json!({})),
    ];
    let mut users = schema::users();
    // Whoever is signed in may see the others.
    users["listRule"] = json!("@request.auth.id != ''");
    users["viewRule"] = json!("@request.auth.id != ''");
    users["fields"].as_array_mut().expect("fields").retain(|field| field["name"] != "crew");
    vec![
        users,
        schema::collection("posts", [signed_in(), signed_in(), signed_in(), own(), own()], posts),
        schema::collection("comments", [const { Some(String::new()) }; 5].map(|_| signed_in()), comments),
    ]
}

/// Step and what went wrong.
async fn steps(mut command: Command, url: &str, owner: (&str, &str)) -> Result<Vec<(String, Option<String>)>, String> {
    command.args([url, owner.0, owner.1]);
    let ran = tokio::task::spawn_blocking(move || command.output()).await.expect("no panic");
    let output = ran.map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    if !output.status.success() || lines.is_empty() {
        return Err(format!("{} {text} {}", output.status, String::from_utf8_lossy(&output.stderr)));
    }
    let step = |line: &Value| {
        let name = line["step"].as_str().expect("a step").to_owned();
        (name, line["error"].as_str().map(str::to_owned))
    };
    Ok(lines.iter().map(step).collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sdks_that_apps_use_do_not_notice_the_difference() {
    let Some(binary) = world::binary() else { return };
    let folder = built().join("clients");
    let world = World::new(binary, "clients", "multi-user", &collections()).await.expect("ours takes the bundle");
    let mut report = String::from("clients\n\n");
    let mut problems = Vec::new();
    for client in CLIENTS {
        if !folder.join(client.needs).exists() {
            world::skipped(&format!("the SDK {} is not installed (ops/test does that)", client.name));
            continue;
        }
        let theirs = steps((client.command)(&folder), &world.base(Side::Theirs), pocketbase::ROOT).await;
        let theirs = theirs.unwrap_or_else(|error| panic!("{}: {error}", client.name));
        let wrong: Vec<_> = theirs.iter().filter(|(_, error)| error.is_some()).collect();
        assert!(wrong.is_empty(), "{} asks for what PocketBase does not give: {wrong:#?}", client.name);
        let ours = steps((client.command)(&folder), &world.base(Side::Ours), ("owner@acme.example", PASSWORD)).await;
        let ours = ours.unwrap_or_else(|error| panic!("{}: {error}", client.name));
        assert_eq!(ours.len(), theirs.len(), "{}: every step is made", client.name);
        for (step, error) in ours {
            // Writing to a String cannot fail.
            let _ = writeln!(report, "{} {step}: {}", client.name, error.as_deref().unwrap_or("ok"));
            if let Some(error) = error.filter(|_| IN_FORCE.contains(&step.as_str())) {
                problems.push(format!("{} {step}: {error}", client.name));
            }
        }
    }
    world::write_report("clients", &report);
    assert!(problems.is_empty(), "{}", problems.join("\n\n"));
}

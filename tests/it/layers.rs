//! Who may import whom (DESIGN section 2). The rules are the tables below; a new crate or edge is fine when it makes the
//! house clearer: change the table in the same commit.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::{DependencyKind, MetadataCommand};

/// What a crate may import of ours; the tests may import anything and are not listed.
#[rustfmt::skip]
const HOUSE: &[(&str, &[&str])] = &[
    ("inn-protocol", &[]),
    ("inn-rules",    &["inn-protocol"]),
    ("inn-grants",   &["inn-protocol"]),
    ("inn-bundle",   &["inn-protocol"]),
    ("inn-ports",    &["inn-protocol", "inn-rules", "inn-grants"]),
    ("inn-actors",   &["inn-protocol", "inn-rules", "inn-grants", "inn-ports"]),
    ("inn-store",    &["inn-protocol", "inn-rules", "inn-grants", "inn-ports"]),
    ("inn-blobs",    &["inn-protocol", "inn-rules", "inn-ports"]),
    ("inn-bus",      &["inn-protocol", "inn-ports"]),
    ("inn-mail",     &["inn-protocol", "inn-ports"]),
    ("inn-embedded", &[]),
    ("inn-http",     &["inn-protocol", "inn-rules", "inn-grants", "inn-bundle", "inn-ports", "inn-actors"]),
    ("inn-console",  &["inn-protocol", "inn-rules", "inn-grants", "inn-ports", "inn-actors", "inn-http"]),
    ("inn-client",   &["inn-protocol", "inn-grants"]),
    ("inn-server",   &["inn-protocol", "inn-rules", "inn-grants", "inn-bundle", "inn-ports", "inn-actors", "inn-store",
                       "inn-blobs", "inn-bus", "inn-mail", "inn-embedded", "inn-http", "inn-console", "inn-client"]),
    ("inn-bench",    &["inn-protocol", "inn-grants", "inn-client"]),
    // Measures from outside, over HTTP; the grants are for the cost of verifying alone.
    ("inn-bench",    &["inn-client", "inn-grants", "inn-protocol"]),
];

const TESTS: &str = "inn-tests";

/// Edges behind a feature that only tests switch on: never part of the product.
const TESTING: &[(&str, &str)] = &[("inn-store", "inn-embedded")];

/// Outside crates with a home: whoever needs what they do asks the home for it.
#[rustfmt::skip]
const HOMES: &[(&str, &[&str])] = &[
    ("actix",             &["inn-actors"]),
    ("actix-rt",          &["inn-actors", "inn-server"]),
    ("actix-web",         &["inn-http", "inn-console", "inn-server"]),
    ("tokio-postgres",    &["inn-store"]),
    ("deadpool-postgres", &["inn-store"]),
    ("refinery",          &["inn-store"]),
    ("object_store",      &["inn-blobs"]),
    ("image",             &["inn-blobs"]),
    ("redis",             &["inn-bus"]),
    ("biscuit-auth",      &["inn-grants"]),
    ("ed25519-dalek",     &["inn-grants"]),
    ("argon2",            &["inn-grants"]),
    ("hmac",              &["inn-grants"]),
    ("chacha20poly1305",  &["inn-grants"]),
    ("lettre",            &["inn-mail"]),
    ("jsonschema",        &["inn-rules", "inn-bundle"]),
];

/// No runtime, no `async fn`: what is decided is decided without waiting.
const PURE: &[&str] = &["inn-protocol", "inn-rules", "inn-grants", "inn-bundle"];

/// Runtimes and what only makes sense on one; `actix*` and `futures*` besides.
const RUNTIMES: &[&str] = &["tokio", "tokio-util", "tokio-stream", "async-trait", "async-std", "smol"];

/// One crate of ours, as far as the rules need it.
#[derive(Debug, Clone, Default)]
struct Member {
    name: String,
    /// Normal and build dependencies of ours.
    ours: Vec<String>,
    /// Those behind a feature that is off.
    optional: Vec<String>,
    /// Normal and build dependencies from outside.
    outside: Vec<String>,
    /// `file:line` of every async function or wait in its sources.
    waits: Vec<String>,
}

/// Every broken rule as a sentence that says what to do.
fn broken(members: &[Member]) -> Vec<String> {
    let mut problems = Vec::new();
    for member in members.iter().filter(|member| member.name != TESTS) {
        let name = member.name.as_str();
        let Some((_, allowed)) = HOUSE.iter().find(|(listed, _)| *listed == name) else {
            problems.push(format!(
                "{name} is not in the house: add it to HOUSE with what it may import, and to DESIGN section 2"
            ));
            continue;
        };
        for edge in member.ours.iter().filter(|edge| !allowed.contains(&edge.as_str())) {
            problems.push(format!(
                "{name} imports {edge}, which it may not (it may import: {}): move the code to where it belongs, put a trait \
                 into inn-ports, or change HOUSE in this commit and say why",
                list(allowed)
            ));
        }
        for edge in &member.optional {
            if !allowed.contains(&edge.as_str()) && !TESTING.contains(&(name, edge.as_str())) {
                problems.push(format!(
                    "{name} imports {edge} behind a feature: list the edge in TESTING if only tests switch it on"
                ));
            }
        }
        for outside in &member.outside {
            if let Some((_, homes)) = HOMES.iter().find(|(crate_name, _)| crate_name == outside)
                && !homes.contains(&name)
            {
                problems.push(format!(
                    "{name} uses {outside}, whose home is {}: let the home offer what is needed",
                    list(homes)
                ));
            }
            let runtime =
                RUNTIMES.contains(&outside.as_str()) || outside.starts_with("actix") || outside.starts_with("futures");
            if runtime && PURE.contains(&name) {
                problems.push(format!(
                    "{name} is pure and uses the runtime {outside}: return what is to be done, and do it outside"
                ));
            }
        }
        if PURE.contains(&name) {
            for place in &member.waits {
                problems.push(format!("{name} is pure and waits at {place}: take the value as an argument"));
            }
        }
    }
    let here: BTreeSet<&str> = members.iter().map(|member| member.name.as_str()).collect();
    for (listed, _) in HOUSE.iter().filter(|(listed, _)| !here.contains(listed)) {
        problems.push(format!("{listed} is in HOUSE and not in the workspace: take it out of the table"));
    }
    problems
}

fn list(names: &[&str]) -> String {
    if names.is_empty() { "nothing of ours".to_owned() } else { names.join(", ") }
}

/// The workspace as it is.
fn workspace() -> Vec<Member> {
    let metadata = MetadataCommand::new()
        .manifest_path(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"))
        .no_deps()
        .other_options(["--offline".to_owned()])
        .exec()
        .expect("cargo metadata answers");
    let ours: BTreeSet<&str> = metadata.packages.iter().map(|package| package.name.as_str()).collect();
    let member = |package: &cargo_metadata::Package| {
        let mut member = Member { name: package.name.to_string(), ..Member::default() };
        for dependency in
            package.dependencies.iter().filter(|dependency| dependency.kind != DependencyKind::Development)
        {
            match (ours.contains(dependency.name.as_str()), dependency.optional) {
                (true, false) => member.ours.push(dependency.name.clone()),
                (true, true) => member.optional.push(dependency.name.clone()),
                (false, _) => member.outside.push(dependency.name.clone()),
            }
        }
        let sources = package.manifest_path.parent().expect("a folder").join("src");
        member.waits = rust_files(sources.as_std_path()).iter().flat_map(|file| waits(file)).collect();
        member
    };
    metadata.packages.iter().map(member).collect()
}

fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let mut files = Vec::new();
    for path in entries.map(|entry| entry.expect("a readable folder").path()) {
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files
}

fn waits(file: &Path) -> Vec<String> {
    let text = fs::read_to_string(file).expect("a readable source");
    let found = text.lines().enumerate().filter(|(_, line)| is_waiting(line));
    found.map(|(number, _)| format!("{}:{}", file.display(), number + 1)).collect()
}

fn is_waiting(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    code.contains("async fn") || code.contains("async move") || code.contains(".await")
}

#[test]
fn the_house_stands() {
    let members = workspace();
    assert!(members.len() >= HOUSE.len(), "cargo metadata found only {members:?}");
    let problems = broken(&members);
    assert!(problems.is_empty(), "{} broken import rules:\n- {}", problems.len(), problems.join("\n- "));
}

fn planted(name: &str, change: impl FnOnce(&mut Member)) -> Vec<String> {
    let mut members: Vec<Member> = HOUSE
        .iter()
        .map(|(name, ours)| Member {
            name: (*name).to_owned(),
            ours: ours.iter().map(|&edge| edge.to_owned()).collect(),
            ..Member::default()
        })
        .collect();
    assert!(broken(&members).is_empty(), "the table contradicts itself");
    if let Some(member) = members.iter_mut().find(|member| member.name == name) {
        change(member);
    } else {
        let mut member = Member { name: name.to_owned(), ..Member::default() };
        change(&mut member);
        members.push(member);
    }
    broken(&members)
}

#[test]
fn a_planted_edge_is_found() {
    let strings = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    for (name, edge) in [
        ("inn-actors", "inn-store"),
        ("inn-store", "inn-bus"),
        ("inn-store", "inn-actors"),
        ("inn-protocol", "inn-rules"),
        ("inn-http", "inn-store"),
        ("inn-client", "inn-http"),
    ] {
        let found = planted(name, |member| member.ours.extend(strings(&[edge])));
        assert!(matches!(&found[..], [one] if one.contains(name) && one.contains(edge)), "{name} → {edge}: {found:?}");
    }
    let optional = planted("inn-http", |member| member.optional = strings(&["inn-embedded"]));
    assert_eq!(optional.len(), 1, "{optional:?}");
    assert!(planted("inn-store", |member| member.optional = strings(&["inn-embedded"])).is_empty());
}

#[test]
fn a_planted_outside_crate_away_from_home_is_found() {
    for (name, outside, found) in [
        ("inn-store", "redis", 1),
        ("inn-http", "actix", 1),
        ("inn-actors", "actix-web", 1),
        ("inn-server", "tokio-postgres", 1),
        ("inn-client", "biscuit-auth", 1),
        ("inn-rules", "tokio", 1),
        ("inn-grants", "futures-util", 1),
        ("inn-bundle", "async-trait", 1),
        // Away from home and a runtime in a pure crate.
        ("inn-protocol", "actix-rt", 2),
        ("inn-actors", "tokio", 0),
    ] {
        let problems = planted(name, |member| member.outside = vec![outside.to_owned()]);
        assert_eq!(problems.len(), found, "{name} uses {outside}: {problems:?}");
    }
}

#[test]
fn a_planted_crate_and_a_planted_wait_are_found() {
    let problems = planted("inn-shortcut", |_| {});
    assert!(matches!(&problems[..], [one] if one.contains("inn-shortcut is not in the house")), "{problems:?}");
    let place = || vec!["src/lib.rs:1".to_owned()];
    assert_eq!(planted("inn-rules", |member| member.waits = place()).len(), 1);
    assert!(planted("inn-store", |member| member.waits = place()).is_empty());
    assert!(is_waiting("pub async fn decide() {") && is_waiting("    store.get().await?;"));
    assert!(!is_waiting("// an async fn would wait") && !is_waiting("let awaited = 1;"));
}

//! What every file of the repository must keep to.

use std::fs;
use std::path::{Path, PathBuf};

use inn_protocol::Code;
use regex::Regex;

/// A file longer than this is split, by noun or by verb; tests count too.
const MOST_LINES: usize = 800;

const FOLDERS: &[&str] = &["actors", "services", "migrations", "ops", "tests", "k8s", ".ci", ".config"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace")
}

/// Every text file of ours, with its path below the root.
fn files() -> Vec<(String, String)> {
    let mut paths: Vec<PathBuf> = Vec::new();
    for folder in FOLDERS {
        walk(&root().join(folder), &mut paths);
    }
    let top = fs::read_dir(root()).expect("the root").map(|entry| entry.expect("an entry").path());
    paths.extend(top.filter(|path| path.is_file()));
    let read = |path: &PathBuf| {
        let name = path.strip_prefix(root()).ok()?.to_str()?.to_owned();
        Some((name, fs::read_to_string(path).ok()?))
    };
    let files: Vec<_> = paths.iter().filter_map(read).collect();
    assert!(files.len() > 100, "only {} files found below {}", files.len(), root().display());
    files
}

fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        if path.is_dir() {
            if path.file_name().is_none_or(|name| name != "target" && name != "node_modules") {
                walk(&path, found);
            }
        } else {
            found.push(path);
        }
    }
}

fn is_rust(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "rs")
}

#[test]
fn no_source_file_is_longer_than_the_wall() {
    let long: Vec<String> = files()
        .iter()
        .filter(|(name, text)| is_rust(name) && text.lines().count() > MOST_LINES)
        .map(|(name, text)| format!("{name} ({} lines)", text.lines().count()))
        .collect();
    assert!(long.is_empty(), "split these by noun or by verb: {long:?}");
}

#[test]
fn no_file_knows_the_machine_it_was_written_on() {
    let homes = Regex::new(concat!("/(home|", "Users)/[a-z]|/", "root/")).expect("a pattern");
    let here = root().to_str().expect("a path in UTF-8");
    // A short checkout path (`/app`) is an everyday word in a Dockerfile and proves nothing.
    let here = (here.matches('/').count() > 1).then_some(here);
    let told: Vec<String> = files()
        .iter()
        .flat_map(|(name, text)| text.lines().enumerate().map(move |(number, line)| (name, number + 1, line)))
        .filter(|(_, _, line)| homes.is_match(line) || here.is_some_and(|here| line.contains(here)))
        .map(|(name, number, line)| format!("{name}:{number}: {}", line.trim()))
        .collect();
    assert!(told.is_empty(), "paths of one machine mean nothing on another; take them out:\n{}", told.join("\n"));
}

#[test]
fn migrations_are_numbered_without_a_gap() {
    let pattern = Regex::new(r"^V(\d{4})__[a-z0-9_]+\.sql$").expect("a pattern");
    let mut numbers: Vec<u32> = Vec::new();
    for entry in fs::read_dir(root().join("migrations")).expect("migrations") {
        let name = entry.expect("an entry").file_name().to_string_lossy().into_owned();
        if Path::new(&name).extension().is_some_and(|extension| extension == "md") {
            continue;
        }
        let number = pattern.captures(&name).and_then(|found| found[1].parse().ok());
        numbers.push(number.unwrap_or_else(|| panic!("{name}: a migration is called V0007__what_it_does.sql")));
    }
    numbers.sort_unstable();
    let expected: Vec<u32> = (1..).take(numbers.len()).collect();
    assert_eq!(numbers, expected, "each number once, from 1; a migration that was released is never renumbered");
}

#[test]
fn every_decision_is_in_the_list_of_decisions() {
    let dir = root().join("ops/adr");
    let list = fs::read_to_string(dir.join("README.md")).expect("ops/adr/README.md lists the decisions");
    let mut decisions = 0;
    for entry in fs::read_dir(&dir).expect("ops/adr") {
        let name = entry.expect("an entry").file_name().to_string_lossy().into_owned();
        if name != "README.md" {
            decisions += 1;
            assert!(list.contains(&format!("({name})")), "ops/adr/README.md has no link to {name}: add a line for it");
        }
    }
    assert!(decisions > 0, "no decisions found in ops/adr");
}

#[test]
fn no_test_is_switched_off() {
    let ignored = Regex::new(&format!(r"^\s*#\[{}", "ignore")).expect("a pattern");
    let off: Vec<String> = files()
        .iter()
        .filter(|(name, _)| is_rust(name))
        .flat_map(|(name, text)| text.lines().enumerate().map(move |(number, line)| (name, number + 1, line)))
        .filter(|(_, _, line)| ignored.is_match(line))
        .map(|(name, number, _)| format!("{name}:{number}"))
        .collect();
    assert!(off.is_empty(), "a test that does not run protects nothing; repair or remove: {off:?}");
}

#[test]
fn every_error_code_has_a_help_page() {
    let missing: Vec<&str> =
        Code::ALL.iter().filter(|code| inn_http::help::page(**code).is_none()).map(|code| code.as_str()).collect();
    assert!(missing.is_empty(), "write a page in services/inn-http/help/codes.md for: {missing:?}");
}

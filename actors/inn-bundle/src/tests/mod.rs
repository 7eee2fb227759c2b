//! Fixtures, and the tests of what crosses this crate's border.

mod a2app;
mod aip53;
mod container;
mod definition;
mod hostile;
mod model;
mod packing;
mod schemas;

use std::collections::BTreeMap;
use std::io::Write;

use chrono::{DateTime, TimeZone, Utc};
use flate2::Compression;
use flate2::write::GzEncoder;
use inn_protocol::app::AppDefinition;
use inn_protocol::{Code, Refusal};
use serde_json::{Value, json};
use tar::{EntryType, Header};

use crate::{Bundle, Limits, load, pack, read};

type Files = BTreeMap<String, Vec<u8>>;

fn now() -> DateTime<Utc> {
    Utc.with_ymd_and_hms(2026, 7, 31, 12, 0, 0).unwrap()
}

fn files(members: &[(&str, &str)]) -> Files {
    members.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect()
}

fn with(mut files: Files, path: &str, text: &str) -> Files {
    files.insert(path.to_owned(), text.as_bytes().to_vec());
    files
}

fn without(mut files: Files, path: &str) -> Files {
    assert!(files.remove(path).is_some(), "{path} was not there");
    files
}

/// Replaces one text inside one file.
fn edit(mut files: Files, path: &str, from: &str, to: &str) -> Files {
    let text = String::from_utf8(files[path].clone()).unwrap();
    assert!(text.contains(from), "{path} does not contain {from}");
    files.insert(path.to_owned(), text.replacen(from, to, 1).into_bytes());
    files
}

const APP_MD: &str = ".agentproto/APP.md";
const AGENT_MD: &str = ".agentproto/agents/clerk/AGENT.md";
const WORKFLOW_MD: &str = ".agentproto/workflows/filing/WORKFLOW.md";

/// An AIP-53 app: one agent, one workflow with an agent step, a UI.
fn aip53_app() -> Files {
    files(&[
        (
            APP_MD,
            "---\nschema: app/v1\nid: '@inn/filing'\nname: Filing\nversion: 1.2.3\ndescription: Files things.\n\
             agents:\n  - id: clerk\n    path: .agentproto/agents/clerk/AGENT.md\n\
             workflows:\n  - id: filing\n    path: .agentproto/workflows/filing/WORKFLOW.md\n\
             ui:\n  path: .agentproto/ui/index.html\n  tools: [app_data_read]\nverify:\n  command: unknown keys are kept\n---\n\nFiles things.\n",
        ),
        (
            AGENT_MD,
            "---\nschema: agent/v1\nid: clerk\ndescription: Files papers.\nmodel: role:default\nworkflows: [filing]\n---\n\nYou file papers.\n",
        ),
        (
            WORKFLOW_MD,
            "---\nname: Filing\nid: filing\ndescription: Files one paper.\nversion: 1.0.0\ninputs: {}\noutputs: {}\n\
             steps:\n  - id: file\n    kind: agent\n    prompt: File this paper.\n    agent: { ref: clerk }\n    next: $end\n---\n",
        ),
        (".agentproto/ui/index.html", "<!doctype html><title>Filing</title>\n"),
    ])
}

/// An A2App project as its folder looks: everything at the root.
fn a2app_project() -> Files {
    files(&[
        (
            "manifest.json",
            r#"{"id":"board-app","name":"Board","description":"Cards.","livingUIVersion":2,"authMode":"none","port":"{{PORT}}"}"#,
        ),
        (
            "operations.json",
            r#"{"opsVersion":1,"operations":[{"name":"cards.list","description":"List cards.","params":{},
               "executor":{"type":"crud","collection":"cards","action":"list"}}]}"#,
        ),
        (
            "pb/pb_schema.json",
            r#"[{"name":"cards","type":"base","listRule":"","fields":[{"name":"title","type":"text","required":true}]}]"#,
        ),
        ("pb/pb_public/index.html", "<!doctype html><title>Board</title>\n"),
    ])
}

fn opened(files: Files) -> Bundle {
    pack(files, now()).unwrap_or_else(|refusal| panic!("{refusal}")).1
}

fn loaded(files: Files) -> AppDefinition {
    load(&opened(files), now()).unwrap_or_else(|refusal| panic!("{refusal} {:#?}", refusal.violations))
}

fn load_refusal(files: Files) -> Refusal {
    let refusal = load(&opened(files), now()).expect_err("this app must be refused");
    assert_eq!(refusal.code, Code::InvalidBundle);
    assert!(!refusal.violations.is_empty());
    refusal
}

/// Some violation is at `place` (a prefix) and says `what`.
#[track_caller]
fn assert_violation(refusal: &Refusal, place: &str, what: &str) {
    let hit = refusal.violations.iter().any(|violation| {
        violation.field.starts_with(place) && violation.expected.as_deref().unwrap_or_default().contains(what)
    });
    assert!(hit, "expected `{what}` at `{place}`, got {:#?}", refusal.violations);
}

#[track_caller]
fn assert_refused(bytes: &[u8], word: &str, member: &str) {
    assert_refused_within(bytes, &Limits::default(), word, member);
}

#[track_caller]
fn assert_refused_within(bytes: &[u8], limits: &Limits, word: &str, member: &str) {
    let refusal = read(bytes, limits).expect_err("this bundle must be refused");
    assert_eq!(refusal.code, Code::InvalidBundle);
    assert!(refusal.message.starts_with(&format!("{word}: ")), "expected {word}, got {}", refusal.message);
    assert_eq!(refusal.violations.len(), 1);
    assert_eq!(refusal.violations[0].field, member, "{}", refusal.message);
}

/// One member of a tar written by hand, so that names and kinds can be what no library would write.
struct Raw<'a> {
    name: &'a [u8],
    kind: EntryType,
    data: &'a [u8],
    link: &'a str,
}

impl<'a> Raw<'a> {
    fn file(name: &'a str, data: &'a [u8]) -> Self {
        Self { name: name.as_bytes(), kind: EntryType::Regular, data, link: "" }
    }

    fn of(kind: EntryType, name: &'a str) -> Self {
        Self { name: name.as_bytes(), kind, data: b"", link: "target" }
    }
}

fn tar_of(members: &[Raw<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    for member in members {
        let mut header = Header::new_gnu();
        header.as_gnu_mut().unwrap().name[..member.name.len()].copy_from_slice(member.name);
        header.as_gnu_mut().unwrap().linkname[..member.link.len()].copy_from_slice(member.link.as_bytes());
        header.set_entry_type(member.kind);
        header.set_mode(0o644);
        header.set_size(member.data.len() as u64);
        header.set_cksum();
        out.extend_from_slice(header.as_bytes());
        out.extend_from_slice(member.data);
        out.resize(out.len().next_multiple_of(512), 0);
    }
    out.resize(out.len() + 1024, 0);
    out
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// The manifest a packer would write, as JSON that a test can spoil.
fn manifest_of(files: &Files) -> Value {
    let bundle = opened(files.clone());
    serde_json::to_value(&bundle.manifest).unwrap()
}

/// An archive of these files under this manifest, however wrong it is.
fn archive_of(manifest: &Value, files: &Files) -> Vec<u8> {
    let manifest = manifest.to_string();
    let mut members = vec![Raw::file("manifest.json", manifest.as_bytes())];
    members.extend(files.iter().map(|(path, bytes)| Raw::file(path, bytes)));
    gzip(&tar_of(&members))
}

/// As [`archive_of`] with the right manifest, except for some members of it.
fn archive_with(files: &Files, spoil: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut manifest = manifest_of(files);
    spoil(&mut manifest);
    archive_of(&manifest, files)
}

fn no_change(_: &mut Value) {}

fn zip_of(members: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, text) in members {
        writer.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        writer.write_all(text.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn zip_project(files: &Files) -> Vec<u8> {
    let members: Vec<_> =
        files.iter().map(|(path, bytes)| (path.as_str(), std::str::from_utf8(bytes).unwrap())).collect();
    zip_of(&members)
}

/// A schema file with these collections, over the A2App project without operations.
fn with_collections(collections: &Value) -> Files {
    let base = with(a2app_project(), "pb/pb_schema.json", &collections.to_string());
    with(base, "operations.json", &json!({"opsVersion": 1, "operations": []}).to_string())
}

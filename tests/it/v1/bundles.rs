//! Broken and hostile bundles at the door. What each of them is told in detail is tested where bundles are read; here:
//! every one is refused by name, and nothing is kept.

use std::collections::BTreeMap;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use inn_tests::bundle::{self, Files};
use inn_tests::{TestHost, kanban};
use reqwest::Method;
use serde_json::json;
use tar::{EntryType, Header};

struct Case {
    name: &'static str,
    bytes: Vec<u8>,
    /// Some word of the answer that names what or where.
    names: &'static str,
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// One member with a header of the test's making; names are written past every check of the library.
fn member(tar: &mut Vec<u8>, name: &str, kind: EntryType, link: &str, bytes: &[u8]) {
    let mut header = Header::new_gnu();
    header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
    header.as_gnu_mut().unwrap().linkname[..link.len()].copy_from_slice(link.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(0o644);
    header.set_size(bytes.len() as u64);
    header.set_cksum();
    tar.extend_from_slice(header.as_bytes());
    tar.extend_from_slice(bytes);
    tar.resize(tar.len().next_multiple_of(512), 0);
}

fn archive(members: &[(&str, EntryType, &str, &[u8])]) -> Vec<u8> {
    let mut tar = Vec::new();
    for (name, kind, link, bytes) in members {
        member(&mut tar, name, *kind, link, bytes);
    }
    tar.resize(tar.len() + 1024, 0);
    gzip(&tar)
}

/// The members of a good bundle, to be spoilt.
fn good() -> BTreeMap<String, Vec<u8>> {
    use std::io::Read as _;
    let packed = bundle::pack(kanban::files());
    let mut members = BTreeMap::new();
    let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(&packed[..]));
    for entry in tar.entries().unwrap() {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().to_str().unwrap().to_owned();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        members.insert(path, bytes);
    }
    members
}

fn spoilt(change: impl FnOnce(&mut BTreeMap<String, Vec<u8>>)) -> Vec<u8> {
    let mut members = good();
    change(&mut members);
    // The manifest comes first, as it must.
    let manifest = members.remove("manifest.json");
    let mut list: Vec<(&str, EntryType, &str, &[u8])> = Vec::new();
    if let Some(manifest) = &manifest {
        list.push(("manifest.json", EntryType::Regular, "", manifest));
    }
    list.extend(members.iter().map(|(name, bytes)| (name.as_str(), EntryType::Regular, "", &bytes[..])));
    archive(&list)
}

fn odd_member(name: &'static str, kind: EntryType, link: &str) -> Vec<u8> {
    let members = good();
    let mut list: Vec<(&str, EntryType, &str, &[u8])> =
        vec![("manifest.json", EntryType::Regular, "", &members["manifest.json"])];
    let rest = members.iter().filter(|(path, _)| *path != "manifest.json");
    list.extend(rest.map(|(path, bytes)| (path.as_str(), EntryType::Regular, "", &bytes[..])));
    list.push((name, kind, link, b""));
    archive(&list)
}

fn app(change: impl FnOnce(&mut Files)) -> Vec<u8> {
    let mut files = kanban::files();
    change(&mut files);
    bundle::pack(files)
}

fn cases() -> Vec<Case> {
    let case = |name, names, bytes| Case { name, bytes, names };
    let whole = bundle::pack(kanban::files());
    vec![
        case("nothing", "", Vec::new()),
        case("noise", "", b"this is no bundle".to_vec()),
        case("a gzip of noise", "", gzip(b"this is no archive")),
        case("cut off", "", whole[..whole.len() / 2].to_vec()),
        case("no manifest", "manifest.json", spoilt(|members| drop(members.remove("manifest.json")))),
        case(
            "a manifest that is no JSON",
            "manifest.json",
            spoilt(|members| drop(members.insert("manifest.json".into(), b"{".to_vec()))),
        ),
        case(
            "a member the manifest does not know",
            "app/extra.txt",
            spoilt(|members| drop(members.insert("app/extra.txt".into(), b"hi".to_vec()))),
        ),
        case(
            "a member that is missing",
            "app/operations.json",
            spoilt(|members| drop(members.remove("app/operations.json"))),
        ),
        case(
            "a member that was changed",
            "sha256",
            spoilt(|members| {
                members.get_mut("app/operations.json").unwrap()[0] = b' ';
            }),
        ),
        case("a path upwards", "..", odd_member("../escape", EntryType::Regular, "")),
        case("an absolute path", "/etc/cron.d/x", odd_member("/etc/cron.d/x", EntryType::Regular, "")),
        case("a backslash", "\\\\", odd_member("app\\evil", EntryType::Regular, "")),
        case("a symbolic link", "link", odd_member("app/link", EntryType::Symlink, "/etc/passwd")),
        case("a hard link", "link", odd_member("app/link", EntryType::Link, "manifest.json")),
        case("a device", "device", odd_member("app/device", EntryType::Char, "")),
        case("a named pipe", "pipe", odd_member("app/pipe", EntryType::Fifo, "")),
        case("the same name twice", "app/operations.json", odd_member("app/operations.json", EntryType::Regular, "")),
        case("names that differ in case", "Operations.json", odd_member("app/Operations.json", EntryType::Regular, "")),
        case("a bomb", "", {
            let mut header = Header::new_gnu();
            header.set_path("manifest.json").unwrap();
            header.set_size(48 << 20);
            header.set_cksum();
            let mut tar = header.as_bytes().to_vec();
            tar.resize(512 + (48 << 20) + 1024, 0);
            gzip(&tar)
        }),
        case(
            "operations that are no JSON",
            "operations.json",
            app(|files| drop(files.insert("operations.json".into(), b"[".to_vec()))),
        ),
        case(
            "an operation on an entity that is not there",
            "operations",
            app(|files| {
                bundle::edit(files, "operations.json", "\"collection\": \"cards\"", "\"collection\": \"nothing\"");
            }),
        ),
        case(
            "a schema that is no JSON",
            "pb_schema.json",
            app(|files| drop(files.insert("pb/pb_schema.json".into(), b"nonsense".to_vec()))),
        ),
        case(
            "an entity name that is SQL",
            "",
            app(|files| {
                bundle::edit(
                    files,
                    "pb/pb_schema.json",
                    "\"name\": \"boards\"",
                    "\"name\": \"boards; DROP SCHEMA inn\"",
                );
            }),
        ),
        case(
            "a relation to nowhere",
            "",
            app(|files| {
                bundle::edit(
                    files,
                    "pb/pb_schema.json",
                    "\"collectionId\": \"pbc_3304927325\"",
                    "\"collectionId\": \"pbc_0000000000\"",
                );
            }),
        ),
        case(
            "a capability with a schema that is none",
            "capabilities",
            app(|files| {
                bundle::edit(files, "manifest.json", "\"type\": \"object\"", "\"type\": \"objekt\"");
            }),
        ),
        case(
            "an unknown key under innkeeper",
            "innkeeper",
            app(|files| {
                bundle::edit(files, "manifest.json", "\"innkeeper\": {", "\"innkeeper\": { \"root\": true,");
            }),
        ),
    ]
}

#[tokio::test]
async fn every_hostile_bundle_is_refused_by_name_and_nothing_is_kept() {
    let host = TestHost::start().await;
    let owner = host.owner().await;
    let schemas = "SELECT count(*) FROM information_schema.schemata WHERE schema_name LIKE 'app%'";
    let blobs = || count_files(&host.dir().join("blobs"));
    let before = (host.count(schemas).await, host.count("SELECT count(*) FROM inn.apps").await, blobs());
    let mut wrong = Vec::new();
    for case in cases() {
        let reply = host.door().call(Method::POST, "/v1/apps?slug=evil").body(case.bytes).by(&owner).send().await;
        let body = reply.json();
        let text = body.to_string();
        if !(400..500).contains(&reply.status) || body["a2app"] != json!(true) || !text.contains(case.names) {
            wrong.push(format!("{}: {} {text}", case.name, reply.status));
        } else {
            reply.refused(reply.status, body["code"].as_str().unwrap());
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let after = (host.count(schemas).await, host.count("SELECT count(*) FROM inn.apps").await, blobs());
    assert_eq!(before, after);
    host.door().get("/v1/apps/evil").by(&owner).send().await.refused(404, "unknown_app");
    // The app that is there has not noticed.
    host.door().get(kanban::records("boards")).by(&owner).send().await.expect(200);
}

#[tokio::test]
async fn a_bundle_larger_than_the_host_takes_is_refused_unread() {
    let host = TestHost::with(|settings| settings.http.max_bundle = 4096).await;
    let owner = host.owner().await;
    let bytes = vec![0; 5000];
    let reply = host.door().call(Method::POST, "/v1/apps?slug=big").body(bytes).by(&owner).send().await;
    assert!(matches!(reply.status, 400 | 413), "{}", reply.text());
    assert!(reply.text().contains("too_large") || reply.text().contains("too-large"), "{}", reply.text());
}

fn count_files(dir: &std::path::Path) -> usize {
    let Ok(entries) = std::fs::read_dir(dir) else { return 0 };
    entries.map(|entry| entry.unwrap().path()).map(|path| if path.is_dir() { count_files(&path) } else { 1 }).sum()
}

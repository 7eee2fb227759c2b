//! Bundles from files in memory.

use std::collections::BTreeMap;
use std::path::Path;

use chrono::DateTime;

pub type Files = BTreeMap<String, Vec<u8>>;

/// The same files give the same bytes.
pub fn pack(files: Files) -> Vec<u8> {
    let (bytes, _) = inn_bundle::pack(files, DateTime::UNIX_EPOCH).expect("the files make a bundle");
    bytes
}

/// An A2App project with nothing but these collections, in PocketBase's export form.
pub fn project(slug: &str, auth_mode: &str, collections: &serde_json::Value) -> Files {
    let manifest = serde_json::json!({
        "id": format!("test-{slug}"), "name": slug, "description": "For a test.", "version": "1.0.0",
        "livingUIVersion": 2, "createdAt": "2026-11-30T00:00:00Z", "authMode": auth_mode, "port": 3100,
        "pbVersion": "0.39.7",
        "pipeline": {"install": "", "build": "", "start": "", "health": "/api/health"},
    });
    let operations = serde_json::json!({"opsVersion": 1, "operations": []});
    Files::from([
        ("manifest.json".to_owned(), manifest.to_string().into_bytes()),
        ("operations.json".to_owned(), operations.to_string().into_bytes()),
        ("pb/pb_schema.json".to_owned(), collections.to_string().into_bytes()),
    ])
}

/// Everything below a folder of the repository.
pub fn folder(below_root: &str) -> Files {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").join(below_root);
    let mut files = Files::new();
    collect(&root, &root, &mut files);
    assert!(!files.is_empty(), "{below_root} is empty");
    files
}

fn collect(root: &Path, dir: &Path, files: &mut Files) {
    for entry in std::fs::read_dir(dir).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            collect(root, &path, files);
        } else {
            let name = path.strip_prefix(root).expect("below").to_str().expect("UTF-8").to_owned();
            files.insert(name, std::fs::read(&path).expect("a file"));
        }
    }
}

/// Replaces one text in one file.
pub fn edit(files: &mut Files, path: &str, from: &str, to: &str) {
    let text = String::from_utf8(files[path].clone()).expect("UTF-8");
    assert!(text.contains(from), "{path} does not contain {from}");
    files.insert(path.to_owned(), text.replacen(from, to, 1).into_bytes());
}

//! From a folder to a bundle.

use super::*;
use crate::{archive_name, is_packed_away};

/// The published vector of the format: three files, 147 bytes.
#[test]
fn the_published_digest_vector_is_reproduced() {
    let files = files(&[
        (
            ".agentproto/APP.md",
            "---\nid: demo-app\nname: Demo\nversion: 1.2.3\nagents:\n  - id: scout\n    path: .agentproto/agents/scout/AGENT.md\n---\n# Demo\n",
        ),
        (".agentproto/agents/scout/AGENT.md", "---\nid: scout\n---\nhi\n"),
        ("notes/a.md", "alpha\n"),
    ]);
    let (bytes, bundle) = pack(files, now()).unwrap();
    assert_eq!(bundle.manifest.total_size, 147);
    assert_eq!(bundle.manifest.file_count, 3);
    assert_eq!(bundle.manifest.id, "demo-app");
    assert_eq!(bundle.manifest.agents, ["scout"]);
    assert_eq!(bundle.aggregate.to_string(), "a0eb3d2ac9beffac070911c8cf81477e951513b9dd256f09283c2bb6c9511515");
    let digests: Vec<_> = bundle.file_digests.values().map(ToString::to_string).collect();
    let expected = [
        "adb9dd41a668692e68b5d83faf48f7eba2a184ed42bd64867d0c6d6ea257c1d3",
        "99aaa6be3f47e7d51454d6f61e0f8385bb452b2a0626d1252f3946130196551e",
        "b6a98d9ce9a2d9149288fa3df42d377c3e42737afdcdaf714e33c0a100b51060",
    ];
    assert_eq!(digests, expected);
    assert_eq!(read(&bytes, &Limits::default()).unwrap(), bundle);
}

#[test]
fn packing_is_deterministic() {
    let (one, bundle) = pack(aip53_app(), now()).unwrap();
    let (two, _) = pack(aip53_app(), now()).unwrap();
    assert_eq!(one, two);
    assert_eq!(one[4..8], [0; 4], "no time in the gzip header");
    assert_eq!(bundle.to_archive().unwrap(), one);
    let (later, renewed) = pack(aip53_app(), DateTime::UNIX_EPOCH).unwrap();
    assert_ne!(later, one, "createdAt is in the manifest");
    assert_eq!(renewed.digest(), bundle.digest(), "and does not make another release");
}

#[test]
fn a_project_is_moved_under_app() {
    let bundle = opened(a2app_project());
    let paths: Vec<_> = bundle.files.keys().map(String::as_str).collect();
    let expected = ["app/manifest.json", "app/operations.json", "app/pb/pb_public/index.html", "app/pb/pb_schema.json"];
    assert_eq!(paths, expected);
    assert_eq!(bundle.manifest.id, "board-app");
    assert_eq!(bundle.manifest.ui, ["index.html"]);
}

#[test]
fn a_project_with_an_aip53_half_keeps_that_half_at_the_root() {
    let mut files = a2app_project();
    files.extend(aip53_app());
    let bundle = opened(files);
    assert!(bundle.files.contains_key(APP_MD));
    assert!(bundle.files.contains_key("app/manifest.json"));
    assert_eq!(bundle.manifest.id, "@inn/filing");
}

#[test]
fn a_zip_of_a_project_is_the_same_release_as_its_folder() {
    let zipped = read(&zip_project(&a2app_project()), &Limits::default()).unwrap();
    let packed = opened(a2app_project());
    assert_eq!(zipped.digest(), packed.digest());
    assert_eq!(zipped.files, packed.files);
    let reread = read(&zipped.to_archive().unwrap(), &Limits::default()).unwrap();
    assert_eq!(reread.digest(), zipped.digest());
    assert_eq!(loaded(a2app_project()), load(&zipped, now()).unwrap());
}

#[test]
fn a_zip_without_a_manifest_at_its_root_is_refused() {
    assert_refused(&zip_of(&[("board/manifest.json", "{}")]), "missing-manifest", "manifest.json");
    assert_refused(&zip_of(&[("manifest.json", r#"{"hello":1}"#)]), "malformed-manifest", "manifest.json");
    assert_refused(
        &zip_of(&[("manifest.json", r#"{"livingUIVersion":2"#), ("operations.json", "{}")]),
        "malformed-app",
        "app/manifest.json",
    );
}

#[test]
fn what_never_belongs_to_an_app_is_left_out() {
    let away = [
        "node_modules/react/index.js",
        "frontend/node_modules/x",
        "node_modules",
        ".git/config",
        "pb/pb_data/data.db",
        ".env",
        ".env.local",
        "frontend/.env.production",
        ".superuser",
        ".agent-token",
        "credentials.json",
        "store.sqlite",
        "data.db-wal",
        "logs/agent-actions.jsonl",
        "app/logs/x",
        "server.log",
        "old-1.0.0.agentapp",
    ];
    for path in away {
        assert!(is_packed_away(path), "{path}");
    }
    for path in
        ["pb/pb_public/index.html", ".agentproto/APP.md", "docs/logs/a.md", "environment.md", "app/manifest.json"]
    {
        assert!(!is_packed_away(path), "{path}");
    }
    let mut files = a2app_project();
    files.extend(away.iter().map(|path| ((*path).to_owned(), b"secret".to_vec())));
    assert_eq!(opened(files).digest(), opened(a2app_project()).digest());
    assert_eq!(
        read(&zip_project(&with(a2app_project(), "pb/pb_data/data.db", "x")), &Limits::default()).unwrap().files.len(),
        4
    );
}

#[test]
fn an_unpacked_bundle_packs_again_to_the_same_bytes() {
    let (bytes, bundle) = pack(aip53_app(), now()).unwrap();
    let manifest = serde_json::to_string(&bundle.manifest).unwrap();
    let (again, _) = pack(with(bundle.files, "manifest.json", &manifest), now()).unwrap();
    assert_eq!(again, bytes);
}

#[test]
fn names_no_bundle_may_have_are_not_packed() {
    for (path, word) in [("../x", "unsafe-path"), ("a\\b", "unsafe-path"), (".AGENTPROTO/x", "name-collision")] {
        let refusal = pack(with(aip53_app(), path, "x"), now()).unwrap_err();
        assert!(refusal.message.starts_with(word), "{path}: {}", refusal.message);
    }
    let refusal = pack(with(aip53_app(), "manifest.json", r#"{"name":"not a project"}"#), now()).unwrap_err();
    assert!(refusal.message.starts_with("malformed-manifest: "), "{}", refusal.message);
}

#[test]
fn a_missing_id_or_version_gets_the_formats_defaults() {
    let bundle = opened(files(&[(APP_MD, "---\nslug: my-slug\nversion: 1.0\n---\n")]));
    assert_eq!((bundle.manifest.id.as_str(), bundle.manifest.version.as_str()), ("my-slug", "0.1.0"));
    let bundle = opened(files(&[(APP_MD, "no frontmatter at all")]));
    assert_eq!(bundle.manifest.id, "app");
}

#[test]
fn the_default_file_name_is_safe() {
    let mut manifest = opened(aip53_app()).manifest;
    assert_eq!(archive_name(&manifest), "inn-filing-1.2.3.agentapp");
    manifest.id = "../..//etc".to_owned();
    assert_eq!(archive_name(&manifest), "..-..-etc-1.2.3.agentapp");
    manifest.id = "@".to_owned();
    assert_eq!(archive_name(&manifest), "app-1.2.3.agentapp");
}

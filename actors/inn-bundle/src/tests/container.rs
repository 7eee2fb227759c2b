//! `agentapp/v1`: every refusal of the format, and the holes H-1 to H-4.

use serde_json::json;
use tar::EntryType;

use super::*;

#[test]
fn a_packed_bundle_reads_back_as_it_was() {
    let (bytes, packed) = pack(aip53_app(), now()).unwrap();
    let bundle = read(&bytes, &Limits::default()).unwrap();
    assert_eq!(bundle, packed);
    assert_eq!(bundle.files, aip53_app());
    assert_eq!(bundle.manifest.format, "agentapp/v1");
    assert_eq!(bundle.manifest.id, "@inn/filing");
    assert_eq!(bundle.manifest.version, "1.2.3");
    assert_eq!(bundle.manifest.agents, ["clerk"]);
    assert_eq!(bundle.manifest.ui, ["index.html"]);
    assert_eq!(bundle.manifest.created_at, "2026-07-31T12:00:00.000Z");
    assert_eq!(bundle.manifest.sha256, bundle.aggregate);
    let mut sorted = bundle.manifest.files.clone();
    sorted.sort();
    assert_eq!(sorted, bundle.manifest.files);
}

#[test]
fn an_archive_of_another_writer_is_read_too() {
    // `tar -C dir .` names members `./x`, writes folders, and macOS adds pax headers with times.
    let files = aip53_app();
    let manifest = manifest_of(&files).to_string();
    let names: Vec<_> = files.keys().map(|path| format!("./{path}")).collect();
    let pax = b"27 mtime=1690000000.123456\n";
    let mut members = vec![Raw::of(EntryType::Directory, "./"), Raw::of(EntryType::Directory, "./.agentproto/")];
    for member in &mut members {
        member.link = "";
    }
    members.push(Raw { name: b"./PaxHeader", kind: EntryType::XHeader, data: pax, link: "" });
    members.push(Raw::file("./manifest.json", manifest.as_bytes()));
    members.extend(names.iter().zip(files.values()).map(|(name, bytes)| Raw::file(name, bytes)));
    let bundle = read(&gzip(&tar_of(&members)), &Limits::default()).unwrap();
    assert_eq!(bundle.files, files);
}

#[test]
fn the_listed_order_is_the_order_of_the_aggregate() {
    let files = aip53_app();
    let mut manifest = manifest_of(&files);
    let mut paths: Vec<String> = files.keys().cloned().collect();
    paths.reverse();
    let aggregate = crate::digest::aggregate(paths.iter().map(|path| files[path].as_slice()));
    manifest["files"] = json!(paths);
    manifest["sha256"] = json!(aggregate);
    let bundle = read(&archive_of(&manifest, &files), &Limits::default()).unwrap();
    assert_eq!(bundle.aggregate, aggregate);
    assert_eq!(bundle.digest(), opened(files).digest(), "the release is named by the files, not by an order");
}

#[test]
fn long_names_are_read_in_both_encodings() {
    let long = format!("notes/{}.md", "n".repeat(200));
    let files = with(aip53_app(), &long, "long\n");
    let (bytes, packed) = pack(files.clone(), now()).unwrap();
    assert_eq!(read(&bytes, &Limits::default()).unwrap(), packed);

    let manifest = manifest_of(&files).to_string();
    let record = |length: usize| format!("{length} path={long}\n");
    let length = (1..400).find(|length| record(*length).len() == *length).unwrap();
    let pax = record(length);
    let mut members = vec![Raw::file("manifest.json", manifest.as_bytes())];
    members.push(Raw { name: b"pax", kind: EntryType::XHeader, data: pax.as_bytes(), link: "" });
    members.push(Raw::file("short", b"long\n"));
    members.extend(files.iter().filter(|(path, _)| **path != long).map(|(path, bytes)| Raw::file(path, bytes)));
    assert_eq!(read(&gzip(&tar_of(&members)), &Limits::default()).unwrap().files, files);
}

#[test]
fn what_is_neither_a_gzip_tar_nor_a_zip_is_refused() {
    assert_refused(b"", "unsupported-format", "");
    assert_refused(b"hello, this is a text", "unsupported-format", "");
    assert_refused(&gzip(b"not a tar, although long enough to be taken for one"), "malformed-archive", "");
    let (bytes, _) = pack(aip53_app(), now()).unwrap();
    let cut = read(&bytes[..bytes.len() / 2], &Limits::default()).unwrap_err();
    assert!(cut.message.starts_with("malformed-archive: "), "{}", cut.message);
}

#[test]
fn a_bundle_without_a_manifest_is_refused() {
    let files = aip53_app();
    let members: Vec<_> = files.iter().map(|(path, bytes)| Raw::file(path, bytes)).collect();
    assert_refused(&gzip(&tar_of(&members)), "missing-manifest", "manifest.json");
}

#[test]
fn a_manifest_that_is_no_json_or_lacks_members_is_refused() {
    let files = aip53_app();
    for text in ["", "{", "[]", "null", r#"{"format":"agentapp/v1"}"#, r#"{"format":"agentapp/v1","format":"x"}"#] {
        let mut members = vec![Raw::file("manifest.json", text.as_bytes())];
        members.extend(files.iter().map(|(path, bytes)| Raw::file(path, bytes)));
        assert_refused(&gzip(&tar_of(&members)), "malformed-manifest", "manifest.json");
    }
    for key in ["id", "version", "agents", "workflows", "files", "fileCount", "totalSize", "sha256"] {
        let bytes = archive_with(&files, |manifest| {
            manifest.as_object_mut().unwrap().remove(key);
        });
        assert_refused(&bytes, "malformed-manifest", "manifest.json");
    }
    let listed_twice = archive_with(&files, |manifest| manifest["files"].as_array_mut().unwrap().push(json!(APP_MD)));
    assert_refused(&listed_twice, "malformed-manifest", APP_MD);
}

#[test]
fn another_format_is_refused_by_its_name() {
    let bytes = archive_with(&aip53_app(), |manifest| manifest["format"] = json!("agentapp/v9"));
    assert_refused(&bytes, "unsupported-format", "manifest.json");
    assert!(read(&bytes, &Limits::default()).unwrap_err().message.contains("agentapp/v9"));
}

#[test]
fn changed_contents_are_refused_naming_both_digests() {
    let files = aip53_app();
    let manifest = manifest_of(&files);
    let tampered = edit(files, AGENT_MD, "Files papers.", "Burns papers!");
    let mut honest_sizes = manifest.clone();
    honest_sizes["totalSize"] = json!(tampered.values().map(Vec::len).sum::<usize>());
    let bytes = archive_of(&honest_sizes, &tampered);
    assert_refused(&bytes, "digest-mismatch", "manifest.json");
    let message = read(&bytes, &Limits::default()).unwrap_err().message;
    assert!(message.contains(manifest["sha256"].as_str().unwrap()), "{message}");
}

#[test]
fn unsafe_paths_in_the_manifest_are_refused() {
    for path in ["../escape", "/etc/passwd", "a/../b", "C:/x", "a\\b", "a//b", "", "a\u{0}b"] {
        let bytes = archive_with(&aip53_app(), |manifest| manifest["files"].as_array_mut().unwrap().push(json!(path)));
        let refusal = read(&bytes, &Limits::default()).unwrap_err();
        assert!(refusal.message.starts_with("unsafe-path: "), "{path}: {}", refusal.message);
    }
}

#[test]
fn unsafe_names_in_the_archive_are_refused() {
    for name in ["../escape", "/etc/passwd", "a/../../b", "C:/x", "c:x", "a\\b", "a//b", "a/./b", "bell\u{7}", ".."] {
        let bytes = gzip(&tar_of(&[Raw::file(name, b"x")]));
        let refusal = read(&bytes, &Limits::default()).unwrap_err();
        assert!(refusal.message.starts_with("unsafe-path: "), "{name}: {}", refusal.message);
        assert!(!refusal.violations[0].field.is_empty(), "{name}: the member is named");
    }
    let latin1 = Raw { name: b"caf\xe9.md", kind: EntryType::Regular, data: b"x", link: "" };
    assert_refused(&gzip(&tar_of(&[latin1])), "unsafe-path", "caf\u{fffd}.md");
}

#[test]
fn a_nul_in_a_long_name_is_refused() {
    let long = Raw { name: b"././@LongLink", kind: EntryType::GNULongName, data: b"good\0/../evil\0", link: "" };
    let bytes = gzip(&tar_of(&[long, Raw::file("x", b"x")]));
    let refusal = read(&bytes, &Limits::default()).unwrap_err();
    assert!(refusal.message.starts_with("unsafe-path: "), "{}", refusal.message);
}

/// H-1: the reference restored members that were not listed.
#[test]
fn h1_a_member_that_is_not_listed_is_refused() {
    let files = aip53_app();
    let evil = ".agentproto/drivers/evil/DRIVER.md";
    let bytes = archive_of(&manifest_of(&files), &with(files.clone(), evil, "---\nkind: cli\n---\n"));
    assert_refused(&bytes, "unlisted-member", evil);
    let bytes = archive_of(&manifest_of(&with(files.clone(), "notes/a.md", "a")), &files);
    assert_refused(&bytes, "missing-member", "notes/a.md");
}

/// H-2: the published digest is unframed, so bytes can move between files.
#[test]
fn h2_the_framed_digest_tells_apart_what_the_aggregate_does_not() {
    let one = opened(with(with(aip53_app(), "z/a", "xy"), "z/b", "z"));
    let two = opened(with(with(aip53_app(), "z/a", "x"), "z/b", "yz"));
    let three = opened(with(aip53_app(), "z/a", "xyz"));
    assert_eq!(one.aggregate, two.aggregate);
    assert_eq!(one.aggregate, three.aggregate);
    assert_ne!(one.digest(), two.digest());
    assert_ne!(one.digest(), three.digest());
    assert_ne!(two.digest(), three.digest());
}

/// H-3: nobody compared the manifest with the contents.
#[test]
fn h3_a_manifest_that_disagrees_with_the_contents_is_refused() {
    let files = aip53_app();
    for (key, value) in [
        ("id", json!("@inn/other")),
        ("version", json!("9.9.9")),
        ("agents", json!(["clerk", "ghost"])),
        ("agents", json!([])),
        ("workflows", json!([{"id": "other"}])),
        ("fileCount", json!(3)),
        ("totalSize", json!(1)),
    ] {
        let bytes = archive_with(&files, |manifest| manifest[key] = value.clone());
        assert_refused(&bytes, "manifest-mismatch", "manifest.json");
    }
    let as_objects = archive_with(&files, |manifest| manifest["agents"] = json!([{"id": "clerk"}]));
    read(&as_objects, &Limits::default()).unwrap();
}

/// H-4: links and devices.
#[test]
fn h4_only_plain_files_and_folders_are_members() {
    for kind in [
        EntryType::Symlink,
        EntryType::Link,
        EntryType::Char,
        EntryType::Block,
        EntryType::Fifo,
        EntryType::GNUSparse,
        EntryType::GNULongLink,
        EntryType::new(b'Z'),
    ] {
        assert_refused(&gzip(&tar_of(&[Raw::of(kind, "notes/link")])), "unsafe-member", "notes/link");
    }
}

#[test]
fn h4_pax_headers_may_not_change_what_a_member_is() {
    for record in [&b"13 size=1000\n"[..], b"18 linkpath=/etc/x\n", b"24 GNU.sparse.size=10000\n"] {
        let length = record.len();
        let text = String::from_utf8(record.to_vec()).unwrap();
        let (_, rest) = text.split_once(' ').unwrap();
        let fixed = format!("{length} {rest}");
        let pax = Raw { name: b"pax", kind: EntryType::XHeader, data: fixed.as_bytes(), link: "" };
        assert_refused(&gzip(&tar_of(&[pax, Raw::file("a", b"a")])), "unsafe-member", "");
    }
    for broken in [&b"no length"[..], b"99 path=x\n", b"0 path=x\n", b"8 path\n", b"18446744073709551615 a=b\n"] {
        let pax = Raw { name: b"pax", kind: EntryType::XHeader, data: broken, link: "" };
        assert_refused(&gzip(&tar_of(&[pax, Raw::file("a", b"a")])), "malformed-archive", "");
    }
}

#[test]
fn h4_a_name_that_appears_twice_is_refused() {
    let twice = [Raw::file("notes/a.md", b"one"), Raw::file("notes/a.md", b"two")];
    assert_refused(&gzip(&tar_of(&twice)), "duplicate-member", "notes/a.md");
    let disguised = [Raw::file("notes/a.md", b"one"), Raw::file("./notes/a.md", b"two")];
    assert_refused(&gzip(&tar_of(&disguised)), "duplicate-member", "notes/a.md");
}

#[test]
fn h4_names_that_one_file_system_would_merge_are_refused() {
    for (first, second) in [("notes/a.md", "notes/A.md"), ("Notes/a.md", "notes/b.md"), ("a", "a/b"), ("a/b", "A")] {
        let pair = [Raw::file(first, b"1"), Raw::file(second, b"2")];
        let refusal = read(&gzip(&tar_of(&pair)), &Limits::default()).unwrap_err();
        assert!(refusal.message.starts_with("name-collision: "), "{first} {second}: {}", refusal.message);
    }
}

#[test]
fn bytes_after_the_end_are_refused() {
    let files = aip53_app();
    let manifest = manifest_of(&files);
    let whole = archive_of(&manifest, &files);
    let mut after_gzip = whole.clone();
    after_gzip.extend_from_slice(&gzip(b"a second stream"));
    assert_refused(&after_gzip, "malformed-archive", "");
    let mut tar = tar_of(&[Raw::file("a", b"a")]);
    tar.extend_from_slice(&tar_of(&[Raw::file("hidden", b"h")]));
    assert_refused(&gzip(&tar), "malformed-archive", "");
    let mut padded = tar_of(&[Raw::file("manifest.json", b"{}")]);
    padded.resize(padded.len() + 10_240, 0);
    assert_refused(&gzip(&padded), "malformed-manifest", "manifest.json");
}

#[test]
fn a_bundle_that_is_no_app_is_refused() {
    let manifest = archive_with(&aip53_app(), no_change);
    read(&manifest, &Limits::default()).unwrap();
    let files = files(&[("notes/a.md", "alpha\n")]);
    assert!(pack(files.clone(), now()).unwrap_err().message.starts_with("not-an-app: "));
    let manifest = json!({"format": "agentapp/v1", "id": "app", "version": "0.1.0", "agents": [], "workflows": [],
        "files": ["notes/a.md"], "fileCount": 1, "totalSize": 6,
        "sha256": crate::digest::aggregate(files.values().map(Vec::as_slice))});
    assert_refused(&archive_of(&manifest, &files), "not-an-app", "");
}

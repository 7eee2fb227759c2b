//! Bombs, and bytes that are only almost a bundle.

use std::io::{self, Read};

use proptest::prelude::*;
use tar::EntryType;

use super::*;

/// A gzip of `size` zeros inside one tar member, made without holding them in memory.
fn bomb(size: u64) -> Vec<u8> {
    let mut header = Header::new_gnu();
    header.set_path("zeros").unwrap();
    header.set_size(size);
    header.set_cksum();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(header.as_bytes()).unwrap();
    io::copy(&mut io::repeat(0).take(size.next_multiple_of(512) + 1024), &mut encoder).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_bomb_is_refused_by_its_ratio() {
    let roomy = Limits { max_member_bytes: 1 << 40, max_total_bytes: 1 << 40, ..Limits::default() };
    let bytes = bomb(64 << 20);
    assert!(bytes.len() < 400_000);
    assert_refused_within(&bytes, &roomy, "too-large", "zeros");
}

#[test]
fn a_member_that_is_too_large_is_refused_before_it_is_read() {
    assert_refused(&bomb(33 << 20), "too-large", "zeros");
    // The header alone claims an exabyte.
    let mut header = Header::new_gnu();
    header.set_path("huge").unwrap();
    header.set_size(1 << 60);
    header.set_cksum();
    assert_refused(&gzip(header.as_bytes()), "too-large", "huge");
}

#[test]
fn members_that_are_too_large_together_are_refused() {
    let limits = Limits { max_total_bytes: 1000, ..Limits::default() };
    let half = [b'x'; 600];
    let bytes = gzip(&tar_of(&[Raw::file("a", &half), Raw::file("b", &half)]));
    assert_refused_within(&bytes, &limits, "too-large", "b");
}

#[test]
fn zeros_behind_the_end_mark_do_not_unpack_for_ever() {
    let limits = Limits { max_total_bytes: 1 << 20, max_members: 10, ..Limits::default() };
    let mut tar = tar_of(&[Raw::file("a", b"a")]);
    tar.resize(64 << 20, 0);
    assert_refused_within(&gzip(&tar), &limits, "too-large", "");
}

#[test]
fn too_many_members_are_refused() {
    let limits = Limits { max_members: 3, ..Limits::default() };
    let names: Vec<_> = (0..4).map(|n| format!("f{n}")).collect();
    let members: Vec<_> = names.iter().map(|name| Raw::file(name, b"")).collect();
    assert_refused_within(&gzip(&tar_of(&members)), &limits, "too-many-members", "f3");
    let folders: Vec<_> = names.iter().map(|name| Raw { link: "", ..Raw::of(EntryType::Directory, name) }).collect();
    assert_refused_within(&gzip(&tar_of(&folders)), &limits, "too-many-members", "f3");
    let headers: Vec<_> = (0..9).map(|_| Raw { link: "", ..Raw::of(EntryType::XHeader, "pax") }).collect();
    assert_refused_within(&gzip(&tar_of(&headers)), &limits, "too-many-members", "");
}

#[test]
fn a_file_that_is_too_large_is_refused_unread() {
    let limits = Limits { max_archive_bytes: 10, ..Limits::default() };
    assert_refused_within(&[0x1f, 0x8b, 0, 0, 0, 0, 0, 0, 0, 0, 0], &limits, "too-large", "");
}

#[test]
fn a_member_shorter_than_its_header_says_is_refused() {
    let mut header = Header::new_gnu();
    header.set_path("short").unwrap();
    header.set_size(4096);
    header.set_cksum();
    let mut tar = header.as_bytes().to_vec();
    tar.extend_from_slice(&[b'x'; 512]);
    assert_refused(&gzip(&tar), "malformed-archive", "short");
}

#[test]
fn an_extension_header_cannot_be_used_as_a_bomb() {
    let mut header = Header::new_gnu();
    header.set_path("././@LongLink").unwrap();
    header.set_entry_type(EntryType::GNULongName);
    header.set_size(1 << 40);
    header.set_cksum();
    assert_refused(&gzip(header.as_bytes()), "malformed-archive", "");
}

#[test]
fn a_zip_bomb_is_refused() {
    let zeros = "\0".repeat(40 << 20);
    let bytes = zip_of(&[("manifest.json", "{}"), ("pb/zeros", &zeros)]);
    assert_refused(&bytes, "too-large", "pb/zeros");
    let roomy = Limits { max_member_bytes: 1 << 30, ..Limits::default() };
    assert_refused_within(&bytes, &roomy, "too-large", "pb/zeros");
}

#[test]
fn a_zip_with_unsafe_names_or_links_is_refused() {
    for name in ["../escape", "/abs", "C:/x", "a\\b"] {
        let refusal = read(&zip_of(&[("manifest.json", "{}"), (name, "x")]), &Limits::default()).unwrap_err();
        assert!(refusal.message.starts_with("unsafe-path: "), "{name}: {}", refusal.message);
    }
    let mut writer = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
    writer.add_symlink("link", "/etc/passwd", zip::write::SimpleFileOptions::default()).unwrap();
    assert_refused(&writer.finish().unwrap().into_inner(), "unsafe-member", "link");
    assert_refused(&zip_of(&[("a.md", "1"), ("A.md", "2")]), "name-collision", "A.md");
}

/// Replaces every occurrence, in local headers and the central directory alike unless `only_first`.
fn patched(mut bytes: Vec<u8>, from: &[u8], to: &[u8], only_first: bool) -> Vec<u8> {
    let places: Vec<_> =
        bytes.windows(from.len()).enumerate().filter(|(_, window)| *window == from).map(|(at, _)| at).collect();
    assert!(places.len() >= 2);
    for at in places.into_iter().take(if only_first { 1 } else { usize::MAX }) {
        bytes[at..at + to.len()].copy_from_slice(to);
    }
    bytes
}

#[test]
fn a_zip_that_two_readers_would_read_differently_is_refused() {
    let bytes = zip_of(&[("manifest.json", "{}"), ("aaa.md", "1"), ("bbb.md", "2")]);
    assert_refused(&patched(bytes.clone(), b"bbb.md", b"aaa.md", false), "duplicate-member", "");
    assert_refused(&patched(bytes.clone(), b"bbb.md", b"ccc.md", true), "malformed-archive", "");
    assert_refused(&patched(bytes, b"bbb.md", b"../.md", true), "malformed-archive", "");
}

fn sample() -> Vec<u8> {
    pack(aip53_app(), now()).unwrap().0
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn mutated_archives_are_refused_or_read_but_never_panic(edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut bytes = sample();
        for (at, byte) in &edits {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
        }
        let _ = read(&bytes, &Limits::default());
    }

    /// Below the compression, so that the tar parser sees the damage and not the checksum of gzip.
    #[test]
    fn mutated_tars_are_refused_or_read_but_never_panic(edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8), fix in any::<bool>()) {
        let mut tar = Vec::new();
        flate2::read::GzDecoder::new(sample().as_slice()).read_to_end(&mut tar).unwrap();
        for (at, byte) in &edits {
            // Headers are one block in a few: aim at them.
            let block = at.index(tar.len() / 512) * 512;
            tar[block + usize::from(*byte) % 512] = byte.wrapping_mul(31);
        }
        if fix {
            for block in tar.chunks_mut(512) {
                let is_header = block.get(257..262) == Some(b"ustar");
                if is_header {
                    let mut header = Header::new_gnu();
                    header.as_mut_bytes().copy_from_slice(block);
                    header.set_cksum();
                    block.copy_from_slice(header.as_bytes());
                }
            }
        }
        if let Ok(bundle) = read(&gzip(&tar), &Limits::default()) {
            let _ = load(&bundle, now());
        }
    }

    #[test]
    fn mutated_zips_are_refused_or_read_but_never_panic(edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut bytes = zip_project(&a2app_project());
        for (at, byte) in &edits {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
        }
        if let Ok(bundle) = read(&bytes, &Limits::default()) {
            let _ = load(&bundle, now());
        }
    }

    #[test]
    fn mutated_documents_are_refused_or_loaded_but_never_panic(which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), byte in any::<u8>(), both in any::<bool>()) {
        let mut files = if both { aip53_app() } else { a2app_project() };
        let path = files.keys().nth(which.index(files.len())).unwrap().clone();
        let bytes = files.get_mut(&path).unwrap();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok((archive, _)) = pack(files, now()) {
            let bundle = read(&archive, &Limits::default()).unwrap();
            let _ = load(&bundle, now());
        }
    }

    #[test]
    fn any_bytes_at_all_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let _ = read(&bytes, &Limits::default());
        let _ = read(&gzip(&bytes), &Limits::default());
    }
}

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use chrono::DateTime;
use inn_protocol::TenantId;

use super::*;

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn keys() -> (tempfile::TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("keys");
    KeyRing::open(&dir, Origin::Made).unwrap();
    (home, dir)
}

fn head() -> UnsignedHead {
    let at = DateTime::from_timestamp_micros(1_800_000_000_123_456).unwrap();
    UnsignedHead { tenant: TenantId::PLATFORM, seq: 3, head: Digest::of(b"x"), at }
}

#[test]
fn the_first_run_makes_closed_files_and_the_next_reads_the_same_keys() {
    let (_home, dir) = keys();
    assert_eq!((mode(&dir), mode(&dir.join("token-1.pem")), mode(&dir.join("register-1.pem"))), (0o700, 0o600, 0o600));
    let published = KeyRing::open(&dir, Origin::Made).unwrap().published();
    assert_eq!(KeyRing::open(&dir, Origin::Made).unwrap().published(), published);
    assert_eq!(mode(&dir.join("secret-1.key")), 0o600);
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 3, "no draft stays behind");
}

#[test]
fn published_keys_are_public_jwks_with_id_and_use() {
    let (_home, dir) = keys();
    let published = KeyRing::open(&dir, Origin::Made).unwrap().published();
    let keys = published["keys"].as_array().unwrap();
    assert_eq!(keys.iter().map(|key| key["use"].as_str().unwrap()).collect::<Vec<_>>(), ["token", "register"]);
    for key in keys {
        assert_eq!((key["kty"].as_str(), key["crv"].as_str()), (Some("OKP"), Some("Ed25519")));
        assert_eq!(key["kid"], json!(PublicKey::from_jwk(key).unwrap().thumbprint()));
    }
    assert_ne!(keys[0]["x"], keys[1]["x"]);
}

#[test]
fn what_an_old_key_signed_is_still_verified_after_a_rotation() {
    let (_home, dir) = keys();
    let old = KeyRing::open(&dir, Origin::Made).unwrap();
    let (kid, signature) = old.sign(&head());
    assert_eq!(rotate(&dir, Kind::Register).unwrap(), 2);
    assert_eq!(rotate(&dir, Kind::Token).unwrap(), 2);
    let new = KeyRing::open(&dir, Origin::Made).unwrap();
    assert!(new.verify(&head(), &kid, &signature), "the old public key stays");
    assert_ne!(new.sign(&head()).0, kid, "and the new one signs");
    assert!(!new.verify(&UnsignedHead { seq: 4, ..head() }, &kid, &signature));
    assert!(!new.verify(&head(), "somebody", &signature) && !new.verify(&head(), &kid, b"short"));
    let roots: Vec<_> = new.root().unwrap().public().iter().collect();
    let first = old.root().unwrap().public().iter().next().unwrap();
    assert_eq!((roots[0].0, roots[1]), (2, first));
    assert!(!dir.join("token-1.pem").exists(), "an old private key is no longer needed");
    assert_eq!(new.published()["keys"].as_array().unwrap().len(), 4);
}

#[test]
fn a_public_key_sent_ahead_verifies_and_does_not_sign() {
    let (_home, dir) = keys();
    let (_other_home, other) = keys();
    rotate(&other, Kind::Token).unwrap();
    let ahead = KeyRing::open(&other, Origin::Made).unwrap().token.key.public();
    fs::write(dir.join("token-2.pub"), ahead.to_base64url()).unwrap();
    let ring = KeyRing::open(&dir, Origin::Made).unwrap();
    assert_eq!(ring.token.id, 1);
    assert!(ring.root().unwrap().public().iter().any(|(id, key)| id == 2 && key == ahead));
    assert_eq!(rotate(&dir, Kind::Token).unwrap(), 3, "a number is never used twice");
}

#[test]
fn keys_that_others_can_read_are_refused_with_the_remedy() {
    let (_home, dir) = keys();
    let file = dir.join("token-1.pem");
    set_mode(&file, 0o644);
    let refused = KeyRing::open(&dir, Origin::Made).unwrap_err();
    assert_eq!(refused.path, file);
    assert!(refused.what.contains("chmod 600"), "{refused}");
    set_mode(&file, 0o600);
    set_mode(&dir, 0o755);
    let refused = KeyRing::open(&dir, Origin::Made).unwrap_err();
    assert!(refused.path == dir && refused.what.contains("chmod 700"), "{refused}");
}

#[test]
fn given_keys_may_be_read_by_a_group_and_by_nobody_else() {
    let (_home, dir) = keys();
    let file = dir.join("token-1.pem");
    set_mode(&dir, 0o755);
    for (mode, fine) in [(0o440, true), (0o640, true), (0o400, true), (0o660, false), (0o444, false), (0o602, false)] {
        set_mode(&file, mode);
        assert_eq!(KeyRing::open(&dir, Origin::Given).is_ok(), fine, "{mode:o}");
    }
}

#[test]
fn given_keys_are_never_made() {
    let home = tempfile::tempdir().unwrap();
    let missing = home.path().join("nowhere");
    assert!(KeyRing::open(&missing, Origin::Given).unwrap_err().what.contains("INN_KEYS_DIR"));
    let refused = KeyRing::open(home.path(), Origin::Given).unwrap_err();
    assert!(refused.what.contains("token-<number>.pem"), "{refused}");
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
}

#[test]
fn a_damaged_key_is_refused_and_never_replaced() {
    let (_home, dir) = keys();
    let file = dir.join("register-1.pem");
    let whole = fs::read_to_string(&file).unwrap();
    for text in
        [String::new(), whole.chars().take(60).collect(), whole.replace("PRIVATE", "PUBLIC"), "\u{fffd}".repeat(3000)]
    {
        fs::write(&file, &text).unwrap();
        let refused = KeyRing::open(&dir, Origin::Made).unwrap_err();
        assert!(refused.path == file && refused.what.contains("damaged"), "{refused}");
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
}

#[test]
fn two_halves_that_do_not_fit_are_refused() {
    let (_home, dir) = keys();
    let stranger = SigningKey::from_seed([3; 32]).public().to_base64url();
    fs::write(dir.join("token-1.pub"), stranger).unwrap();
    assert!(KeyRing::open(&dir, Origin::Made).unwrap_err().path.ends_with("token-1.pub"));
}

#[test]
fn nothing_of_a_key_is_printed() {
    let (_home, dir) = keys();
    let ring = KeyRing::open(&dir, Origin::Made).unwrap();
    assert_eq!(format!("{ring:?}"), "KeyRing { token: 1, register: 1, secret: 1 }");
}

fn place() -> inn_grants::vault::Place<'static> {
    inn_grants::vault::Place {
        tenant: TenantId::PLATFORM,
        app: inn_protocol::AppId::from_uuid(uuid::Uuid::nil()),
        purpose: "test",
    }
}

#[test]
fn what_an_old_secret_key_sealed_is_still_opened_after_a_rotation() {
    let (_home, dir) = keys();
    let sealed = KeyRing::open(&dir, Origin::Made).unwrap().vault().seal(b"x", place(), [1; 24]).unwrap();
    assert_eq!(rotate(&dir, Kind::Secret).unwrap(), 2);
    let vault = KeyRing::open(&dir, Origin::Made).unwrap().vault();
    assert_eq!(vault.open(&sealed, place()).unwrap(), b"x");
    assert_eq!(vault.seal(b"x", place(), [1; 24]).unwrap().key, 2, "and the new one seals");
    assert_eq!(mode(&dir.join("secret-2.key")), 0o600);
    fs::remove_file(dir.join("secret-1.key")).unwrap();
    assert!(KeyRing::open(&dir, Origin::Made).unwrap().vault().open(&sealed, place()).is_err());
}

#[test]
fn a_secret_key_is_guarded_like_every_private_one() {
    let (_home, dir) = keys();
    let file = dir.join("secret-1.key");
    set_mode(&file, 0o644);
    let refused = KeyRing::open(&dir, Origin::Made).unwrap_err();
    assert!(refused.path == file && refused.what.contains("chmod 600"), "{refused}");
    set_mode(&file, 0o600);
    let whole = fs::read_to_string(&file).unwrap();
    for text in [String::new(), whole.chars().take(40).collect(), "x".repeat(5000), format!("{whole}{whole}")] {
        fs::write(&file, &text).unwrap();
        let refused = KeyRing::open(&dir, Origin::Made).unwrap_err();
        assert!(refused.path == file && refused.what.contains("damaged"), "{refused}");
        assert_eq!(fs::read_to_string(&file).unwrap(), text, "it is never replaced");
    }
}

#[test]
fn a_given_directory_without_a_secret_key_is_refused_by_name() {
    let (_home, dir) = keys();
    fs::remove_file(dir.join("secret-1.key")).unwrap();
    assert!(KeyRing::look(&dir, Origin::Made).is_ok(), "ours gets one at the next start");
    for refused in [KeyRing::open(&dir, Origin::Given).map(|_| ()), KeyRing::look(&dir, Origin::Given)] {
        assert!(refused.unwrap_err().what.contains("secret-<number>.key"));
    }
    KeyRing::open(&dir, Origin::Made).unwrap();
    assert!(dir.join("secret-1.key").exists());
}

use super::*;

/// RFC 8037 appendix A.1.
const D: &str = "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A";
const X: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";

fn rfc_key() -> SigningKey {
    SigningKey::from_seed(array_from_base64url(D).unwrap())
}

#[test]
fn the_public_key_and_thumbprint_are_those_of_rfc_8037() {
    let public = rfc_key().public();
    assert_eq!(public.to_base64url(), X);
    assert_eq!(public.thumbprint().as_str(), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
}

#[test]
fn a_jws_signature_is_that_of_rfc_8037_a4() {
    let signature = rfc_key().sign(b"eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc");
    assert_eq!(
        to_base64url(&signature),
        "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"
    );
}

#[test]
fn a_jwk_reads_back_and_other_keys_are_refused() {
    let public = rfc_key().public();
    assert_eq!(PublicKey::from_jwk(&public.jwk()).unwrap(), public);
    for (jwk, word) in [
        (json!({"kty": "EC", "crv": "Ed25519", "x": X}), "kty"),
        (json!({"kty": "OKP", "crv": "X25519", "x": X}), "crv"),
        (json!({"kty": "OKP", "crv": "Ed25519"}), "member x"),
        (json!({"kty": "OKP", "crv": "Ed25519", "x": X, "d": D}), "private"),
        (json!({"kty": "OKP", "crv": "Ed25519", "x": format!("{X}=")}), "base64url"),
        (json!({"kty": "OKP", "crv": "Ed25519", "x": "AA"}), "base64url"),
        (json!("text"), "JWK"),
    ] {
        let refusal = PublicKey::from_jwk(&jwk).unwrap_err();
        assert_eq!(refusal.code, Code::InvalidParameter);
        assert!(refusal.message.contains(word), "{jwk}: {}", refusal.message);
    }
}

#[test]
fn points_of_small_order_other_encodings_and_non_points_are_refused() {
    let mut not_canonical = [0xff_u8; 32];
    not_canonical[0] = 0xf0; // y = p + 3, a second spelling of y = 3
    not_canonical[31] = 0x7f;
    let neutral = {
        let mut bytes = [0_u8; 32];
        bytes[0] = 1;
        bytes
    };
    let eighth = "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a";
    let mut order_eight = [0_u8; 32];
    hex::decode_to_slice(eighth, &mut order_eight).unwrap();
    let mut not_a_point = [0_u8; 32];
    not_a_point[0] = 2;
    for (bytes, word) in [
        ([0_u8; 32], "small order"),
        (neutral, "small order"),
        (order_eight, "small order"),
        (not_canonical, "canonical"),
        (not_a_point, "point"),
    ] {
        let refusal = PublicKey::from_bytes(&bytes).unwrap_err();
        assert!(refusal.message.contains(word), "{}: {}", hex::encode(bytes), refusal.message);
    }
}

#[test]
fn a_signature_fits_one_message_and_one_key() {
    let key = rfc_key();
    let signature = key.sign(b"message");
    assert!(key.public().verify_strict(b"message", &signature));
    assert!(!key.public().verify_strict(b"massage", &signature));
    assert!(!SigningKey::from_seed([7; 32]).public().verify_strict(b"message", &signature));
    let mut broken = signature;
    broken[40] ^= 1;
    assert!(!key.public().verify_strict(b"message", &broken));
}

#[test]
fn the_pem_of_rfc_8410_reads_and_writes() {
    // RFC 8410 section 10.3, version 1.
    let pem = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n";
    let key = SigningKey::from_pkcs8_pem(pem).unwrap();
    assert_eq!(key.public().to_base64url(), "Gb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE");
    assert_eq!(key.to_pkcs8_pem().unwrap().as_str(), pem);
    assert_eq!(SigningKey::from_pkcs8_pem("nonsense").unwrap_err().code, Code::InvalidParameter);
}

#[test]
fn secrets_do_not_show_in_debug_output() {
    let key = rfc_key();
    let shown = format!("{key:?} {:?} {:?}", key.seed(), key.to_pkcs8_pem().unwrap());
    assert!(!shown.contains(D) && !shown.contains("MC4C") && shown.contains("hidden"), "{shown}");
    assert_eq!(to_base64url(key.seed().as_bytes()), D);
}

#[test]
fn secrets_compare_by_value() {
    assert!(same_secret(b"abc", b"abc"));
    assert!(!same_secret(b"abc", b"abd"));
    assert!(!same_secret(b"abc", b"ab"));
}

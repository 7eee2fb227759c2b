use serde_json::json;

use super::*;
use crate::encoding::to_base64url;

const NOW: i64 = 1_800_000_000;

fn secret() -> AppSecret {
    AppSecret::from_bytes([3; 32])
}

fn claims(kind: Kind) -> Claims {
    Claims {
        collection_id: "_pb_users_auth_".to_owned(),
        exp: NOW + 60,
        id: "abc123abc123abc".to_owned(),
        refreshable: Some(true),
        kind,
        email: None,
        new_email: None,
        jti: None,
    }
}

#[test]
fn a_token_has_pocketbases_claims_and_reads_back() {
    let token = mint(&claims(Kind::Auth), &secret(), "key");
    let body = from_base64url(token.split('.').nth(1).unwrap()).unwrap();
    let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
    let expected = json!({
        "collectionId": "_pb_users_auth_", "exp": NOW + 60, "id": "abc123abc123abc", "refreshable": true, "type": "auth",
    });
    assert_eq!(body, expected);
    assert_eq!(verify(&token, Kind::Auth, &secret(), "key", NOW), Some(claims(Kind::Auth)));
    assert_eq!(peek(&token), Some(claims(Kind::Auth)));
}

#[test]
fn another_key_secret_kind_or_time_makes_it_worthless() {
    let token = mint(&claims(Kind::Auth), &secret(), "key");
    assert!(verify(&token, Kind::Auth, &secret(), "other", NOW).is_none(), "the record's key was changed");
    assert!(verify(&token, Kind::Auth, &AppSecret::from_bytes([4; 32]), "key", NOW).is_none(), "another app");
    assert!(verify(&token, Kind::Auth, &secret(), "key", NOW + 60).is_none(), "out of date");
    for kind in [Kind::File, Kind::Verification, Kind::PasswordReset, Kind::EmailChange] {
        assert!(verify(&token, kind, &secret(), "key", NOW).is_none(), "{kind:?}");
        let other = mint(&claims(kind), &secret(), "key");
        assert!(verify(&other, Kind::Auth, &secret(), "key", NOW).is_none(), "{kind:?}");
    }
    assert!(verify(&mint(&claims(Kind::Auth), &secret(), ""), Kind::Auth, &secret(), "", NOW).is_none());
}

#[test]
fn no_algorithm_can_be_chosen_and_nothing_changed_passes() {
    let token = mint(&claims(Kind::Auth), &secret(), "key");
    let (signed, _) = token.rsplit_once('.').unwrap();
    let body = signed.split_once('.').unwrap().1;
    let none = to_base64url(br#"{"alg":"none","typ":"JWT"}"#);
    for forged in [format!("{none}.{body}."), format!("{none}.{body}.AAAA"), format!("{signed}."), signed.to_owned()] {
        assert!(verify(&forged, Kind::Auth, &secret(), "key", NOW).is_none(), "{forged}");
    }
    let mut changed = claims(Kind::Auth);
    changed.id = "zzz123abc123abc".to_owned();
    let other = to_base64url(&serde_json::to_vec(&changed).unwrap());
    let signature = token.rsplit_once('.').unwrap().1;
    assert!(verify(&format!("{HEADER}.{other}.{signature}"), Kind::Auth, &secret(), "key", NOW).is_none());
}

#[test]
fn rubbish_is_no_token() {
    for rubbish in ["", ".", "..", "...", "a.b.c", "ses_abc", "eyJ", &"a.".repeat(3000), "é.é.é"] {
        assert!(peek(rubbish).is_none(), "{rubbish:.20}");
        assert!(verify(rubbish, Kind::Auth, &secret(), "key", NOW).is_none());
    }
    assert!(is_one("a.b.c") && !is_one("a.b") && !is_one("a.b.c.d") && !is_one("ses_x"));
}

#[test]
fn codes_have_digests_of_their_own_purpose() {
    let code = |purpose| secret().digest(purpose, "12345678");
    assert_eq!(code("otp"), code("otp"));
    assert_ne!(code("otp"), code("mfa"));
    assert_ne!(secret().digest("a", "bc"), secret().digest("ab", "c"));
}

//! What a token allows, when it ends, and which tokens are none.

use std::time::Instant;

use biscuit_auth::{BlockBuilder, KeyPair, UnverifiedBiscuit};
use chrono::TimeDelta;
use proptest::prelude::*;

use super::*;
use crate::encoding::{from_base64url, to_base64url};
use crate::keys::SigningKey;

mod hostile;

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap()
}

fn later(seconds: i64) -> DateTime<Utc> {
    now() + TimeDelta::seconds(seconds)
}

fn scope(text: &str) -> Scope {
    text.parse().unwrap()
}

fn scopes(texts: &[&str]) -> BTreeSet<Scope> {
    texts.iter().map(|text| scope(text)).collect()
}

fn keys() -> RootKeys {
    RootKeys::new(7, &SigningKey::from_seed([1; 32]), &[]).unwrap()
}

fn app() -> AppId {
    "app_0192f0c1a2b37c4d8e5f60718293a4b5".parse().unwrap()
}

fn claims() -> TokenClaims {
    TokenClaims {
        grant: "grt_0192f0c1a2b37c4d8e5f60718293a4b6".parse().unwrap(),
        grant_epoch: 3,
        agent: SigningKey::from_seed([5; 32]).public().thumbprint(),
        user: "usr_0192f0c1a2b37c4d8e5f60718293a4b7".parse().unwrap(),
        app: app(),
        tenant: "ten_0192f0c1a2b37c4d8e5f60718293a4b8".parse().unwrap(),
        // Names among the library's own symbols ("read", "user", "owner") must survive too.
        scopes: Arc::new(scopes(&[
            "data:cards:read",
            "data:cards:write",
            "data:user:read",
            "op:read",
            "op:cards.clear-archived",
            "queue:owner",
        ])),
        expires: later(900),
        plain: false,
    }
}

fn token() -> String {
    mint(&keys(), &claims(), [9; 32]).unwrap()
}

/// What a holder can do to a token with any Biscuit library.
fn append(token: &str, datalog: &str) -> String {
    append_block(token, BlockBuilder::new().code(datalog).unwrap())
}

fn append_block(token: &str, block: BlockBuilder) -> String {
    let biscuit = UnverifiedBiscuit::from(from_base64url(token).unwrap()).unwrap();
    to_base64url(&biscuit.append(block).unwrap().to_vec().unwrap())
}

fn allows(token: &str, text: &str, when: DateTime<Utc>) -> Result<(), Code> {
    let verified = verify(token, keys().public()).map_err(|refusal| refusal.code)?;
    verified.allows(&scope(text), app(), when).map_err(|refusal| refusal.code)
}

#[test]
fn the_claims_read_back_as_they_were_minted() {
    for claims in [
        claims(),
        TokenClaims { plain: true, scopes: Arc::default(), grant_epoch: 0, ..claims() },
        TokenClaims { grant_epoch: i64::MAX, expires: later(1), ..claims() },
    ] {
        let token = mint(&keys(), &claims, [9; 32]).unwrap();
        let verified = verify(&token, keys().public()).unwrap();
        assert_eq!(verified.claims, claims);
        assert_eq!(verified.expires, claims.expires);
        assert_eq!(verified.digest, inn_protocol::Digest::of(token.as_bytes()));
        assert_eq!((verified.has_blocks, verified.revocation_ids.len()), (false, 1));
    }
}

#[test]
fn a_token_allows_its_scopes_on_its_app_until_it_ends() {
    for (text, seconds, expected) in [
        ("data:cards:read", 0, Ok(())),
        ("data:user:read", 0, Ok(())),
        ("op:read", 0, Ok(())),
        ("queue:owner", 899, Ok(())),
        ("data:lists:read", 0, Err(Code::InsufficientScope)),
        ("op:cards", 0, Err(Code::InsufficientScope)),
        ("queue:read", 0, Err(Code::InsufficientScope)),
        ("data:cards:read", 900, Err(Code::TokenExpired)),
    ] {
        assert_eq!(allows(&token(), text, later(seconds)), expected, "{text} after {seconds} s");
    }
    let verified = verify(&token(), keys().public()).unwrap();
    let refusal = verified.allows(&scope("data:cards:read"), AppId::new(), now()).unwrap_err();
    assert_eq!(refusal.code, Code::InvalidToken);
    assert!(refusal.message.contains("another app"));
    let refusal = verified.allows(&scope("data:lists:read"), app(), now()).unwrap_err();
    assert_eq!((refusal.scope.as_deref(), refusal.leg), (Some("data:lists:read"), Some("grant")));
}

#[test]
fn every_token_has_its_own_revocation_ids_and_a_narrower_one_keeps_the_first() {
    let [one, two] = [[1; 32], [2; 32]].map(|seed| mint(&keys(), &claims(), seed).unwrap());
    let ids = |token: &str| verify(token, keys().public()).unwrap().revocation_ids;
    assert_ne!(ids(&one), ids(&two));
    let narrower = attenuate(&one, &Narrowing { expires: Some(later(60)), scopes: None }, [3; 32]).unwrap();
    assert_eq!(ids(&narrower)[0], ids(&one)[0]);
    assert_eq!(ids(&narrower).len(), 2);
}

#[test]
fn narrowing_takes_scopes_and_time_away_and_never_adds() {
    let narrowing =
        Narrowing { scopes: Some(scopes(&["data:cards:read", "data:lists:read"])), expires: Some(later(60)) };
    let narrower = attenuate(&token(), &narrowing, [3; 32]).unwrap();
    let verified = verify(&narrower, keys().public()).unwrap();
    assert_eq!((verified.has_blocks, verified.expires), (true, later(60)));
    for (text, seconds, expected) in [
        ("data:cards:read", 0, Ok(())),
        ("data:cards:read", 59, Ok(())),
        ("data:cards:read", 60, Err(Code::TokenExpired)),
        ("data:cards:write", 0, Err(Code::InsufficientScope)),
        ("data:lists:read", 0, Err(Code::InsufficientScope)),
        ("op:read", 0, Err(Code::InsufficientScope)),
    ] {
        assert_eq!(allows(&narrower, text, later(seconds)), expected, "{text} after {seconds} s");
    }
    assert_eq!(*verified.scopes_at(app(), now()).unwrap(), scopes(&["data:cards:read"]));
    assert_eq!(verified.scopes_at(app(), later(60)).unwrap_err().code, Code::TokenExpired);

    let longer = attenuate(&narrower, &Narrowing { expires: Some(later(9000)), scopes: None }, [4; 32]).unwrap();
    assert_eq!(verify(&longer, keys().public()).unwrap().expires, later(60), "a later end changes nothing");
}

#[test]
fn without_appended_blocks_the_scopes_are_shared_and_nothing_is_evaluated() {
    let verified = verify(&token(), keys().public()).unwrap();
    assert!(Arc::ptr_eq(&verified.scopes_at(app(), now()).unwrap(), &verified.claims.scopes));
    assert!(verified.timed.is_none());
}

#[test]
fn checks_that_judge_by_the_time_in_their_own_way_are_asked_on_every_call() {
    let soon = "2027-01-15T08:01:00Z"; // a minute later
    for (check, before, after) in [
        (format!("check if time($t), $t >= {soon}"), false, true),
        (format!("check if time($t), $t < {soon} or kind(\"write\")"), true, false),
        (format!("reject if time($t), $t >= {soon}"), true, false),
    ] {
        let verified = verify(&append(&token(), &check), keys().public()).unwrap();
        assert!(verified.timed.is_some());
        for (when, expected) in [(now(), before), (later(60), after)] {
            assert_eq!(verified.allows(&scope("data:cards:read"), app(), when).is_ok(), expected, "{check} at {when}");
            let scopes = verified.scopes_at(app(), when).unwrap();
            assert_eq!(scopes.contains(&scope("data:cards:read")), expected, "{check} at {when}");
        }
    }
    let fixed = verify(&append(&token(), "check if kind(\"read\")"), keys().public()).unwrap();
    assert!(fixed.timed.is_none());
    assert_eq!(*fixed.scopes_at(app(), now()).unwrap(), scopes(&["data:cards:read", "data:user:read"]));
}

#[test]
fn holders_checks_may_ask_for_the_documented_facts() {
    for (check, read, write) in [
        (r#"check if kind("read")"#, true, false),
        (r#"check if kind("read") or kind("write")"#, true, true),
        (r#"check if name($n), $n == "cards""#, true, true),
        (r#"check if name("lists")"#, false, false),
        (r#"check if action($a), $a.starts_with("data:"), $a.ends_with(":read")"#, true, false),
        (r#"check if app("app_0192f0c1a2b37c4d8e5f60718293a4b5")"#, true, true),
        (r#"check if app("app_00000000000000000000000000000000")"#, false, false),
        (r#"check if reads($r), $r.contains("cards")"#, true, true),
        ("check if time($t), $t < 2020-01-01T00:00:00Z", false, false),
        ("check if time($t), $t > 2020-01-01T00:00:00Z", true, true),
        (r#"check all name($n), $n == "cards""#, true, true),
        (r#"reject if kind("write")"#, true, false),
        ("check if 1 + 1 == 2", true, true),
        ("check if 9223372036854775807 + 1 > 0", false, false),
    ] {
        let narrower = append(&token(), check);
        assert_eq!(allows(&narrower, "data:cards:read", now()).is_ok(), read, "{check} (read)");
        assert_eq!(allows(&narrower, "data:cards:write", now()).is_ok(), write, "{check} (write)");
    }
}

#[test]
fn only_a_plain_end_moves_the_end_of_the_token() {
    let end = "1800000060"; // never a date; written as one below
    let date = "2027-01-15T08:01:00Z";
    assert_eq!(date.parse::<DateTime<Utc>>().unwrap().timestamp().to_string(), end);
    for (check, moved) in [
        (format!("check if time($t), $t < {date}"), true),
        (format!("check if time($t), $t <= {date}"), true),
        (format!("check if time($t), $t > {date}"), false),
        (format!("check if time($t), {date} < $t"), false),
        (format!("reject if time($t), $t < {date}"), false),
        (format!("check if time($t), $t < {date} or kind(\"read\")"), false),
        (format!("check if expires($t), $t < {date}"), false),
    ] {
        let verified = verify(&append(&token(), &check), keys().public()).unwrap();
        assert_eq!(verified.expires, if moved { later(60) } else { later(900) }, "{check}");
    }
}

#[test]
fn older_root_keys_verify_and_strangers_do_not() {
    let (old, new) = (SigningKey::from_seed([1; 32]), SigningKey::from_seed([2; 32]));
    let rotated = RootKeys::new(8, &new, &[(7, old.public())]).unwrap();
    assert!(verify(&token(), rotated.public()).is_ok());
    let fresh = mint(&rotated, &claims(), [9; 32]).unwrap();
    assert!(verify(&fresh, rotated.public()).is_ok());
    assert!(verify(&fresh, keys().public()).is_err(), "an unknown number");
    let same_number = RootPublicKeys::new([(7, new.public())]).unwrap();
    assert_eq!(verify(&token(), &same_number).unwrap_err().code, Code::InvalidToken);
    assert!(RootKeys::new(7, &new, &[(7, old.public())]).is_err(), "one number, two keys");
    assert_eq!(rotated.public().iter().collect::<Vec<_>>(), [(8, new.public()), (7, old.public())]);
}

#[test]
fn a_token_nobody_numbered_is_refused() {
    let pair = roots::pair(&[1; 32]).unwrap();
    let bare = biscuit_auth::Biscuit::builder().fact("user(\"usr\")").unwrap().build(&pair).unwrap();
    let text = to_base64url(&bare.to_vec().unwrap());
    assert_eq!(verify(&text, keys().public()).unwrap_err().code, Code::InvalidToken);
}

#[test]
fn a_root_signed_token_without_our_claims_is_refused() {
    let pair = roots::pair(&[1; 32]).unwrap();
    let two = r#"grant("grt_0192f0c1a2b37c4d8e5f60718293a4b6"); grant("grt_0192f0c1a2b37c4d8e5f60718293a4b7")"#;
    for source in ["user(\"usr\")", two] {
        let builder = biscuit_auth::Biscuit::builder().code(source).unwrap().root_key_id(7);
        let text = to_base64url(&builder.build(&pair).unwrap().to_vec().unwrap());
        let refusal = verify(&text, keys().public()).unwrap_err();
        assert!(refusal.message.contains("lacks a claim"), "{}", refusal.message);
    }
}

#[test]
fn a_grant_too_large_for_one_token_is_refused_when_minting() {
    let many = |count: usize| {
        let names = (0..count).map(|n| Scope::Operation(format!("an-operation-with-a-long-name-{n}")));
        TokenClaims { scopes: Arc::new(names.collect()), ..claims() }
    };
    assert!(mint(&keys(), &many(50), [9; 32]).is_ok());
    let refusal = mint(&keys(), &many(200), [9; 32]).unwrap_err();
    assert_eq!(refusal.code, Code::TooLarge);
}

#[test]
fn forty_entities_and_forty_operations_fit_into_a_token_with_room_to_narrow() {
    let entity = |n| format!("entity_name_{n:02}");
    let data = (0..40).flat_map(|n| [Scope::Read(entity(n)), Scope::Write(entity(n))]);
    let operations = (0..40).map(|n| Scope::Operation(format!("entity.operation-{n:02}")));
    let large = TokenClaims { scopes: Arc::new(data.chain(operations).collect()), ..claims() };
    let token = mint(&keys(), &large, [9; 32]).unwrap();
    assert!(token.len() < MAX_TOKEN - 400, "{}", token.len());
    assert_eq!(verify(&token, keys().public()).unwrap().claims, large);
}

#[test]
fn a_narrowing_that_says_nothing_or_leaves_nothing_is_refused() {
    for narrowing in [Narrowing::default(), Narrowing { scopes: Some(BTreeSet::new()), expires: Some(later(1)) }] {
        assert_eq!(attenuate(&token(), &narrowing, [3; 32]).unwrap_err().code, Code::InvalidParameter);
    }
    let narrowing = Narrowing { scopes: None, expires: Some(later(1)) };
    assert_eq!(attenuate("nonsense", &narrowing, [3; 32]).unwrap_err().code, Code::InvalidToken);
    let sealed = UnverifiedBiscuit::from(from_base64url(&token()).unwrap()).unwrap().seal().unwrap();
    let sealed = to_base64url(&sealed.to_vec().unwrap());
    assert!(verify(&sealed, keys().public()).is_ok(), "sealing is the holder's right");
    assert_eq!(attenuate(&sealed, &narrowing, [3; 32]).unwrap_err().code, Code::InvalidToken);
}

#[test]
fn the_whole_can_be_shared_between_threads_and_hides_its_keys() {
    fn shared<T: Send + Sync>() {}
    shared::<VerifiedToken>();
    shared::<RootKeys>();
    shared::<RootPublicKeys>();
    let seed = to_base64url(&[1; 32]);
    let shown = format!("{:?}", keys());
    assert!(!shown.contains(&seed) && !shown.to_lowercase().contains("private"), "{shown}");
}

proptest! {
    #[test]
    fn no_text_is_a_token_and_none_makes_it_panic(text in "[A-Za-z0-9_-]{0,400}") {
        prop_assert!(verify(&text, keys().public()).is_err());
        let narrowing = Narrowing { scopes: None, expires: Some(later(1)) };
        let _ = attenuate(&text, &narrowing, [3; 32]);
    }

    #[test]
    fn no_flipped_bit_passes(at in 0_usize..4096, bit in 0_u8..8) {
        let narrower = attenuate(&token(), &Narrowing { scopes: None, expires: Some(later(60)) }, [3; 32]).unwrap();
        let mut bytes = from_base64url(&narrower).unwrap();
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        prop_assert!(verify(&to_base64url(&bytes), keys().public()).is_err());
    }
}

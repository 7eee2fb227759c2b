//! Appended blocks that would cost, lie or reach further than a narrowing may: each is refused before evaluation.

use biscuit_auth::builder::{Check, CheckKind, Rule, Term, pred, var};

use super::*;

fn refusal(token: &str) -> Refusal {
    let started = Instant::now();
    let refusal = verify(token, keys().public()).expect_err("a hostile block passed");
    // Evaluating the cross join of the first case takes minutes.
    assert!(started.elapsed().as_secs() < 5);
    assert_eq!(refusal.code, Code::InvalidToken);
    refusal
}

#[test]
fn hostile_blocks_are_refused_before_evaluation() {
    let nine_checks = r#"check if kind("read");"#.repeat(9);
    let operations = format!("check if {} > 0", ["1"; 40].join(" + "));
    for (datalog, word) in [
        // The five of the issue: a cross join, a closure, a regular expression, injected facts, a rule.
        ("check if name($a), name($b), name($c), name($d), name($e), name($f), $a != $f", "more than one fact"),
        ("check if reads($r), $r.any($x -> $x == \"cards\")", "closure"),
        ("check if action($a), $a.matches(\"(a+)+$\")", "regular expression"),
        ("app(\"app_00000000000000000000000000000000\"); check if kind(\"read\")", "facts"),
        ("kind(\"write\") <- kind(\"read\"); check if kind(\"write\")", "rules"),
        // And their relatives.
        ("check if reads($r), $r.all($x -> $x == \"cards\")", "closure"),
        ("check if kind($k), $k == \"read\" || $k == \"write\"", "closure"),
        ("check if kind($k), $k == \"read\" && true", "closure"),
        ("check if kind($k), (1 / 0 == 1).try_or(true)", "closure"),
        ("check if kind($k), $k.extern::slow()", "external function"),
        ("check if kind($k), $k.extern::slow($k)", "external function"),
        ("check if kind(\"read\") trusting previous", "trusts"),
        (nine_checks.as_str(), "8 checks"),
        ("check if kind(\"a\") or kind(\"b\") or kind(\"c\") or kind(\"d\") or kind(\"e\")", "more than 4"),
        ("check if true, true, true, true, true, true, true, true, true", "8 expressions"),
        (operations.as_str(), "64 operations"),
    ] {
        let hostile = append(&token(), datalog);
        assert!(verify(&hostile, keys().public()).is_err(), "{datalog}");
        let message = refusal(&hostile).message;
        assert!(message.contains(word) && message.contains("block 1"), "{datalog}: {message}");
    }
}

#[test]
fn a_hostile_block_behind_a_harmless_one_is_found() {
    let first = append(&token(), "check if kind(\"read\")");
    let message = refusal(&append(&first, "check if name($a), name($b), $a != $b")).message;
    assert!(message.contains("block 2"), "{message}");
}

#[test]
fn a_block_that_trusts_earlier_blocks_as_a_whole_is_refused() {
    let block =
        BlockBuilder::new().code("check if kind(\"read\")").unwrap().scope(biscuit_auth::builder::Scope::Previous);
    assert!(refusal(&append_block(&token(), block)).message.contains("trusts"));
}

#[test]
fn a_third_party_block_is_refused() {
    let biscuit = UnverifiedBiscuit::from(from_base64url(&token()).unwrap()).unwrap();
    let block = BlockBuilder::new().code("check if kind(\"read\")").unwrap();
    let signed = biscuit.third_party_request().unwrap().create_block(&KeyPair::new().private(), block).unwrap();
    let appended = biscuit.append_third_party(&signed.serialize().unwrap()).unwrap();
    let message = refusal(&to_base64url(&appended.to_vec().unwrap())).message;
    assert!(message.contains("third party"), "{message}");
}

#[test]
fn names_that_print_like_harmless_source_deceive_nobody() {
    // Printed and parsed again, a name like `kind("read") or x` hides a predicate; as data it is one odd name.
    let odd = |name: &str| pred(name, &[var("x")]);
    let query = |body: Vec<_>| Rule::new(pred("query", &[] as &[Term]), body, Vec::new(), Vec::new());
    let check = |body| Check { queries: vec![query(body)], kind: CheckKind::One };
    let two = BlockBuilder::new().check(check(vec![odd("a); // "), odd("b")])).unwrap();
    assert!(refusal(&append_block(&token(), two)).message.contains("more than one fact"));
    let one = BlockBuilder::new().check(check(vec![odd("kind(\"read\") or x")])).unwrap();
    assert_eq!(allows(&append_block(&token(), one), "data:cards:read", now()), Err(Code::InsufficientScope));
}

#[test]
fn long_tokens_and_many_blocks_are_refused_unread() {
    let long = "A".repeat(MAX_TOKEN + 1);
    assert!(refusal(&long).message.contains("longer"));

    let narrowing = Narrowing { scopes: None, expires: Some(later(60)) };
    let mut narrow = token();
    for round in 1..MAX_BLOCKS {
        narrow = attenuate(&narrow, &narrowing, [u8::try_from(round).unwrap(); 32]).unwrap();
    }
    assert!(verify(&narrow, keys().public()).is_ok(), "{MAX_BLOCKS} blocks are allowed");
    assert_eq!(attenuate(&narrow, &narrowing, [99; 32]).unwrap_err().code, Code::TooLarge);
    let over = append(&narrow, "check if kind(\"read\")");
    assert!(over.len() <= MAX_TOKEN, "{}", over.len());
    assert!(refusal(&over).message.contains("more than 8 blocks"));
}

#[test]
fn one_token_has_one_spelling() {
    let mut bytes = from_base64url(&token()).unwrap();
    bytes.extend([0x98, 0x06, 0x01]); // a field number 99, which the decoder skips
    refusal(&to_base64url(&bytes));
    let token = token();
    let padded = from_base64url(&token).map(|bytes| {
        use base64::Engine as _;
        base64::engine::general_purpose::URL_SAFE.encode(bytes)
    });
    for other in [
        format!("{token}="),
        format!(" {token}"),
        format!("{token}\n"),
        padded.unwrap() + "=",
        token.replace(['-', '_'], "+"),
    ] {
        if other != token {
            assert!(verify(&other, keys().public()).is_err(), "{other}");
        }
    }
}

#[test]
fn a_vetted_block_of_the_largest_size_evaluates_at_once() {
    let alternative = format!("action($a), {} == $a", ["\"x\""; 30].join(" + "));
    let check = format!("check if {};", [alternative.as_str(); 4].join(" or "));
    let worst = append(&token(), &(check + &r#"check if reads($r), !$r.contains("x");"#.repeat(7)));
    assert!(worst.len() <= MAX_TOKEN, "{}", worst.len());
    let started = Instant::now();
    assert_eq!(allows(&worst, "data:cards:read", now()), Err(Code::InsufficientScope));
    assert!(started.elapsed().as_secs() < 5);
}

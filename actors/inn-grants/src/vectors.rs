//! The published vectors, recomputed. They were made by another implementation from the texts of this crate's docs.

use inn_protocol::Digest;
use serde_json::Value;

use crate::encoding::{array_from_base64url, to_base64url};
use crate::keys::SigningKey;
use crate::signature::{self, SignedParts};
use crate::{delegation, seal};

fn signatures() -> Value {
    serde_json::from_str(include_str!("../vectors/http-signatures.json")).unwrap()
}

fn statements() -> Value {
    serde_json::from_str(include_str!("../vectors/statements.json")).unwrap()
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_else(|| panic!("{name}"))
}

fn key(name: &str) -> SigningKey {
    SigningKey::from_seed(array_from_base64url(text(&signatures()["keys"][name], "seed")).unwrap())
}

#[test]
fn the_published_keys_have_their_published_names() {
    for name in ["parent", "helper"] {
        let (published, public) = (&signatures()["keys"][name], key(name).public());
        assert_eq!(public.to_base64url(), text(published, "public"));
        assert_eq!(public.thumbprint().as_str(), text(published, "thumbprint"));
    }
}

#[test]
fn every_published_http_signature_is_reproduced_and_verifies() {
    let vectors = signatures();
    let cases = vectors["cases"].as_array().unwrap();
    assert!(cases.len() >= 5);
    for case in cases {
        let name = text(case, "name");
        let header = |name: &str| case["headers"][name].as_str();
        let parts = SignedParts {
            method: text(case, "method"),
            authority: text(case, "authority"),
            path: text(case, "path"),
            query: text(case, "query"),
            content_type: header("content-type"),
            content_digest: header("content-digest"),
            idempotency_key: header("idempotency-key"),
            token_digest: header("innkeeper-token-digest"),
            delegation: header("innkeeper-delegation"),
            claim: header("innkeeper-claim"),
        };
        let (created, expires) = (case["created"].as_i64().unwrap(), case["expires"].as_i64().unwrap());
        let key = key(text(case, "key"));
        let headers = signature::sign(&key, &parts, created, expires, text(case, "nonce")).unwrap();
        assert_eq!(headers.signature_input, text(case, "signatureInput"), "{name}");
        assert_eq!(headers.signature, text(case, "signature"), "{name}");

        let parsed = signature::parse(text(case, "signatureInput"), text(case, "signature")).unwrap();
        let verified = signature::verify(&parsed, &parts, &key.public(), created).unwrap();
        assert_eq!(verified.base, text(case, "base"), "{name}");

        if let Some(body) = case["body"].as_str() {
            assert_eq!(signature::content_digest(body.as_bytes()), header("content-digest").unwrap(), "{name}");
        }
        if let Some(digest) = header("innkeeper-token-digest") {
            assert_eq!(signature::token_digest(text(&vectors, "token")), digest, "{name}");
        }
    }
}

#[test]
fn the_published_delegation_is_reproduced_and_verifies() {
    let vectors = statements();
    let vector = &vectors["delegation"];
    let token = Digest::of(text(vector, "token").as_bytes());
    let (helper, expires) = (key("helper").public().thumbprint(), vector["expires"].as_i64().unwrap());
    let header = delegation::sign(&key("parent"), token, &helper, expires).unwrap();
    assert_eq!(header, text(vector, "header"));
    assert_eq!(delegation::verify(&header, &key("parent").public(), token, &helper, expires - 1), Ok(()));
}

#[test]
fn the_published_register_head_is_reproduced() {
    let vectors = statements();
    let register = &vectors["register"];
    let list = |name: &str| -> Vec<Digest> {
        register[name].as_array().unwrap().iter().map(|hex| Digest::from_hex(hex.as_str().unwrap()).unwrap()).collect()
    };
    let mut head = seal::GENESIS;
    for (entry, expected) in list("entries").into_iter().zip(list("heads")) {
        head = seal::chain(head, entry);
        assert_eq!(head, expected);
    }
    let statement = seal::HeadStatement {
        tenant: text(register, "tenant").parse().unwrap(),
        seq: register["seq"].as_i64().unwrap(),
        head,
        at: chrono::DateTime::from_timestamp_micros(register["atMicros"].as_i64().unwrap()).unwrap(),
    };
    assert_eq!(statement.canonical(), text(register, "statement"));
    assert_eq!(to_base64url(&statement.sign(&key("parent"))), text(register, "signature"));
}

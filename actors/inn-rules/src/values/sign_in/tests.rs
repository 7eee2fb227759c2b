use serde_json::json;

use super::*;
use crate::values::pb_data;

fn users() -> Collection {
    serde_json::from_value(json!({"id": "u", "name": "users", "type": "auth", "fields": [
        {"id": "f1", "name": "password", "type": "password", "required": true}]}))
    .unwrap()
}

fn data(form: SignInForm<'_>) -> Value {
    let refusal = form.finish().unwrap_err();
    assert_eq!(refusal.code.status(), 400);
    pb_data(&refusal.violations).into()
}

#[test]
fn everything_wrong_is_told_at_once_in_pocketbases_words() {
    let body = json!({"email": "nobody", "password": "short", "passwordConfirm": "other", "duration": -1});
    let mut form = SignInForm::new(&body).unwrap();
    form.email("email");
    form.required("token");
    form.new_password(&users());
    form.seconds("duration");
    assert_eq!(
        data(form),
        json!({
            "email": {"code": "validation_is_email", "message": "Must be a valid email address."},
            "token": {"code": "validation_required", "message": "Cannot be blank."},
            "password": {"code": "validation_min_text_constraint", "message": "Must be at least 8 character(s)."},
            "passwordConfirm": {"code": "validation_values_mismatch", "message": "Values don't match."},
            "duration": {"code": "validation_min_greater_equal_than_required", "message": "Must be no less than 0.", "params": {"threshold": 0}},
        })
    );
}

#[test]
fn each_wrong_thing_has_its_own_code() {
    for (wrong, code) in [
        (Wrong::Token, "validation_invalid_token"),
        (Wrong::TokenClaims, "validation_invalid_token_claims"),
        (Wrong::TokenPayload, "validation_invalid_token_payload"),
        (Wrong::TakenEmail, "validation_invalid_new_email"),
        (Wrong::IdentityField, "validation_in_invalid"),
        (Wrong::SameEmail, "validation_not_in_invalid"),
        (Wrong::Password, "validation_invalid_password"),
    ] {
        let body = json!({});
        let mut form = SignInForm::new(&body).unwrap();
        form.wrong("field", wrong);
        assert!(!form.is_fine());
        assert_eq!(data(form)["field"]["code"], code, "{wrong:?}");
    }
}

#[test]
fn texts_are_read_as_fields_are_and_endless_ones_fit_nothing() {
    let long = "x".repeat(10_000);
    let body =
        json!({"number": 12, "yes": true, "blank": "", "none": null, "list": [], "long": long, "nul": "a\u{0}b"});
    let mut form = SignInForm::new(&body).unwrap();
    assert_eq!(form.optional("number").as_deref(), Some("12"));
    assert_eq!(form.optional("yes").as_deref(), Some("true"));
    for name in ["blank", "none", "list", "missing"] {
        assert_eq!(form.optional(name), None, "{name}");
    }
    assert!(form.is_fine());
    for name in ["long", "nul"] {
        assert_eq!(form.required(name), "", "{name}");
    }
    let told = data(form);
    assert_eq!(told.as_object().unwrap().len(), 2, "each once: {told}");
    assert!(!told.to_string().contains("xxx"));
}

#[test]
fn a_body_that_is_no_object_is_refused_and_none_is_an_empty_one() {
    for body in [json!([]), json!("x"), json!(1), json!(true)] {
        assert_eq!(SignInForm::new(&body).err().unwrap().code, inn_protocol::Code::InvalidBody);
    }
    assert!(SignInForm::new(&Value::Null).unwrap().finish().is_ok());
}

#[test]
fn durations_have_an_end() {
    for (sent, seconds) in
        [(json!(60), 60), (json!("60"), 60), (json!(1e300), 94_670_856), (json!("soon"), 0), (json!(null), 0)]
    {
        let body = json!({"duration": sent});
        assert_eq!(SignInForm::new(&body).unwrap().seconds("duration"), seconds, "{sent}");
    }
}

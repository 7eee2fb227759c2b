//! What a mail says: the app's template, or ours, with the placeholders of PocketBase's options filled in.

use inn_protocol::auth_options::MailTemplate;
use inn_protocol::model::{Collection, FieldKind};
use serde_json::Value;

use super::accounts::Row;

/// What placeholders stand for. Values are escaped, so that a name cannot bring markup along.
pub(super) struct Facts<'a> {
    pub(super) app_name: &'a str,
    /// The app's own origin.
    pub(super) app_url: &'a str,
    pub(super) collection: &'a Collection,
    pub(super) row: &'a Row,
    pub(super) token: &'a str,
    pub(super) otp: &'a str,
    pub(super) otp_id: &'a str,
}

/// Subject and HTML. The subject is plain text, so nothing is escaped in it.
pub(super) fn write(template: &MailTemplate, facts: &Facts<'_>) -> (String, String) {
    (fill(&template.subject, facts, str::to_owned), fill(&template.body, facts, escaped))
}

pub(super) fn verification() -> MailTemplate {
    ours(
        "Confirm your address for {APP_NAME}",
        "<p>Somebody, probably you, made an account for {APP_NAME} with this address.</p>\n\
         <p><a href=\"{APP_URL}/_/#/auth/confirm-verification/{TOKEN}\">Yes, this address is mine</a></p>\n\
         <p>If it was not you, do nothing.</p>",
    )
}

pub(super) fn password_reset() -> MailTemplate {
    ours(
        "A new password for {APP_NAME}",
        "<p>A new password was asked for, for your account at {APP_NAME}.</p>\n\
         <p><a href=\"{APP_URL}/_/#/auth/confirm-password-reset/{TOKEN}\">Choose a new password</a></p>\n\
         <p>If you did not ask for it, do nothing: the old one stays.</p>",
    )
}

pub(super) fn email_change() -> MailTemplate {
    ours(
        "Your new address for {APP_NAME}",
        "<p>This address was given as the new one of an account at {APP_NAME}.</p>\n\
         <p><a href=\"{APP_URL}/_/#/auth/confirm-email-change/{TOKEN}\">Use this address from now on</a></p>\n\
         <p>If you do not know of it, do nothing.</p>",
    )
}

pub(super) fn one_time_password() -> MailTemplate {
    ours(
        "Your code for {APP_NAME}",
        "<p>Your code to sign in to {APP_NAME}:</p>\n<p><strong>{OTP}</strong></p>\n\
         <p>It works once and only for a few minutes. If you did not ask for it, do nothing, and tell it to nobody.</p>",
    )
}

fn ours(subject: &str, body: &str) -> MailTemplate {
    MailTemplate { subject: subject.to_owned(), body: body.to_owned() }
}

/// One pass: what a placeholder stands for is not searched for placeholders again.
fn fill(template: &str, facts: &Facts<'_>, escape: impl Fn(&str) -> String) -> String {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let known = after.split_once('}').and_then(|(name, after)| Some((value(name, facts)?, after)));
        if let Some((value, after)) = known {
            out.push_str(&escape(&value));
            rest = after;
        } else {
            out.push('{');
            rest = after;
        }
    }
    out.push_str(rest);
    out
}

fn value(name: &str, facts: &Facts<'_>) -> Option<String> {
    Some(match name {
        "APP_NAME" => facts.app_name.to_owned(),
        "APP_URL" => facts.app_url.to_owned(),
        "TOKEN" => facts.token.to_owned(),
        "OTP" => facts.otp.to_owned(),
        "OTP_ID" => facts.otp_id.to_owned(),
        _ => field(name.strip_prefix("RECORD:")?, facts),
    })
}

/// A field of the record that its owner may see; nothing for any other.
fn field(name: &str, facts: &Facts<'_>) -> String {
    let secret = facts.collection.field(name).is_none_or(|field| {
        field.hidden || name == super::TOKEN_KEY || matches!(field.kind, FieldKind::Password { .. })
    });
    match facts.row.get(name).filter(|_| !secret) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn collection() -> Collection {
        serde_json::from_value(json!({"id": "c", "name": "users", "type": "auth", "fields": [
            {"id": "f1", "name": "name", "type": "text"}, {"id": "f2", "name": "tokenKey", "type": "text"},
            {"id": "f3", "name": "password", "type": "password"}, {"id": "f4", "name": "note", "type": "text", "hidden": true},
        ]}))
        .unwrap()
    }

    fn written(body: &str) -> String {
        let row = json!({"name": "<b>{TOKEN}</b>", "tokenKey": "key", "password": "hash", "note": "hidden"});
        let facts = Facts {
            app_name: "A & B",
            app_url: "https://a.example",
            collection: &collection(),
            row: row.as_object().unwrap(),
            token: "tok",
            otp: "123456",
            otp_id: "id1",
        };
        write(&ours(body, body), &facts).1
    }

    #[test]
    fn placeholders_are_filled_once_and_their_values_bring_no_markup() {
        assert_eq!(
            written("{APP_NAME} {APP_URL}/{TOKEN} {OTP} {OTP_ID}"),
            "A &amp; B https://a.example/tok 123456 id1"
        );
        assert_eq!(written("Hi {RECORD:name}!"), "Hi &lt;b&gt;{TOKEN}&lt;/b&gt;!");
        assert_eq!(written("{UNKNOWN} { {} {TOKEN"), "{UNKNOWN} { {} {TOKEN");
    }

    #[test]
    fn secrets_of_the_record_never_get_into_a_mail() {
        assert_eq!(written("[{RECORD:tokenKey}{RECORD:password}{RECORD:note}{RECORD:nothing}]"), "[]");
    }

    #[test]
    fn every_template_of_ours_brings_its_token_or_code() {
        for template in [verification(), password_reset(), email_change()] {
            assert!(template.body.contains("{TOKEN}") && template.subject.contains("{APP_NAME}"));
        }
        assert!(one_time_password().body.contains("{OTP}"));
    }
}

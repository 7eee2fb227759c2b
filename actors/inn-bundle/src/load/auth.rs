//! How people sign in to an auth collection: the options of PocketBase's export, with its limits. A way of signing in we
//! do not have is refused rather than dropped, which would make the app weaker or useless without a word.

use inn_protocol::auth_options::{AuthOptions, Lifetime, MailTemplate, Mfa, Otp, PasswordAuth};
use inn_protocol::model::{Collection, FieldKind};

use super::index;
use super::model::rule;
use crate::node::Node;
use crate::problem::Problems;

/// Seconds a token may live (PocketBase: three years).
const TOKEN_SECONDS: (u64, u64) = (10, 94_670_856);
/// Seconds between the halves of a sign-in.
const TICKET_SECONDS: (u64, u64) = (10, 86_400);
/// Digits of a one-time password. Shorter ones could be guessed with the attempts there are.
const OTP_DIGITS: (u64, u64) = (6, 32);
const MAX_SUBJECT: usize = 255;
const MAX_BODY: usize = 100_000;
const MAX_IDENTITIES: usize = 10;

pub(super) fn load(node: &Node<'_>, collection: &Collection, problems: &mut Problems) -> AuthOptions {
    let defaults = AuthOptions::default();
    let auth_rule = match node.value.get("authRule") {
        None => defaults.auth_rule.clone(),
        Some(_) => rule(node, "authRule", problems),
    };
    let lifetime = |key: &str, default: Lifetime, problems: &mut Problems| {
        let duration = node.get(key).and_then(|option| option.get("duration"));
        let duration = duration.and_then(|duration| duration.whole(TOKEN_SECONDS.0, TOKEN_SECONDS.1, problems));
        Lifetime { duration: duration.and_then(|duration| u32::try_from(duration).ok()).unwrap_or(default.duration) }
    };
    let options = AuthOptions {
        auth_rule,
        manage_rule: rule(node, "manageRule", problems),
        password_auth: password(node, collection, problems),
        otp: otp(node, problems),
        mfa: mfa(node, problems),
        auth_token: lifetime("authToken", defaults.auth_token, problems),
        password_reset_token: lifetime("passwordResetToken", defaults.password_reset_token, problems),
        email_change_token: lifetime("emailChangeToken", defaults.email_change_token, problems),
        verification_token: lifetime("verificationToken", defaults.verification_token, problems),
        verification_template: template(node.get("verificationTemplate"), problems),
        reset_password_template: template(node.get("resetPasswordTemplate"), problems),
        confirm_email_change_template: template(node.get("confirmEmailChangeTemplate"), problems),
    };
    if let Some(oauth) = node.get("oauth2").filter(|oauth| oauth.value.get("enabled") == Some(&true.into())) {
        problems.add(oauth.place(), "signing in with other providers is not supported yet; set `enabled` to false");
    }
    if options.mfa.enabled && !(options.password_auth.enabled && options.otp.enabled) {
        problems.add(node.place(), "`mfa` needs two ways of signing in: enable `passwordAuth` and `otp`");
    }
    options
}

fn enabled(option: &Node<'_>, default: bool, problems: &mut Problems) -> bool {
    option.get("enabled").map_or(default, |flag| flag.boolean(problems))
}

fn password(node: &Node<'_>, collection: &Collection, problems: &mut Problems) -> PasswordAuth {
    let defaults = PasswordAuth::default();
    let Some(option) = node.get("passwordAuth") else { return defaults };
    let enabled = enabled(&option, defaults.enabled, problems);
    let Some(list) = option.get("identityFields") else { return PasswordAuth { enabled, ..defaults } };
    let mut identity_fields = Vec::new();
    for item in list.items(problems) {
        let Some(name) = item.filled(problems) else { continue };
        if let Some(why) = no_identity(collection, name) {
            item.problem(why, problems);
        } else if identity_fields.len() == MAX_IDENTITIES {
            item.problem(format!("at most {MAX_IDENTITIES} fields may name a record"), problems);
            break;
        } else {
            identity_fields.push(name.to_owned());
        }
    }
    if enabled && identity_fields.is_empty() {
        problems.add(option.place(), "`identityFields` must name a field when signing in by password is enabled");
    }
    PasswordAuth { enabled, identity_fields }
}

/// Why a field cannot name one record among all.
fn no_identity(collection: &Collection, name: &str) -> Option<&'static str> {
    if name == "email" {
        return None;
    }
    let is_text = collection
        .field(name)
        .is_some_and(|field| matches!(field.kind, FieldKind::Text { .. } | FieldKind::Email { .. }) && !field.hidden);
    if !is_text {
        return Some("must be a text or email field of the collection");
    }
    let alone = |statement: &String| {
        index::parse(statement).is_ok_and(|index| index.unique && index.columns == [index::Column::plain(name)])
    };
    (!collection.indexes.iter().any(alone)).then_some("needs a unique index of its own, so that it names one record")
}

fn otp(node: &Node<'_>, problems: &mut Problems) -> Otp {
    let defaults = Otp::default();
    let Some(option) = node.get("otp") else { return defaults };
    let enabled = enabled(&option, defaults.enabled, problems);
    let mut number = |key: &str, (least, most), default| {
        let found = option.get(key).filter(|value| enabled || value.value.as_u64() != Some(0));
        let found = found.and_then(|value| value.whole(least, most, problems));
        found.and_then(|value| u32::try_from(value).ok()).unwrap_or(default)
    };
    let duration = number("duration", TICKET_SECONDS, defaults.duration);
    let length = number("length", OTP_DIGITS, defaults.length);
    Otp { enabled, duration, length, email_template: template(option.get("emailTemplate"), problems) }
}

fn mfa(node: &Node<'_>, problems: &mut Problems) -> Mfa {
    let defaults = Mfa::default();
    let Some(option) = node.get("mfa") else { return defaults };
    let enabled = enabled(&option, defaults.enabled, problems);
    let duration = option.get("duration").filter(|value| enabled || value.value.as_u64() != Some(0));
    let duration = duration.and_then(|value| value.whole(TICKET_SECONDS.0, TICKET_SECONDS.1, problems));
    Mfa {
        enabled,
        duration: duration.and_then(|value| u32::try_from(value).ok()).unwrap_or(defaults.duration),
        rule: rule(&option, "rule", problems).unwrap_or_default(),
    }
}

/// A template with nothing in it is none: ours is taken then.
fn template(node: Option<Node<'_>>, problems: &mut Problems) -> Option<MailTemplate> {
    let node = node?;
    let text = |key: &str, most, problems: &mut Problems| {
        node.get(key)?.sized(0, most, problems).filter(|text| !text.trim().is_empty()).map(str::to_owned)
    };
    let subject = text("subject", MAX_SUBJECT, problems);
    let body = text("body", MAX_BODY, problems);
    Some(MailTemplate { subject: subject?, body: body? })
}

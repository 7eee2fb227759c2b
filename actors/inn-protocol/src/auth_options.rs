//! How people sign in to an auth collection of an app: PocketBase's collection options, with its names and defaults
//! (`reference` notes on PocketBase, section E).

use serde::{Deserialize, Serialize};

/// The options of one auth collection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AuthOptions {
    /// Who may sign in: `None` nobody, `""` everybody, else a filter over the record.
    pub auth_rule: Option<String>,
    /// Who may change emails, passwords and `verified` of others: `None` and `""` nobody but the app's owners.
    pub manage_rule: Option<String>,
    pub password_auth: PasswordAuth,
    pub otp: Otp,
    pub mfa: Mfa,
    pub auth_token: Lifetime,
    pub password_reset_token: Lifetime,
    pub email_change_token: Lifetime,
    pub verification_token: Lifetime,
    pub verification_template: Option<MailTemplate>,
    pub reset_password_template: Option<MailTemplate>,
    pub confirm_email_change_template: Option<MailTemplate>,
}

impl Default for AuthOptions {
    fn default() -> Self {
        Self {
            auth_rule: Some(String::new()),
            manage_rule: None,
            password_auth: PasswordAuth::default(),
            otp: Otp::default(),
            mfa: Mfa::default(),
            auth_token: Lifetime { duration: 5 * 24 * 60 * 60 },
            password_reset_token: Lifetime { duration: 30 * 60 },
            email_change_token: Lifetime { duration: 30 * 60 },
            verification_token: Lifetime { duration: 24 * 60 * 60 },
            verification_template: None,
            reset_password_template: None,
            confirm_email_change_template: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PasswordAuth {
    pub enabled: bool,
    /// Fields that name a record; each has a unique index of its own.
    pub identity_fields: Vec<String>,
}

impl Default for PasswordAuth {
    fn default() -> Self {
        Self { enabled: true, identity_fields: vec!["email".to_owned()] }
    }
}

/// One-time passwords by mail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Otp {
    pub enabled: bool,
    /// Seconds a code is good for.
    pub duration: u32,
    /// Digits of a code.
    pub length: u32,
    pub email_template: Option<MailTemplate>,
}

impl Default for Otp {
    fn default() -> Self {
        Self { enabled: false, duration: 180, length: 8, email_template: None }
    }
}

/// A second way of signing in is asked for after the first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Mfa {
    pub enabled: bool,
    /// Seconds between the first and the second.
    pub duration: u32,
    /// Of whom it is asked; `""` of everybody.
    pub rule: String,
}

impl Default for Mfa {
    fn default() -> Self {
        Self { enabled: false, duration: 600, rule: String::new() }
    }
}

/// How long a kind of token is good for, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lifetime {
    pub duration: u32,
}

/// A mail in the app's own words, with `{PLACEHOLDERS}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MailTemplate {
    pub subject: String,
    /// HTML.
    pub body: String,
}

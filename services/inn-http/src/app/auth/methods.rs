//! `GET …/auth-methods`: the ways of signing in a collection has.

use actix_web::HttpResponse;
use actix_web::web::Path;
use inn_grants::app_token::SUPERUSERS;
use inn_protocol::Refusal;
use inn_protocol::auth_options::AuthOptions;
use inn_protocol::call::{Action, Papers};
use serde_json::{Value, json};

use super::accounts::Accounts;
use super::not_allowed;
use crate::app::records::Entity;
use crate::error::ApiError;
use crate::incoming::Incoming;
use crate::respond;

/// What an app says about itself, like its describe.
pub(in crate::app) async fn methods(incoming: Incoming, path: Path<Entity>) -> Result<HttpResponse, ApiError> {
    let entity = path.entity.as_str();
    let body: Value = incoming
        .read(Action::DescribeApp, |admitted| async move {
            if entity == SUPERUSERS {
                return Ok(told(&AuthOptions::default()));
            }
            let missing = |_| Refusal::new(inn_protocol::Code::NotFound, "Missing or invalid collection context.");
            Ok(told(&Accounts::of(admitted.app()?, entity).map_err(missing)?.options()?))
        })
        .await?;
    Ok(respond::ok(incoming.id, &body))
}

/// With the keys of versions before 0.23, which older clients read.
fn told(options: &AuthOptions) -> Value {
    let password = &options.password_auth;
    let fields: &[String] = if password.enabled { &password.identity_fields } else { &[] };
    let by = |name: &str| fields.iter().any(|field| field == name);
    let seconds = |enabled: bool, seconds: u32| if enabled { seconds } else { 0 };
    json!({
        "password": {"identityFields": fields, "enabled": password.enabled},
        "oauth2": {"providers": [], "enabled": false},
        "mfa": {"enabled": options.mfa.enabled, "duration": seconds(options.mfa.enabled, options.mfa.duration)},
        "otp": {"enabled": options.otp.enabled, "duration": seconds(options.otp.enabled, options.otp.duration)},
        "authProviders": null,
        "usernamePassword": by("username"),
        "emailPassword": by("email"),
    })
}

/// `POST …/auth-with-oauth2`: a bundle that enables it is refused, so no collection has it.
pub(in crate::app) async fn oauth2(mut incoming: Incoming, path: Path<Entity>) -> Result<HttpResponse, ApiError> {
    incoming.papers = Papers::None;
    Accounts::find(&incoming, &path.entity, "with-oauth2").await?;
    Err(incoming.fail(not_allowed("OAuth2")))
}

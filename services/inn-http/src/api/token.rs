//! `POST /v1/token`: a short-lived Biscuit for an approved grant, after proof of possession.

use std::collections::BTreeSet;
use std::sync::Arc;

use actix_web::HttpResponse;
use chrono::{DateTime, Duration, Utc};
use inn_grants::token::{TokenClaims, mint};
use inn_protocol::call::Action;
use inn_protocol::scope::Scope;
use inn_protocol::{Code, Digest, GrantId, Refusal};
use serde::Deserialize;
use serde_json::json;

use super::views;
use crate::error::ApiError;
use crate::incoming::Incoming;
use crate::respond;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Take {
    grant: GrantId,
    /// A subset, for apps with so many entities that all scopes would not fit into one token.
    scopes: Option<Vec<String>>,
}

struct Taken {
    token: String,
    expires: DateTime<Utc>,
    app: inn_protocol::AppId,
    scopes: Arc<BTreeSet<Scope>>,
}

pub(super) async fn take(mut incoming: Incoming) -> Result<HttpResponse, ApiError> {
    let body: Take = incoming.document().await?;
    let about = incoming.state.store.grant(body.grant).await.map_err(|error| incoming.fail(error.into()))?;
    incoming.about = about.map(|grant| grant.tenant);
    let wanted = match &body.scopes {
        Some(texts) => Some(incoming.fit(views::parse_scopes(texts)).await?),
        None => None,
    };
    let now = incoming.state.gateway.clock().now();
    let expires = now + Duration::minutes(incoming.state.config.token_minutes);
    let root = Arc::clone(&incoming.state.keys.root);
    let id = body.grant;
    let taken: Taken = incoming
        .perform(Action::TakeToken { grant: id }, wanted, move |store, admitted, wanted| {
            let root = Arc::clone(&root);
            async move {
                let agent = admitted.caller.agent().ok_or_else(Refusal::internal)?;
                // Somebody else's grant does not exist for this key.
                let grant = store.grant(id).await?.filter(|grant| grant.agent == *agent).ok_or_else(|| {
                    Refusal::new(
                        Code::NotFound,
                        "This key has no such grant. Ask for one with POST /v1/grant-requests.",
                    )
                })?;
                if grant.revoked {
                    return Err(Refusal::new(
                        Code::TokenRevoked,
                        "This grant was revoked; there are no more tokens for it.",
                    )
                    .leg("grant")
                    .fix("the person who granted it, by a new grant")
                    .into());
                }
                if store.member(grant.tenant, grant.user).await?.is_none() {
                    return Err(Refusal::new(
                        Code::TokenRevoked,
                        "The person this agent acts for is no longer a member here.",
                    )
                    .leg("user")
                    .into());
                }
                let scopes = match &*wanted {
                    Some(wanted) => Arc::new(grant.scopes.intersection(wanted).cloned().collect::<BTreeSet<_>>()),
                    None => Arc::clone(&grant.scopes),
                };
                let claims = TokenClaims {
                    grant: grant.grant,
                    grant_epoch: grant.epoch,
                    agent: grant.agent.clone(),
                    user: grant.user,
                    app: grant.app,
                    tenant: grant.tenant,
                    scopes: Arc::clone(&scopes),
                    expires,
                    plain: grant.plain_token,
                };
                let token = mint(&root, &claims, rand::random())?;
                store.token_minted(&admitted.record, id, Digest::of(token.as_bytes()), expires).await?;
                Ok(Taken { token, expires, app: grant.app, scopes })
            }
        })
        .await?;
    let body = json!({
        "token": taken.token,
        "expiresAt": taken.expires,
        "grant": id,
        "app": taken.app,
        "scopes": &*taken.scopes,
    });
    Ok(respond::ok(incoming.id, &body))
}

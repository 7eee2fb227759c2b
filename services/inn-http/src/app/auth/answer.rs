//! A token and the record it stands for, as every way of signing in answers them.

use std::sync::Arc;

use actix_web::HttpResponse;
use inn_grants::app_token::{self, Claims, Kind};
use inn_protocol::call::{Action, Call, Papers};
use inn_protocol::{CallId, Refusal};
use inn_rules::query::{FieldPick, ListParams};
use serde_json::{Value, json};

use super::TOKEN_KEY;
use super::accounts::{Accounts, Row, text};
use crate::app::records::dress;
use crate::error::ApiError;
use crate::incoming::Incoming;
use crate::respond;

/// A token for auth. `seconds` of 0 is what the collection says.
pub(super) async fn token(
    incoming: &Incoming,
    accounts: &Accounts,
    row: &Row,
    refreshable: bool,
    seconds: i64,
) -> Result<String, Refusal> {
    let collection = accounts.collection()?;
    let lifetime = if seconds > 0 { seconds } else { i64::from(accounts.options()?.auth_token.duration) };
    let secret = incoming.state.store.make_app_secret(&accounts.app).await?;
    let claims = Claims {
        collection_id: collection.id.clone(),
        exp: incoming.state.gateway.clock().now().timestamp().saturating_add(lifetime),
        id: text(row, "id").to_owned(),
        refreshable: Some(refreshable),
        kind: Kind::Auth,
        email: None,
        new_email: None,
        jti: None,
    };
    Ok(app_token::mint(&claims, &secret, text(row, TOKEN_KEY)))
}

/// The record as its owner sees it, and the token.
pub(super) async fn signed_in(
    incoming: &Incoming,
    accounts: &Accounts,
    row: Row,
    token: String,
) -> Result<HttpResponse, ApiError> {
    let body = body(incoming, accounts, row, token).await.map_err(|refusal| incoming.fail(refusal))?;
    Ok(respond::ok(incoming.id, &body))
}

async fn body(incoming: &Incoming, accounts: &Accounts, row: Row, token: String) -> Result<Value, Refusal> {
    let mut params = ListParams::of_one(&incoming.query)?;
    let fields = params.fields.take();
    // Whoever holds the token from now on is who looks at the record.
    let papers = Papers::AppUser { token: token.clone() };
    let call = Call { id: CallId::new(), papers, ..incoming.call(Action::DescribeApp, Value::Null) };
    let admitted = incoming.state.gateway.glance(call).await?;
    let store = Arc::clone(&incoming.state.store);
    let record = dress(&*store, &admitted, accounts.collection()?, vec![row], &params).await?.pop();
    let mut body = json!({ "record": record.ok_or_else(Refusal::not_found)?, "token": token });
    if let Some(spec) = fields {
        FieldPick::parse(&spec)?.apply(&mut body);
    }
    Ok(body)
}

//! `POST /api/files/token`: a token for `?token=`, for pages that show protected pictures.
//!
//! Of a user of the app it is PocketBase's own kind of token, which ends with the record's `tokenKey`; of a member or an
//! agent it is a row, which ends with the session or grant.

use std::sync::Arc;

use actix_web::HttpResponse;
use chrono::TimeDelta;
use inn_actors::Admitted;
use inn_grants::app_token::{self, Claims, Kind};
use inn_grants::opaque::opaque_token;
use inn_ports::{FileTokenHolder, NewFileToken, Store, StoreError, StoreResult};
use inn_protocol::Code;
use inn_protocol::Refusal;
use inn_protocol::call::Action;
use inn_protocol::caller::{AppUser, Caller};
use inn_protocol::scope::Scope;
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::incoming::Incoming;
use crate::respond;

/// PocketBase notes, section E: 180 s.
const LIFETIME: TimeDelta = TimeDelta::seconds(180);

pub(in crate::app) async fn take(incoming: Incoming) -> Result<HttpResponse, ApiError> {
    let random: [u8; 32] = rand::random();
    let given = incoming.perform(Action::TakeFileToken, random, |store, admitted, random| async move {
        let holder = match &admitted.caller {
            Caller::Person(person) => FileTokenHolder::Person(person.session),
            Caller::Agent(agent) => FileTokenHolder::Agent {
                grant: agent.grant,
                helper: agent.helper.clone(),
                // It opens files; nothing else of what the agent may do goes along.
                scopes: agent.scopes.iter().filter(|scope| matches!(scope, Scope::Read(_))).cloned().collect(),
            },
            Caller::AppUser(user) => return of_app_user(&*store, &admitted, user).await,
            _ => return Err(StoreError::from(nobody())),
        };
        let app = admitted.app().map_err(StoreError::from)?.id;
        let (opaque, digest) = opaque_token(*random, "fil");
        let kept = NewFileToken { token: digest, app, holder, expires_at: admitted.now + LIFETIME };
        store.take_file_token(&admitted.record, &kept).await?;
        Ok(opaque)
    });
    Ok(respond::ok(incoming.id, &json!({"token": given.await?})))
}

async fn of_app_user(store: &dyn Store, admitted: &Admitted, user: &AppUser) -> StoreResult<String> {
    let app = Arc::clone(admitted.app().map_err(StoreError::from)?);
    let gone = || StoreError::from(nobody());
    let collection = app.definition.model.collection(&user.collection).ok_or_else(gone)?;
    let row = store.app_user(&app, collection, &user.record).await?.ok_or_else(gone)?;
    let secret = store.app_secret(&app).await?.ok_or_else(gone)?;
    let token_key = row.get("tokenKey").and_then(Value::as_str).unwrap_or_default();
    let claims = Claims {
        collection_id: collection.id.clone(),
        exp: (admitted.now + LIFETIME).timestamp(),
        id: user.record.clone(),
        refreshable: None,
        kind: Kind::File,
        email: None,
        new_email: None,
        jti: None,
    };
    let token = app_token::mint(&claims, &secret, token_key);
    // The entry compares the record's key once more: a token made with an older one is worth nothing anyway.
    store.open_account(&admitted.record, "Took a token that opens protected files for three minutes").await?;
    Ok(token)
}

fn nobody() -> Refusal {
    Refusal::new(Code::Unauthenticated, "Nobody is signed in, so there are no files to open with a token.")
}

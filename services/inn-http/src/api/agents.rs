//! Agents: a self-made key pair registers itself. Registering is free and gives nothing.

use actix_web::HttpResponse;
use inn_grants::PublicKey;
use inn_ports::NewAgent;
use inn_protocol::call::{Action, Papers};
use inn_protocol::caller::Caller;
use inn_protocol::grant::AgentRecord;
use inn_protocol::{Code, Refusal};
use serde::Deserialize;

use super::session::person;
use super::views;
use crate::error::ApiError;
use crate::incoming::Incoming;
use crate::respond;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Register {
    public_key: String,
    name: String,
}

pub(super) async fn register(mut incoming: Incoming) -> Result<HttpResponse, ApiError> {
    incoming.rate_auth("")?;
    let body: Register = incoming.document().await?;
    let key = PublicKey::parse_base64url(&body.public_key).map_err(|refusal| incoming.fail(refusal))?;
    let name = views::name(&body.name, "name").map_err(|refusal| incoming.fail(refusal))?;
    let Papers::Signed(papers) = &mut incoming.papers else {
        let message =
            "Sign the registration with the key you register (RFC 9421, tag \"innkeeper\"): that proves it is yours.";
        return Err(incoming.refuse(Action::RegisterAgent, Refusal::new(Code::SignatureRequired, message)).await);
    };
    // The key in the body proves itself: it must have made the signature of this very call.
    papers.enrolling_key = Some(*key.as_bytes());
    let agent = NewAgent { id: key.thumbprint(), public_key: *key.as_bytes(), name };
    let record: AgentRecord = incoming
        .perform(Action::RegisterAgent, agent, |store, admitted, agent| async move {
            // Papers were judged with the body's key, and its thumbprint is the keyid that signed.
            if !matches!(&admitted.caller, Caller::Key(signer) if *signer == agent.id) {
                return Err(Refusal::new(
                    Code::InvalidSignature,
                    "The registration is signed by another key than the one in the body.",
                )
                .into());
            }
            store.register_agent(&admitted.record, &agent).await
        })
        .await?;
    Ok(respond::created(incoming.id, &record))
}

pub(super) async fn list(incoming: Incoming) -> Result<HttpResponse, ApiError> {
    let store = &incoming.state.store;
    let agents: Vec<AgentRecord> = incoming
        .read(Action::ListGrants, |admitted| async move { Ok(store.agents(person(&admitted.caller)?.tenant).await?) })
        .await?;
    Ok(respond::ok(incoming.id, &views::items(agents)))
}

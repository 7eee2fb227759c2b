//! The body of a record write, however it travelled: JSON, a form with files, a form without.

use std::sync::Arc;

use inn_protocol::call::Action;
use inn_protocol::caller::Caller;
use inn_protocol::plan::Committed;
use inn_protocol::{Code, Refusal};
use inn_rules::files::Upload;
use serde_json::Value;

use super::kept::Kept;
use super::place::{self, Target};
use super::receive;
use crate::error::ApiError;
use crate::form::{self, UnreadForm};
use crate::incoming::Incoming;

/// What was sent. Dropped, it takes along every file that no record names.
pub(in crate::app) struct RecordBody {
    pub(in crate::app) body: Value,
    /// The files of a form, which may be none; `None` for JSON.
    pub(in crate::app) form: Option<Vec<Upload>>,
    /// Bytes of the body without its files.
    pub(in crate::app) length: usize,
    kept: Option<Kept>,
}

impl RecordBody {
    pub(in crate::app) fn nothing() -> Self {
        Self { body: Value::Null, form: None, length: 0, kept: None }
    }

    /// The records were written: files they name stay.
    pub(in crate::app) fn committed(mut self, committed: &[Committed]) {
        if let Some(kept) = &mut self.kept {
            for committed in committed {
                kept.named_by(&committed.row);
            }
        }
    }

    /// The files of one request of a batch, under the names of its fields; `None` when it has none.
    pub(in crate::app) fn of_request(&self, number: usize) -> Option<Vec<Upload>> {
        let own = |upload: &Upload| {
            let (place, key) = place::of_request(&upload.key)?;
            (place == number).then(|| Upload { key: key.to_owned(), ..upload.clone() })
        };
        let own: Vec<Upload> = self.form.iter().flatten().filter_map(own).collect();
        (!own.is_empty()).then_some(own)
    }
}

/// Reads the body of a create or update. The files of a form are received only when the caller may write at all.
pub(in crate::app) async fn record_body(
    incoming: &Incoming,
    action: &Action,
    entity: &str,
) -> Result<RecordBody, ApiError> {
    if let Some(unread) = incoming.take_form() {
        return receive(incoming, unread, action, Target::Record(entity)).await;
    }
    let length = incoming.body.len();
    if is_urlencoded(incoming) {
        let read = form::urlencoded(&incoming.body).and_then(|fields| fields.body());
        let body = Value::Object(incoming.fit(read).await?);
        return Ok(RecordBody { body, form: Some(Vec::new()), length, kept: None });
    }
    // PocketBase reads nothing else, and a client that forgets to say what it sends should learn it here.
    if length > 0 && !incoming.content_type.to_ascii_lowercase().starts_with("application/json") {
        let refusal = Refusal::new(Code::InvalidBody, "Unsupported Content-Type.")
            .fix("you, by sending JSON as application/json, or a form");
        return incoming.fit(Err(refusal)).await;
    }
    Ok(RecordBody { body: incoming.json().await?, form: None, length, kept: None })
}

/// The body of a batch: JSON, or a form with its `@jsonPayload` and files that are named `requests.<number>.<field>`, in
/// whatever order (PocketBase notes, section F).
pub(in crate::app) async fn batch_body(incoming: &Incoming) -> Result<RecordBody, ApiError> {
    match incoming.take_form() {
        Some(unread) => receive(incoming, unread, &Action::Batch, Target::Batch).await,
        None => Ok(RecordBody { body: incoming.json().await?, form: None, length: incoming.body.len(), kept: None }),
    }
}

async fn receive(
    incoming: &Incoming,
    unread: UnreadForm,
    action: &Action,
    target: Target<'_>,
) -> Result<RecordBody, ApiError> {
    // Decided before the first byte is kept, and again when all of them are there.
    let call = incoming.call(action.clone(), Value::Null);
    let app = match incoming.state.gateway.glance(call).await {
        Ok(admitted) => {
            // Where strangers may write (a sign-up with a picture), they do so slowly.
            if matches!(admitted.caller, Caller::Stranger) {
                incoming.rate_auth("form")?;
            }
            admitted.app().map(Arc::clone).map_err(|refusal| incoming.fail(refusal))?
        }
        Err(refusal) => return Err(incoming.refuse(action.clone(), refusal).await),
    };
    let received = incoming.fit(receive::form(incoming, unread, &app, target).await).await?;
    incoming.set_body_digest(received.digest);
    Ok(RecordBody {
        body: received.body,
        form: Some(received.uploads),
        length: received.text_bytes,
        kept: Some(received.kept),
    })
}

fn is_urlencoded(incoming: &Incoming) -> bool {
    let essence = incoming.content_type.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/x-www-form-urlencoded")
}

//! Why a record write did not happen, in the words of the caller.

use deadpool_postgres::GenericClient;
use inn_ports::{Plan, StoreError};
use inn_protocol::model::{Collection, FieldKind};
use inn_protocol::receipt::Verb;
use inn_protocol::{Code, Refusal, Violation};
use inn_rules::values;
use serde_json::Value;
use tokio_postgres::Error;

use crate::ddl;
use crate::error::{broken, verdict, violated};
use crate::step::account;
use crate::step::guard::{self, Key, Passed};

pub(super) async fn explain<C>(client: &C, plan: &Plan, collection: &Collection, error: &Error) -> StoreError
where
    C: GenericClient + Sync,
{
    if let Some(verdict) = verdict(error) {
        return stopped(client, plan, collection, &verdict).await;
    }
    if let Some(index) = violated(error) {
        return not_unique(plan, collection, &index).into();
    }
    match error.code().map(tokio_postgres::error::SqlState::code) {
        Some(code) if is_moved(code) => {
            tracing::warn!(error = %crate::error::chain(error), "the app's tables have moved on");
            StoreError::Stale
        }
        // A file it names was removed meanwhile, or arrived too long ago.
        Some("INN03") => file_gone().into(),
        // A row or an index entry larger than a page can take.
        Some("54000") => too_long().into(),
        // A sum beyond what a double can hold.
        Some("22003") => outside(plan, collection, &plan.write.increments.keys().cloned().collect::<Vec<_>>()).into(),
        _ => classify(error),
    }
}

fn classify(error: &Error) -> StoreError {
    crate::error::classify("record write", error, StoreError::Unknown)
}

/// For statements of a record write that ran before anything was committed.
pub(crate) fn moved(context: &'static str) -> impl Fn(Error) -> StoreError {
    move |error| match error.code().map(tokio_postgres::error::SqlState::code) {
        Some(code) if is_moved(code) => StoreError::Stale,
        _ => broken(context)(error),
    }
}

/// A table, column or schema that the release had is gone: another release is active.
fn is_moved(code: &str) -> bool {
    ["42P01", "42703", "3F000", "42804"].contains(&code)
}

async fn stopped<C>(client: &C, plan: &Plan, collection: &Collection, verdict: &Value) -> StoreError
where
    C: GenericClient + Sync,
{
    if let Some(lost) = account::claim_lost(verdict) {
        return lost.into();
    }
    let flag = |name: &str| verdict.get(name).and_then(Value::as_bool).unwrap_or(false);
    let names = |name: &str| -> Vec<String> {
        let list = verdict.get(name).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let passed = Passed { free: flag("free"), live: flag("live"), fresh: flag("fresh"), ok: flag("ok") };
    match passed.check() {
        Err(error) => return error,
        Ok(Key::Used) => return guard::used(client, &plan.record).await.map_or_else(|error| error, StoreError::from),
        Ok(Key::Unused) => {}
    }
    let missing = names("missing");
    if missing.iter().any(|name| name == "id") {
        return values::taken_account_id(&plan.write.id).into();
    }
    if !missing.is_empty() {
        return invalid_refs(plan, collection, &missing).into();
    }
    if !flag("stored") && plan.write.verb == Verb::Create {
        // PocketBase answers a failed create rule with 400 and no detail.
        return Refusal::new(Code::CreateRefused, "Failed to create record.").leg("user").into();
    }
    if !flag("stored") {
        return Refusal::not_found().into();
    }
    let outside_fields = names("outside");
    if !outside_fields.is_empty() {
        return outside(plan, collection, &outside_fields).into();
    }
    not_stored(plan, &names("blank")).into()
}

fn outside(plan: &Plan, collection: &Collection, fields: &[String]) -> Refusal {
    let violation = |name: &String| {
        let expected = match collection.field(name).map(|field| &field.kind) {
            Some(FieldKind::Number { min, max, only_int }) => {
                let bound =
                    |word: &str, bound: &Option<f64>| bound.map(|bound| format!(" {word} {bound}")).unwrap_or_default();
                let kind = if *only_int { "a whole number" } else { "a number" };
                format!("a sum that is {kind}{}{}", bound("of at least", min), bound("of at most", max))
            }
            _ => "a sum that is a number".to_owned(),
        };
        let violation = Violation::new(Code::InvalidNumber, name, expected);
        match plan.write.increments.get(name) {
            Some(value) => violation.got(value),
            None => violation,
        }
    };
    Refusal {
        code: Code::InvalidNumber,
        ..Refusal::violations(
            "Adding to the number would break a rule of its field.",
            fields.iter().map(violation).collect(),
        )
    }
}

fn invalid_refs(plan: &Plan, collection: &Collection, fields: &[String]) -> Refusal {
    let violation = |name: &String| {
        let target = collection.field(name).and_then(|field| match &field.kind {
            FieldKind::Relation { collection_id, .. } => plan.app.definition.model.collection(collection_id),
            _ => None,
        });
        let target = target.map_or("a collection that is not there", |target| &target.name);
        values::missing_reference(name, target, plan.write.values.get(name).unwrap_or(&Value::Null))
    };
    Refusal::violations("A referenced record does not exist.", fields.iter().map(violation).collect())
}

fn not_stored(plan: &Plan, fields: &[String]) -> Refusal {
    let violation = |name: &String| {
        let violation = Violation::new(Code::NotStored, name, "the sent value in the stored record");
        match plan.write.values.get(name) {
            Some(value) => violation.got(value),
            None => violation,
        }
    };
    let violations = fields.iter().map(violation).collect();
    Refusal {
        code: Code::NotStored,
        ..Refusal::violations(
            "A value was accepted but did not land in the stored record, so nothing was kept.",
            violations,
        )
    }
}

fn not_unique(plan: &Plan, collection: &Collection, index: &str) -> Refusal {
    // An index we do not know is none of this release's; the refusal stands all the same.
    let fields = ddl::unique_fields(collection, index).unwrap_or_default();
    let violation = |name: &String| {
        let violation = Violation::new(Code::NotUnique, name, "a value no other record has");
        match plan.write.values.get(name) {
            Some(value) => violation.got(value),
            None => violation,
        }
    };
    Refusal {
        code: Code::NotUnique,
        ..Refusal::violations("Another record has the same value.", fields.iter().map(violation).collect())
    }
}

fn file_gone() -> Refusal {
    Refusal::new(
        Code::Conflict,
        "A file this record names is not there any more: it was removed meanwhile, or arrived too long ago. Nothing was changed; look at the record and send it again.",
    )
}

fn too_long() -> Refusal {
    Refusal::new(Code::InvalidValue, "A value is too long for an index of this collection (about 2700 bytes at most).")
}

//! A label becomes the id of the one record that has it. Several candidates are listed, never picked from.

use inn_client::AppFace;
use serde_json::Value;

use super::super::error::{CliError, CliResult};
use super::super::out::{items, text};
use super::coerce::is_id;
use super::schema;

/// Most candidates or known labels named in a refusal.
const NAMED: &str = "25";

/// The id of the record of `entity` whose label is `label`.
pub(super) async fn resolve(
    face: &AppFace,
    describe: &Value,
    field: &str,
    entity: &str,
    label: &str,
) -> CliResult<String> {
    if is_id(label) {
        return Ok(label.to_owned());
    }
    let target = schema::entity(describe, entity)?;
    let Some(name) = target.label else {
        let message = format!("{entity} has no label to look `{label}` up by: give the id for {field}.");
        return Err(CliError::local("invalid_ref", message));
    };
    let filter = filter(&name, label);
    let found = face.list(entity, &[("filter", &filter), ("perPage", NAMED)]).await?.json()?;
    match items(&found) {
        [one] => Ok(text(one, "/id")),
        [] => {
            let known = face.list(entity, &[("perPage", NAMED), ("sort", &name)]).await?.json()?;
            let known: Vec<_> = items(&known).iter().map(|one| text(one, &format!("/{name}"))).collect();
            let known = if known.is_empty() {
                "There are none yet.".to_owned()
            } else {
                format!("There are: {}.", known.join(", "))
            };
            Err(CliError::local(
                "invalid_ref",
                format!("No record of {entity} is called `{label}` (for {field}). {known}"),
            ))
        }
        several => Err(CliError::Local {
            code: "ambiguous_ref",
            message: format!("Several records of {entity} are called `{label}` (for {field}). Say which by its id:"),
            details: several.iter().map(|one| describe_one(one, &name)).collect(),
        }),
    }
}

/// `label = "value"` in the filter language; quotes and backslashes of the value cannot end it.
fn filter(name: &str, label: &str) -> String {
    format!("{name} = \"{}\"", label.replace('\\', "\\\\").replace('"', "\\\""))
}

fn describe_one(record: &Value, name: &str) -> String {
    let more: Vec<String> = record
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(key, value)| {
            !["id", "collectionId", "collectionName", "created", "updated", "expand", name].contains(&key.as_str())
                && !matches!(value, Value::Null | Value::Object(_))
                && value.as_str() != Some("")
        })
        .take(4)
        .map(|(key, value)| format!("{key} {}", text(value, "")))
        .collect();
    format!("{}  {}", text(record, "/id"), more.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_cannot_break_out_of_its_quotes() {
        assert_eq!(filter("title", r#"a" || id != ""#), r#"title = "a\" || id != \"""#);
        assert_eq!(filter("title", r#"a\" || 1=1"#), r#"title = "a\\\" || 1=1""#);
    }
}

//! Where the files of a form go.

use inn_protocol::app::AppSnapshot;
use inn_protocol::call::Action;
use inn_protocol::model::Collection;
use inn_protocol::{Code, Refusal};
use inn_rules::files;
use serde_json::Value;

use crate::incoming::Incoming;

/// What a form is for.
#[derive(Clone, Copy)]
pub(super) enum Target<'a> {
    /// One record of this entity.
    Record(&'a str),
    /// Several requests, described by the form's `@jsonPayload`.
    Batch,
}

/// A field that takes files.
#[derive(Clone)]
pub(super) struct Place {
    /// Ids of the model.
    pub(super) collection: String,
    pub(super) field: String,
    /// Bytes of one file at most.
    pub(super) most: u64,
}

impl Target<'_> {
    /// The field that a form's key is for, in a batch as one of `requests`; `None` when it takes no files, which the guard tells later.
    ///
    /// # Errors
    /// A file of a batch that is for none of its requests, or that the caller may not write.
    pub(super) async fn place(
        self,
        incoming: &Incoming,
        app: &AppSnapshot,
        requests: &Value,
        key: &str,
    ) -> Result<Option<Place>, Refusal> {
        let (number, field) = match self {
            Self::Record(entity) => {
                return Ok(app.definition.model.collection(entity).and_then(|collection| of(collection, key)));
            }
            Self::Batch => of_request(key).ok_or_else(|| stray(key))?,
        };
        let request = requests.get(number).ok_or_else(|| stray(key))?;
        let Some((entity, action)) = action(request) else { return Ok(None) };
        // Each request of a batch is decided by itself, so its files are, too.
        incoming.state.gateway.glance(incoming.call(action, Value::Null)).await?;
        Ok(app.definition.model.collection(&entity).and_then(|collection| of(collection, field)))
    }
}

/// Where a file of a batch may go that comes before anything says what it is for, as SDKs send them: to no collection yet, and
/// only when the caller may write one that has such a field. Which it is, [`Target::place`] decides once that is known.
///
/// # Errors
/// A file that is not named as those of a batch are, or that the caller may write nowhere.
pub(super) async fn not_yet(incoming: &Incoming, app: &AppSnapshot, key: &str) -> Result<Option<Place>, Refusal> {
    let (_, field) = of_request(key).ok_or_else(|| stray(key))?;
    let mut most = None;
    let mut refused = None;
    for collection in &app.definition.model.collections {
        let Some(place) = of(collection, field) else { continue };
        let (entity, id) = (collection.name.clone(), String::new());
        for action in [Action::CreateRecord { entity: entity.clone() }, Action::UpdateRecord { entity, id }] {
            match incoming.state.gateway.glance(incoming.call(action, Value::Null)).await {
                Ok(_) => most = most.max(Some(place.most)),
                Err(refusal) => refused = Some(refusal),
            }
        }
    }
    match (most, refused) {
        (Some(most), _) => Ok(Some(Place { collection: String::new(), field: String::new(), most })),
        (None, Some(refusal)) => Err(refusal),
        (None, None) => Ok(None),
    }
}

/// The request and the field's key of `requests.<number>.<key>` or `requests[<number>].<key>`.
pub(super) fn of_request(key: &str) -> Option<(usize, &str)> {
    let rest = key.strip_prefix("requests")?;
    let (number, field) = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once("].")?,
        None => rest.strip_prefix('.')?.split_once('.')?,
    };
    let digits = number.bytes().all(|b| b.is_ascii_digit());
    Some((number.parse().ok().filter(|_| digits)?, field))
}

fn of(collection: &Collection, key: &str) -> Option<Place> {
    let field = files::takes(collection, key)?;
    Some(Place { collection: collection.id.clone(), field: field.id.clone(), most: files::most_bytes(field) })
}

/// The entity a request writes and what it will do; the batch itself reads it again, with all that can be wrong with it.
fn action(request: &Value) -> Option<(String, Action)> {
    let text = |name: &str| request.get(name).and_then(Value::as_str);
    let url = text("url")?;
    let (path, _) = url.split_once('?').unwrap_or((url, ""));
    let mut parts = path.strip_prefix("/api/collections/")?.split('/');
    let (entity, records, id) = (parts.next()?.to_owned(), parts.next()?, parts.next());
    if records != "records" || parts.next().is_some() {
        return None;
    }
    let action = match (text("method")?, id) {
        ("POST" | "PUT", None) => Action::CreateRecord { entity: entity.clone() },
        ("PATCH", Some(id)) => Action::UpdateRecord { entity: entity.clone(), id: id.to_owned() },
        _ => return None,
    };
    Some((entity, action))
}

fn stray(key: &str) -> Refusal {
    let key: String = key.chars().take(100).collect();
    let message = format!("The file {key:?} belongs to no request of the batch: name it requests.<number>.<field>.");
    Refusal::new(Code::InvalidBody, message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_of_a_batch_name_request_and_field() {
        for (key, expected) in [
            ("requests.0.docs", Some((0, "docs"))),
            ("requests.12.docs+", Some((12, "docs+"))),
            ("requests[3].+docs", Some((3, "+docs"))),
            ("requests.0.a.b", Some((0, "a.b"))),
            ("requests.x.docs", None),
            ("requests.+1.docs", None),
            ("requests.99999999999999999999.docs", None),
            ("requests.0", None),
            ("docs", None),
            ("", None),
        ] {
            assert_eq!(of_request(key), expected, "{key}");
        }
    }

    #[test]
    fn only_creating_and_changing_takes_files() {
        let read = |method: &str, url: &str| action(&json!({"method": method, "url": url})).map(|(_, action)| action);
        let create = Some(Action::CreateRecord { entity: "docs".to_owned() });
        assert_eq!(read("POST", "/api/collections/docs/records?fields=id"), create);
        assert_eq!(read("PUT", "/api/collections/docs/records"), create);
        let update = Some(Action::UpdateRecord { entity: "docs".to_owned(), id: "a".to_owned() });
        assert_eq!(read("PATCH", "/api/collections/docs/records/a"), update);
        for (method, url) in [
            ("DELETE", "/api/collections/docs/records/a"),
            ("GET", "/api/collections/docs/records"),
            ("POST", "/api/collections/docs/records/a"),
            ("POST", "/api/collections/docs"),
            ("POST", "/api/collections/docs/records/a/b"),
            ("POST", "https://elsewhere/api/collections/docs/records"),
        ] {
            assert_eq!(read(method, url), None, "{method} {url}");
        }
        assert_eq!(action(&json!({"method": 1, "url": null})), None);
    }
}

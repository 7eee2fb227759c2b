//! The `expand` parameter, one level deep.

use inn_protocol::model::{Collection, FieldKind, Model};

/// Relations of one record to be filled in. Whether the caller may see the related records is not said here: ask
/// [`crate::access::decide`] for viewing the target entity and leave out what it refuses, without an error.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExpandSpec {
    /// In the order asked, without repeats.
    pub relations: Vec<Expanded>,
}

/// One relation to follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expanded {
    pub field: String,
    /// Name of the collection it points to, as the model spells it.
    pub target: String,
    /// A list of records, in the order of the stored ids, instead of one.
    pub multiple: bool,
}

impl ExpandSpec {
    /// Without relations a record gets no `expand` member at all; with any it gets one, maybe empty.
    pub fn is_empty(&self) -> bool {
        self.relations.is_empty()
    }
}

/// Reads `list,labels`. Blanks and outer dots do not count. Unknown names, fields that are not relations, hidden ones
/// (unless `see_hidden`), deeper paths and back relations are left out without error, as PocketBase does with every
/// path it cannot follow.
pub fn expand(spec: &str, collection: &Collection, model: &Model, see_hidden: bool) -> ExpandSpec {
    let mut relations: Vec<Expanded> = Vec::new();
    for path in spec.split(',') {
        let path: String = path.chars().filter(|c| !c.is_whitespace()).collect();
        let name = path.trim_matches('.');
        if relations.iter().any(|known| known.field == name) {
            continue;
        }
        let Some(field) = collection.field(name).filter(|field| see_hidden || !field.hidden) else { continue };
        let FieldKind::Relation { collection_id, .. } = &field.kind else { continue };
        let Some(target) = model.collection(collection_id) else { continue };
        relations.push(Expanded {
            field: field.name.clone(),
            target: target.name.clone(),
            multiple: field.is_multiple(),
        });
    }
    ExpandSpec { relations }
}

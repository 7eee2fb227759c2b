//! The `expand` parameter (`reference` notes on PocketBase, section B): which relations to follow, up to six levels
//! deep, along fields and back along the fields of others (`comments_via_post`).

use inn_protocol::model::{Collection, Field, FieldKind, Model};

use crate::schema::is_unique_alone;

/// Deeper parts of a path are passed over without an error.
pub const MAX_EXPAND_LEVELS: usize = 6;

/// Most records one record is given by a back relation; the oldest ones.
pub const MAX_BACK_RELATED: u32 = 1000;

/// The paths of an `expand` parameter, each as its names. Blanks and outer dots do not count, and a path that another
/// one goes on from says nothing of its own.
pub fn expand_paths(spec: &str) -> Vec<Vec<String>> {
    let mut paths: Vec<Vec<String>> = Vec::new();
    for path in spec.split(',') {
        let path = path.replace(' ', "");
        let names: Vec<String> = path.trim_matches('.').split('.').map(str::to_owned).collect();
        if names.iter().all(String::is_empty) || paths.iter().any(|known| known.starts_with(&names)) {
            continue;
        }
        paths.retain(|known| !names.starts_with(known));
        paths.push(names);
    }
    paths
}

/// One relation to follow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExpandStep<'m> {
    /// The collection that is arrived at.
    pub target: &'m Collection,
    pub link: Link<'m>,
    /// A list of records instead of one.
    pub multiple: bool,
}

/// How related records are found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Link<'m> {
    /// Their ids stand in this field of the record.
    Forward(&'m Field),
    /// The record's id stands in this field of theirs.
    Back(&'m Field),
}

/// Reads one name of a path, standing at `collection`. `None` when it is not a relation, which makes the whole path
/// fail without an error; whether the caller may see what is there is asked elsewhere. Hidden fields are followed with
/// `see_hidden` (owners of the app) only.
pub fn expand_step<'m>(
    name: &str,
    collection: &'m Collection,
    model: &'m Model,
    see_hidden: bool,
) -> Option<ExpandStep<'m>> {
    let shown = |field: &&Field| see_hidden || !field.hidden;
    if let Some((other, field)) = back_relation(name) {
        let target = model.collection(other)?;
        let field = target.field(field).filter(shown)?;
        let FieldKind::Relation { collection_id, .. } = &field.kind else { return None };
        let multiple = !is_unique_alone(target, &field.name);
        return (*collection_id == collection.id).then_some(ExpandStep { target, link: Link::Back(field), multiple });
    }
    let field = collection.field(name).filter(shown)?;
    let FieldKind::Relation { collection_id, .. } = &field.kind else { return None };
    let target = model.collection(collection_id)?;
    Some(ExpandStep { target, link: Link::Forward(field), multiple: field.is_multiple() })
}

/// `comments_via_post`, or as it was written once, `comments(post)`: collection and field.
fn back_relation(name: &str) -> Option<(&str, &str)> {
    let old = || name.strip_suffix(')')?.split_once('(');
    let (collection, field) = name.rsplit_once("_via_").or_else(old)?;
    (!collection.is_empty() && !field.is_empty()).then_some((collection, field))
}

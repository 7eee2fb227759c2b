//! `app/pb/pb_schema.json`: the data model, in PocketBase's collections export form.

use std::collections::BTreeSet;

use flate2::Crc;
use inn_protocol::model::{Collection, CollectionKind, Field, FieldKind, Model};

use super::system_fields::{complete, default_users};
use super::{auth, field, index, json_member};
use crate::bundle::Bundle;
use crate::node::Node;
use crate::problem::Problems;

pub(super) const SCHEMA: &str = "app/pb/pb_schema.json";
/// The auth collection every PocketBase app has.
pub(super) const USERS: &str = "users";
pub(super) const USERS_ID: &str = "_pb_users_auth_";
const MAX_COLLECTIONS: usize = 300;
const MAX_FIELDS: usize = 300;
/// Of a view's query, in characters.
const MAX_VIEW_QUERY: usize = 8_000;
const MAX_INDEXES: usize = 100;
/// PostgreSQL cuts longer identifiers, so two names could become one.
pub(super) const MAX_NAME_BYTES: usize = 63;
const MAX_RULE_CHARACTERS: usize = 4000;

/// The name check of collections, fields and indexes: `^\w+$`, of a length that every store keeps.
pub(super) fn is_name(text: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// PocketBase's id for something without one: CRC-32 of the text, in decimal.
pub(super) fn checksum(text: &str) -> String {
    let mut crc = Crc::new();
    crc.update(text.as_bytes());
    crc.sum().to_string()
}

/// The normalised model. `users` is in it always, as in every PocketBase app.
pub(super) fn load(bundle: &Bundle, problems: &mut Problems) -> Model {
    let value = json_member(bundle, SCHEMA, problems);
    let mut collections = Vec::new();
    if let Some(value) = &value {
        let root = Node::root(SCHEMA, value);
        let list = if value.is_array() { Some(root.clone()) } else { root.need("collections", problems) };
        let items = list.map(|list| list.items(problems)).unwrap_or_default();
        if items.len() > MAX_COLLECTIONS {
            problems.add(root.place(), format!("an app may have {MAX_COLLECTIONS} collections"));
        }
        for node in items.iter().take(MAX_COLLECTIONS) {
            collections.extend(collection(node, problems).map(|collection| (node.clone(), collection)));
        }
        check_unique(&collections, problems);
        resolve_relations(&mut collections, problems);
        check_indexes(&mut collections, problems);
    }
    let mut model = Model { collections: collections.into_iter().map(|(_, collection)| collection).collect() };
    if model.collection(USERS).is_none() && model.collection(USERS_ID).is_none() {
        model.collections.push(default_users());
    }
    model
}

fn collection(node: &Node<'_>, problems: &mut Problems) -> Option<Collection> {
    if !node.value.is_object() {
        node.problem("must be an object", problems);
        return None;
    }
    let named = node.need("name", problems)?;
    let name = named.text(problems)?;
    let system = node.get("system").is_some_and(|flag| flag.boolean(problems));
    // A full export carries PocketBase's own tables; the host has its own in their place.
    if system && name.starts_with('_') {
        return None;
    }
    if !is_name(name) || name.starts_with('_') || name.to_ascii_lowercase().contains("_via_") {
        let what = "must be 1 to 63 letters, digits or `_`, not start with `_` and not contain `_via_`";
        named.problem(what, problems);
    }
    let kind = match node.get("type").map_or(Some("base"), |kind| kind.one_of(&["base", "auth", "view"], problems))? {
        "auth" => CollectionKind::Auth,
        "view" => CollectionKind::View,
        _ => CollectionKind::Base,
    };
    if name.eq_ignore_ascii_case(USERS) && kind != CollectionKind::Auth {
        named.problem("the built-in collection `users` is an auth collection; give yours another name", problems);
    }
    if let Some(old) = node.get("schema") {
        problems.add(old.place(), "an export of PocketBase before 0.23; export again with `fields`");
        return None;
    }
    let id = node.get("id").and_then(|id| {
        let text = id.text(problems)?;
        if !is_name(text) {
            id.problem("must be 1 to 63 letters, digits or `_`", problems);
        }
        Some(text.to_owned())
    });
    let nodes = node.get("fields").map(|fields| fields.items(problems)).unwrap_or_default();
    if nodes.len() > MAX_FIELDS {
        problems.add(node.place(), format!("a collection may have {MAX_FIELDS} fields"));
    }
    let mut fields: Vec<Field> = Vec::new();
    for field_node in nodes.iter().take(MAX_FIELDS) {
        let Some(field) = field::load(field_node, problems) else { continue };
        if fields.iter().any(|other| other.name.eq_ignore_ascii_case(&field.name)) {
            field_node.problem(format!("there are two fields called `{}`", field.name), problems);
        } else if fields.iter().any(|other| other.id == field.id) {
            field_node.problem(format!("there are two fields with the id `{}`", field.id), problems);
        } else {
            fields.push(field);
        }
    }
    let indexes = node.get("indexes").map(|list| list.items(problems)).unwrap_or_default();
    if indexes.len() > MAX_INDEXES {
        problems.add(node.place(), format!("a collection may have {MAX_INDEXES} indexes"));
    }
    let default_id = || match kind {
        CollectionKind::Auth if name.eq_ignore_ascii_case(USERS) => USERS_ID.to_owned(),
        CollectionKind::Auth => format!("pbc_{}", checksum(&format!("auth{name}"))),
        CollectionKind::View => format!("pbc_{}", checksum(&format!("view{name}"))),
        CollectionKind::Base => format!("pbc_{}", checksum(&format!("base{name}"))),
    };
    let view_query = match kind {
        CollectionKind::View => Some(node.need("viewQuery", problems)?.sized(1, MAX_VIEW_QUERY, problems)?.to_owned()),
        _ => None,
    };
    let mut collection = Collection {
        view_query,
        id: id.unwrap_or_else(default_id),
        name: name.to_owned(),
        kind,
        system,
        fields,
        indexes: indexes.iter().filter_map(|index| index.text(problems)).map(str::to_owned).collect(),
        list_rule: rule(node, "listRule", problems),
        view_rule: rule(node, "viewRule", problems),
        create_rule: rule(node, "createRule", problems),
        update_rule: rule(node, "updateRule", problems),
        delete_rule: rule(node, "deleteRule", problems),
        auth: None,
    };
    // The fields of a view are those of its query: the rules infer them.
    let wrong = if kind == CollectionKind::View { Vec::new() } else { complete(&mut collection) };
    for why in wrong {
        problems.add(node.place(), why);
    }
    if kind == CollectionKind::Auth {
        collection.auth = Some(Box::new(auth::load(node, &collection, problems)));
    }
    Some(collection)
}

/// Whether the rule can be evaluated is for the rules to say; here it is a text of sane length, or none.
pub(super) fn rule(node: &Node<'_>, key: &str, problems: &mut Problems) -> Option<String> {
    node.get(key)?.sized(0, MAX_RULE_CHARACTERS, problems).map(str::to_owned)
}

fn check_unique(collections: &[(Node<'_>, Collection)], problems: &mut Problems) {
    let mut seen = BTreeSet::new();
    for (node, collection) in collections {
        if !seen.insert(collection.name.to_ascii_lowercase()) {
            problems.add(node.place(), format!("there are two collections called `{}`", collection.name));
        }
        // Ids and names share one space, since paths and relations accept either.
        if collection.id != collection.name && !seen.insert(collection.id.to_ascii_lowercase()) {
            problems.add(node.place(), format!("the id `{}` is already the id or name of another", collection.id));
        }
    }
}

/// Relations point by id; a name, as people write it, is turned into one.
fn resolve_relations(collections: &mut [(Node<'_>, Collection)], problems: &mut Problems) {
    let known: Vec<(String, String)> = collections.iter().map(|(_, c)| (c.id.clone(), c.name.clone())).collect();
    let find = |target: &str| {
        let found = known.iter().find(|(id, name)| id == target || name.eq_ignore_ascii_case(target));
        let users = || (target == USERS_ID || target.eq_ignore_ascii_case(USERS)).then(|| USERS_ID.to_owned());
        found.map(|(id, _)| id.clone()).or_else(users)
    };
    for (node, collection) in collections {
        for field in &mut collection.fields {
            let FieldKind::Relation { collection_id, .. } = &mut field.kind else { continue };
            if let Some(id) = find(collection_id) {
                *collection_id = id;
            } else {
                let what = format!("the relation `{}` points to `{collection_id}`, which is no collection", field.name);
                problems.add(node.place(), what);
            }
        }
    }
}

fn check_indexes(collections: &mut [(Node<'_>, Collection)], problems: &mut Problems) {
    let mut names = BTreeSet::new();
    for (node, collection) in collections {
        let mut kept = Vec::new();
        for statement in &collection.indexes {
            match checked(statement, collection) {
                Ok(index) => {
                    if !names.insert(index.name.to_ascii_lowercase()) {
                        problems.add(node.place(), format!("there are two indexes called `{}`", index.name));
                    }
                    kept.push(index.to_sql());
                }
                Err(why) => {
                    let shown: String = statement.chars().take(120).collect();
                    problems.add(node.place(), format!("index `{shown}`: {why}"));
                }
            }
        }
        collection.indexes = kept;
    }
}

fn checked(statement: &str, collection: &Collection) -> Result<index::Index, String> {
    let index = index::parse(statement)?;
    if !is_name(&index.name) {
        return Err("its name must have 1 to 63 characters".to_owned());
    }
    if !index.table.eq_ignore_ascii_case(&collection.name) {
        return Err(format!("is on `{}` and stands in `{}`", index.table, collection.name));
    }
    let mut seen = BTreeSet::new();
    for column in index.columns.iter().map(|column| &column.name) {
        if collection.field(column).is_none() {
            return Err(format!("there is no field `{column}`"));
        }
        if !seen.insert(column) {
            return Err(format!("the column `{column}` is listed twice"));
        }
    }
    if let Some(column) = &index.where_filled {
        let field = collection.field(column).ok_or_else(|| format!("there is no field `{column}`"))?;
        let is_text = match field.kind {
            FieldKind::Text { .. } | FieldKind::Editor { .. } | FieldKind::Email { .. } | FieldKind::Url { .. } => true,
            FieldKind::Select { .. } | FieldKind::Relation { .. } | FieldKind::File { .. } => !field.is_multiple(),
            _ => false,
        };
        if !is_text {
            return Err(format!("`{column}` is not a text, so it is never equal to ''"));
        }
    }
    Ok(index::Index { table: collection.name.clone(), ..index })
}

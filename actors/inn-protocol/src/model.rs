//! The data model of an app: collections, fields and rules, in PocketBase's collection export form.
//! Meaning and defaults: `reference` notes on PocketBase 0.39.7, sections C and D.

use serde::{Deserialize, Deserializer, Serialize};

use crate::auth_options::AuthOptions;

/// All collections of one release, in the order the app gave them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Model {
    pub collections: Vec<Collection>,
}

impl Model {
    /// By name (ignoring ASCII case) or by id, as PocketBase resolves them.
    pub fn collection(&self, name_or_id: &str) -> Option<&Collection> {
        self.collections.iter().find(|c| c.name.eq_ignore_ascii_case(name_or_id) || c.id == name_or_id)
    }
}

impl Model {
    /// Where an account may be that is named `collection/id`, or by its id alone: the auth collections to look in, in
    /// their order, and the id.
    pub fn account<'n>(&self, name: &'n str) -> (Vec<&Collection>, &'n str) {
        let named = name.split_once('/').and_then(|(collection, id)| Some((self.collection(collection)?, id)));
        match named {
            Some((collection, id)) if collection.is_auth() => (vec![collection], id),
            _ => (self.collections.iter().filter(|collection| collection.is_auth()).collect(), name),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CollectionKind {
    Base,
    Auth,
    View,
}

/// An entity. A rule of `None` lets nobody but the app's owners through, `""` everybody, anything else is a filter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Collection {
    pub id: String,
    pub name: String,
    #[serde(rename = "type")]
    pub kind: CollectionKind,
    #[serde(default)]
    pub system: bool,
    #[serde(default)]
    pub fields: Vec<Field>,
    #[serde(default, deserialize_with = "null_as_empty")]
    pub indexes: Vec<String>,
    /// Of a view: the SELECT it is made of, in words of `SQLite`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view_query: Option<String>,
    #[serde(default)]
    pub list_rule: Option<String>,
    #[serde(default)]
    pub view_rule: Option<String>,
    #[serde(default)]
    pub create_rule: Option<String>,
    #[serde(default)]
    pub update_rule: Option<String>,
    #[serde(default)]
    pub delete_rule: Option<String>,
    /// How people sign in, of an auth collection; `None` is PocketBase's defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<Box<AuthOptions>>,
}

impl Collection {
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    pub fn is_auth(&self) -> bool {
        self.kind == CollectionKind::Auth
    }

    /// How people sign in: what the app declares, or the defaults.
    pub fn auth_options(&self) -> AuthOptions {
        self.auth.as_deref().cloned().unwrap_or_default()
    }

    /// The field people identify a record by: `title`, `name` or `label`, else the first required writable text.
    pub fn label_field(&self) -> Option<&Field> {
        ["title", "name", "label"].iter().find_map(|name| self.field(name)).or_else(|| {
            self.fields.iter().find(|f| f.required && f.kind.is_text() && !f.is_read_only(self) && !f.hidden)
        })
    }
}

/// One field. `id` is the stable identity by which a rename is recognised.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Field {
    pub id: String,
    pub name: String,
    #[serde(flatten)]
    pub kind: FieldKind,
    #[serde(default)]
    pub required: bool,
    /// Never shown to, or usable by, anyone but the app's owners.
    #[serde(default)]
    pub hidden: bool,
    /// Managed by the platform (`id`, `tokenKey`, …).
    #[serde(default)]
    pub system: bool,
}

impl Field {
    /// A2App `readOnly`: system fields and autodates, except what people set on auth records.
    pub fn is_read_only(&self, collection: &Collection) -> bool {
        if collection.is_auth() && ["email", "username", "emailVisibility", "verified"].contains(&self.name.as_str()) {
            return false;
        }
        self.system && !matches!(self.kind, FieldKind::Password { .. })
            || matches!(self.kind, FieldKind::Autodate { .. })
    }

    /// A day key: a short text whose name says it is a date (A2App describe, `format: "YYYY-MM-DD"`).
    pub fn is_day_key(&self) -> bool {
        let FieldKind::Text { max, .. } = &self.kind else { return false };
        let name = self.name.to_ascii_lowercase();
        (1..=12).contains(max)
            && (["due", "day", "date"].contains(&name.as_str()) || name.ends_with("_date") || name.ends_with("_day"))
    }

    /// Holds a list rather than one value.
    pub fn is_multiple(&self) -> bool {
        match &self.kind {
            FieldKind::Select { max_select, .. }
            | FieldKind::Relation { max_select, .. }
            | FieldKind::File { max_select, .. } => *max_select > 1,
            _ => false,
        }
    }
}

/// The type of a field and the options that belong to it, with PocketBase's names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum FieldKind {
    Text {
        #[serde(default)]
        min: u32,
        /// 0 means the default of 5000 characters.
        #[serde(default)]
        max: u32,
        #[serde(default)]
        pattern: String,
        #[serde(default)]
        autogenerate_pattern: String,
        #[serde(default)]
        primary_key: bool,
    },
    Editor {
        #[serde(default)]
        max_size: u64,
    },
    Number {
        #[serde(default)]
        min: Option<f64>,
        #[serde(default)]
        max: Option<f64>,
        #[serde(default)]
        only_int: bool,
    },
    Bool {},
    Email {
        #[serde(default, deserialize_with = "null_as_empty")]
        only_domains: Vec<String>,
        #[serde(default, deserialize_with = "null_as_empty")]
        except_domains: Vec<String>,
    },
    Url {
        #[serde(default, deserialize_with = "null_as_empty")]
        only_domains: Vec<String>,
        #[serde(default, deserialize_with = "null_as_empty")]
        except_domains: Vec<String>,
    },
    Date {
        #[serde(default)]
        min: String,
        #[serde(default)]
        max: String,
    },
    Autodate {
        #[serde(default)]
        on_create: bool,
        #[serde(default)]
        on_update: bool,
    },
    Select {
        #[serde(default, deserialize_with = "null_as_empty")]
        values: Vec<String>,
        #[serde(default)]
        max_select: u32,
    },
    Relation {
        /// Id of the collection it points to.
        collection_id: String,
        #[serde(default)]
        cascade_delete: bool,
        #[serde(default)]
        min_select: u32,
        #[serde(default)]
        max_select: u32,
    },
    File {
        #[serde(default)]
        max_select: u32,
        #[serde(default)]
        max_size: u64,
        #[serde(default, deserialize_with = "null_as_empty")]
        mime_types: Vec<String>,
        #[serde(default, deserialize_with = "null_as_empty")]
        thumbs: Vec<String>,
        #[serde(default)]
        protected: bool,
    },
    Json {
        #[serde(default)]
        max_size: u64,
    },
    GeoPoint {},
    Password {
        #[serde(default)]
        min: u32,
        #[serde(default)]
        max: u32,
        #[serde(default)]
        pattern: String,
        #[serde(default)]
        cost: u32,
    },
}

/// PocketBase writes `null` for an empty list when it exports collections.
fn null_as_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl FieldKind {
    /// The protocol type `string`.
    pub fn is_text(&self) -> bool {
        matches!(self, Self::Text { .. } | Self::Editor { .. } | Self::Email { .. } | Self::Url { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_that_an_export_writes_as_null_are_empty() {
        let field: Field = serde_json::from_value(serde_json::json!({
            "id": "email1", "name": "mail", "type": "email", "onlyDomains": null, "exceptDomains": null,
        }))
        .unwrap();
        assert_eq!(field.kind, FieldKind::Email { only_domains: Vec::new(), except_domains: Vec::new() });
    }
}

//! The fields PocketBase gives every collection, and its built-in `users`.

use inn_protocol::model::{Collection, CollectionKind, Field, FieldKind};

use super::index::{self, Column, Index};
use super::model::{USERS, USERS_ID, checksum};

const ID_PATTERN: &str = "^[a-z0-9]+$";
const ID_AUTOGENERATE: &str = "[a-z0-9]{15}";
const OWN_RECORD: &str = "id = @request.auth.id";

/// Adds what is missing and settles the flags that are not the app's to choose. Gives a sentence for each field that
/// has a system field's name and is something else.
pub(super) fn complete(collection: &mut Collection) -> Vec<String> {
    let mut wrong = Vec::new();
    let fields = &mut collection.fields;
    if let Some(field) = ensure(fields, 0, &id_field(), &mut wrong) {
        field.required = true;
        field.hidden = false;
        if let FieldKind::Text { min, max, pattern, autogenerate_pattern, primary_key } = &mut field.kind {
            *primary_key = true;
            if pattern.is_empty() {
                ID_PATTERN.clone_into(pattern);
            }
            if autogenerate_pattern.is_empty() && *min == 0 && *max == 0 {
                (*min, *max) = (15, 15);
                ID_AUTOGENERATE.clone_into(autogenerate_pattern);
            }
        }
    }
    if collection.kind == CollectionKind::Auth {
        if let Some(field) = ensure(fields, 1, &password_field(), &mut wrong) {
            (field.required, field.hidden) = (true, true);
            if let FieldKind::Password { min, .. } = &mut field.kind
                && *min == 0
            {
                *min = 8;
            }
        }
        if let Some(field) = ensure(fields, 2, &token_key_field(), &mut wrong) {
            (field.required, field.hidden) = (true, true);
            field.kind = token_key_field().kind;
        }
        ensure(fields, 3, &plain("email", "email", email_kind(), true), &mut wrong);
        ensure(fields, 4, &plain("bool", "emailVisibility", FieldKind::Bool {}, false), &mut wrong);
        ensure(fields, 5, &plain("bool", "verified", FieldKind::Bool {}, false), &mut wrong);
        auth_index(collection, "tokenKey", false);
        auth_index(collection, "email", true);
    }
    wrong
}

/// The field called like `template`, made a system field; the template itself when there is none.
fn ensure<'a>(
    fields: &'a mut Vec<Field>,
    at: usize,
    template: &Field,
    wrong: &mut Vec<String>,
) -> Option<&'a mut Field> {
    let found = fields.iter().position(|field| field.name.eq_ignore_ascii_case(&template.name));
    let at = found.unwrap_or_else(|| {
        let at = at.min(fields.len());
        fields.insert(at, template.clone());
        at
    });
    let field = fields.get_mut(at)?;
    if std::mem::discriminant(&field.kind) != std::mem::discriminant(&template.kind) || field.name != template.name {
        let kind = kind_name(&template.kind);
        wrong.push(format!("the field `{}` must be spelled `{}` and be of type {kind}", field.name, template.name));
        return None;
    }
    field.system = true;
    Some(field)
}

fn kind_name(kind: &FieldKind) -> &'static str {
    match kind {
        FieldKind::Text { .. } => "text",
        FieldKind::Password { .. } => "password",
        FieldKind::Email { .. } => "email",
        _ => "bool",
    }
}

fn plain(type_name: &str, name: &str, kind: FieldKind, required: bool) -> Field {
    let id = format!("{type_name}{}", checksum(name));
    Field { id, name: name.to_owned(), kind, required, hidden: false, system: true }
}

fn id_field() -> Field {
    let kind = FieldKind::Text {
        min: 15,
        max: 15,
        pattern: ID_PATTERN.to_owned(),
        autogenerate_pattern: ID_AUTOGENERATE.to_owned(),
        primary_key: true,
    };
    plain("text", "id", kind, true)
}

fn password_field() -> Field {
    let kind = FieldKind::Password { min: 8, max: 0, pattern: String::new(), cost: 0 };
    Field { hidden: true, ..plain("password", "password", kind, true) }
}

fn token_key_field() -> Field {
    let kind = FieldKind::Text {
        min: 30,
        max: 60,
        pattern: String::new(),
        autogenerate_pattern: "[a-zA-Z0-9]{50}".to_owned(),
        primary_key: false,
    };
    Field { hidden: true, ..plain("text", "tokenKey", kind, true) }
}

fn email_kind() -> FieldKind {
    FieldKind::Email { only_domains: Vec::new(), except_domains: Vec::new() }
}

/// Auth collections always have these two unique indexes; the one on email lets any number of records have none.
fn auth_index(collection: &mut Collection, column: &str, filled_only: bool) {
    let is_it = |statement: &String| {
        index::parse(statement).is_ok_and(|index| index.unique && index.columns == [Column::plain(column)])
    };
    if !collection.indexes.iter().any(is_it) {
        let index = Index {
            name: format!("idx_{column}_{}", collection.id),
            table: collection.name.clone(),
            unique: true,
            columns: vec![Column::plain(column)],
            where_filled: filled_only.then(|| column.to_owned()),
        };
        collection.indexes.push(index.to_sql());
    }
}

/// PocketBase's built-in `users`, which exists in every app, also in those that never ask anyone to sign in.
pub(super) fn default_users() -> Collection {
    let own = |field: Field| Field { system: false, ..field };
    let name = FieldKind::Text {
        min: 0,
        max: 255,
        pattern: String::new(),
        autogenerate_pattern: String::new(),
        primary_key: false,
    };
    let images = ["image/jpeg", "image/png", "image/svg+xml", "image/gif", "image/webp"];
    let avatar = FieldKind::File {
        max_select: 1,
        max_size: 5 * 1024 * 1024,
        mime_types: images.map(str::to_owned).to_vec(),
        thumbs: Vec::new(),
        protected: false,
    };
    let autodate = |on_update| FieldKind::Autodate { on_create: true, on_update };
    let own_record = || Some(OWN_RECORD.to_owned());
    let mut users = Collection {
        view_query: None,
        id: USERS_ID.to_owned(),
        name: USERS.to_owned(),
        kind: CollectionKind::Auth,
        system: false,
        fields: vec![
            own(plain("text", "name", name, false)),
            own(plain("file", "avatar", avatar, false)),
            own(plain("autodate", "created", autodate(false), false)),
            own(plain("autodate", "updated", autodate(true), false)),
        ],
        indexes: Vec::new(),
        list_rule: own_record(),
        view_rule: own_record(),
        create_rule: Some(String::new()),
        update_rule: own_record(),
        delete_rule: own_record(),
        auth: None,
    };
    complete(&mut users);
    users
}

//! From one model to the next. Collections and fields are matched by id, so a rename is a rename and not a loss.

use inn_protocol::Refusal;
use inn_protocol::model::{Collection, CollectionKind, Field, FieldKind, Model};

use super::model::buildable;
use super::rename::{self, Rename};
use super::{IndexSpec, indexes, storage};

/// What altering a field asks of the stored rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Nothing: every stored value still fits.
    None,
    /// Nothing, but stored values may break the new options; as in PocketBase they stay until they are next written.
    Check,
    /// The column is converted between one value and a list (a list keeps its last element).
    Rewrite,
}

/// One step. `collection` is the collection's name when the step runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    DropIndex {
        collection_id: String,
        collection: String,
        index: IndexSpec,
    },
    DropCollection {
        id: String,
        name: String,
    },
    DropField {
        collection_id: String,
        collection: String,
        field: Field,
    },
    RenameCollection {
        id: String,
        from: String,
        to: String,
    },
    RenameField {
        collection_id: String,
        collection: String,
        field_id: String,
        from: String,
        to: String,
    },
    /// With all its fields; its indexes follow as steps of their own.
    CreateCollection {
        collection: Collection,
    },
    AddField {
        collection_id: String,
        collection: String,
        field: Field,
    },
    AlterField {
        collection_id: String,
        collection: String,
        from: Field,
        to: Field,
        needs: Needs,
    },
    CreateIndex {
        collection_id: String,
        collection: String,
        index: IndexSpec,
    },
    /// A view is new, reads something else, or is gone. Views hold nothing, so nothing is lost by it.
    View {
        name: String,
        gone: bool,
    },
    /// The rules changed, which is nothing to the tables.
    RulesOnly {
        collection_id: String,
        collection: String,
    },
}

impl Change {
    /// Stored values are lost for the app by it. Such a deploy needs the owner's explicit word.
    pub fn destructive(&self) -> bool {
        match self {
            Self::DropCollection { .. } | Self::DropField { .. } => true,
            Self::AlterField { from, to, needs: Needs::Rewrite, .. } => from.is_multiple() && !to.is_multiple(),
            _ => false,
        }
    }

    /// For people, before they say yes.
    pub fn sentence(&self) -> String {
        match self {
            Self::DropIndex { collection, index, .. } => format!("Drop the index {} of {collection}", index.name),
            Self::DropCollection { name, .. } => format!("Drop the collection {name} with all its records"),
            Self::DropField { collection, field, .. } => {
                format!("Drop {} of {collection} with all its values", field.name)
            }
            Self::RenameCollection { from, to, .. } => format!("Rename the collection {from} to {to}"),
            Self::RenameField { collection, from, to, .. } => format!("Rename {from} of {collection} to {to}"),
            Self::CreateCollection { collection } => format!("Add the collection {}", collection.name),
            Self::AddField { collection, field, .. } => format!("Add {} to {collection}", field.name),
            Self::AlterField { collection, to, needs, .. } => {
                let how = match (needs, to.is_multiple()) {
                    (Needs::None, _) => "",
                    (Needs::Check, _) => " (stored values are checked when they are next written)",
                    (Needs::Rewrite, true) => " to hold a list",
                    (Needs::Rewrite, false) => " to hold one value (of a list the last is kept)",
                };
                format!("Change {} of {collection}{how}", to.name)
            }
            Self::CreateIndex { collection, index, .. } if index.unique => {
                let columns: Vec<_> = index.columns.iter().map(|column| column.name.as_str()).collect();
                format!("Make {} unique in {collection}", columns.join(" with "))
            }
            Self::CreateIndex { collection, index, .. } => format!("Add the index {} to {collection}", index.name),
            Self::View { name, gone: false } => format!("Make the view {name}"),
            Self::View { name, gone: true } => format!("Drop the view {name}"),
            Self::RulesOnly { collection, .. } => format!("Change the rules of {collection}"),
        }
    }
}

/// The steps from `old` (`None`: an empty schema) to `new`, in an order that is safe to run one after the other:
/// indexes go first and come last, drops free names before renames and additions need them.
///
/// # Errors
/// `invalid_bundle` when the new model cannot be built, see [`check_model`](super::check_model).
pub fn diff(old: Option<&Model>, new: &Model) -> Result<Vec<Change>, Refusal> {
    let empty = Model::default();
    let old = old.unwrap_or(&empty);
    let new_indexes = buildable(new)?;
    let mut steps = Steps::default();
    steps.views(old, new);
    let (old, new) = (&tables(old), &tables(new));
    let survivor = |before: &Collection| new.collections.iter().find(|c| c.id == before.id && c.kind == before.kind);
    for before in &old.collections {
        match survivor(before) {
            Some(after) => steps.compare(before, after),
            None => steps.drop.push(Change::DropCollection { id: before.id.clone(), name: before.name.clone() }),
        }
    }
    for (after, wanted) in new.collections.iter().zip(new_indexes) {
        let before = old.collections.iter().find(|c| c.id == after.id && c.kind == after.kind);
        if before.is_none() {
            steps.create.push(Change::CreateCollection { collection: after.clone() });
        }
        steps.indexes(before, after, wanted);
    }
    let renames = old.collections.iter().filter_map(|before| {
        let after = survivor(before).filter(|after| after.name != before.name)?;
        Some(Rename { id: after.id.clone(), from: before.name.clone(), to: after.name.clone() })
    });
    let renames = rename::ordered(renames.collect()).into_iter();
    steps.rename.extend(renames.map(|Rename { id, from, to }| Change::RenameCollection { id, from, to }));
    Ok(steps.in_order())
}

fn is_view(collection: &Collection) -> bool {
    collection.kind == CollectionKind::View
}

fn tables(model: &Model) -> Model {
    Model { collections: model.collections.iter().filter(|collection| !is_view(collection)).cloned().collect() }
}

/// Steps by phase.
#[derive(Default)]
struct Steps {
    drop_index: Vec<Change>,
    /// Collections and fields, under their old names.
    drop: Vec<Change>,
    rename: Vec<Change>,
    rename_field: Vec<Change>,
    create: Vec<Change>,
    alter: Vec<Change>,
    create_index: Vec<Change>,
    views: Vec<Change>,
    rules: Vec<Change>,
}

impl Steps {
    fn in_order(self) -> Vec<Change> {
        let phases = [
            self.drop_index,
            self.drop,
            self.rename,
            self.rename_field,
            self.create,
            self.alter,
            self.create_index,
            self.views,
            self.rules,
        ];
        phases.into_iter().flatten().collect()
    }

    fn views(&mut self, old: &Model, new: &Model) {
        for before in old.collections.iter().filter(|before| is_view(before)) {
            if !new.collections.iter().any(|after| is_view(after) && after.id == before.id && after.name == before.name)
            {
                self.views.push(Change::View { name: before.name.clone(), gone: true });
            }
        }
        for after in new.collections.iter().filter(|after| is_view(after)) {
            let before = old.collections.iter().find(|before| is_view(before) && before.id == after.id);
            let same = |before: &&Collection| {
                before.name == after.name && before.view_query == after.view_query && before.fields == after.fields
            };
            match before.filter(same) {
                None => self.views.push(Change::View { name: after.name.clone(), gone: false }),
                Some(before) if rules(before) != rules(after) => self
                    .rules
                    .push(Change::RulesOnly { collection_id: after.id.clone(), collection: after.name.clone() }),
                Some(_) => {}
            }
        }
    }

    /// Fields and rules of a collection that stays.
    fn compare(&mut self, before: &Collection, after: &Collection) {
        let collection_id = || after.id.clone();
        let mut renames = Vec::new();
        for field in &before.fields {
            match kept(field, after) {
                Some(to) => {
                    if to.name != field.name {
                        renames.push(Rename { id: to.id.clone(), from: field.name.clone(), to: to.name.clone() });
                    }
                    let before = Field { name: to.name.clone(), ..field.clone() };
                    if before != *to {
                        self.alter.push(Change::AlterField {
                            collection_id: collection_id(),
                            collection: after.name.clone(),
                            needs: needs(field, to),
                            from: before,
                            to: to.clone(),
                        });
                    }
                }
                None => self.drop.push(Change::DropField {
                    collection_id: collection_id(),
                    collection: before.name.clone(),
                    field: field.clone(),
                }),
            }
        }
        let renames = rename::ordered(renames).into_iter();
        self.rename_field.extend(renames.map(|Rename { id: field_id, from, to }| Change::RenameField {
            collection_id: collection_id(),
            collection: after.name.clone(),
            field_id,
            from,
            to,
        }));
        for field in &after.fields {
            if !before.fields.iter().any(|old| old.id == field.id && same_column(old, field)) {
                self.alter.push(Change::AddField {
                    collection_id: collection_id(),
                    collection: after.name.clone(),
                    field: field.clone(),
                });
            }
        }
        if rules(before) != rules(after) {
            self.rules.push(Change::RulesOnly { collection_id: collection_id(), collection: after.name.clone() });
        }
    }

    /// Indexes are compared by name and contents, with renamed columns counted as the same.
    fn indexes(&mut self, before: Option<&Collection>, after: &Collection, wanted: Vec<IndexSpec>) {
        // Readable: this model was deployed once.
        let stored = before.and_then(|before| indexes(before).ok()).unwrap_or_default();
        let now = |name: &String| before.and_then(|before| before.field(name)).and_then(|field| kept(field, after));
        let renamed = |name: &String| now(name).map_or_else(|| name.clone(), |field| field.name.clone());
        let as_now = |index: &IndexSpec| {
            let mut index = index.clone();
            for column in &mut index.columns {
                column.name = renamed(&column.name);
            }
            index.where_not_empty = index.where_not_empty.as_ref().map(renamed);
            index
        };
        // A column that goes or is converted takes its indexes along.
        let stands = |name: &String| {
            let old = before.and_then(|before| before.field(name));
            old.map_or(name == "id", |old| now(name).is_some_and(|to| storage(old) == storage(to)))
        };
        let keeps = |index: &IndexSpec| {
            index.columns.iter().map(|column| &column.name).chain(&index.where_not_empty).all(stands)
        };
        let kept: Vec<_> = stored.iter().filter(|index| keeps(index)).map(as_now).collect();
        for index in &stored {
            if !keeps(index) || !wanted.contains(&as_now(index)) {
                self.drop_index.push(Change::DropIndex {
                    collection_id: after.id.clone(),
                    collection: before.map_or_else(String::new, |before| before.name.clone()),
                    index: index.clone(),
                });
            }
        }
        for index in wanted {
            if !kept.contains(&index) {
                let (collection_id, collection) = (after.id.clone(), after.name.clone());
                self.create_index.push(Change::CreateIndex { collection_id, collection, index });
            }
        }
    }
}

/// The field a stored one lives on as, if any.
fn kept<'a>(field: &Field, after: &'a Collection) -> Option<&'a Field> {
    after.fields.iter().find(|to| to.id == field.id && same_column(field, to))
}

/// Can the column be kept? Otherwise the field is dropped and added anew, which is destructive: a hash is no text, the
/// ids of another collection's records mean nothing, and files live outside the row.
fn same_column(from: &Field, to: &Field) -> bool {
    let text = |field: &Field| match field.kind {
        FieldKind::Select { .. } => !field.is_multiple(),
        _ => field.kind.is_text(),
    };
    let date = |field: &Field| matches!(field.kind, FieldKind::Date { .. } | FieldKind::Autodate { .. });
    match (&from.kind, &to.kind) {
        (FieldKind::Relation { collection_id: from, .. }, FieldKind::Relation { collection_id: to, .. }) => from == to,
        (old, new) if std::mem::discriminant(old) == std::mem::discriminant(new) => true,
        _ => text(from) && text(to) || date(from) && date(to),
    }
}

fn needs(from: &Field, to: &Field) -> Needs {
    if storage(from) != storage(to) {
        return Needs::Rewrite;
    }
    // Flags that stored values know nothing of.
    let same_values = Field { hidden: to.hidden, system: to.system, ..from.clone() };
    let looser = Field { required: to.required, name: to.name.clone(), ..same_values };
    let relaxed = looser.kind == to.kind && (from.required || !to.required);
    if relaxed { Needs::None } else { Needs::Check }
}

fn rules(collection: &Collection) -> [&Option<String>; 5] {
    [
        &collection.list_rule,
        &collection.view_rule,
        &collection.create_rule,
        &collection.update_rule,
        &collection.delete_rule,
    ]
}

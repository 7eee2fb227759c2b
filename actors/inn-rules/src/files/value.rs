//! What a file field holds after a body and its uploads.

use inn_protocol::model::{Collection, Field, FieldKind};
use serde_json::{Map, Value, json};

use super::{Upload, most_bytes, most_files, sniff};
use crate::guard::Mode;
use crate::values::problem::{self, FieldProblem};
use crate::values::{Modifier, list, modifier, stored_list};

/// Everything that is asked of one file field.
pub(crate) struct Change<'a> {
    /// The value under the field's own name.
    pub(crate) sent: Option<&'a Value>,
    pub(crate) modified: Vec<(Modifier, &'a Value)>,
    /// All uploads of the form; those of other fields are passed over.
    pub(crate) uploads: &'a [Upload],
    /// What the row holds; `None` when nobody has read it, and on create, when there is none.
    pub(crate) stored: Option<&'a Value>,
    pub(crate) mode: Mode,
}

/// The file field a form's key is for, and how it changes it; `None` when files cannot go there.
pub fn takes<'c>(collection: &'c Collection, key: &str) -> Option<&'c Field> {
    placed(collection, key).map(|(field, _)| field)
}

fn placed<'c>(collection: &'c Collection, key: &str) -> Option<(&'c Field, Option<Modifier>)> {
    let (field, modifier) = match collection.field(key) {
        Some(field) => (field, None),
        None => modifier(collection, key).map(|(field, modifier)| (field, Some(modifier)))?,
    };
    let takes = matches!(field.kind, FieldKind::File { .. }) && modifier != Some(Modifier::Remove);
    takes.then_some((field, modifier))
}

/// Files for what is no file field. PocketBase drops them without a word.
pub(crate) fn misplaced(collection: &Collection, uploads: &[Upload]) -> Vec<FieldProblem> {
    let mut problems: Vec<FieldProblem> = Vec::new();
    for upload in uploads.iter().filter(|upload| takes(collection, &upload.key).is_none()) {
        if !problems.iter().any(|problem| problem.field == upload.key) {
            problems.push(FieldProblem::new(&upload.key, &problem::FILE_HERE));
        }
    }
    problems
}

/// Whether an update must know the stored names before it can say what a file field holds.
pub fn needs_row(collection: &Collection, body: &Map<String, Value>, uploads: &[Upload]) -> bool {
    let is_file = |field: &Field| matches!(field.kind, FieldKind::File { .. });
    let named = body.iter().any(|(key, value)| {
        collection.field(key).is_some_and(|field| is_file(field) && !list(value).is_empty())
            || modifier(collection, key).is_some_and(|(field, _)| is_file(field))
    });
    named
        || uploads.iter().any(|upload| placed(collection, &upload.key).is_some_and(|(_, modifier)| modifier.is_some()))
}

/// The names the field holds afterwards; `None` leaves it as it is.
pub(crate) fn names(field: &Field, change: &Change<'_>) -> Result<Option<Value>, FieldProblem> {
    let stored = stored_list(change.stored.unwrap_or(&Value::Null));
    let new: Vec<&Upload> = uploads_under(change, &field.name);
    let (append, prepend) = (format!("{}+", field.name), format!("+{}", field.name));
    let (appended, prepended) = (uploads_under(change, &append), uploads_under(change, &prepend));
    let touched = change.sent.is_some()
        || !change.modified.is_empty()
        || !(new.is_empty() && appended.is_empty() && prepended.is_empty());
    if !touched && change.mode == Mode::Update {
        return Ok(None);
    }
    let start = match change.sent {
        // An object is nothing, as in every other list (PocketBase).
        Some(sent) => list(sent),
        None if new.is_empty() => stored.clone(),
        None => Vec::new(),
    };
    let mut files: Vec<Item<'_>> = start.into_iter().map(Item::Name).chain(new.into_iter().map(Item::New)).collect();
    let operands = |wanted: Modifier| {
        let named = change.modified.iter().filter(move |(modifier, _)| *modifier == wanted);
        named.flat_map(|(_, operand)| list(operand)).collect::<Vec<_>>()
    };
    let removed = operands(Modifier::Remove);
    files.retain(|file| !matches!(file, Item::Name(name) if removed.contains(name)));
    let front: Vec<Item<'_>> = operands(Modifier::Prepend).into_iter().map(Item::Name).collect();
    files.retain(|file| !front.contains(file));
    files.splice(0..0, front.into_iter().chain(prepended.into_iter().map(Item::New)));
    for name in operands(Modifier::Append) {
        let file = Item::Name(name);
        if !files.contains(&file) {
            files.push(file);
        }
    }
    files.extend(appended.into_iter().map(Item::New));
    if !field.is_multiple() {
        let last = files.pop();
        files = last.into_iter().collect();
    }
    check(field, &files, &stored, change)?;
    let mut names: Vec<String> = files.iter().map(|file| file.name().to_owned()).collect();
    Ok(Some(if field.is_multiple() { json!(names) } else { json!(names.pop().unwrap_or_default()) }))
}

/// One file of the outcome.
#[derive(PartialEq)]
enum Item<'a> {
    Name(String),
    New(&'a Upload),
}

impl Item<'_> {
    fn name(&self) -> &str {
        match self {
            Self::Name(name) => name,
            Self::New(upload) => &upload.name,
        }
    }
}

fn uploads_under<'a>(change: &Change<'a>, key: &str) -> Vec<&'a Upload> {
    change.uploads.iter().filter(|upload| upload.key == key).collect()
}

fn check(field: &Field, files: &[Item<'_>], stored: &[String], change: &Change<'_>) -> Result<(), FieldProblem> {
    let told: Vec<&str> = files.iter().map(Item::name).collect();
    if files.is_empty() {
        let unset = FieldProblem::new(&field.name, &problem::REQUIRED).got(change.sent.unwrap_or(&Value::Null));
        return if field.required { Err(unset) } else { Ok(()) };
    }
    let unknown = files.iter().filter_map(|file| match file {
        Item::Name(name) if !stored.contains(name) => Some(name.chars().take(250).collect::<String>()),
        _ => None,
    });
    let unknown: Vec<String> = unknown.collect();
    if !unknown.is_empty() {
        let text = unknown.join(" ");
        return Err(FieldProblem::with(&field.name, &problem::UNKNOWN_FILES, &text).got(&json!(unknown)));
    }
    let most = most_files(field);
    if u64::try_from(files.len()).unwrap_or(u64::MAX) > most {
        return Err(FieldProblem::with(&field.name, &problem::TOO_MANY_FILES, &most).got(&json!(told)));
    }
    for file in files {
        if let Item::New(upload) = file {
            check_upload(field, upload)?;
        }
    }
    Ok(())
}

fn check_upload(field: &Field, upload: &Upload) -> Result<(), FieldProblem> {
    let got = json!(upload.sent_as);
    let most = most_bytes(field);
    if upload.size > most {
        let text = format!("{}{}{most}", upload.sent_as, problem::FILE_SIZE_WORDS);
        return Err(FieldProblem::with(&field.name, &problem::FILE_SIZE, &text).got(&got));
    }
    let FieldKind::File { mime_types, .. } = &field.kind else { return Ok(()) };
    if !mime_types.is_empty() && !mime_types.iter().any(|wanted| sniff::is(&upload.media_type, wanted)) {
        let text = format!("{:?} mime type must be one of: {}", upload.name, mime_types.join(", "));
        return Err(FieldProblem::with(&field.name, &problem::FILE_TYPE, &text).got(&got));
    }
    Ok(())
}

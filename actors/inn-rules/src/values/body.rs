//! One body, field by field.

use inn_protocol::model::{Collection, Field, FieldKind, Model};
use serde_json::{Map, Value};

use super::modifiers::{self, Modifier};
use super::problem::{self, FieldProblem, Problems};
use super::{Generate, Normalised, NumberChange, Reference, auth, check, coerce, number_value};
use crate::files::{self, Upload};
use crate::guard::Mode;

pub(super) fn normalise(
    collection: &Collection,
    model: &Model,
    body: &Map<String, Value>,
    uploads: &[Upload],
    mode: Mode,
    current: Option<&Map<String, Value>>,
) -> Result<Normalised, Problems> {
    let mut work = Work {
        model,
        body,
        uploads,
        mode,
        current,
        changes: changes(collection, body),
        out: Normalised::default(),
        problems: files::misplaced(collection, uploads),
    };
    for field in &collection.fields {
        let own_key = matches!(field.kind, FieldKind::Text { primary_key: true, .. }) || field.name == "id";
        match &field.kind {
            _ if own_key => work.id(field),
            _ if collection.is_auth() && field.name == "tokenKey" => {}
            FieldKind::Autodate { .. } => {}
            FieldKind::Password { .. } => {
                let found = auth::secret(collection, field, body, mode, &mut work.out);
                work.problems.extend(found);
            }
            FieldKind::File { .. } => work.file(field),
            _ => work.value(field),
        }
    }
    if work.problems.is_empty() { Ok(work.out) } else { Err(Problems(work.problems)) }
}

/// A modifier key of the body: field name, what it does, with which value.
type ListedChange<'a> = (&'a str, Modifier, &'a Value);

/// Looked up once per body: most bodies have none.
fn changes<'a>(collection: &'a Collection, body: &'a Map<String, Value>) -> Vec<ListedChange<'a>> {
    let listed = body.iter().filter_map(|(key, value)| {
        modifiers::modifier(collection, key).map(|(field, modifier)| (field.name.as_str(), modifier, value))
    });
    listed.collect()
}

struct Work<'a> {
    model: &'a Model,
    body: &'a Map<String, Value>,
    uploads: &'a [Upload],
    mode: Mode,
    current: Option<&'a Map<String, Value>>,
    changes: Vec<ListedChange<'a>>,
    out: Normalised,
    problems: Vec<FieldProblem>,
}

impl Work<'_> {
    fn id(&mut self, field: &Field) {
        let Some(sent) = self.body.get(&field.name) else { return };
        let id = coerce::text(sent);
        match (self.mode, self.current.and_then(|row| row.get(&field.name))) {
            (Mode::Create, _) if id.is_empty() => {}
            (Mode::Create, _) => match id_problem(field, &id) {
                Some(problem) => self.problems.push(problem),
                None => self.out.id = Some(id),
            },
            (Mode::Update, Some(stored)) => {
                if stored.as_str() != Some(&id) {
                    self.problems.push(FieldProblem::new(&field.name, &problem::KEY_CHANGE).got(sent));
                }
            }
            (Mode::Update, None) => self.out.id = Some(id),
        }
    }

    fn file(&mut self, field: &Field) {
        let changes = self.changes.iter().filter(|(name, ..)| *name == field.name);
        let change = files::Change {
            sent: self.body.get(&field.name),
            modified: changes.map(|(_, modifier, operand)| (*modifier, *operand)).collect(),
            uploads: self.uploads,
            stored: self.current.and_then(|row| row.get(&field.name)),
            mode: self.mode,
        };
        match files::names(field, &change) {
            Ok(Some(value)) => drop(self.out.values.insert(field.name.clone(), value)),
            Ok(None) => {}
            Err(problem) => self.problems.push(problem),
        }
    }

    fn value(&mut self, field: &Field) {
        let changes: Vec<_> = self.changes.iter().filter(|(name, ..)| *name == field.name).copied().collect();
        let sent = match self.body.get(&field.name).map(|value| (value, coerce::coerce(field, value))) {
            None => None,
            Some((_, Ok(value))) => Some(value),
            Some((value, Err(rule))) => return self.problems.push(FieldProblem::new(&field.name, rule).got(value)),
        };
        if sent.is_none() && changes.is_empty() {
            if self.mode == Mode::Create && !self.make_up(field, "") {
                self.keep(field, coerce::zero(field));
            }
            return;
        }
        let told = sent.is_some();
        let stored = self.current.and_then(|row| row.get(&field.name)).cloned();
        let start = sent.or(stored).or_else(|| (self.mode == Mode::Create).then(|| coerce::zero(field)));
        if matches!(field.kind, FieldKind::Number { .. }) {
            return self.number(field, start, told, &changes);
        }
        if let Some((.., prefix)) = changes.iter().find(|(_, modifier, _)| *modifier == Modifier::Autogenerate) {
            self.make_up(field, &coerce::text(prefix));
            return;
        }
        let Some(mut value) = start else {
            // Only a list modifier on a row nobody has read comes here.
            return self.problems.push(FieldProblem::new(&field.name, &problem::NEEDS_ROW));
        };
        for (_, modifier, operand) in &changes {
            value = modifiers::change_list(field, &value, *modifier, operand);
        }
        if self.mode == Mode::Create && value.as_str() == Some("") && self.make_up(field, "") {
            return;
        }
        self.keep(field, value);
    }

    fn number(&mut self, field: &Field, start: Option<Value>, told: bool, changes: &[ListedChange<'_>]) {
        let mut delta = 0.0;
        for (_, modifier, operand) in changes {
            match coerce::number(operand) {
                Ok(operand) => delta += if *modifier == Modifier::Remove { -operand } else { operand },
                Err(rule) => return self.problems.push(FieldProblem::new(&field.name, rule).got(operand)),
            }
        }
        // Relative to what is stored: the store can do it atomically. Relative to what was sent: it is a plain value.
        if !told && self.mode == Mode::Update && !changes.is_empty() {
            self.out.modifiers.push(NumberChange { field: field.name.clone(), delta });
        }
        let Some(start) = start.and_then(|start| start.as_f64()) else { return };
        let sum = start + delta;
        if sum.is_finite() {
            self.keep(field, number_value(sum));
        } else {
            self.problems.push(FieldProblem::new(&field.name, &problem::NOT_A_NUMBER));
        }
    }

    /// Leaves an empty text to the generator, when the field has one.
    fn make_up(&mut self, field: &Field, prefix: &str) -> bool {
        let FieldKind::Text { autogenerate_pattern, .. } = &field.kind else { return false };
        if autogenerate_pattern.is_empty() {
            return false;
        }
        let (field, prefix, pattern) = (field.name.clone(), prefix.to_owned(), autogenerate_pattern.clone());
        self.out.generate.push(Generate { field, prefix, pattern });
        true
    }

    fn keep(&mut self, field: &Field, value: Value) {
        if let Some(problem) = check::check(field, &value) {
            return self.problems.push(problem);
        }
        if let FieldKind::Relation { collection_id, .. } = &field.kind {
            self.refer(field, collection_id, &value);
        }
        self.out.values.insert(field.name.clone(), value);
    }

    /// Ids that are already stored were checked when they came.
    fn refer(&mut self, field: &Field, target: &str, value: &Value) {
        let stored = self.current.and_then(|row| row.get(&field.name)).map(coerce::stored_list).unwrap_or_default();
        let ids: Vec<_> = coerce::stored_list(value).into_iter().filter(|id| !stored.contains(id)).collect();
        if ids.is_empty() {
            return;
        }
        match self.model.collections.iter().find(|collection| collection.id == target) {
            Some(collection) => {
                let (field, collection) = (field.name.clone(), collection.name.clone());
                self.out.references.push(Reference { field, collection, ids });
            }
            None => self.problems.push(FieldProblem::new(&field.name, &problem::NO_SUCH_COLLECTION).got(value)),
        }
    }
}

/// Ids stand in paths, file names and the register, whatever the app's pattern lets through.
fn unfit(field: &Field, id: &str) -> Option<FieldProblem> {
    // The first of them that is there is told.
    const FORBIDDEN: &str = "./\\|\"'`<>:?*%$\0\t\n\r ";
    // No file is called so on some systems.
    const RESERVED: [&str; 22] = [
        "CON", "PRN", "AUX", "NUL", "COM1", "COM2", "COM3", "COM4", "COM5", "COM6", "COM7", "COM8", "COM9", "LPT1",
        "LPT2", "LPT3", "LPT4", "LPT5", "LPT6", "LPT7", "LPT8", "LPT9",
    ];
    let got = |problem: FieldProblem| Some(problem.got(&Value::from(id)));
    if let Some(sign) = FORBIDDEN.chars().find(|sign| id.contains(*sign)) {
        return got(FieldProblem::with(&field.name, &problem::ID_CHARACTER, &sign));
    }
    if let Some(reserved) = RESERVED.iter().find(|reserved| id.eq_ignore_ascii_case(reserved)) {
        return got(FieldProblem::with(&field.name, &problem::RESERVED_ID, reserved));
    }
    let odd = id.chars().any(|sign| sign.is_control() || sign.is_whitespace() || matches!(sign, '#' | '&'));
    if odd { got(FieldProblem::new(&field.name, &problem::FORMAT)) } else { None }
}

/// An id of the caller's choice: 15 characters of `[a-z0-9]` unless the app's own `id` field says otherwise.
fn id_problem(field: &Field, id: &str) -> Option<FieldProblem> {
    const LENGTH: u32 = 15;
    const LONGEST: u32 = 100;
    let (min, max, pattern) = match &field.kind {
        FieldKind::Text { min, max, pattern, .. } if !pattern.is_empty() => {
            (*min, if *max == 0 { LONGEST } else { (*max).min(LONGEST) }, pattern.as_str())
        }
        FieldKind::Text { min, max, .. } if *min > 0 || *max > 0 => {
            (*min, if *max == 0 { LONGEST } else { (*max).min(LONGEST) }, "^[a-z0-9]+$")
        }
        _ => (LENGTH, LENGTH, "^[a-z0-9]+$"),
    };
    check::text_problem(field, id, min, max, pattern).or_else(|| unfit(field, id))
}

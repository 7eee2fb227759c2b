//! The fields of a view, as PocketBase infers them from the text of each column (`reference` notes, section D).

use std::collections::HashSet;

use inn_protocol::model::{Collection, CollectionKind, Field, FieldKind, Model};
use inn_protocol::{Code, Digest, Refusal, Violation};

use super::parse;
use super::tree::{Column, Expr, Query, Select, Source, Tested, What};

/// Gives every view of a model the fields its query has. What the app declares for a field of the same name counts for
/// its id and for `hidden`.
///
/// # Errors
/// `invalid_bundle` for every view that cannot be built, saying why.
pub fn infer(model: &mut Model) -> Result<(), Refusal> {
    let mut violations = Vec::new();
    for at in 0..model.collections.len() {
        // Views see the collections before them, and every table.
        let found = model.collections.get(at).filter(|view| view.kind == CollectionKind::View).map(|view| {
            let earlier = model.collections.iter().take(at);
            let tables = model.collections.iter().skip(at).filter(|other| other.kind != CollectionKind::View);
            fields(view, &earlier.chain(tables).collect::<Vec<_>>())
        });
        match (found, model.collections.get_mut(at)) {
            (Some(Ok(fields)), Some(view)) => view.fields = fields,
            (Some(Err(why)), Some(view)) => {
                violations.push(Violation::new(Code::InvalidBundle, format!("{}.viewQuery", view.name), why));
            }
            _ => {}
        }
    }
    let Some(first) = violations.first() else { return Ok(()) };
    let message =
        format!("A view cannot be built: {}: {}.", first.field, first.expected.as_deref().unwrap_or_default());
    Err(Refusal::violations(message, violations))
}

fn fields(view: &Collection, known: &[&Collection]) -> Result<Vec<Field>, String> {
    let query = parse(view.view_query.as_deref().unwrap_or_default())?;
    check(&query, known)?;
    let mut seen = HashSet::new();
    for column in &query.first.columns {
        let name = &column.name;
        if !is_name(name) && *name == column.text {
            return Err(format!("`{name}` needs a name: write `{name} AS name`"));
        }
        if !is_name(name) {
            return Err(format!("`{name}` cannot be the name of a field"));
        }
        if !seen.insert(name.to_ascii_lowercase()) {
            return Err(format!("there are two columns called `{name}`"));
        }
    }
    if !query.first.columns.iter().any(|column| column.name == "id") {
        return Err("the column `id` is missing (`(ROW_NUMBER() OVER()) AS id` makes one)".to_owned());
    }
    let made = |column: &Column| {
        let (kind, source) = inferred(column, &query, known);
        let declared = view.field(&column.name);
        let id = declared.map_or_else(|| made_id(&view.name, &column.name), |field| field.id.clone());
        let hidden = declared.is_some_and(|field| field.hidden) || source.is_some_and(|field| field.hidden);
        let own_key = column.name == "id";
        Field { id, name: column.name.clone(), kind, required: own_key, hidden: hidden && !own_key, system: own_key }
    };
    Ok(query.first.columns.iter().map(made).collect())
}

/// The same for the same view and column, whenever it is made.
fn made_id(view: &str, column: &str) -> String {
    let digest = Digest::of(format!("{view}.{column}").as_bytes()).to_string();
    format!("view_{}", digest.get(..12).unwrap_or(&digest))
}

fn inferred<'m>(column: &Column, query: &Query, known: &[&'m Collection]) -> (FieldKind, Option<&'m Field>) {
    let json = (FieldKind::Json { max_size: 1 }, None);
    let text = FieldKind::Text {
        min: 0,
        max: 0,
        pattern: String::new(),
        autogenerate_pattern: String::new(),
        primary_key: false,
    };
    if column.name == "id" {
        let pattern = "^[a-z0-9]+$".to_owned();
        let kind = FieldKind::Text { min: 0, max: 0, pattern, autogenerate_pattern: String::new(), primary_key: true };
        return (kind, None);
    }
    // What stands in parentheses is an expression for PocketBase, whatever it is.
    if column.text.starts_with('(') {
        return json;
    }
    let number = |only_int| (FieldKind::Number { min: None, max: None, only_int }, None);
    match &column.value {
        Expr::Call(call) if call.name == "count" => number(true),
        Expr::Call(call) if call.name == "total" => number(false),
        Expr::Cast(_, kind) => match kind.as_str() {
            "integer" | "int" => number(true),
            "real" | "decimal" | "numeric" => number(false),
            "text" => (text, None),
            "boolean" | "bool" => (FieldKind::Bool {}, None),
            _ => json,
        },
        // Of several selects put together no column is one collection's.
        Expr::Column { .. } if !query.more.is_empty() => json,
        Expr::Column { source, name } => {
            let Some((collection, field)) = plain(&query.first, source.as_deref(), name, known) else { return json };
            if field.name == "id" && collection.kind != CollectionKind::View {
                let collection_id = collection.id.clone();
                return (
                    FieldKind::Relation { collection_id, cascade_delete: false, min_select: 0, max_select: 1 },
                    None,
                );
            }
            (field.kind.clone(), Some(field))
        }
        _ => json,
    }
}

/// Is a column of this view a value that is computed, and in no column of a table? `SQLite` then compares it as what it is
/// (section A.11).
pub(crate) fn is_computed(view: &Collection, name: &str, model: &Model) -> bool {
    if view.kind != CollectionKind::View {
        return false;
    }
    let Ok(query) = parse(view.view_query.as_deref().unwrap_or_default()) else { return false };
    let Some(column) = query.first.columns.iter().find(|column| column.name == name) else { return false };
    match &column.value {
        Expr::Column { source, name } => {
            // A view sees those before it only, so this comes to an end.
            let earlier = model.collections.iter().take_while(|other| other.id != view.id);
            let tables = model.collections.iter().filter(|other| other.kind != CollectionKind::View);
            let known: Vec<&Collection> = earlier.chain(tables).collect();
            plain(&query.first, source.as_deref(), name, &known)
                .is_some_and(|(collection, field)| is_computed(collection, &field.name, model))
        }
        Expr::Cast(..) => false,
        _ => true,
    }
}

/// The field of a collection that a bare column is. Without a table in front it is the first one's.
fn plain<'m>(
    select: &Select,
    source: Option<&str>,
    name: &str,
    known: &[&'m Collection],
) -> Option<(&'m Collection, &'m Field)> {
    let source = match source {
        Some(alias) => select.from.iter().find(|source| source.alias.eq_ignore_ascii_case(alias))?,
        None => select.from.first()?,
    };
    let What::Table(table) = &source.what else { return None };
    let collection = find(known, table)?;
    Some((collection, column_of(collection, name)?))
}

pub(super) fn find<'m>(known: &[&'m Collection], name: &str) -> Option<&'m Collection> {
    known.iter().copied().find(|collection| collection.name.eq_ignore_ascii_case(name))
}

fn column_of<'m>(collection: &'m Collection, name: &str) -> Option<&'m Field> {
    collection.fields.iter().find(|field| field.name.eq_ignore_ascii_case(name))
}

/// Every table is one of the app's, and every column is one of a table's.
fn check(query: &Query, known: &[&Collection]) -> Result<(), String> {
    query.selects().try_for_each(|select| check_select(select, known, &[]))
}

fn check_select(select: &Select, known: &[&Collection], outer: &[&Source]) -> Result<(), String> {
    let mut scope: Vec<&Source> = outer.to_vec();
    for (at, source) in select.from.iter().enumerate() {
        if select.from.iter().take(at).any(|other| other.alias.eq_ignore_ascii_case(&source.alias)) {
            return Err(format!("two tables are called `{}`", source.alias));
        }
        match &source.what {
            What::Table(name) if find(known, name).is_none() => {
                return Err(format!(
                    "`{name}` is not a collection of this app (a view reads tables, and views above it)"
                ));
            }
            What::Table(_) => {}
            What::Query(query) => query.selects().try_for_each(|select| check_select(select, known, outer))?,
        }
    }
    // The own tables hide those of the select around.
    scope.splice(0..0, &select.from);
    let names: Vec<&str> = select.columns.iter().map(|column| column.name.as_str()).collect();
    for column in &select.columns {
        check_expr(&column.value, known, &scope, &[])?;
    }
    let others = select.from.iter().filter_map(|source| source.on.as_ref());
    let others = others.chain(&select.condition).chain(&select.group).chain(&select.having);
    others.into_iter().try_for_each(|expr| check_expr(expr, known, &scope, &names))
}

fn check_expr(expr: &Expr, known: &[&Collection], scope: &[&Source], names: &[&str]) -> Result<(), String> {
    match expr {
        Expr::Column { source, name } => check_column(source.as_deref(), name, known, scope, names)?,
        Expr::Scalar(query) | Expr::Exists(query) => {
            query.selects().try_for_each(|select| check_select(select, known, scope))?;
        }
        Expr::Test { tested: Tested::InQuery(query), .. } => {
            query.selects().try_for_each(|select| check_select(select, known, scope))?;
        }
        _ => {}
    }
    expr.parts().into_iter().try_for_each(|part| check_expr(part, known, scope, names))
}

fn check_column(
    source: Option<&str>,
    name: &str,
    known: &[&Collection],
    scope: &[&Source],
    names: &[&str],
) -> Result<(), String> {
    let mut sources = scope.iter().filter(|found| source.is_none_or(|alias| found.alias.eq_ignore_ascii_case(alias)));
    let has = |found: &&&Source| match &found.what {
        What::Table(table) => find(known, table).is_some_and(|collection| column_of(collection, name).is_some()),
        What::Query(query) => query.first.columns.iter().any(|column| column.name.eq_ignore_ascii_case(name)),
    };
    let Some(found) = sources.find(has) else {
        return match source {
            None if names.contains(&name) => Ok(()),
            Some(alias) => Err(format!("there is no column `{alias}.{name}`")),
            None => Err(format!("there is no column `{name}`")),
        };
    };
    if let What::Table(table) = &found.what
        && let Some(collection) = find(known, table)
        && let Some(field) = column_of(collection, name)
        && (matches!(field.kind, FieldKind::Password { .. }) || collection.is_auth() && field.name == "tokenKey")
    {
        return Err(format!("`{name}` is a secret of {}, which no view shows", collection.name));
    }
    Ok(())
}

/// The collections a view reads.
pub fn sources(query: &Query) -> HashSet<String> {
    fn collect(query: &Query, found: &mut HashSet<String>) {
        for select in query.selects() {
            for source in &select.from {
                match &source.what {
                    What::Table(name) => drop(found.insert(name.to_ascii_lowercase())),
                    What::Query(query) => collect(query, found),
                }
            }
        }
    }
    let mut found = HashSet::new();
    collect(query, &mut found);
    found
}

fn is_name(name: &str) -> bool {
    (1..=63).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

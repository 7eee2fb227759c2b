//! Views: the query an app declares, translated from `SQLite`'s words into PostgreSQL's.
//!
//! The text is read by [`inn_rules::view`] and written anew here: tables are the app's own, functions are those of
//! [`super::kinds`], names are quoted and texts are constants. So a view can show nothing but its own app's records.

use std::fmt::Write as _;

use deadpool_postgres::Transaction;
use inn_ports::StoreResult;
use inn_protocol::model::{Collection, CollectionKind, Field, FieldKind, Model};
use inn_protocol::{AppId, Code, Refusal};
use inn_rules::schema::{Storage, storage};
use inn_rules::view::{self, Expr, Join, Query, Select, Source, What};

use super::kinds::{Kind, Value};
use crate::columns::{ROW, ident, literal, table, table_named};
use crate::error::chain;

/// Before the tables change: a view holds on to the columns it reads.
pub(crate) async fn drop_views(tx: &Transaction<'_>, app: AppId, model: &Model) -> StoreResult<()> {
    for view in views(model).rev() {
        let drop = format!("DROP VIEW IF EXISTS {}", table(app, view));
        tx.batch_execute(&drop).await.map_err(|error| failed(view, &chain(&error)))?;
    }
    Ok(())
}

/// After the tables have changed. What PostgreSQL refuses is told with its words: they speak of the app's own query.
pub(crate) async fn make_views(tx: &Transaction<'_>, app: AppId, model: &Model) -> StoreResult<()> {
    for view in views(model) {
        let query = create(app, model, view).map_err(|why| failed(view, &why))?;
        let create = format!("CREATE VIEW {} AS {query}", table(app, view));
        tx.batch_execute(&create).await.map_err(|error| {
            let said = error.as_db_error().map_or_else(|| chain(&error), |error| error.message().to_owned());
            failed(view, &said)
        })?;
    }
    Ok(())
}

fn views(model: &Model) -> impl DoubleEndedIterator<Item = &Collection> {
    model.collections.iter().filter(|collection| collection.kind == CollectionKind::View)
}

fn failed(view: &Collection, why: &str) -> Refusal {
    Refusal::new(Code::DeployFailed, format!("The view {} cannot be built: {why}.", view.name))
}

/// The SELECT of one view: its query with every column as the kind of its field, and a column to order by.
pub(super) fn create(app: AppId, model: &Model, view: &Collection) -> Result<String, String> {
    let query = view::parse(view.view_query.as_deref().unwrap_or_default())?;
    let made = Translator { app, model }.query(&query, &[], true)?;
    let mut columns = Vec::new();
    for field in &view.fields {
        let found = made.columns.iter().find(|column| column.name == field.name);
        let column = found.ok_or_else(|| format!("its query has no column `{}`", field.name))?;
        let value = Value { sql: format!("q.{}", ident(&column.name)), kind: column.kind };
        columns.push(format!("{} AS {}", as_field(&value, field)?, ident(&field.name)));
    }
    let order = if made.ordered { format!("q.{ROW}") } else { format!("q.{}", ident("id")) };
    Ok(format!("SELECT {}, {order} AS {ROW} FROM ({}) AS q", columns.join(", "), made.sql))
}

fn as_field(value: &Value, field: &Field) -> Result<String, String> {
    let wrong = || format!("the column `{}` cannot be a field of its kind", field.name);
    match (storage(field), value.kind) {
        (Storage::Text, Kind::Text) | (Storage::List, Kind::List) | (Storage::Bool, Kind::Flag) => {
            Ok(value.sql.clone())
        }
        (Storage::Json | Storage::Geo, Kind::Json) => Ok(value.sql.clone()),
        (Storage::Text, _) => Ok(value.text().sql),
        (Storage::Number, _) => Ok(value.number()?.sql),
        (Storage::Bool, _) => value.condition(),
        (Storage::Json, _) => Ok(value.json()),
        (Storage::List | Storage::Geo, _) => Err(wrong()),
    }
}

/// A translated query.
pub(super) struct Made {
    pub(super) sql: String,
    pub(super) columns: Vec<Known>,
    /// It has the order column.
    ordered: bool,
}

/// A column that can be named.
#[derive(Clone)]
pub(super) struct Known {
    pub(super) name: String,
    pub(super) kind: Kind,
}

/// Something in a FROM.
#[derive(Clone)]
pub(super) struct Scope {
    alias: String,
    /// A table: it has an order column.
    table: bool,
    columns: Vec<Known>,
}

/// What names mean in an expression: the tables, and the columns of the SELECT by their names.
pub(super) struct Names<'a> {
    pub(super) scopes: &'a [Scope],
    pub(super) columns: &'a [(String, Value)],
    /// The names of the columns come first (`ORDER BY`).
    pub(super) columns_first: bool,
}

pub(super) struct Translator<'m> {
    app: AppId,
    model: &'m Model,
}

impl Translator<'_> {
    pub(super) fn query(&self, query: &Query, outer: &[Scope], ordered: bool) -> Result<Made, String> {
        let alone = query.more.is_empty();
        let ordered = ordered && alone && !query.first.distinct;
        let first = self.select(&query.first, outer, ordered.then_some(&query.order))?;
        let mut sql = first.sql.clone();
        for (all, select) in &query.more {
            let next = self.select(select, outer, None)?;
            if next.kinds() != first.columns.iter().map(|column| column.kind).collect::<Vec<_>>() {
                return Err("the selects of a UNION need the same columns (CAST makes them so)".to_owned());
            }
            let _ = write!(sql, " UNION {}{}", if *all { "ALL " } else { "" }, next.sql);
        }
        if !query.order.is_empty() && (query.limit.is_some() || !alone) {
            let keys: Result<Vec<_>, String> = query
                .order
                .iter()
                .map(|(key, descending)| {
                    let name = match key {
                        Expr::Column { source: None, name } => {
                            first.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name))
                        }
                        _ => None,
                    };
                    let sql = match name {
                        Some(column) => ident(&column.name),
                        None if alone => first.key(self, key)?,
                        None => return Err("ORDER BY of a UNION takes the names of columns".to_owned()),
                    };
                    Ok(directed(&sql, *descending))
                })
                .collect();
            let _ = write!(sql, " ORDER BY {}", keys?.join(", "));
        }
        for (word, number) in [("LIMIT", query.limit), ("OFFSET", query.offset)] {
            if let Some(number) = number {
                let _ = write!(sql, " {word} {number}");
            }
        }
        Ok(Made { sql, columns: first.columns, ordered: ordered && first.ordered })
    }

    fn select(
        &self,
        select: &Select,
        outer: &[Scope],
        order: Option<&Vec<(Expr, bool)>>,
    ) -> Result<MadeSelect, String> {
        let mut scopes = Vec::new();
        let mut from = String::new();
        for source in &select.from {
            let (text, scope) = self.source(source, outer)?;
            scopes.push(scope);
            let word = match source.join {
                _ if from.is_empty() => "",
                Join::Cross => " CROSS JOIN ",
                Join::Inner => " JOIN ",
                Join::Left => " LEFT JOIN ",
            };
            from.push_str(word);
            from.push_str(&text);
            if let Some(on) = source.on.as_ref().filter(|_| scopes.len() > 1) {
                let names = Names { scopes: &all(&scopes, outer), columns: &[], columns_first: false };
                let _ = write!(from, " ON {}", self.value(on, &names)?.condition()?);
            }
        }
        let scopes = all(&scopes, outer);
        let mut values = Vec::new();
        for column in &select.columns {
            let names = Names { scopes: &scopes, columns: &[], columns_first: false };
            values.push((column.name.clone(), self.value(&column.value, &names)?));
        }
        let names = Names { scopes: &scopes, columns: &values, columns_first: false };
        let group: Vec<String> = select.group.iter().map(|key| self.key(key, &names)).collect::<Result<_, _>>()?;
        let mut columns: Vec<String> =
            values.iter().map(|(name, value)| format!("{} AS {}", value.sql, ident(name))).collect();
        let counted =
            !group.is_empty() || select.columns.iter().any(|column| super::kinds::is_aggregate(&column.value));
        let mut ordered = false;
        if let Some(order) = order {
            let first_table = select.from.first().filter(|source| matches!(source.what, What::Table(_)));
            let key = if !order.is_empty() {
                let keys: Result<Vec<_>, String> = order
                    .iter()
                    .map(|(key, down)| {
                        let names = Names { scopes: &scopes, columns: &values, columns_first: true };
                        Ok(directed(&self.key(key, &names)?, *down))
                    })
                    .collect();
                Some(format!("row_number() OVER (ORDER BY {})", keys?.join(", ")))
            } else if counted {
                group.first().cloned()
            } else {
                first_table.map(|source| format!("{}.{ROW}", ident(&source.alias)))
            };
            if let Some(key) = key {
                columns.push(format!("{key} AS {ROW}"));
                ordered = true;
            }
        }
        let mut sql = format!("SELECT {}{}", if select.distinct { "DISTINCT " } else { "" }, columns.join(", "));
        if !from.is_empty() {
            let _ = write!(sql, " FROM {from}");
        }
        // A condition on the first table makes nothing of a join: it holds for every row.
        let first_on = select.from.first().and_then(|source| source.on.as_ref());
        let conditions: Result<Vec<_>, String> =
            first_on.into_iter().chain(&select.condition).map(|part| self.value(part, &names)?.condition()).collect();
        let conditions = conditions?;
        if !conditions.is_empty() {
            let _ = write!(sql, " WHERE {}", conditions.join(" AND "));
        }
        if !group.is_empty() {
            let _ = write!(sql, " GROUP BY {}", group.join(", "));
        }
        if let Some(having) = &select.having {
            let _ = write!(sql, " HAVING {}", self.value(having, &names)?.condition()?);
        }
        let columns = values.iter().map(|(name, value)| Known { name: name.clone(), kind: value.kind }).collect();
        Ok(MadeSelect { sql, columns, ordered, scopes, values })
    }

    /// An expression to group or order by.
    fn key(&self, key: &Expr, names: &Names<'_>) -> Result<String, String> {
        match key {
            // The place of a column.
            Expr::Number(digits) => {
                let place = digits.parse::<usize>().ok().and_then(|place| place.checked_sub(1));
                let found = place.and_then(|place| names.columns.get(place));
                found.map(|(_, value)| value.sql.clone()).ok_or_else(|| format!("there is no column {digits} to go by"))
            }
            key => Ok(self.value(key, names)?.sql),
        }
    }

    fn source(&self, source: &Source, outer: &[Scope]) -> Result<(String, Scope), String> {
        let alias = ident(&source.alias);
        match &source.what {
            What::Query(query) => {
                let made = self.query(query, outer, false)?;
                let scope = Scope { alias: source.alias.clone(), table: false, columns: made.columns };
                Ok((format!("({}) AS {alias}", made.sql), scope))
            }
            What::Table(name) => {
                let found = self.model.collections.iter().find(|other| other.name.eq_ignore_ascii_case(name));
                let collection = found.ok_or_else(|| format!("`{name}` is not a collection of this app"))?;
                let known = |field: &Field| {
                    (!is_secret(collection, field)).then(|| Known { name: field.name.clone(), kind: kind(field) })
                };
                let mut columns: Vec<Known> = collection.fields.iter().filter_map(known).collect();
                if !columns.iter().any(|column| column.name == "id") {
                    columns.push(Known { name: "id".to_owned(), kind: Kind::Text });
                }
                let scope = Scope { alias: source.alias.clone(), table: true, columns };
                Ok((format!("{} AS {alias}", table_named(self.app, &collection.name)), scope))
            }
        }
    }

    /// What a column's name stands for.
    pub(super) fn column(source: Option<&str>, name: &str, names: &Names<'_>) -> Result<Value, String> {
        let by_name = || names.columns.iter().find(|(column, _)| source.is_none() && column.eq_ignore_ascii_case(name));
        if names.columns_first
            && let Some((_, value)) = by_name()
        {
            return Ok(value.clone());
        }
        let fits = |scope: &&Scope| source.is_none_or(|alias| scope.alias.eq_ignore_ascii_case(alias));
        for scope in names.scopes.iter().filter(fits) {
            if let Some(known) = scope.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name)) {
                return Ok(Value { sql: format!("{}.{}", ident(&scope.alias), ident(&known.name)), kind: known.kind });
            }
        }
        match by_name() {
            Some((_, value)) => Ok(value.clone()),
            None => Err(format!("there is no column `{name}`")),
        }
    }

    /// The order of the first table's rows, for a window without an order of its own.
    pub(super) fn first_order(names: &Names<'_>) -> Option<String> {
        names.scopes.first().filter(|scope| scope.table).map(|scope| format!("{}.{ROW}", ident(&scope.alias)))
    }
}

struct MadeSelect {
    sql: String,
    columns: Vec<Known>,
    ordered: bool,
    scopes: Vec<Scope>,
    values: Vec<(String, Value)>,
}

impl MadeSelect {
    fn kinds(&self) -> Vec<Kind> {
        self.columns.iter().map(|column| column.kind).collect()
    }

    fn key(&self, translator: &Translator<'_>, key: &Expr) -> Result<String, String> {
        translator.key(key, &Names { scopes: &self.scopes, columns: &self.values, columns_first: true })
    }
}

fn all(own: &[Scope], outer: &[Scope]) -> Vec<Scope> {
    own.iter().chain(outer).cloned().collect()
}

/// NULL comes first, as in `SQLite`.
pub(super) fn directed(sql: &str, descending: bool) -> String {
    if descending { format!("{sql} DESC NULLS LAST") } else { format!("{sql} NULLS FIRST") }
}

fn is_secret(collection: &Collection, field: &Field) -> bool {
    matches!(field.kind, FieldKind::Password { .. }) || collection.is_auth() && field.name == "tokenKey"
}

fn kind(field: &Field) -> Kind {
    match storage(field) {
        Storage::Text => Kind::Text,
        Storage::Number => Kind::Number { real: false },
        Storage::Bool => Kind::Flag,
        Storage::List => Kind::List,
        Storage::Json | Storage::Geo => Kind::Json,
    }
}

/// A text constant that compares bytewise.
pub(super) fn text(value: &str) -> String {
    format!("({}::text COLLATE \"C\")", literal(value))
}

#[cfg(test)]
mod tests;

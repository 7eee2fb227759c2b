//! Joined rows of one condition: each walk is joined once and shared (reference notes on PocketBase, section A.7).

use std::fmt::Write as _;

use inn_rules::filter::{FieldRef, Hop, Link, Start, Walk};

use super::SqlParams;
use super::tables::Tables;
use crate::columns::{ROW, SqlValue, ident};

/// The row of a walk.
#[derive(Debug, Clone)]
struct Known {
    walk: Walk,
    alias: String,
}

/// A growing `FROM` list.
#[derive(Debug, Clone)]
pub(super) struct Joins<'a> {
    tables: Tables,
    /// Alias of the record itself.
    base: &'a str,
    known: Vec<Known>,
    /// List fields that are joined element by element: the row they belong to, the field, whose join it
    /// is, the alias of the element.
    elements: Vec<(String, String, u32, String)>,
    /// What tells joined rows of one record apart, outermost first.
    order: Vec<String>,
    /// ` LEFT JOIN …`
    pub(super) text: String,
}

/// Counts aliases of one statement part, so that none is used twice.
#[derive(Debug, Default)]
pub(super) struct Names(usize);

impl Names {
    pub(super) fn next(&mut self) -> String {
        self.0 += 1;
        format!("_j{}", self.0)
    }
}

impl<'a> Joins<'a> {
    pub(super) const fn new(tables: Tables, base: &'a str) -> Self {
        Self { tables, base, known: Vec::new(), elements: Vec::new(), order: Vec::new(), text: String::new() }
    }

    /// The order in which PocketBase meets the joined rows.
    pub(super) fn order(&self) -> &[String] {
        &self.order
    }

    /// A walk whose row has an alias already.
    pub(super) fn knows(&mut self, walk: Walk, alias: String) {
        self.known.push(Known { walk, alias });
    }

    /// For match-all: nothing joined but the row the walk is anchored at.
    pub(super) fn anew(&mut self, walk: &Walk, names: &mut Names, params: &mut SqlParams) -> Self {
        let mut joins = Self::new(self.tables, self.base);
        if walk.anchored > 0 {
            let anchor = walk.prefix(walk.anchored);
            let alias = self.row(&anchor, names, params);
            joins.knows(anchor, alias);
        }
        joins
    }

    /// The alias of the row a walk leads to, joined if it is not yet.
    pub(super) fn row(&mut self, walk: &Walk, names: &mut Names, params: &mut SqlParams) -> String {
        if walk.is_here() {
            return self.base.to_owned();
        }
        if let Some(known) = self.known.iter().find(|known| known.walk.same_rows(walk)) {
            return known.alias.clone();
        }
        let alias = names.next();
        match walk.hops.split_last() {
            None => {
                let (table, condition) = self.start(&walk.start, &alias, params);
                let _ = write!(self.text, " LEFT JOIN {table} AS {alias} ON {condition}");
            }
            Some((hop, before)) => {
                let parent = self.row(&walk.prefix(before.len()), names, params);
                let table = self.tables.named(&hop.collection);
                let condition = if hop.link == Link::List {
                    let element = self.list_element(&parent, &hop.field, hop.private, names);
                    format!("{alias}.\"id\" = {element}.v")
                } else {
                    if matches!(hop.link, Link::BackOne | Link::BackList) {
                        self.order.push(format!("{alias}.{ROW}"));
                    }
                    linked(hop, &parent, &alias)
                };
                let _ = write!(self.text, " LEFT JOIN {table} AS {alias} ON {condition}");
            }
        }
        self.knows(walk.clone(), alias.clone());
        alias
    }

    /// The alias whose column `v` is one element of the field.
    pub(super) fn element(&mut self, field: &FieldRef, names: &mut Names, params: &mut SqlParams) -> String {
        let row = self.row(&field.walk, names, params);
        self.list_element(&row, &field.name, 0, names)
    }

    /// One join per list, whether its elements are looked at or followed as relations.
    fn list_element(&mut self, row: &str, list: &str, private: u32, names: &mut Names) -> String {
        let known = self.elements.iter().find(|(of, name, whose, _)| of == row && name == list && *whose == private);
        if let Some((.., alias)) = known {
            return alias.clone();
        }
        let alias = names.next();
        let _ = write!(
            self.text,
            " LEFT JOIN LATERAL unnest({row}.{}) WITH ORDINALITY AS {alias}(v, n) ON true",
            ident(list)
        );
        self.order.push(format!("{alias}.n"));
        self.elements.push((row.to_owned(), list.to_owned(), private, alias.clone()));
        alias
    }

    /// The table a walk starts at, and which of its rows.
    pub(super) fn start(&self, start: &Start, alias: &str, params: &mut SqlParams) -> (String, String) {
        match start {
            Start::Row => ("(SELECT 1)".to_owned(), "true".to_owned()),
            Start::Collection { name, .. } => (self.tables.named(name), "true".to_owned()),
            Start::Records { collection, ids, .. } => {
                let wanted = match ids.as_slice() {
                    [id] => format!("= {}", params.push(SqlValue::Text(without_nul(id)))),
                    ids => {
                        let ids = ids.iter().map(|id| without_nul(id)).collect();
                        format!("= ANY ({})", params.push(SqlValue::List(ids)))
                    }
                };
                (self.tables.named(collection), format!("{alias}.\"id\" {wanted}"))
            }
            Start::Values { values, .. } => {
                let values = values.iter().map(|value| without_nul(value)).collect();
                let values = params.push(SqlValue::List(values));
                (format!("(SELECT unnest({values}) AS v)"), "true".to_owned())
            }
        }
    }
}

/// When the row `alias` belongs to the row `parent`. Written so that an index on the relation serves it.
pub(super) fn linked(hop: &Hop, parent: &str, alias: &str) -> String {
    let field = ident(&hop.field);
    match hop.link {
        Link::One => format!("{alias}.\"id\" = {parent}.{field}"),
        Link::List => format!("{alias}.\"id\" = ANY ({parent}.{field})"),
        Link::BackOne => format!("{alias}.{field} = {parent}.\"id\""),
        Link::BackList => format!("{alias}.{field} @> ARRAY[{parent}.\"id\"]"),
    }
}

/// PostgreSQL knows no text with U+0000; see `bind_text`.
fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{1}")
}

/// The first join of a field, which is what conditions have to share to speak about the same row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Root {
    /// The elements of a list of the record.
    List(String),
    /// The first relation, or where the walk starts.
    Walk(Walk),
}

impl Root {
    /// Conditions with these roots see the same joined row. The elements of a list of ids are joined once, looked at or
    /// followed.
    pub(super) fn shares(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::List(list), Self::Walk(walk)) | (Self::Walk(walk), Self::List(list)) => {
                let first = walk.hops.first().filter(|_| walk.start == Start::Row);
                first.is_some_and(|hop| hop.link == Link::List && hop.field == *list)
            }
            _ => self == other,
        }
    }

    pub(super) fn of(field: &FieldRef) -> Option<Self> {
        let first = |hops| {
            let walk = field.walk.prefix(hops);
            Some(Self::Walk(Walk { anchored: 0, many: false, ..walk }))
        };
        match (&field.walk.start, field.walk.hops.len()) {
            (Start::Row, 0) => field.is_element().then(|| Self::List(field.name.clone())),
            (Start::Row, _) => first(1),
            _ => first(0),
        }
    }
}

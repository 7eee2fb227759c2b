//! The compiled form of a filter or rule: a tree over the fields of one collection, ready to become SQL or to be
//! evaluated on a record in memory. Everything from a request is a literal here, never text of a query.

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::walk::Walk;

/// A condition.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "almost every node is a comparison, and there are at most 200")]
pub enum Expr {
    Always,
    Never,
    All(Vec<Expr>),
    Any(Vec<Expr>),
    Compare(Comparison),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    pub left: Operand,
    pub op: Op,
    /// The `?` form: at least one value matches. On single values it changes nothing.
    pub any: bool,
    pub right: Operand,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    Eq,
    Ne,
    Gt,
    Ge,
    Lt,
    Le,
    Like,
    NotLike,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Operand {
    Field(FieldRef),
    Text(String),
    Number(f64),
    Bool(bool),
    Null,
    /// `TRUE` or `FALSE` as a word, of `:isset`: a [`Self::Bool`], but `IS TRUE` asks what is left of it for truth.
    Truth(bool),
    /// A value that is known already and yet compared as the column it comes from.
    Known(Box<(FieldRef, Value)>),
    /// `geoDistance(lonA, latA, lonB, latB)`, in km
    Distance(Box<[Operand; 4]>),
    /// `strftime(format, time, modifier…)`: a text, NULL when there is no such moment
    Moment(Box<Moment>),
}

/// A moment to be written as text. Only the database does it.
#[derive(Debug, Clone, PartialEq)]
pub struct Moment {
    pub format: String,
    /// A field or a value, never a function.
    pub time: Operand,
    pub modifiers: Vec<String>,
    /// What the text `now` means.
    pub now: DateTime<Utc>,
    /// A value of the request or of the filter is the time.
    pub(crate) fixed: bool,
}

impl Moment {
    /// What a field says, without modifiers.
    pub fn of_field(format: &str, field: FieldRef, now: DateTime<Utc>) -> Self {
        let (format, time) = (format.to_owned(), Operand::Field(field));
        Self { format, time, modifiers: Vec::new(), now, fixed: false }
    }
}

/// A field of the record the filter is about, or of one it leads to.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldRef {
    /// How to get to the row that has the field.
    pub walk: Walk,
    pub name: String,
    pub class: FieldClass,
    /// Path below a json or geoPoint field.
    pub path: Vec<String>,
    /// `:lower`
    pub lower: bool,
    /// `:length` of a list or single select, relation or file
    pub length: bool,
    /// `:each`: one value at a time. Of a single value it is the value itself, but no longer of a text column.
    pub each: bool,
    /// No column: a value of a record that is not stored yet, or what a view computes. Compared as what it is.
    pub bare: bool,
    /// May be NULL in a row that is there: in a view.
    pub nullable: bool,
}

/// How the stored value behaves in comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldClass {
    /// Text bytes: text, editor, email, url, date, autodate, single select, relation and file, id.
    Text,
    Number,
    Bool,
    /// A list; as a whole it is its JSON text.
    List,
    Json,
    Geo,
}

impl FieldRef {
    /// The field of that row as a whole, as its column is compared.
    pub fn new(walk: Walk, name: impl Into<String>, class: FieldClass) -> Self {
        let (name, path) = (name.into(), Vec::new());
        Self { walk, name, class, path, lower: false, length: false, each: false, bare: false, nullable: false }
    }

    /// Is NULL of its own kind, not the same as `''`: what is read from JSON (section A.8).
    pub fn is_json(&self) -> bool {
        self.class == FieldClass::Json || self.class == FieldClass::Geo && !self.path.is_empty()
    }

    /// Several values, so a plain operator means all of them.
    pub fn is_many(&self) -> bool {
        self.walk.many || self.is_element()
    }

    /// One element of a list at a time.
    pub fn is_element(&self) -> bool {
        self.each && self.class == FieldClass::List && !self.length
    }

    /// Needs no row but the record itself.
    pub fn is_here(&self) -> bool {
        self.walk.is_here()
    }
}

impl Operand {
    /// The fields it is made of.
    pub fn fields(&self) -> Vec<&FieldRef> {
        match self {
            Self::Field(field) => vec![field],
            Self::Distance(points) => points.iter().flat_map(Self::fields).collect(),
            Self::Moment(moment) => moment.time.fields(),
            _ => Vec::new(),
        }
    }

    /// Is the same for every record and can be told without the database.
    pub(super) const fn is_constant(&self) -> bool {
        !matches!(self, Self::Field(_) | Self::Distance(_) | Self::Moment(_))
    }

    /// Match-all applies. Never to a distance (section A.10).
    pub fn is_many(&self) -> bool {
        match self {
            Self::Field(field) => field.is_many(),
            Self::Moment(moment) => moment.time.is_many(),
            _ => false,
        }
    }
}

impl Expr {
    /// Can be decided from the record alone, without the database.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Always | Self::Never => true,
            Self::All(parts) | Self::Any(parts) => parts.iter().all(Self::is_local),
            Self::Compare(comparison) => [&comparison.left, &comparison.right]
                .into_iter()
                .all(|side| side.is_constant() || matches!(side, Operand::Field(field) if field.is_here())),
        }
    }

    /// Both must hold; constants fold.
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Never, _) | (_, Self::Never) => Self::Never,
            (Self::Always, expr) | (expr, Self::Always) => expr,
            (left, right) => Self::All(vec![left, right]),
        }
    }
}

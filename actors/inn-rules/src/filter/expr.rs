//! The compiled form of a filter or rule: a tree over the fields of one collection, ready to become SQL or to be
//! evaluated on a record in memory. Everything from a request is a literal here, never text of a query.

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
    /// `geoDistance(lonA, latA, lonB, latB)`, in km
    Distance(Box<[Operand; 4]>),
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
    /// A value of a record that is not stored yet: compared as what it is, not as its column would be.
    pub bare: bool,
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
            _ => Vec::new(),
        }
    }

    /// Match-all applies. Never to a distance (section A.10).
    pub fn is_many(&self) -> bool {
        match self {
            Self::Field(field) => field.is_many(),
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
                .all(|side| matches!(side, Operand::Field(field) if field.is_here()) || side.fields().is_empty()),
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

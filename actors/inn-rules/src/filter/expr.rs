//! The compiled form of a filter or rule: a tree over the fields of one collection, ready to become SQL or to be
//! evaluated on a record in memory. Everything from a request is a literal here, never text of a query.

/// A condition.
#[derive(Debug, Clone, PartialEq)]
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
}

/// A field of the collection the filter is about.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldRef {
    pub name: String,
    pub class: FieldClass,
    /// Path below a json or geoPoint field.
    pub path: Vec<String>,
    /// `:lower`
    pub lower: bool,
    /// `:length` of a list or single select, relation or file
    pub length: bool,
    /// `:each` of a list field: one value at a time
    pub each: bool,
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

impl Expr {
    /// Both must hold; constants fold.
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Never, _) | (_, Self::Never) => Self::Never,
            (Self::Always, expr) | (expr, Self::Always) => expr,
            (left, right) => Self::All(vec![left, right]),
        }
    }
}

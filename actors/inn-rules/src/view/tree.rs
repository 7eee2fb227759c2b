//! The tree of a view's query. Names are as written; whether they mean something is asked when it is translated.

/// One or more selects put together.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    pub first: Select,
    /// `UNION` (false) or `UNION ALL` (true).
    pub more: Vec<(bool, Select)>,
    /// With `true` for descending.
    pub order: Vec<(Expr, bool)>,
    pub limit: Option<u64>,
    pub offset: Option<u64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Select {
    pub distinct: bool,
    pub columns: Vec<Column>,
    pub from: Vec<Source>,
    pub condition: Option<Expr>,
    pub group: Vec<Expr>,
    pub having: Option<Expr>,
}

/// One column of the result.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    pub name: String,
    pub value: Expr,
    /// The expression as it was written: PocketBase infers the field from this text.
    pub text: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    pub join: Join,
    pub what: What,
    /// What columns call it by.
    pub alias: String,
    pub on: Option<Expr>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Join {
    /// The first one, and every one behind a comma.
    Cross,
    Inner,
    Left,
}

#[derive(Debug, Clone, PartialEq)]
pub enum What {
    Table(String),
    Query(Box<Query>),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    Null,
    Text(String),
    /// As written.
    Number(String),
    Truth(bool),
    Column {
        source: Option<String>,
        name: String,
    },
    Not(Box<Expr>),
    Minus(Box<Expr>),
    Binary(Op, Box<Expr>, Box<Expr>),
    /// `negated` is `NOT` in front of the test.
    Test {
        value: Box<Expr>,
        negated: bool,
        tested: Tested,
    },
    Case {
        of: Option<Box<Expr>>,
        when: Vec<(Expr, Expr)>,
        otherwise: Option<Box<Expr>>,
    },
    Cast(Box<Expr>, String),
    Call(Call),
    Scalar(Box<Query>),
    Exists(Box<Query>),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Tested {
    Null,
    Like(Box<Expr>),
    In(Vec<Expr>),
    InQuery(Box<Query>),
    Between(Box<Expr>, Box<Expr>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    Or,
    And,
    Eq,
    Ne,
    /// `IS` and `IS NOT` between two values.
    Is,
    IsNot,
    Lt,
    Le,
    Gt,
    Ge,
    Concat,
    Add,
    Sub,
    Mul,
    Div,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// In lower case.
    pub name: String,
    pub distinct: bool,
    /// `count(*)`.
    pub star: bool,
    pub args: Vec<Expr>,
    pub over: Option<Over>,
}

/// A window.
#[derive(Debug, Clone, PartialEq)]
pub struct Over {
    pub partition: Vec<Expr>,
    pub order: Vec<(Expr, bool)>,
}

impl Query {
    /// Tables in it, however deep.
    pub(super) fn weight(&self) -> usize {
        let source = |source: &Source| match &source.what {
            What::Table(_) => 1,
            What::Query(query) => query.weight(),
        };
        1 + self.selects().flat_map(|select| &select.from).map(source).sum::<usize>()
    }

    pub fn selects(&self) -> impl Iterator<Item = &Select> {
        std::iter::once(&self.first).chain(self.more.iter().map(|(_, select)| select))
    }
}

impl Expr {
    /// The expressions directly inside, without those of inner queries.
    pub fn parts(&self) -> Vec<&Expr> {
        match self {
            Self::Null
            | Self::Text(_)
            | Self::Number(_)
            | Self::Truth(_)
            | Self::Column { .. }
            | Self::Scalar(_)
            | Self::Exists(_) => Vec::new(),
            Self::Not(inner) | Self::Minus(inner) | Self::Cast(inner, _) => vec![inner],
            Self::Binary(_, left, right) => vec![left, right],
            Self::Test { value, tested, .. } => {
                let mut parts: Vec<&Expr> = vec![value];
                match tested {
                    Tested::Null | Tested::InQuery(_) => {}
                    Tested::Like(pattern) => parts.push(pattern),
                    Tested::In(values) => parts.extend(values),
                    Tested::Between(low, high) => parts.extend([&**low, &**high]),
                }
                parts
            }
            Self::Case { of, when, otherwise } => {
                let mut parts: Vec<&Expr> = of.iter().chain(otherwise).map(|part| &**part).collect();
                parts.extend(when.iter().flat_map(|(condition, value)| [condition, value]));
                parts
            }
            Self::Call(call) => {
                let windows = call
                    .over
                    .iter()
                    .flat_map(|over| over.partition.iter().chain(over.order.iter().map(|(key, _)| key)));
                call.args.iter().chain(windows).collect()
            }
        }
    }
}

//! A filter as written: items and the joins between them, names not resolved.

use super::expr::Op;

/// A parsed filter. Every group has at least one item; groups of one group are collapsed, so the tree is never
/// deeper than the number of comparisons.
#[derive(Debug, Clone, PartialEq)]
pub struct Ast {
    pub(super) items: Vec<Item>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Item {
    /// How it is joined to the item before it; means nothing on the first.
    pub(super) join: Join,
    pub(super) node: Node,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Join {
    And,
    Or,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    Compare(Compared),
    Group(Vec<Item>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Compared {
    pub(super) left: Term,
    pub(super) sign: Sign,
    pub(super) right: Term,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sign {
    pub(super) op: Op,
    pub(super) any: bool,
}

/// One operand, with the byte it starts at.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Term {
    pub(super) at: usize,
    pub(super) kind: TermKind,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum TermKind {
    Identifier(String),
    Text(String),
    Number(f64),
    Call { name: String, args: Vec<Term> },
}

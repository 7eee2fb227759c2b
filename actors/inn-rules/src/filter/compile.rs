//! From the written form to [`Expr`]: names resolved, constants folded, precedence applied.

use inn_protocol::model::{Collection, Model};

use super::ast::{Ast, Compared, Item, Join, Node, Term, TermKind};
use super::error::FilterError;
use super::eval::constant;
use super::expr::{Comparison, Expr, FieldClass, FieldRef, Op, Operand};
use super::like::literal_text;
use super::number::column_text;
use super::parse::parse;
use super::resolve::{Resolved, identifier};
use super::scope::{AuthFacts, Scope};

/// Reads and compiles a filter or rule that is not empty.
pub fn compile(text: &str, scope: &Scope<'_>) -> Result<Expr, FilterError> {
    compile_ast(&parse(text)?, scope)
}

pub fn compile_ast(ast: &Ast, scope: &Scope<'_>) -> Result<Expr, FilterError> {
    items(&ast.items, scope)
}

/// Can this rule be evaluated? Asked when an app is deployed, so that no rule is ever ignored. An empty rule can.
pub fn check_rule(text: &str, collection: &Collection, model: &Model) -> Result<(), FilterError> {
    if text.is_empty() {
        return Ok(());
    }
    let auth = AuthFacts::nobody();
    let now = chrono::DateTime::UNIX_EPOCH;
    compile(text, &Scope { collection, model, now, auth: &auth, see_hidden: true }).map(|_| ())
}

/// The list is flat: `&&` binds tighter than `||`.
fn items(items: &[Item], scope: &Scope<'_>) -> Result<Expr, FilterError> {
    let mut alternatives = Vec::new();
    let mut together = Vec::new();
    for (index, item) in items.iter().enumerate() {
        if index > 0 && item.join == Join::Or {
            alternatives.push(all(std::mem::take(&mut together)));
        }
        together.push(match &item.node {
            Node::Compare(compared) => comparison(compared, scope)?,
            Node::Group(inner) => self::items(inner, scope)?,
        });
    }
    alternatives.push(all(together));
    Ok(any(alternatives))
}

fn all(parts: Vec<Expr>) -> Expr {
    if parts.contains(&Expr::Never) {
        return Expr::Never;
    }
    let mut parts: Vec<Expr> = parts.into_iter().filter(|part| *part != Expr::Always).collect();
    match (parts.len(), parts.pop()) {
        (0 | 1, last) => last.unwrap_or(Expr::Always),
        (_, last) => {
            parts.extend(last);
            Expr::All(parts)
        }
    }
}

fn any(parts: Vec<Expr>) -> Expr {
    if parts.contains(&Expr::Always) {
        return Expr::Always;
    }
    let mut parts: Vec<Expr> = parts.into_iter().filter(|part| *part != Expr::Never).collect();
    match (parts.len(), parts.pop()) {
        (0 | 1, last) => last.unwrap_or(Expr::Never),
        (_, last) => {
            parts.extend(last);
            Expr::Any(parts)
        }
    }
}

fn comparison(compared: &Compared, scope: &Scope<'_>) -> Result<Expr, FilterError> {
    let left = term(&compared.left, scope)?;
    let right = term(&compared.right, scope)?;
    let asks_email = uses_email(&left.operand, scope) || uses_email(&right.operand, scope);
    let op = compared.sign.op;
    if let Some(expr) = loose_against_number(&left, op, &right)? {
        return Ok(expr);
    }
    let is_like = matches!(op, Op::Like | Op::NotLike);
    let against_text = |other: &Operand| matches!(other, Operand::Field(field) if has_text_affinity(field));
    let comparison = Comparison {
        left: as_written(left.clone(), is_like || against_text(&right.operand)),
        right: if is_like { pattern_side(right) } else { as_written(right, against_text(&left.operand)) },
        op,
        any: compared.sign.any,
    };
    let expr = constant(&comparison)
        .map_or_else(|| Expr::Compare(comparison), |holds| if holds { Expr::Always } else { Expr::Never });
    Ok(if asks_email { all(vec![expr, email_is_public()]) } else { expr })
}

fn term(term: &Term, scope: &Scope<'_>) -> Result<Resolved, FilterError> {
    match &term.kind {
        TermKind::Identifier(name) => identifier(name, term.at, scope),
        TermKind::Text(text) => Ok(Resolved::plain(Operand::Text(text.clone()))),
        TermKind::Number(number) => Ok(Resolved::plain(Operand::Number(*number))),
        TermKind::Call { name, args } if name == "geoDistance" || name == "strftime" => {
            for arg in args {
                self::term(arg, scope)?;
            }
            Err(FilterError::Unsupported(format!("the function `{name}`")))
        }
        TermKind::Call { name, .. } => Err(FilterError::invalid(term.at, format!("`{name}` is not a function"))),
    }
}

/// An integer becomes its text where it meets text: with the `.0` of a REAL it would be another value.
fn as_written(side: Resolved, meets_text: bool) -> Operand {
    match side.operand {
        Operand::Number(number) if side.integer && meets_text => Operand::Text(column_text(number)),
        operand => operand,
    }
}

/// What stands on the right of `~`: bound values and numbers are the text of a pattern; fields, `true`, `false` and
/// `null` stay what they are (section A.9).
fn pattern_side(side: Resolved) -> Operand {
    match side.operand {
        Operand::Number(number) => Operand::Text(literal_text(number)),
        Operand::Bool(value) if side.bound => Operand::Text(value.to_string()),
        operand => operand,
    }
}

/// A text without affinity meets a number without affinity: they are never equal and the text is always greater,
/// whatever the row holds (section A.11, `t : n`). [`FieldRef`] cannot say "without affinity", so this is decided here.
fn loose_against_number(left: &Resolved, op: Op, right: &Resolved) -> Result<Option<Expr>, FilterError> {
    let (field, other, text_is_left) = match (left.loose, right.loose) {
        (true, false) => (left, &right.operand, true),
        (false, true) => (right, &left.operand, false),
        _ => return Ok(None),
    };
    let is_like = matches!(op, Op::Like | Op::NotLike);
    match other {
        _ if is_like => Ok(None),
        Operand::Number(_) | Operand::Bool(_) => Ok(Some(text_above_number(op, text_is_left))),
        Operand::Field(other) if other.length => Ok(Some(text_above_number(op, text_is_left))),
        Operand::Field(other) if matches!(other.class, FieldClass::Json | FieldClass::Geo) && !other.lower => {
            let Operand::Field(field) = &field.operand else { return Ok(None) };
            Err(FilterError::Unsupported(format!("`{}:each` of a single value against json", field.name)))
        }
        _ => Ok(None),
    }
}

fn text_above_number(op: Op, text_is_left: bool) -> Expr {
    let holds = match op {
        Op::Ne => true,
        Op::Gt | Op::Ge => text_is_left,
        Op::Lt | Op::Le => !text_is_left,
        Op::Eq | Op::Like | Op::NotLike => false,
    };
    if holds { Expr::Always } else { Expr::Never }
}

fn has_text_affinity(field: &FieldRef) -> bool {
    field.class == FieldClass::Text && !field.lower && !field.length
}

/// Who may not see hidden fields can only match the email of those who made theirs public (section A.7, rule 7).
fn uses_email(operand: &Operand, scope: &Scope<'_>) -> bool {
    matches!(operand, Operand::Field(field) if field.name == "email") && scope.collection.is_auth() && !scope.see_hidden
}

fn email_is_public() -> Expr {
    let field = FieldRef {
        name: "emailVisibility".to_owned(),
        class: FieldClass::Bool,
        path: Vec::new(),
        lower: false,
        length: false,
        each: false,
    };
    let left = Operand::Field(field);
    Expr::Compare(Comparison { left, op: Op::Eq, any: false, right: Operand::Bool(true) })
}

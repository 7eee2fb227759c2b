//! From the written form to [`Expr`]: names resolved, constants folded, precedence applied.

use inn_protocol::model::{Collection, Model};

use super::ast::{Ast, Compared, Item, Join, Node, Term, TermKind};
use super::context::Context;
use super::error::FilterError;
use super::eval::constant;
use super::expr::{Comparison, Expr, FieldClass, FieldRef, Op, Operand};
use super::functions;
use super::like::literal_text;
use super::number::column_text;
use super::parse::parse;
use super::resolve::{Resolved, identifier};
use super::scope::{AuthFacts, Scope};
use super::walk::Walk;

/// Reads and compiles a filter or rule that is not empty.
pub fn compile(text: &str, scope: &Scope<'_>) -> Result<Expr, FilterError> {
    compile_ast(&parse(text)?, scope)
}

/// [`compile`], for a filter that was parsed before.
pub fn compile_ast(ast: &Ast, scope: &Scope<'_>) -> Result<Expr, FilterError> {
    let mut context = Context::new(*scope);
    let expr = items(&ast.items, &mut context)?;
    guarded(expr, context)
}

/// A create rule. It is asked of the record as it would be, whose values are not in columns yet: PocketBase makes a
/// row of parameters for it, which have no affinity in `SQLite` (section A.11), so `title < false` holds for no text.
pub fn compile_unsaved(text: &str, scope: &Scope<'_>) -> Result<Expr, FilterError> {
    let mut context = Context { unsaved: true, ..Context::new(*scope) };
    let expr = items(&parse(text)?.items, &mut context)?;
    guarded(expr, context)
}

/// A client's filter together with what its sort joins: the list rules of every joined collection count for both.
pub fn compile_client(filter: Option<&str>, sort: &[&str], scope: &Scope<'_>) -> Result<Expr, FilterError> {
    let mut context = Context::new(*scope);
    let expr = match filter {
        Some(text) => items(&parse(text)?.items, &mut context)?,
        None => Expr::Always,
    };
    for name in sort {
        identifier(name, 0, &mut context)?;
    }
    guarded(expr, context)
}

/// A field to sort by.
pub(crate) fn sort_field(name: &str, scope: &Scope<'_>) -> Result<FieldRef, FilterError> {
    match identifier(name, 0, &mut Context::new(*scope))?.operand {
        Operand::Field(field) => Ok(field),
        _ => Err(FilterError::UnknownField(name.to_owned())),
    }
}

/// The list rule of every joined collection, for its joined record, at the top (section A.7, rule 7). A record that is
/// not there passes.
fn guarded(expr: Expr, context: Context<'_>) -> Result<Expr, FilterError> {
    let mut parts = vec![expr];
    for (number, (walk, collection)) in context.joined.into_iter().enumerate() {
        let Some(rule) = collection.list_rule.as_deref().filter(|rule| !rule.is_empty()) else { continue };
        let base = Walk { anchored: walk.hops.len(), many: false, ..walk };
        let scope = Scope { collection, see_hidden: true, ..context.scope };
        let private = u32::try_from(number + 1).unwrap_or(u32::MAX);
        let mut inner = Context { base: base.clone(), private, ..Context::new(scope) };
        let rule = items(&parse(rule)?.items, &mut inner)?;
        let id = FieldRef::new(base, "id", FieldClass::Text);
        let nobody =
            Comparison { left: Operand::Field(id), op: Op::Eq, any: true, right: Operand::Text(String::new()) };
        parts.push(any(vec![Expr::Compare(nobody), rule]));
    }
    Ok(all(parts))
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

/// What `@request.body.FIELD:changed` stands for: sent, and different from what is stored.
pub(super) fn changed(name: &str, at: usize, context: &mut Context<'_>) -> Result<Expr, FilterError> {
    let sent = context.scope.auth.request.body.contains_key(name);
    let left = identifier(&format!("@request.body.{name}"), at, context)?;
    let right = identifier(name, at, context)?;
    Ok(if sent { compared(left, Op::Ne, false, right) } else { Expr::Never })
}

/// The list is flat: `&&` binds tighter than `||`.
fn items(items: &[Item], context: &mut Context<'_>) -> Result<Expr, FilterError> {
    let mut alternatives = Vec::new();
    let mut together = Vec::new();
    for (index, item) in items.iter().enumerate() {
        if index > 0 && item.join == Join::Or {
            alternatives.push(all(std::mem::take(&mut together)));
        }
        together.push(match &item.node {
            Node::Compare(compared) => comparison(compared, context)?,
            Node::Group(inner) => self::items(inner, context)?,
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

fn comparison(written: &Compared, context: &mut Context<'_>) -> Result<Expr, FilterError> {
    let left = term(&written.left, context)?;
    let right = term(&written.right, context)?;
    if left.stands_for.is_some() || right.stands_for.is_some() {
        return truth(left, written.sign.op, right, written.left.at);
    }
    Ok(compared(left, written.sign.op, written.sign.any, right))
}

/// `:changed` is 1 or 0, compared with something that is the same for every record.
fn truth(left: Resolved, op: Op, right: Resolved, at: usize) -> Result<Expr, FilterError> {
    let wrong = || FilterError::invalid(at, "`:changed` is compared with a value, like `true` or `false`");
    let (expr, other, flipped) = match (left.stands_for, right.stands_for) {
        (Some(expr), None) => (*expr, right.operand, false),
        (None, Some(expr)) => (*expr, left.operand, true),
        _ => return Err(wrong()),
    };
    let holds = |flag: bool| {
        let (flag, other) = (Operand::Bool(flag), other.clone());
        let (left, right) = if flipped { (other, flag) } else { (flag, other) };
        constant(&Comparison { left, op, any: true, right })
    };
    let (Some(when), Some(unless)) = (holds(true), holds(false)) else { return Err(wrong()) };
    match (when, unless) {
        (true, true) => Ok(Expr::Always),
        (false, false) => Ok(Expr::Never),
        (true, false) => Ok(expr),
        (false, true) => opposite(expr, at),
    }
}

/// Of a comparison by `!=`, which is never NULL.
fn opposite(expr: Expr, at: usize) -> Result<Expr, FilterError> {
    match expr {
        Expr::Always => Ok(Expr::Never),
        Expr::Never => Ok(Expr::Always),
        Expr::Compare(comparison) if comparison.op == Op::Ne => {
            Ok(Expr::Compare(Comparison { op: Op::Eq, ..comparison }))
        }
        _ => Err(FilterError::invalid(at, "`:changed` does not go with this field")),
    }
}

fn compared(left: Resolved, op: Op, is_any: bool, right: Resolved) -> Expr {
    let public: Vec<FieldRef> = [&left.if_public, &right.if_public].into_iter().flatten().cloned().collect();
    let is_like = matches!(op, Op::Like | Op::NotLike);
    let against_text = |other: &Operand| match other {
        Operand::Field(field) => has_text_affinity(field),
        Operand::Known(known) => has_text_affinity(&known.0),
        _ => false,
    };
    let (left_text, right_text) = (against_text(&left.operand), against_text(&right.operand));
    let comparison = Comparison {
        left: as_written(left, is_like || right_text),
        right: if is_like { pattern_side(right, is_any) } else { as_written(right, left_text) },
        op,
        any: is_any,
    };
    let expr = constant(&comparison)
        .map_or_else(|| Expr::Compare(comparison), |holds| if holds { Expr::Always } else { Expr::Never });
    let shown = |field| {
        let left = Operand::Field(field);
        Expr::Compare(Comparison { left, op: Op::Eq, any: true, right: Operand::Bool(true) })
    };
    all(std::iter::once(expr).chain(public.into_iter().map(shown)).collect())
}

pub(super) fn term(term: &Term, context: &mut Context<'_>) -> Result<Resolved, FilterError> {
    match &term.kind {
        TermKind::Identifier(name) => identifier(name, term.at, context),
        TermKind::Text(text) => Ok(Resolved::plain(Operand::Text(text.clone()))),
        TermKind::Number(number) => Ok(Resolved::plain(Operand::Number(*number))),
        TermKind::Call { name, args } => functions::call(name, args, term.at, context),
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
fn pattern_side(side: Resolved, is_any: bool) -> Operand {
    match side.operand {
        Operand::Number(number) => Operand::Text(literal_text(number)),
        Operand::Bool(value) if side.bound => Operand::Text(value.to_string()),
        // PocketBase makes patterns of the numbers in it, which are then no numbers.
        Operand::Distance(points) if points.iter().any(|p| matches!(p, Operand::Number(_) | Operand::Text(_))) => {
            Operand::Null
        }
        Operand::Moment(moment) => functions::as_pattern(moment, is_any),
        operand => operand,
    }
}

fn has_text_affinity(field: &FieldRef) -> bool {
    field.class == FieldClass::Text && !field.lower && !field.length && !field.each && !field.bare
}

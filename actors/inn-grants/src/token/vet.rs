//! Looks appended blocks over before anything in them is evaluated.
//!
//! The evaluator looks at its limits between steps only, so one check with a cross join can keep a core busy for
//! minutes: what may take long must not start. The blocks are judged as the decoded structures that would be evaluated,
//! not as printed source, whose names and strings the holder chooses, and which would have to be parsed again.

use biscuit_auth::datalog::SymbolTable;
use biscuit_auth::format::schema::{self, check, op, op_binary, op_unary, term};
use inn_protocol::{Refusal, Result};

use super::invalid;

const MAX_CHECKS: usize = 8;
const MAX_ALTERNATIVES: usize = 4;
const MAX_EXPRESSIONS: usize = 8;
/// Operations of one alternative, over all its expressions.
const MAX_OPERATIONS: usize = 64;

/// What is known of a harmless block without evaluating it.
#[derive(Default)]
pub(super) struct Vetted {
    /// The earliest end it sets in the form `check if time($t), $t < …` (or `<=`), in unix seconds.
    pub(super) end: Option<u64>,
    /// It asks for the time in some other form, so that its verdict may change while the token lives.
    pub(super) timed: bool,
}

/// Passes a block that holds cheap checks and nothing else. `index` counts from 1, for the message.
pub(super) fn vet(index: usize, block: &schema::Block) -> Result<Vetted> {
    let refuse = |what: &str| refusal(index, what);
    if !block.facts.is_empty() {
        return Err(refuse("it states facts"));
    }
    if !block.rules.is_empty() {
        return Err(refuse("it has rules"));
    }
    if !block.scope.is_empty() || !block.public_keys.is_empty() {
        return Err(refuse("it trusts other blocks or keys"));
    }
    if block.checks.len() > MAX_CHECKS {
        return Err(refuse("it has more than 8 checks"));
    }
    let mut vetted = Vetted::default();
    let time = SymbolTable::new().get("time");
    for check in &block.checks {
        if check.queries.is_empty() || check.queries.len() > MAX_ALTERNATIVES {
            return Err(refuse("a check has no alternative or more than 4"));
        }
        if check.kind.is_some_and(|kind| check::Kind::from_i32(kind).is_none()) {
            return Err(refuse("a check is of an unknown kind"));
        }
        for query in &check.queries {
            vet_query(query).map_err(refuse)?;
        }
        if let Some(end) = end_set_by(check) {
            vetted.end = Some(vetted.end.map_or(end, |earlier| earlier.min(end)));
        } else {
            vetted.timed |= check.queries.iter().flat_map(|query| &query.body).any(|fact| Some(fact.name) == time);
        }
    }
    Ok(vetted)
}

/// A block by somebody else, with facts of their own.
pub(super) fn third_party(index: usize) -> Refusal {
    refusal(index, "it was signed by a third party")
}

fn refusal(index: usize, what: &str) -> Refusal {
    invalid(format!(
        "Appended block {index} of the token is not accepted: {what}. Appended blocks may hold a few simple checks only."
    ))
}

fn vet_query(query: &schema::Rule) -> Result<(), &'static str> {
    if query.body.len() > 1 {
        return Err("a check asks for more than one fact at a time");
    }
    if !query.scope.is_empty() {
        return Err("a check trusts other blocks or keys");
    }
    if query.expressions.len() > MAX_EXPRESSIONS {
        return Err("a check has more than 8 expressions");
    }
    if query.expressions.iter().map(|expression| expression.ops.len()).sum::<usize>() > MAX_OPERATIONS {
        return Err("a check has more than 64 operations");
    }
    query.expressions.iter().flat_map(|expression| &expression.ops).try_for_each(vet_operation)
}

fn vet_operation(operation: &schema::Op) -> Result<(), &'static str> {
    use op_binary::Kind as B;
    use op_unary::Kind as U;
    match &operation.content {
        Some(op::Content::Value(_)) => Ok(()),
        Some(op::Content::Unary(unary)) => match U::from_i32(unary.kind) {
            Some(U::Negate | U::Parens | U::Length | U::TypeOf) if unary.ffi_name.is_none() => Ok(()),
            _ => Err("a check calls an external function"),
        },
        Some(op::Content::Binary(binary)) => match B::from_i32(binary.kind) {
            _ if binary.ffi_name.is_some() => Err("a check calls an external function"),
            Some(B::Ffi) => Err("a check calls an external function"),
            Some(B::Regex) => Err("a check uses a regular expression"),
            Some(B::LazyAnd | B::LazyOr | B::All | B::Any | B::TryOr) => Err("a check uses a closure"),
            None => Err("a check uses an unknown operation"),
            Some(_) => Ok(()),
        },
        Some(op::Content::Closure(_)) => Err("a check uses a closure"),
        None => Err("a check uses an unknown operation"),
    }
}

/// Recognises the one form of end that our own narrowing writes; others still hold, but only when evaluated.
fn end_set_by(check: &schema::Check) -> Option<u64> {
    let [query] = check.queries.as_slice() else { return None };
    let ([fact], [expression]) = (query.body.as_slice(), query.expressions.as_slice()) else { return None };
    let ([bound], [left, right, operation]) = (fact.terms.as_slice(), expression.ops.as_slice()) else { return None };
    let value = |operation: &schema::Op| match &operation.content {
        Some(op::Content::Value(value)) => value.content.clone(),
        _ => None,
    };
    let (Some(term::Content::Variable(bound)), Some(term::Content::Variable(used)), Some(term::Content::Date(end))) =
        (&bound.content, value(left), value(right))
    else {
        return None;
    };
    let Some(op::Content::Binary(binary)) = &operation.content else { return None };
    let before = matches!(
        op_binary::Kind::from_i32(binary.kind),
        Some(op_binary::Kind::LessThan | op_binary::Kind::LessOrEqual)
    );
    let plain = check.kind.is_none_or(|kind| kind == check::Kind::One as i32);
    let asks_time = SymbolTable::new().get("time") == Some(fact.name);
    (plain && before && asks_time && *bound == used).then_some(end)
}

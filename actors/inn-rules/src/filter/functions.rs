//! Functions (section A.10).

use super::ast::{Term, TermKind};
use super::compile::term;
use super::context::Context;
use super::error::FilterError;
use super::expr::{Moment, Operand};
use super::like::wrapped;
use super::resolve::Resolved;

/// Most arguments of `strftime`.
const MAX_ARGUMENTS: usize = 10;

pub(super) fn call(name: &str, args: &[Term], at: usize, context: &mut Context<'_>) -> Result<Resolved, FilterError> {
    match name {
        "geoDistance" => distance(args, at, context),
        "strftime" => moment(args, at, context),
        _ => Err(FilterError::invalid(at, format!("`{name}` is not a function"))),
    }
}

fn distance(args: &[Term], at: usize, context: &mut Context<'_>) -> Result<Resolved, FilterError> {
    let [a, b, c, d] = args else {
        return Err(FilterError::invalid(at, "geoDistance takes lonA, latA, lonB, latB"));
    };
    let mut point = |arg: &Term| match &arg.kind {
        TermKind::Identifier(_) | TermKind::Number(_) => argument(arg, context).map(|found| found.operand),
        _ => Err(FilterError::invalid(arg.at, "geoDistance takes fields and numbers")),
    };
    let points: [Operand; 4] = [point(a)?, point(b)?, point(c)?, point(d)?];
    Ok(Resolved::plain(Operand::Distance(Box::new(points))))
}

fn moment(args: &[Term], at: usize, context: &mut Context<'_>) -> Result<Resolved, FilterError> {
    if args.len() > MAX_ARGUMENTS {
        return Err(FilterError::invalid(at, format!("strftime takes at most {MAX_ARGUMENTS} arguments")));
    }
    let mut args = args.iter();
    let Some(Term { kind: TermKind::Text(format), .. }) = args.next() else {
        return Err(FilterError::invalid(at, "strftime takes a format in quotes, then a time and modifiers"));
    };
    let (time, fixed) = match args.next() {
        None => (Operand::Text("now".to_owned()), false),
        Some(Term { kind: TermKind::Call { .. }, at }) => {
            return Err(FilterError::invalid(*at, "the time of strftime is a field, a text or a number"));
        }
        Some(arg) => {
            let found = argument(arg, context)?;
            let fixed = found.bound || matches!(found.operand, Operand::Text(_) | Operand::Number(_));
            (found.operand, fixed)
        }
    };
    let modifiers = args.map(|arg| match &arg.kind {
        TermKind::Text(modifier) => Ok(modifier.clone()),
        _ => Err(FilterError::invalid(arg.at, "a modifier of strftime is a text in quotes")),
    });
    let modifiers = modifiers.collect::<Result<_, _>>()?;
    let moment = Moment { format: format.clone(), time, modifiers, now: context.scope.now, fixed };
    Ok(Resolved::plain(Operand::Moment(Box::new(moment))))
}

fn argument(arg: &Term, context: &mut Context<'_>) -> Result<Resolved, FilterError> {
    let found = term(arg, context)?;
    if found.stands_for.is_some() {
        return Err(FilterError::invalid(arg.at, "`:changed` is a condition and no value"));
    }
    Ok(found)
}

/// A moment on the right of `~`. PocketBase makes patterns of what is bound in it, and not of the moment itself; unless
/// it stands for several values, whose own query then brings the values as they were.
pub(super) fn as_pattern(moment: Box<Moment>, is_any: bool) -> Operand {
    if moment.time.is_many() && !is_any {
        return Operand::Moment(moment);
    }
    // A time or modifier with a `%` in it is none.
    if moment.fixed || !moment.modifiers.is_empty() {
        return Operand::Null;
    }
    let format = wrapped(&moment.format);
    Operand::Moment(Box::new(Moment { format, ..*moment }))
}

//! Functions (section A.10).

use super::ast::{Term, TermKind};
use super::compile::term;
use super::context::Context;
use super::error::FilterError;
use super::expr::Operand;
use super::resolve::Resolved;

pub(super) fn call(name: &str, args: &[Term], at: usize, context: &mut Context<'_>) -> Result<Resolved, FilterError> {
    match name {
        "geoDistance" => distance(args, at, context),
        "strftime" => {
            for arg in args {
                term(arg, context)?;
            }
            Err(FilterError::Unsupported("the function `strftime`".to_owned()))
        }
        _ => Err(FilterError::invalid(at, format!("`{name}` is not a function"))),
    }
}

fn distance(args: &[Term], at: usize, context: &mut Context<'_>) -> Result<Resolved, FilterError> {
    let [a, b, c, d] = args else {
        return Err(FilterError::invalid(at, "geoDistance takes lonA, latA, lonB, latB"));
    };
    let mut point = |arg: &Term| match &arg.kind {
        TermKind::Identifier(_) | TermKind::Number(_) => term(arg, context).map(|found| found.operand),
        _ => Err(FilterError::invalid(arg.at, "geoDistance takes fields and numbers")),
    };
    let points: [Operand; 4] = [point(a)?, point(b)?, point(c)?, point(d)?];
    Ok(Resolved::plain(Operand::Distance(Box::new(points))))
}

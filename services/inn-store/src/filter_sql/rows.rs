//! Conditions over joined rows.
//!
//! PocketBase joins everything a filter speaks about and asks for distinct records (section A.7). Here a record matches
//! when a joined row exists, which is the same without the copies. "Exists" goes through `||`, and through `&&` between
//! conditions that share no join; so most conditions become a semi-join of their own that an index serves, and only
//! those that must see the same row stay together.

use inn_rules::filter::{Comparison, Expr, FieldClass, FieldRef, Link, Op, Operand, Start, Walk};

use super::SqlParams;
use super::compare;
use super::joins::{Joins, Names, Root, linked};
use super::moment;
use super::side::Side;
use super::tables::Tables;
use crate::columns::{SqlValue, ident};

pub(super) struct Renderer<'a> {
    tables: Tables,
    alias: &'a str,
    params: &'a mut SqlParams,
    names: Names,
}

/// The first join of a semi-join: in `FROM` instead of `LEFT JOIN`, because no condition holds without its row.
struct First {
    from: String,
    link: String,
    /// `t.list && ARRAY(SELECT id …)`: of a list of ids, for conditions that look at nothing of the record itself.
    list: Option<(String, String)>,
}

impl<'a> Renderer<'a> {
    pub(super) fn new(tables: Tables, alias: &'a str, params: &'a mut SqlParams) -> Self {
        Self { tables, alias, params, names: Names::default() }
    }

    /// Does a joined row exist for which the condition holds?
    pub(super) fn closed(&mut self, expr: &Expr) -> String {
        match expr {
            Expr::Always => "true".to_owned(),
            Expr::Never => "false".to_owned(),
            Expr::Any(parts) => {
                let parts: Vec<String> = parts.iter().map(|part| self.closed(part)).collect();
                either(&parts)
            }
            Expr::All(_) | Expr::Compare(_) => {
                let groups = groups(conjuncts(expr));
                let parts: Vec<String> = groups.iter().map(|group| self.group(group)).collect();
                if parts.is_empty() { "true".to_owned() } else { both(&parts) }
            }
        }
    }

    /// Conditions that share a join, or one that shares none.
    fn group(&mut self, parts: &[&Expr]) -> String {
        if let [Expr::Any(alternatives)] = parts {
            let parts: Vec<String> = alternatives.iter().map(|part| self.closed(part)).collect();
            return either(&parts);
        }
        let roots = parts.iter().flat_map(|part| roots(part)).fold(Vec::new(), |mut all: Vec<Root>, root| {
            if !all.contains(&root) {
                all.push(root);
            }
            all
        });
        if roots.is_empty() {
            let mut joins = Joins::new(self.tables, self.alias);
            let parts: Vec<String> = parts.iter().map(|part| self.expr(part, &mut joins)).collect();
            return both(&parts);
        }
        // That none of all values fails is asked of the record, not of the joined row.
        let mut outside = Vec::new();
        let parts: Vec<Expr> = parts
            .iter()
            .map(|part| match part {
                Expr::Compare(comparison) if needs_all(comparison) && is_of_the_record(comparison) => {
                    outside.push(self.none_of_the_record_fails(comparison));
                    Expr::Compare(Comparison { any: true, ..comparison.clone() })
                }
                other => (*other).clone(),
            })
            .collect();
        let contains = match parts.as_slice() {
            [Expr::Compare(comparison)] => self.contains(comparison),
            _ => None,
        };
        let mut all = vec![match contains {
            Some(contains) => contains,
            None => self.exists(&parts, &roots),
        }];
        all.extend(outside);
        both(&all)
    }

    fn exists(&mut self, parts: &[Expr], roots: &[Root]) -> String {
        if let [Root::Walk(walk)] = roots
            && parts.iter().any(rejects_missing)
        {
            let alias = self.names.next();
            if let Some(first) = self.first(walk, &alias) {
                let mut joins = Joins::new(self.tables, self.alias);
                joins.knows(walk.clone(), alias.clone());
                let conditions: Vec<String> = parts.iter().map(|part| self.expr(part, &mut joins)).collect();
                return match first.list {
                    Some((list, key)) if parts.iter().all(is_free) => format!(
                        "{list} && ARRAY(SELECT {key} FROM {}{} WHERE {})",
                        first.from,
                        joins.text,
                        both(&conditions)
                    ),
                    _ => format!(
                        "EXISTS (SELECT 1 FROM {}{} WHERE {} AND {})",
                        first.from,
                        joins.text,
                        first.link,
                        both(&conditions)
                    ),
                };
            }
        }
        let mut joins = Joins::new(self.tables, self.alias);
        let conditions: Vec<String> = parts.iter().map(|part| self.expr(part, &mut joins)).collect();
        format!("EXISTS (SELECT 1 FROM (SELECT 1) AS _one{} WHERE {})", joins.text, both(&conditions))
    }

    fn first(&mut self, walk: &Walk, alias: &str) -> Option<First> {
        match (&walk.start, walk.hops.as_slice()) {
            (Start::Row, [hop]) => {
                let from = format!("{} AS {alias}", self.tables.named(&hop.collection));
                let list = (hop.link == Link::List)
                    .then(|| (format!("{}.{}", self.alias, ident(&hop.field)), format!("{alias}.\"id\"")));
                Some(First { from, link: linked(hop, self.alias, alias), list })
            }
            (Start::Collection { .. } | Start::Records { .. }, []) => {
                let (table, link) = Joins::new(self.tables, self.alias).start(&walk.start, alias, self.params);
                Some(First { from: format!("{table} AS {alias}"), link, list: None })
            }
            _ => None,
        }
    }

    /// `tags:each ?= 'x'`, with no other condition on the elements of `tags`: "contains", which a GIN index serves.
    fn contains(&mut self, comparison: &Comparison) -> Option<String> {
        let ((Operand::Field(list), Operand::Text(text)) | (Operand::Text(text), Operand::Field(list))) =
            (&comparison.left, &comparison.right)
        else {
            return None;
        };
        let fits = list.is_here() && list.is_element() && !list.lower && comparison.any && comparison.op == Op::Eq;
        if !fits || text.is_empty() {
            return None;
        }
        let text = self.params.push(SqlValue::List(vec![text.replace('\0', "\u{1}")]));
        Some(format!("{}.{} @> {text}", self.alias, ident(&list.name)))
    }

    /// The condition on one joined row.
    fn expr(&mut self, expr: &Expr, joins: &mut Joins<'a>) -> String {
        match expr {
            Expr::Always => "true".to_owned(),
            Expr::Never => "false".to_owned(),
            Expr::All(parts) => {
                let parts: Vec<String> = parts.iter().map(|part| self.expr(part, joins)).collect();
                if parts.is_empty() { "true".to_owned() } else { both(&parts) }
            }
            Expr::Any(parts) => {
                let parts: Vec<String> = parts.iter().map(|part| self.expr(part, joins)).collect();
                either(&parts)
            }
            Expr::Compare(comparison) => {
                let left = self.side(&comparison.left, joins);
                let right = self.side(&comparison.right, joins);
                let found = compare::render(comparison.op, &left, &right, self.params);
                if needs_all(comparison) {
                    let none_fails = self.none_fails(comparison, joins);
                    format!("({found} AND {none_fails})")
                } else {
                    found
                }
            }
        }
    }

    /// Match-all (section A.7, rules 2 and 4): no value, and no pair of values, of a fresh walk fails. A walk that finds
    /// nothing is one NULL row, and NULL is no failure. The side with one value folds here (rule 5).
    fn none_fails(&mut self, comparison: &Comparison, joins: &mut Joins<'a>) -> String {
        let mut walked = String::new();
        let mut fresh = |renderer: &mut Self, operand: &Operand| {
            if !operand.is_many() {
                return renderer.side(operand, joins).folding();
            }
            // Each side walks for itself: the pairs of both are compared.
            let walk = operand.fields().first().map(|field| field.walk.clone()).unwrap_or_default();
            let mut anew = joins.anew(&walk, &mut renderer.names, renderer.params);
            let side = renderer.side(operand, &mut anew).walked();
            walked.push_str(&anew.text);
            side
        };
        let left = fresh(self, &comparison.left);
        let right = fresh(self, &comparison.right);
        let holds = compare::render(comparison.op, &left, &right, self.params);
        format!("NOT EXISTS (SELECT 1 FROM (SELECT 1) AS _all{walked} WHERE NOT ({holds}))")
    }

    /// The same, asked of the record: what the side with one value joins is joined here.
    fn none_of_the_record_fails(&mut self, comparison: &Comparison) -> String {
        if let Some(direct) = self.none_fails_directly(comparison) {
            return direct;
        }
        let mut joins = Joins::new(self.tables, self.alias);
        let none_fails = self.none_fails(comparison, &mut joins);
        if joins.text.is_empty() {
            return none_fails;
        }
        format!("EXISTS (SELECT 1 FROM (SELECT 1) AS _one{} WHERE {none_fails})", joins.text)
    }

    /// The same against a literal, as an anti-join.
    fn none_fails_directly(&mut self, comparison: &Comparison) -> Option<String> {
        let flipped = comparison.left.fields().is_empty();
        let (field, other) =
            if flipped { (&comparison.right, &comparison.left) } else { (&comparison.left, &comparison.right) };
        let Operand::Field(field) = field else { return None };
        let empty = matches!(other, Operand::Null) || matches!(other, Operand::Text(text) if text.is_empty());
        let fails_without =
            empty && comparison.op == Op::Ne || field.length || field.class == FieldClass::Json || is_geo_path(field);
        let Some(Root::Walk(root)) = Root::of(field) else { return None };
        if !other.fields().is_empty() || fails_without || field.walk.anchored > 0 {
            return None;
        }
        let alias = self.names.next();
        let first = self.first(&root, &alias)?;
        let mut joins = Joins::new(self.tables, self.alias);
        joins.knows(root, alias);
        let many = self.side(&Operand::Field(field.clone()), &mut joins).walked();
        let one = self.side(other, &mut joins).folding();
        let (left, right) = if flipped { (one, many) } else { (many, one) };
        let holds = compare::render(comparison.op, &left, &right, self.params);
        Some(match first.list {
            Some((list, key)) => {
                format!("NOT ({list} && ARRAY(SELECT {key} FROM {}{} WHERE NOT ({holds})))", first.from, joins.text)
            }
            None => format!(
                "NOT EXISTS (SELECT 1 FROM {}{} WHERE {} AND NOT ({holds}))",
                first.from, joins.text, first.link
            ),
        })
    }

    fn side(&mut self, operand: &Operand, joins: &mut Joins<'a>) -> Side {
        match operand {
            Operand::Field(field) => self.field(field, joins),
            Operand::Distance(points) => {
                let points = points.each_ref().map(|point| self.side(point, joins).number(self.params));
                Side::distance(&points)
            }
            Operand::Moment(moment) => {
                let time = self.side(&moment.time, joins);
                moment::render(moment, &time, self.params)
            }
            Operand::Known(known) => Side::known(&known.0, &known.1, self.params),
            other => Side::literal(other),
        }
    }

    fn field(&mut self, field: &FieldRef, joins: &mut Joins<'a>) -> Side {
        if let (Start::Values { .. }, []) = (&field.walk.start, field.walk.hops.as_slice()) {
            let row = joins.row(&field.walk, &mut self.names, self.params);
            return Side::element(&format!("{row}.v"), field.lower).of_the_body();
        }
        if field.is_element() {
            let element = joins.element(field, &mut self.names, self.params);
            return Side::element(&format!("{element}.v"), field.lower);
        }
        let row = joins.row(&field.walk, &mut self.names, self.params);
        Side::field(field, &row, self.params)
    }
}

fn is_geo_path(field: &FieldRef) -> bool {
    field.class == FieldClass::Geo && !field.path.is_empty()
}

fn needs_all(comparison: &Comparison) -> bool {
    !comparison.any && (comparison.left.is_many() || comparison.right.is_many())
}

/// Every value of the sides is walked to anew from the record: nothing depends on the joined row.
fn is_of_the_record(comparison: &Comparison) -> bool {
    let fixed = |operand: &Operand| operand.is_many() || !operand.fields().iter().any(|field| field.is_many());
    fields(comparison).iter().all(|field| field.walk.anchored == 0)
        && fixed(&comparison.left)
        && fixed(&comparison.right)
}

fn fields(comparison: &Comparison) -> Vec<&FieldRef> {
    let mut fields = comparison.left.fields();
    fields.extend(comparison.right.fields());
    fields
}

fn roots(expr: &Expr) -> Vec<Root> {
    match expr {
        Expr::Always | Expr::Never => Vec::new(),
        Expr::All(parts) | Expr::Any(parts) => parts.iter().flat_map(roots).collect(),
        Expr::Compare(comparison) => fields(comparison).into_iter().filter_map(Root::of).collect(),
    }
}

/// Looks at nothing but the joined row.
fn is_free(expr: &Expr) -> bool {
    match expr {
        Expr::Always | Expr::Never => true,
        Expr::All(parts) | Expr::Any(parts) => parts.iter().all(is_free),
        Expr::Compare(comparison) => {
            !needs_all(comparison) && fields(comparison).iter().all(|field| Root::of(field).is_some())
        }
    }
}

/// Cannot hold where the joined row is missing.
fn rejects_missing(expr: &Expr) -> bool {
    match expr {
        Expr::Always => false,
        Expr::Never => true,
        Expr::All(parts) => parts.iter().any(rejects_missing),
        Expr::Any(parts) => parts.iter().all(rejects_missing),
        Expr::Compare(comparison) => {
            let joined = |operand: &Operand| match operand {
                Operand::Field(field) => !field.length && Root::of(field).is_some(),
                _ => false,
            };
            let says = |operand: &Operand| match operand {
                Operand::Text(text) => !text.is_empty(),
                Operand::Number(_) | Operand::Bool(_) | Operand::Truth(_) => true,
                _ => false,
            };
            let (left, right) = (&comparison.left, &comparison.right);
            match comparison.op {
                Op::Ne => false,
                Op::Eq => joined(left) && says(right) || joined(right) && says(left),
                _ => joined(left) || joined(right),
            }
        }
    }
}

/// Conditions that share joins belong together, directly or through others.
fn groups(parts: Vec<&Expr>) -> Vec<Vec<&Expr>> {
    let mut groups: Vec<(Vec<Root>, Vec<&Expr>)> = Vec::new();
    for part in parts {
        let mut own = (roots(part), vec![part]);
        let mut others = Vec::new();
        for group in groups {
            if group.0.iter().any(|root| own.0.iter().any(|other| root.shares(other))) {
                own.0.extend(group.0);
                own.1.splice(0..0, group.1);
            } else {
                others.push(group);
            }
        }
        others.push(own);
        groups = others;
    }
    groups.into_iter().map(|(_, parts)| parts).collect()
}

fn conjuncts(expr: &Expr) -> Vec<&Expr> {
    match expr {
        Expr::All(parts) => parts.iter().flat_map(conjuncts).collect(),
        other => vec![other],
    }
}

fn both(parts: &[String]) -> String {
    match parts {
        [one] => one.clone(),
        _ => format!("({})", parts.join(" AND ")),
    }
}

fn either(parts: &[String]) -> String {
    match parts {
        [] => "false".to_owned(),
        [one] => one.clone(),
        _ => format!("({})", parts.join(" OR ")),
    }
}

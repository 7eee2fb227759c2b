//! SELECT and its clauses.

use super::parse::Reader;
use super::tokens::Kind;
use super::tree::{Column, Expr, Join, Query, Select, Source, What};

/// Columns, tables and selects of one query.
const MAX_PARTS: usize = 100;

impl Reader<'_> {
    pub(super) fn query(&mut self) -> Result<Query, String> {
        let known = self.named.len();
        if self.has_word("with") {
            self.with()?;
        }
        let found = self.selects();
        // A name counts for the query it stands in front of.
        self.named.truncate(known);
        found
    }

    /// Queries with a name, which is as good as writing each of them where its name stands.
    fn with(&mut self) -> Result<(), String> {
        if self.is_word("recursive") {
            return Err("WITH RECURSIVE is not supported in a view's query".to_owned());
        }
        loop {
            let name = self.name()?;
            self.word("as")?;
            self.symbol("(")?;
            let query = self.nested(Self::query)?;
            self.symbol(")")?;
            self.named.push((name, query));
            if !self.has_symbol(",") {
                return Ok(());
            }
        }
    }

    fn selects(&mut self) -> Result<Query, String> {
        let first = self.select()?;
        let mut more = Vec::new();
        while self.has_word("union") {
            let all = self.has_word("all");
            more.push((all, self.select()?));
            if more.len() > MAX_PARTS {
                return Err(format!("a view's query has at most {MAX_PARTS} selects"));
            }
        }
        for word in ["intersect", "except"] {
            if self.is_word(word) {
                return Err(format!("{} is not supported in a view's query", word.to_uppercase()));
            }
        }
        let order = self.order()?;
        let limit = if self.has_word("limit") { Some(self.whole()?) } else { None };
        let offset = if limit.is_some() && self.has_word("offset") { Some(self.whole()?) } else { None };
        Ok(Query { first, more, order, limit, offset })
    }

    pub(super) fn order(&mut self) -> Result<Vec<(Expr, bool)>, String> {
        if !self.has_word("order") {
            return Ok(Vec::new());
        }
        self.word("by")?;
        self.list(|reader| {
            let key = reader.expr()?;
            let descending = reader.has_word("desc");
            if !descending {
                reader.has_word("asc");
            }
            Ok((key, descending))
        })
    }

    fn whole(&mut self) -> Result<u64, String> {
        let Some(Kind::Number(digits)) = self.peek() else {
            return Err(format!("{} is no whole number", self.shown()));
        };
        let number = digits.parse().map_err(|_| format!("{} is no whole number", self.shown()))?;
        self.at += 1;
        Ok(number)
    }

    fn select(&mut self) -> Result<Select, String> {
        if !self.is_word("select") {
            return Err(format!("{} stands where SELECT should: a view is one SELECT", self.shown()));
        }
        self.at += 1;
        let distinct = self.has_word("distinct");
        if !distinct {
            self.has_word("all");
        }
        let columns = self.list(Self::column)?;
        let mut from = Vec::new();
        if self.has_word("from") {
            from.push(self.source(Join::Cross)?);
            while let Some(join) = self.join()? {
                let source = self.source(join)?;
                from.push(source);
                if from.len() > MAX_PARTS {
                    break;
                }
            }
        }
        if columns.len() > MAX_PARTS || from.len() > MAX_PARTS {
            return Err(format!("a view's query has at most {MAX_PARTS} columns and tables"));
        }
        let condition = if self.has_word("where") { Some(self.expr()?) } else { None };
        let mut group = Vec::new();
        if self.has_word("group") {
            self.word("by")?;
            group = self.list(Self::expr)?;
        }
        let having = if self.has_word("having") { Some(self.expr()?) } else { None };
        Ok(Select { distinct, columns, from, condition, group, having })
    }

    fn column(&mut self) -> Result<Column, String> {
        if self.is_symbol("*") {
            return Err("`*` is not possible in a view: name the columns".to_owned());
        }
        let start = self.at;
        let value = self.expr()?;
        let text = self.written(start);
        let named = self.has_word("as") || matches!(self.peek(), Some(Kind::Name(_))) || self.is_bare_alias();
        let name = match &value {
            _ if named => self.name()?,
            Expr::Column { name, .. } => name.clone(),
            // Only a column of the view itself needs a name of its own.
            _ => text.clone(),
        };
        Ok(Column { name, value, text })
    }

    /// A word behind an expression or table that is no keyword.
    fn is_bare_alias(&mut self) -> bool {
        let start = self.at;
        let found = self.name().is_ok();
        self.at = start;
        found
    }

    /// What joins the next source, if there is one.
    fn join(&mut self) -> Result<Option<Join>, String> {
        if self.has_symbol(",") {
            return Ok(Some(Join::Cross));
        }
        for word in ["natural", "right", "full"] {
            if self.is_word(word) {
                return Err(format!("{} JOIN is not supported in a view's query", word.to_uppercase()));
            }
        }
        let join = if self.has_word("left") {
            self.has_word("outer");
            Join::Left
        } else if self.has_word("cross") {
            Join::Cross
        } else if self.has_word("inner") || self.is_word("join") {
            Join::Inner
        } else {
            return Ok(None);
        };
        self.word("join")?;
        Ok(Some(join))
    }

    fn source(&mut self, join: Join) -> Result<Source, String> {
        let mut named_query = None;
        let what = if self.has_symbol("(") {
            let query = self.nested(Self::query)?;
            self.symbol(")")?;
            What::Query(Box::new(query))
        } else {
            let name = self.name()?;
            if self.is_symbol(".") {
                return Err(format!("`{name}.`: a view reads the app's own collections, which have no such place"));
            }
            let known = self.named.iter().rev().find(|(known, _)| known.eq_ignore_ascii_case(&name));
            match known.map(|(_, query)| query.clone()) {
                Some(query) => {
                    self.copied += query.weight();
                    if self.copied > MAX_PARTS {
                        return Err(format!("the names of a WITH stand for at most {MAX_PARTS} tables"));
                    }
                    named_query = Some(name);
                    What::Query(Box::new(query))
                }
                None => What::Table(name),
            }
        };
        let named = self.has_word("as") || self.is_bare_alias();
        let alias = match &what {
            _ if named => self.name()?,
            What::Table(name) => name.clone(),
            What::Query(_) if named_query.is_some() => named_query.unwrap_or_default(),
            What::Query(_) => return Err("a query in FROM needs a name: write `(SELECT …) AS name`".to_owned()),
        };
        if self.is_word("using") {
            return Err("USING is not supported in a view's query: write ON".to_owned());
        }
        let on = if self.has_word("on") { Some(self.expr()?) } else { None };
        match (join, &on) {
            (Join::Left, None) => Err(format!("the LEFT JOIN of `{alias}` needs an ON")),
            // A condition makes a plain join of it, as in SQLite.
            (Join::Cross, Some(_)) => Ok(Source { join: Join::Inner, what, alias, on }),
            (Join::Inner, None) => Ok(Source { join: Join::Cross, what, alias, on }),
            _ => Ok(Source { join, what, alias, on }),
        }
    }
}

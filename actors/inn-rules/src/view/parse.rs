//! Expressions of a view's query, and the reader they share with [`super::select`].

use super::tokens::{Kind, Token, tokens};
use super::tree::{Call, Expr, Op, Over, Query, Tested};

/// Reads one SELECT statement of `SQLite`.
///
/// # Errors
/// A sentence about the first thing that a view cannot hold.
pub fn parse(text: &str) -> Result<Query, String> {
    let mut reader = Reader { text, tokens: tokens(text)?, at: 0, depth: 0, links: 0, named: Vec::new(), copied: 0 };
    let query = reader.query()?;
    while reader.has_symbol(";") {}
    match reader.peek() {
        None => Ok(query),
        Some(_) => Err(format!("{} has no meaning in a view's query", reader.shown())),
    }
}

/// Nested expressions and queries.
const MAX_DEPTH: usize = 40;
/// Operators between values.
const MAX_LINKS: usize = 150;

/// Words that cannot be the bare name of a column or table.
const KEYWORDS: [&str; 44] = [
    "select",
    "from",
    "where",
    "group",
    "having",
    "order",
    "limit",
    "offset",
    "union",
    "all",
    "distinct",
    "join",
    "left",
    "inner",
    "cross",
    "outer",
    "on",
    "as",
    "and",
    "or",
    "not",
    "is",
    "in",
    "like",
    "between",
    "case",
    "when",
    "then",
    "else",
    "end",
    "null",
    "exists",
    "cast",
    "by",
    "asc",
    "desc",
    "natural",
    "using",
    "right",
    "full",
    "intersect",
    "except",
    "with",
    "over",
];

pub(super) struct Reader<'t> {
    pub(super) text: &'t str,
    tokens: Vec<Token>,
    pub(super) at: usize,
    depth: usize,
    links: usize,
    /// Queries that have a name here.
    pub(super) named: Vec<(String, Query)>,
    /// Tables that names were put in place of.
    pub(super) copied: usize,
}

impl Reader<'_> {
    pub(super) fn peek(&self) -> Option<&Kind> {
        self.tokens.get(self.at).map(|token| &token.kind)
    }

    /// The next word, for a message.
    pub(super) fn shown(&self) -> String {
        match self.tokens.get(self.at) {
            Some(token) => format!("`{}`", self.text.get(token.start..token.end).unwrap_or_default()),
            None => "the end".to_owned(),
        }
    }

    /// The text between two words, blanks trimmed.
    pub(super) fn written(&self, from: usize) -> String {
        let start = self.tokens.get(from).map(|token| token.start);
        let end = self.at.checked_sub(1).and_then(|last| self.tokens.get(last)).map(|token| token.end);
        let text = start.zip(end).and_then(|(start, end)| self.text.get(start..end));
        text.unwrap_or_default().to_owned()
    }

    fn is_word_at(&self, at: usize, word: &str) -> bool {
        matches!(self.tokens.get(at).map(|token| &token.kind), Some(Kind::Word(found)) if found.eq_ignore_ascii_case(word))
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        self.is_word_at(self.at, word)
    }

    pub(super) fn has_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.at += usize::from(found);
        found
    }

    pub(super) fn word(&mut self, word: &str) -> Result<(), String> {
        if self.has_word(word) {
            Ok(())
        } else {
            Err(format!("{} stands where {} should", self.shown(), word.to_uppercase()))
        }
    }

    pub(super) fn is_symbol(&self, symbol: &str) -> bool {
        matches!(self.peek(), Some(Kind::Symbol(found)) if *found == symbol)
    }

    pub(super) fn has_symbol(&mut self, symbol: &str) -> bool {
        let found = self.is_symbol(symbol);
        self.at += usize::from(found);
        found
    }

    pub(super) fn symbol(&mut self, symbol: &str) -> Result<(), String> {
        if self.has_symbol(symbol) { Ok(()) } else { Err(format!("{} stands where `{symbol}` should", self.shown())) }
    }

    /// A name, quoted or bare.
    pub(super) fn name(&mut self) -> Result<String, String> {
        let name = match self.peek() {
            Some(Kind::Name(name)) => name.clone(),
            Some(Kind::Word(word)) if !KEYWORDS.contains(&word.to_ascii_lowercase().as_str()) => word.clone(),
            _ => return Err(format!("{} stands where a name should", self.shown())),
        };
        self.at += 1;
        Ok(name)
    }

    pub(super) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, String>) -> Result<T, String> {
        if self.depth >= MAX_DEPTH {
            return Err(format!("a view's query is nested at most {MAX_DEPTH} deep"));
        }
        self.depth += 1;
        let found = read(self);
        self.depth -= 1;
        found
    }

    /// One more operator. Chains of them are deep trees, which whoever walks them has to bear.
    fn link(&mut self) -> Result<(), String> {
        self.links += 1;
        if self.links > MAX_LINKS { Err(format!("a view's query has at most {MAX_LINKS} operators")) } else { Ok(()) }
    }

    pub(super) fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Result<T, String>) -> Result<Vec<T>, String> {
        let mut found = vec![read(self)?];
        while self.has_symbol(",") {
            found.push(read(self)?);
        }
        Ok(found)
    }

    pub(super) fn expr(&mut self) -> Result<Expr, String> {
        self.nested(Self::or)
    }

    fn or(&mut self) -> Result<Expr, String> {
        let mut left = self.and()?;
        while self.has_word("or") {
            self.link()?;
            left = binary(Op::Or, left, self.and()?);
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Expr, String> {
        let mut left = self.not()?;
        while self.has_word("and") {
            self.link()?;
            left = binary(Op::And, left, self.not()?);
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Expr, String> {
        if self.is_word("not") && !self.is_word_at(self.at + 1, "exists") {
            self.at += 1;
            return Ok(Expr::Not(Box::new(self.nested(Self::not)?)));
        }
        self.equality()
    }

    fn equality(&mut self) -> Result<Expr, String> {
        let mut left = self.comparison()?;
        loop {
            let op = if self.has_symbol("=") || self.has_symbol("==") {
                Op::Eq
            } else if self.has_symbol("!=") || self.has_symbol("<>") {
                Op::Ne
            } else if self.has_word("is") {
                let negated = self.has_word("not");
                if self.has_word("null") {
                    self.link()?;
                    left = test(left, negated, Tested::Null);
                    continue;
                }
                if negated { Op::IsNot } else { Op::Is }
            } else {
                let start = self.at;
                let negated = self.has_word("not");
                match self.tested()? {
                    Some(tested) => {
                        self.link()?;
                        left = test(left, negated, tested);
                        continue;
                    }
                    None => self.at = start,
                }
                return Ok(left);
            };
            self.link()?;
            left = binary(op, left, self.comparison()?);
        }
    }

    fn tested(&mut self) -> Result<Option<Tested>, String> {
        if self.has_word("like") {
            let pattern = self.comparison()?;
            if self.is_word("escape") {
                return Err("ESCAPE is not supported in a view's query".to_owned());
            }
            return Ok(Some(Tested::Like(Box::new(pattern))));
        }
        if self.has_word("between") {
            let low = self.comparison()?;
            self.word("and")?;
            return Ok(Some(Tested::Between(Box::new(low), Box::new(self.comparison()?))));
        }
        if self.has_word("in") {
            self.symbol("(")?;
            let tested = if self.is_word("select") {
                Tested::InQuery(Box::new(self.nested(Self::query)?))
            } else {
                Tested::In(self.list(Self::expr)?)
            };
            self.symbol(")")?;
            return Ok(Some(tested));
        }
        Ok(None)
    }

    fn comparison(&mut self) -> Result<Expr, String> {
        let mut left = self.sum()?;
        loop {
            let found = [("<=", Op::Le), (">=", Op::Ge), ("<", Op::Lt), (">", Op::Gt)];
            let Some((_, op)) = found.into_iter().find(|(symbol, _)| self.has_symbol(symbol)) else { return Ok(left) };
            self.link()?;
            left = binary(op, left, self.sum()?);
        }
    }

    fn sum(&mut self) -> Result<Expr, String> {
        let mut left = self.product()?;
        loop {
            let op = if self.has_symbol("+") {
                Op::Add
            } else if self.has_symbol("-") {
                Op::Sub
            } else {
                return Ok(left);
            };
            self.link()?;
            left = binary(op, left, self.product()?);
        }
    }

    fn product(&mut self) -> Result<Expr, String> {
        let mut left = self.concat()?;
        loop {
            let op = if self.has_symbol("*") {
                Op::Mul
            } else if self.has_symbol("/") {
                Op::Div
            } else if self.is_symbol("%") {
                return Err("`%` is not supported in a view's query".to_owned());
            } else {
                return Ok(left);
            };
            self.link()?;
            left = binary(op, left, self.concat()?);
        }
    }

    fn concat(&mut self) -> Result<Expr, String> {
        let mut left = self.unary()?;
        while self.has_symbol("||") {
            self.link()?;
            left = binary(Op::Concat, left, self.unary()?);
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expr, String> {
        if self.has_symbol("-") {
            return Ok(Expr::Minus(Box::new(self.nested(Self::unary)?)));
        }
        if self.has_symbol("+") {
            return self.nested(Self::unary);
        }
        self.value()
    }

    fn value(&mut self) -> Result<Expr, String> {
        let literal = match self.peek() {
            Some(Kind::Text(text)) => Some(Expr::Text(text.clone())),
            Some(Kind::Number(digits)) => Some(Expr::Number(digits.clone())),
            Some(Kind::Word(word)) if word.eq_ignore_ascii_case("null") => Some(Expr::Null),
            Some(Kind::Word(word)) if word.eq_ignore_ascii_case("true") => Some(Expr::Truth(true)),
            Some(Kind::Word(word)) if word.eq_ignore_ascii_case("false") => Some(Expr::Truth(false)),
            _ => None,
        };
        if let Some(literal) = literal {
            self.at += 1;
            return Ok(literal);
        }
        if self.has_symbol("(") {
            let inner =
                if self.is_word("select") { Expr::Scalar(Box::new(self.nested(Self::query)?)) } else { self.expr()? };
            self.symbol(")")?;
            return Ok(inner);
        }
        if self.is_word("exists") || self.is_word("not") {
            let negated = self.has_word("not");
            self.word("exists")?;
            self.symbol("(")?;
            let query = self.nested(Self::query)?;
            self.symbol(")")?;
            let exists = Expr::Exists(Box::new(query));
            return Ok(if negated { Expr::Not(Box::new(exists)) } else { exists });
        }
        if self.has_word("case") {
            return self.case();
        }
        if self.has_word("cast") {
            self.symbol("(")?;
            let value = self.expr()?;
            self.word("as")?;
            let kind = self.name()?;
            self.symbol(")")?;
            return Ok(Expr::Cast(Box::new(value), kind.to_ascii_lowercase()));
        }
        let name = self.name()?;
        if self.is_symbol("(") {
            return self.call(&name);
        }
        if self.has_symbol(".") {
            if self.is_symbol("*") {
                return Err("`*` is not possible in a view: name the columns".to_owned());
            }
            return Ok(Expr::Column { source: Some(name), name: self.name()? });
        }
        Ok(Expr::Column { source: None, name })
    }

    fn case(&mut self) -> Result<Expr, String> {
        let of = if self.is_word("when") { None } else { Some(Box::new(self.expr()?)) };
        let mut when = Vec::new();
        while self.has_word("when") {
            let condition = self.expr()?;
            self.word("then")?;
            when.push((condition, self.expr()?));
        }
        let otherwise = if self.has_word("else") { Some(Box::new(self.expr()?)) } else { None };
        self.word("end")?;
        if when.is_empty() { Err("a CASE needs a WHEN".to_owned()) } else { Ok(Expr::Case { of, when, otherwise }) }
    }

    fn call(&mut self, name: &str) -> Result<Expr, String> {
        self.symbol("(")?;
        let distinct = self.has_word("distinct");
        let star = self.has_symbol("*");
        let args = if star || self.is_symbol(")") { Vec::new() } else { self.list(Self::expr)? };
        self.symbol(")")?;
        if self.is_word("filter") {
            return Err("FILTER is not supported in a view's query".to_owned());
        }
        let over = if self.has_word("over") { Some(self.over()?) } else { None };
        Ok(Expr::Call(Call { name: name.to_ascii_lowercase(), distinct, star, args, over }))
    }

    fn over(&mut self) -> Result<Over, String> {
        self.symbol("(")?;
        let mut partition = Vec::new();
        if self.has_word("partition") {
            self.word("by")?;
            partition = self.list(Self::expr)?;
        }
        let order = self.order()?;
        self.symbol(")")?;
        Ok(Over { partition, order })
    }
}

fn binary(op: Op, left: Expr, right: Expr) -> Expr {
    Expr::Binary(op, Box::new(left), Box::new(right))
}

fn test(value: Expr, negated: bool, tested: Tested) -> Expr {
    Expr::Test { value: Box::new(value), negated, tested }
}

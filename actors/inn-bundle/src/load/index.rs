//! Index statements, of which exactly one form is understood.

/// `CREATE [UNIQUE] INDEX name ON table (column [COLLATE NOCASE] [ASC|DESC], …) [WHERE column != '']`, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    pub name: String,
    pub table: String,
    pub unique: bool,
    pub columns: Vec<Column>,
    /// The one condition there may be: only rows in which this column is not empty are in the index.
    pub where_filled: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    /// `COLLATE NOCASE`: the case of ASCII letters is ignored.
    pub nocase: bool,
    pub descending: bool,
}

impl Column {
    /// In order, and every byte counts.
    pub fn plain(name: &str) -> Self {
        Self { name: name.to_owned(), nocase: false, descending: false }
    }

    fn to_sql(&self) -> String {
        let collation = if self.nocase { " COLLATE NOCASE" } else { "" };
        let order = if self.descending { " DESC" } else { "" };
        format!("`{}`{collation}{order}", self.name)
    }
}

impl Index {
    /// The statement in its one canonical spelling.
    pub fn to_sql(&self) -> String {
        let unique = if self.unique { "UNIQUE " } else { "" };
        let columns: Vec<_> = self.columns.iter().map(Column::to_sql).collect();
        let filled = self.where_filled.as_ref().map(|column| format!(" WHERE `{column}` != ''")).unwrap_or_default();
        format!("CREATE {unique}INDEX `{}` ON `{}` ({}){filled}", self.name, self.table, columns.join(", "))
    }
}

/// Reads an index statement. The error says what form is understood.
pub fn parse(statement: &str) -> Result<Index, String> {
    let tokens = tokens(statement).ok_or("has a character or a quote that no index statement of this form has")?;
    let mut reader = Reader { tokens: &tokens };
    reader.statement().ok_or_else(|| {
        "must be CREATE [UNIQUE] INDEX name ON table (column [COLLATE NOCASE] [DESC], …) [WHERE column != '']; nothing else \
         is understood"
            .to_owned()
    })
}

#[derive(Debug, PartialEq)]
enum Token {
    Word(String),
    Quoted(String),
    EmptyText,
    Sign(&'static str),
}

fn tokens(mut text: &str) -> Option<Vec<Token>> {
    let mut found = Vec::new();
    loop {
        text = text.trim_start();
        let Some(first) = text.chars().next() else { return Some(found) };
        let closing = match first {
            '`' => Some('`'),
            '"' => Some('"'),
            '[' => Some(']'),
            _ => None,
        };
        if let Some(closing) = closing {
            let (name, rest) = text.get(1..)?.split_once(closing)?;
            found.push(Token::Quoted(is_word(name).then(|| name.to_owned())?));
            text = rest;
        } else if let Some(rest) = text.strip_prefix("''") {
            found.push(Token::EmptyText);
            text = rest;
        } else if let Some((sign, rest)) =
            ["!=", "<>", "(", ")", ",", ";"].into_iter().find_map(|sign| Some((sign, text.strip_prefix(sign)?)))
        {
            found.push(Token::Sign(sign));
            text = rest;
        } else {
            let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
            let word = text.get(..end).filter(|word| !word.is_empty())?;
            found.push(Token::Word(word.to_owned()));
            text = text.get(end..)?;
        }
    }
}

fn is_word(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

struct Reader<'a> {
    tokens: &'a [Token],
}

impl Reader<'_> {
    fn statement(&mut self) -> Option<Index> {
        self.keyword("CREATE").then_some(())?;
        let unique = self.keyword("UNIQUE");
        self.keyword("INDEX").then_some(())?;
        if self.keyword("IF") {
            (self.keyword("NOT") && self.keyword("EXISTS")).then_some(())?;
        }
        let name = self.name()?;
        self.keyword("ON").then_some(())?;
        let table = self.name()?;
        self.sign(&["("])?;
        let mut columns = vec![self.column()?];
        while self.sign(&[","]).is_some() {
            columns.push(self.column()?);
        }
        self.sign(&[")"])?;
        let where_filled = if self.keyword("WHERE") {
            let column = self.name()?;
            self.sign(&["!=", "<>"])?;
            matches!(self.next()?, Token::EmptyText).then_some(())?;
            Some(column)
        } else {
            None
        };
        while self.sign(&[";"]).is_some() {}
        self.tokens.is_empty().then_some(Index { name, table, unique, columns, where_filled })
    }

    fn column(&mut self) -> Option<Column> {
        let name = self.name()?;
        let mut nocase = false;
        if self.keyword("COLLATE") {
            nocase = self.keyword("NOCASE");
            (nocase || self.keyword("BINARY")).then_some(())?;
        }
        let descending = self.keyword("DESC");
        if !descending {
            self.keyword("ASC");
        }
        Some(Column { name, nocase, descending })
    }

    fn next(&mut self) -> Option<&Token> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first)
    }

    fn keyword(&mut self, keyword: &str) -> bool {
        let found = matches!(self.tokens.first(), Some(Token::Word(word)) if word.eq_ignore_ascii_case(keyword));
        if found {
            self.next();
        }
        found
    }

    fn sign(&mut self, signs: &[&str]) -> Option<()> {
        matches!(self.tokens.first(), Some(Token::Sign(sign)) if signs.contains(sign)).then_some(())?;
        self.next().map(|_| ())
    }

    fn name(&mut self) -> Option<String> {
        match self.next()? {
            Token::Word(name) | Token::Quoted(name) => Some(name.clone()),
            _ => None,
        }
    }
}

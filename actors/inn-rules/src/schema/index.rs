//! Indexes: parsed from the `CREATE INDEX` texts of a collection, never executed as they are.

use inn_protocol::model::{Collection, FieldKind};

use super::{Storage, storage};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexMethod {
    Btree,
    /// Over the values of a list.
    Gin,
}

/// One column of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexColumn {
    pub name: String,
    /// `COLLATE NOCASE`: the case of ASCII letters is ignored.
    pub nocase: bool,
    pub descending: bool,
}

/// An index in the terms both databases share. Its columns are fields of the collection, or `id`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexSpec {
    pub name: String,
    pub unique: bool,
    pub method: IndexMethod,
    pub columns: Vec<IndexColumn>,
    /// `WHERE column != ''`: unset values are left out.
    pub where_not_empty: Option<String>,
}

const MAX_TEXT: usize = 2000;
const MAX_COLUMNS: usize = 16;
/// PostgreSQL cuts longer names without a word.
const MAX_NAME: usize = 63;

/// Reads `CREATE [UNIQUE] INDEX [IF NOT EXISTS] name ON table (column [COLLATE NOCASE] [ASC|DESC], …)
/// [WHERE column != '']`; names bare or in backticks, double quotes or brackets. The table's name is not compared:
/// PocketBase rewrites it too.
///
/// # Errors
/// A sentence about the first thing that is not of this form.
pub fn parse_index(text: &str) -> Result<IndexSpec, String> {
    if text.len() > MAX_TEXT {
        return Err(format!("an index has at most {MAX_TEXT} bytes"));
    }
    let mut tokens = Tokens { tokens: tokenize(text)?, at: 0 };
    tokens.word("CREATE")?;
    let unique = tokens.has_word("UNIQUE");
    tokens.word("INDEX")?;
    if tokens.has_word("IF") {
        tokens.word("NOT")?;
        tokens.word("EXISTS")?;
    }
    let mut name = tokens.name()?;
    if tokens.has_symbol('.') {
        name = tokens.name()?;
    }
    if name.len() > MAX_NAME {
        return Err(format!("index name {name:?} is longer than {MAX_NAME} bytes"));
    }
    tokens.word("ON")?;
    tokens.name()?;
    tokens.symbol('(')?;
    let mut columns = Vec::new();
    loop {
        columns.push(column(&mut tokens)?);
        if !tokens.has_symbol(',') {
            break;
        }
    }
    tokens.symbol(')')?;
    if columns.len() > MAX_COLUMNS {
        return Err(format!("index {name:?} has more than {MAX_COLUMNS} columns"));
    }
    let where_not_empty = if tokens.has_word("WHERE") { Some(condition(&mut tokens)?) } else { None };
    tokens.has_symbol(';');
    match tokens.next() {
        None => Ok(IndexSpec { name, unique, method: IndexMethod::Btree, columns, where_not_empty }),
        Some(token) => Err(format!("index {name:?}: unexpected {token}")),
    }
}

fn column(tokens: &mut Tokens) -> Result<IndexColumn, String> {
    let name = tokens.name()?;
    if tokens.has_symbol('(') {
        return Err(format!("{name}(…) is an expression; an index is over columns"));
    }
    let nocase = tokens.has_word("COLLATE") && {
        let collation = tokens.name()?;
        if !["NOCASE", "BINARY"].iter().any(|known| collation.eq_ignore_ascii_case(known)) {
            return Err(format!("collation {collation} is not known; NOCASE and BINARY are"));
        }
        collation.eq_ignore_ascii_case("NOCASE")
    };
    let descending = tokens.has_word("DESC") || {
        tokens.has_word("ASC");
        false
    };
    Ok(IndexColumn { name, nocase, descending })
}

/// `column != ''` or `column <> ''`, in any number of parentheses.
fn condition(tokens: &mut Tokens) -> Result<String, String> {
    let mut open = 0;
    while tokens.has_symbol('(') {
        open += 1;
    }
    let column = tokens.name()?;
    let operator = tokens.next();
    let empty = tokens.next();
    if !matches!((&operator, &empty), (Some(Token::NotEqual), Some(Token::Text(text))) if text.is_empty()) {
        return Err(format!("the condition on {column:?} is not of the form column != ''"));
    }
    for _ in 0..open {
        tokens.symbol(')')?;
    }
    Ok(column)
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Word(String),
    Quoted(String),
    Text(String),
    NotEqual,
    Symbol(char),
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Word(word) | Self::Quoted(word) => write!(f, "{word:?}"),
            Self::Text(text) => write!(f, "'{text}'"),
            Self::NotEqual => f.write_str("!="),
            Self::Symbol(symbol) => write!(f, "{symbol}"),
        }
    }
}

struct Tokens {
    tokens: Vec<Token>,
    at: usize,
}

impl Tokens {
    fn next(&mut self) -> Option<Token> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        token
    }

    fn take(&mut self, wanted: impl Fn(&Token) -> bool) -> bool {
        let found = self.tokens.get(self.at).is_some_and(wanted);
        self.at += usize::from(found);
        found
    }

    fn has_word(&mut self, word: &str) -> bool {
        self.take(|token| matches!(token, Token::Word(text) if text.eq_ignore_ascii_case(word)))
    }

    fn has_symbol(&mut self, symbol: char) -> bool {
        self.take(|token| *token == Token::Symbol(symbol))
    }

    fn word(&mut self, word: &str) -> Result<(), String> {
        if self.has_word(word) { Ok(()) } else { Err(self.expected(word)) }
    }

    fn symbol(&mut self, symbol: char) -> Result<(), String> {
        if self.has_symbol(symbol) { Ok(()) } else { Err(self.expected(&symbol.to_string())) }
    }

    fn name(&mut self) -> Result<String, String> {
        match self.next() {
            Some(Token::Word(name) | Token::Quoted(name)) if !name.is_empty() => Ok(name),
            _ => {
                self.at = self.at.saturating_sub(1);
                Err(self.expected("a name"))
            }
        }
    }

    fn expected(&self, wanted: &str) -> String {
        match self.tokens.get(self.at) {
            Some(token) => format!("expected {wanted}, found {token}"),
            None => format!("expected {wanted}, found the end"),
        }
    }
}

fn tokenize(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let closing = match c {
            '`' | '"' | '\'' => Some(c),
            '[' => Some(']'),
            _ => None,
        };
        if let Some(closing) = closing {
            let mut inside = String::new();
            loop {
                match chars.next() {
                    Some(end) if end == closing => break,
                    Some(c) => inside.push(c),
                    None => return Err(format!("{closing} is missing at the end")),
                }
            }
            tokens.push(if c == '\'' { Token::Text(inside) } else { Token::Quoted(inside) });
        } else if c.is_ascii_alphanumeric() || c == '_' {
            let mut word = String::from(c);
            while let Some(next) = chars.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
                word.push(next);
            }
            tokens.push(Token::Word(word));
        } else if (c == '!' && chars.next_if_eq(&'=').is_some()) || (c == '<' && chars.next_if_eq(&'>').is_some()) {
            tokens.push(Token::NotEqual);
        } else if !c.is_whitespace() {
            tokens.push(Token::Symbol(c));
        }
    }
    Ok(tokens)
}

/// Does a unique index over this field alone make its values different in every record? Then a back relation through it
/// leads to one record. As in PocketBase, a `WHERE` does not matter.
pub fn is_unique_alone(collection: &Collection, field: &str) -> bool {
    collection.indexes.iter().filter_map(|text| parse_index(text).ok()).any(|index| {
        let [column] = index.columns.as_slice() else { return false };
        index.unique && column.name.eq_ignore_ascii_case(field)
    })
}

/// Indexes every collection gets on its relations without asking: joins and `list = 'id'` filters are what apps do
/// most, and their authors do not index for them. One that an index of the app begins with is left out.
pub fn auto_indexes(collection: &Collection) -> Vec<IndexSpec> {
    let own: Vec<_> = collection.indexes.iter().filter_map(|text| parse_index(text).ok()).collect();
    let relations = collection.fields.iter().filter(|field| matches!(field.kind, FieldKind::Relation { .. }));
    let wanted = relations.filter_map(|field| {
        let list = storage(field) == Storage::List;
        let led_by = |index: &IndexSpec| {
            let first = index.columns.first().filter(|column| !column.nocase);
            index.where_not_empty.is_none() && first.is_some_and(|column| column.name == field.name)
        };
        if !list && own.iter().any(led_by) {
            return None;
        }
        let (kind, method) = if list { ("gin", IndexMethod::Gin) } else { ("rel", IndexMethod::Btree) };
        Some(IndexSpec {
            name: auto_name(kind, &collection.id, &field.id),
            unique: false,
            method,
            columns: vec![IndexColumn { name: field.name.clone(), nocase: false, descending: false }],
            where_not_empty: None,
        })
    });
    wanted.collect()
}

/// Made of ids, so that renames keep it; hashed when the ids are long.
fn auto_name(kind: &str, collection: &str, field: &str) -> String {
    let name = format!("auto_{kind}_{collection}_{field}");
    if name.len() <= MAX_NAME && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return name;
    }
    let digest = inn_protocol::Digest::of(name.as_bytes()).to_string();
    format!("auto_{kind}_{}", digest.get(..32).unwrap_or(&digest))
}

/// All indexes of a collection: its own, then the automatic ones.
///
/// # Errors
/// A sentence about the first index that cannot be read, names an unknown column, or has the name of another.
pub fn indexes(collection: &Collection) -> Result<Vec<IndexSpec>, String> {
    let mut found: Vec<IndexSpec> = Vec::new();
    for text in &collection.indexes {
        let index = parse_index(text)?;
        let mut named = index.columns.iter().map(|column| &column.name).chain(&index.where_not_empty);
        if let Some(unknown) = named.find(|name| *name != "id" && collection.field(name).is_none()) {
            return Err(format!("index {:?} is over {unknown:?}, which is not a field", index.name));
        }
        if found.iter().any(|other| other.name.eq_ignore_ascii_case(&index.name)) {
            return Err(format!("two indexes are called {:?}", index.name));
        }
        if index.name.to_ascii_lowercase().starts_with("auto_") {
            return Err(format!("index {:?}: names that begin with auto_ are the platform's", index.name));
        }
        found.push(index);
    }
    found.extend(auto_indexes(collection));
    Ok(found)
}

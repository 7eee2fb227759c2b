//! Reads the claims out of the authority block's facts, directly: no Datalog runs for that.

use std::collections::BTreeSet;
use std::str::FromStr;
use std::sync::Arc;

use biscuit_auth::datalog::SymbolTable;
use biscuit_auth::format::schema::{self, term::Content};
use chrono::DateTime;
use inn_protocol::scope::Scope;
use inn_protocol::{AgentId, Result};

use super::{TokenClaims, invalid};

/// Symbols below this number are the library's own, the same in every token.
const FIRST_OWN_SYMBOL: u64 = 1024;

/// The authority block was signed by our root key; a fact that is missing means another version of the platform.
pub(super) fn read(authority: &schema::Block) -> Result<TokenClaims> {
    let facts = Facts { block: authority, common: SymbolTable::new() };
    let claims = || {
        Some(TokenClaims {
            grant: facts.id("grant")?,
            grant_epoch: facts
                .one("grant_epoch", |term| if let Content::Integer(n) = term { Some(*n) } else { None })?,
            agent: AgentId::parse(facts.text("agent")?)?,
            user: facts.id("user")?,
            app: facts.id("app")?,
            tenant: facts.id("tenant")?,
            scopes: Arc::new(facts.scopes()?),
            expires: DateTime::from_timestamp(i64::try_from(facts.date("expires")?).ok()?, 0)?,
            plain: facts.one("plain", |term| if let Content::Bool(plain) = term { Some(*plain) } else { None })?,
        })
    };
    claims().ok_or_else(|| invalid("The token lacks a claim. Take a new one at /v1/token."))
}

struct Facts<'a> {
    block: &'a schema::Block,
    common: SymbolTable,
}

impl Facts<'_> {
    fn symbol(&self, index: u64) -> Option<&str> {
        match index.checked_sub(FIRST_OWN_SYMBOL) {
            None => self.common.get_symbol(index),
            Some(own) => self.block.symbols.get(usize::try_from(own).ok()?).map(String::as_str),
        }
    }

    /// The only term of the only fact of that name.
    fn one<'f, T>(&'f self, name: &str, read: impl FnOnce(&'f Content) -> Option<T>) -> Option<T> {
        let mut found = self.block.facts.iter().filter(|fact| self.symbol(fact.predicate.name) == Some(name));
        let (fact, None) = (found.next()?, found.next()) else { return None };
        let [term] = fact.predicate.terms.as_slice() else { return None };
        read(term.content.as_ref()?)
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.one(name, |term| if let Content::String(index) = term { self.symbol(*index) } else { None })
    }

    fn id<T: FromStr>(&self, name: &str) -> Option<T> {
        self.text(name)?.parse().ok()
    }

    fn date(&self, name: &str) -> Option<u64> {
        self.one(name, |term| if let Content::Date(seconds) = term { Some(*seconds) } else { None })
    }

    fn scopes(&self) -> Option<BTreeSet<Scope>> {
        let mut scopes = BTreeSet::new();
        self.collect("reads", Scope::Read, &mut scopes)?;
        self.collect("writes", Scope::Write, &mut scopes)?;
        self.collect("operations", Scope::Operation, &mut scopes)?;
        self.collect("queues", Scope::Queue, &mut scopes)?;
        Some(scopes)
    }

    fn collect(&self, fact: &str, kind: fn(String) -> Scope, scopes: &mut BTreeSet<Scope>) -> Option<()> {
        let names = self.one(fact, |term| if let Content::Set(set) = term { Some(set) } else { None })?;
        for name in &names.set {
            let Some(Content::String(index)) = &name.content else { return None };
            scopes.insert(kind(self.symbol(*index)?.to_owned()));
        }
        Some(())
    }
}

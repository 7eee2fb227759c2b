//! Makes tokens.

use std::collections::BTreeSet;

use biscuit_auth::builder::{Binary, Expression, Op};
use biscuit_auth::builder::{BlockBuilder, Check, CheckKind, Term, fact, pred, rule, string, var};
use biscuit_auth::datalog::SymbolTable;
use biscuit_auth::{Biscuit, BiscuitBuilder};
use chrono::{DateTime, Utc};
use inn_protocol::scope::Scope;
use inn_protocol::{Code, Refusal, Result};

use super::roots::{RootKeys, pair};
use super::{MAX_TOKEN, TokenClaims};
use crate::encoding::to_base64url;

/// Signs a token over the claims: base64url without padding.
///
/// `next_seed` must be fresh random bytes for every token. It makes the key that the first appended block would be
/// signed with, and so also makes the token's revocation id unique.
///
/// Refuses with `too_large` when the scopes do not fit into [`MAX_TOKEN`] characters: the grant has to be taken in parts.
pub fn mint(keys: &RootKeys, claims: &TokenClaims, next_seed: [u8; 32]) -> Result<String> {
    let block = authority(claims).map_err(|_| Refusal::internal())?;
    let builder = BiscuitBuilder::new().merge(block).root_key_id(keys.id);
    let token = builder
        .build_with_key_pair(&keys.pair, SymbolTable::new(), &pair(&next_seed)?)
        .map_err(|_| Refusal::internal())?;
    write(&token)
}

/// The text of a token, unless it is too long.
pub(super) fn write(token: &Biscuit) -> Result<String> {
    let text = to_base64url(&token.to_vec().map_err(|_| Refusal::internal())?);
    check_length(text)
}

pub(super) fn check_length(text: String) -> Result<String> {
    if text.len() <= MAX_TOKEN {
        return Ok(text);
    }
    let length = text.len();
    let message = format!(
        "The token would have {length} characters; {MAX_TOKEN} fit. Ask for a grant or a narrowing with fewer scopes."
    );
    Err(Refusal::new(Code::TooLarge, message))
}

fn authority(claims: &TokenClaims) -> Result<BlockBuilder, biscuit_auth::error::Token> {
    BlockBuilder::new()
        .fact(fact("grant", &[string(&claims.grant.to_string())]))?
        .fact(fact("grant_epoch", &[Term::Integer(claims.grant_epoch)]))?
        .fact(fact("agent", &[string(claims.agent.as_str())]))?
        .fact(fact("user", &[string(&claims.user.to_string())]))?
        .fact(fact("app", &[string(&claims.app.to_string())]))?
        .fact(fact("tenant", &[string(&claims.tenant.to_string())]))?
        .fact(fact("reads", &[names(&claims.scopes, "read")]))?
        .fact(fact("writes", &[names(&claims.scopes, "write")]))?
        .fact(fact("operations", &[names(&claims.scopes, "operation")]))?
        .fact(fact("queues", &[names(&claims.scopes, "queue")]))?
        .fact(fact("plain", &[Term::Bool(claims.plain)]))?
        .fact(fact("expires", &[Term::Date(seconds(claims.expires))]))?
        .check(expires_at(claims.expires))
}

fn names(scopes: &BTreeSet<Scope>, kind: &str) -> Term {
    Term::Set(scopes.iter().map(parts).filter(|(other, _)| *other == kind).map(|(_, name)| string(name)).collect())
}

/// The `kind` and `name` of a scope, as checks see them.
pub(super) fn parts(scope: &Scope) -> (&'static str, &str) {
    match scope {
        Scope::Operation(name) => ("operation", name),
        Scope::Read(name) => ("read", name),
        Scope::Write(name) => ("write", name),
        Scope::Queue(name) => ("queue", name),
    }
}

/// `check if time($t), $t < …`
pub(super) fn expires_at(when: DateTime<Utc>) -> Check {
    let expression = Expression {
        ops: vec![Op::Value(var("t")), Op::Value(Term::Date(seconds(when))), Op::Binary(Binary::LessThan)],
    };
    check("time", "t", expression)
}

/// `check if action($a), {…}.contains($a)`
pub(super) fn actions_among(scopes: &BTreeSet<Scope>) -> Check {
    let set = Term::Set(scopes.iter().map(|scope| string(&scope.to_string())).collect());
    check("action", "a", Expression { ops: vec![Op::Value(set), Op::Value(var("a")), Op::Binary(Binary::Contains)] })
}

fn check(predicate: &str, variable: &str, expression: Expression) -> Check {
    let mut query = rule("query", &[] as &[Term], &[pred(predicate, &[var(variable)])]);
    query.expressions.push(expression);
    Check { queries: vec![query], kind: CheckKind::One }
}

/// Datalog dates are unsigned seconds; anything before 1970 is as expired as 1970.
pub(super) fn seconds(when: DateTime<Utc>) -> u64 {
    u64::try_from(when.timestamp()).unwrap_or(0)
}

//! What the names of one filter or rule are looked up in, and what the lookups leave behind.

use inn_protocol::model::Collection;

use super::error::FilterError;
use super::scope::Scope;
use super::walk::Walk;

/// One compilation.
pub(super) struct Context<'a> {
    pub(super) scope: Scope<'a>,
    /// Where the filter's own record is: the record of the query, or one joined to it.
    pub(super) base: Walk,
    /// Joins of this text are its own and shared with no other. 0: shared.
    pub(super) private: u32,
    /// The record of the query is not stored yet.
    pub(super) unsaved: bool,
    /// Records that were joined for somebody who may not see everything: their list rules count too (section A.7,
    /// rule 7).
    pub(super) joined: Vec<(Walk, &'a Collection)>,
}

impl<'a> Context<'a> {
    pub(super) fn new(scope: Scope<'a>) -> Self {
        Self { scope, base: Walk::default(), private: 0, unsaved: false, joined: Vec::new() }
    }

    /// A record of this collection is joined.
    pub(super) fn join(&mut self, walk: &Walk, collection: &'a Collection, full: &str) -> Result<(), FilterError> {
        if self.scope.see_hidden {
            return Ok(());
        }
        match collection.list_rule.as_deref() {
            None => Err(FilterError::Hidden(full.to_owned())),
            Some("") => Ok(()),
            Some(_) if self.joined.iter().any(|(known, _)| known.same_rows(walk)) => Ok(()),
            Some(_) => {
                self.joined.push((walk.clone(), collection));
                Ok(())
            }
        }
    }
}

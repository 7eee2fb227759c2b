//! List parameters (`reference` notes on PocketBase, section B): paging, filter, sort, fields, expand.

mod excerpt;
mod expand;
mod fields;
mod sort;
#[cfg(test)]
mod tests;

use inn_protocol::query::Paging;
use inn_protocol::{Code, Refusal, Violation};

use crate::filter::{Expr, Scope, client_filter_forbidden, compile_client};

pub use expand::{ExpandStep, Link, MAX_BACK_RELATED, MAX_EXPAND_LEVELS, expand_paths, expand_step};
pub use fields::{FieldPick, pick_fields};
pub use sort::{SortBy, SortKey, sort};

/// Longest `fields` and `expand`, in bytes.
const MAX_SPEC_BYTES: usize = 4096;

/// The parameters of a list as they were sent. Empty ones are absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListParams {
    pub paging: Paging,
    pub filter: Option<String>,
    pub sort: Option<String>,
    pub fields: Option<String>,
    pub expand: Option<String>,
}

impl ListParams {
    /// From decoded query pairs. The first of a repeated parameter wins; unknown ones are left to the rules. Refused
    /// with `invalid_parameter` when `page`, `perPage` or `skipTotal` cannot be read, or a specification is too long.
    pub fn from_pairs(pairs: &[(String, String)]) -> Result<Self, Refusal> {
        let get = |name: &str| {
            let first = pairs.iter().find(|(key, _)| key == name)?;
            (!first.1.is_empty()).then_some(first.1.as_str())
        };
        let mut violations = Vec::new();
        let mut paging = Paging::default();
        match get("page").map(str::parse::<i64>) {
            Some(Ok(page)) => paging.page = u64::try_from(page).unwrap_or(1).max(1),
            Some(Err(_)) => violations.push(Violation::new(Code::InvalidParameter, "page", "a whole number from 1")),
            None => {}
        }
        match get("perPage").map(str::parse::<i64>) {
            Some(Ok(wanted)) if wanted > 0 => paging.per_page = u32::try_from(wanted.min(1000)).unwrap_or(1000),
            Some(Err(_)) => {
                violations.push(Violation::new(Code::InvalidParameter, "perPage", "a whole number from 1 to 1000"));
            }
            _ => {}
        }
        match get("skipTotal") {
            Some("1" | "t" | "T" | "true" | "TRUE" | "True") => paging.skip_total = true,
            None | Some("0" | "f" | "F" | "false" | "FALSE" | "False") => {}
            Some(_) => violations.push(Violation::new(Code::InvalidParameter, "skipTotal", "true or false")),
        }
        for name in ["fields", "expand"] {
            if get(name).is_some_and(|spec| spec.len() > MAX_SPEC_BYTES) {
                let limit = format!("at most {MAX_SPEC_BYTES} bytes");
                violations.push(Violation::new(Code::InvalidParameter, name, limit));
            }
        }
        if !violations.is_empty() {
            return Err(Refusal::violations("The list parameters cannot be read.", violations));
        }
        let text = |name| get(name).map(str::to_owned);
        Ok(Self { paging, filter: text("filter"), sort: text("sort"), fields: text("fields"), expand: text("expand") })
    }

    /// The parameters that matter for a single record: `fields` and `expand`. Others are for the rules only, whatever
    /// they say.
    pub fn of_one(pairs: &[(String, String)]) -> Result<Self, Refusal> {
        let shaping = |(key, _): &&(String, String)| key == "fields" || key == "expand";
        Self::from_pairs(&pairs.iter().filter(shaping).cloned().collect::<Vec<_>>())
    }

    /// The client's own filter, to be joined to the rule with [`Expr::and`]. `scope.see_hidden` says whether the
    /// caller is an owner; nobody else may use `@request.` or `@collection.` in it (403).
    pub fn client_filter(&self, scope: &Scope<'_>) -> Result<Expr, Refusal> {
        if let Some(text) = &self.filter {
            guard_client_text(text, scope)?;
        }
        // What the sort joins falls under the joined collections' list rules, like what the filter joins.
        let joined: Vec<&str> = match &self.sort {
            Some(spec) => {
                self.client_sort(scope)?;
                sort::names(spec)
            }
            None => Vec::new(),
        };
        Ok(compile_client(self.filter.as_deref(), &joined, scope)?)
    }

    /// The sort keys, most important first; empty for insertion order.
    pub fn client_sort(&self, scope: &Scope<'_>) -> Result<Vec<SortKey>, Refusal> {
        self.sort.as_deref().map_or(Ok(Vec::new()), |spec| sort(spec, scope))
    }
}

fn guard_client_text(text: &str, scope: &Scope<'_>) -> Result<(), Refusal> {
    if !scope.see_hidden && client_filter_forbidden(text) {
        return Err(Refusal::new(Code::Forbidden, "Only superusers can filter by @request.")
            .leg("user")
            .fix("an owner of the app's tenant"));
    }
    Ok(())
}

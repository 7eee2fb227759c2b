//! Kinds of cases, and which of them must not differ any more.

/// What a case is about: of a filter, the hardest thing in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Category {
    PlainFilter,
    JsonFilter,
    MacroFilter,
    ModifierFilter,
    RelationFilter,
    ManyFilter,
    BackRelationFilter,
    RequestFilter,
    CollectionFilter,
    FunctionFilter,
    /// Filters and sorts of somebody who is no superuser.
    VisitorFilter,
    BrokenFilter,
    FilterLimits,
    Sort,
    RelationSort,
    ManySort,
    Paging,
    Fields,
    Expand,
    BackExpand,
    View,
    PlainRules,
    Rules,
    RuleFilters,
    RuleWrites,
    CreateRules,
    Agents,
    Create,
    Update,
    Modifiers,
    Required,
    Ids,
    Unique,
    Delete,
    Bodies,
    Views,
    Batch,
    Auth,
    Realtime,
}

/// Compared and reported, but differences are let through yet; each with what it waits for. No difference is let through
/// in any other.
pub(crate) const NOT_IN_FORCE: &[(Category, &str)] = &[
    (Category::FunctionFilter, "geoDistance and strftime are refused by name"),
    (Category::RequestFilter, "`:isset` compared with a field"),
    (Category::Views, "a counted column compared with a text"),
];

/// Why differences are let through, if they are.
pub(crate) fn waiting(category: Category) -> Option<&'static str> {
    NOT_IN_FORCE.iter().find(|(waiting, _)| *waiting == category).map(|(_, why)| *why)
}

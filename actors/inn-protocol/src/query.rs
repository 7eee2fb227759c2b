//! List parameters as PocketBase has them (`reference` notes, section B), after parsing.

/// One page of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paging {
    /// From 1.
    pub page: u64,
    /// 1 to 1000, default 30.
    pub per_page: u32,
    /// Leaves `totalItems` and `totalPages` at -1 and saves the count.
    pub skip_total: bool,
}

impl Default for Paging {
    fn default() -> Self {
        Self { page: 1, per_page: 30, skip_total: false }
    }
}

//! The way from a record to the rows a path like `author.boss.name` or `@collection.tags.name` speaks about (sections
//! A.5 and A.7).

/// A chain of joins. Conditions with equal chains see the same joined row (section A.7, rule 1).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Walk {
    pub start: Start,
    pub hops: Vec<Hop>,
    /// Match-all walks anew from here: this many hops stay where the outer row put them. 0 is the record itself.
    pub anchored: usize,
    /// May lead to several rows, so a plain operator means all of them (section A.7, rule 3).
    pub many: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Start {
    /// The record the filter is about.
    #[default]
    Row,
    /// `@collection.NAME[:alias]`: every record of a collection.
    Collection { name: String, alias: String, private: u32 },
    /// The records of a collection with these ids: the caller's own, or those a body refers to.
    Records { collection: String, label: String, ids: Vec<String>, private: u32 },
    /// The values of a list in the body, one by one.
    Values { label: String, values: Vec<String>, private: u32 },
}

/// One join of a walk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hop {
    pub link: Link,
    /// The relation field: of the row before this one, or (back) of the row it leads to.
    pub field: String,
    /// The collection it leads to.
    pub collection: String,
    /// As it was written: another spelling is another join.
    pub spelling: String,
    /// Joins of a rule are shared with no other condition. 0 for everything else.
    pub private: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// The row before holds one id.
    One,
    /// The row before holds a list of ids.
    List,
    /// The row it leads to holds the id of the one before.
    BackOne,
    /// The row it leads to holds a list with the id of the one before.
    BackList,
}

impl Walk {
    /// Stays at the record.
    pub fn is_here(&self) -> bool {
        self.start == Start::Row && self.hops.is_empty()
    }

    /// The walk up to and with this many hops.
    #[must_use]
    pub fn prefix(&self, hops: usize) -> Self {
        Self { hops: self.hops.iter().take(hops).cloned().collect(), ..self.clone() }
    }

    /// Leads over the same joins.
    pub fn same_rows(&self, other: &Self) -> bool {
        self.start == other.start && self.hops == other.hops
    }
}

//! The one decision: tables over every action and kind of caller, and the property that an agent never exceeds its
//! person.

mod accounts;
mod fixture;
mod legs;
mod property;
mod records;
mod scopes;
mod table;

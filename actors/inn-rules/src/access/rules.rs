//! The user leg, second half: the collection's rule.

use inn_protocol::app::{AppSnapshot, CrudAction, Executor};
use inn_protocol::call::Action;
use inn_protocol::model::{Collection, CollectionKind};
use inn_protocol::{Code, Refusal};
use serde_json::{Map, Value};

use super::app::entity;
use super::legs::Ask;
use crate::filter::{Expr, Scope, compile, compile_unsaved, matches};

/// Which rows a permit covers.
#[derive(Debug, Clone, PartialEq)]
pub enum RowRule {
    /// The call is not about records.
    Any,
    /// Must hold for the stored row: list, view, update, delete.
    Stored(Expr),
    /// Must hold for the row as it would be: create.
    WouldBe(Expr),
}

impl RowRule {
    /// The condition for the query; `None` when every row passes (as in `Write::rule`).
    pub fn stored(&self) -> Option<&Expr> {
        match self {
            Self::Stored(expr) if *expr != Expr::Always => Some(expr),
            _ => None,
        }
    }

    /// The condition on a new row that only the database can decide, when it writes the row.
    pub fn for_new(&self) -> Option<&Expr> {
        match self {
            Self::WouldBe(expr) if !expr.is_local() => Some(expr),
            _ => None,
        }
    }

    /// May this row be created, as far as that can be told without the database ([`Self::for_new`] is the rest)? Asked
    /// with the normalised values of every field.
    pub fn lets_create(&self, row: &Map<String, Value>) -> bool {
        match self {
            Self::WouldBe(expr) if !expr.is_local() => true,
            Self::WouldBe(expr) => matches(expr, row),
            Self::Any => true,
            Self::Stored(_) => false,
        }
    }
}

/// The rule an action falls under.
pub(super) struct Applying<'a> {
    app: &'a AppSnapshot,
    collection: &'a Collection,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    List,
    View,
    Create,
    Update,
    Delete,
}

/// `None` when the action is not about records, or about an entity that is not there (which the app leg refuses).
/// A `crud` operation falls under the rule of what it does.
pub(super) fn applying<'a>(ask: &Ask<'a>) -> Option<Applying<'a>> {
    let app = ask.app?;
    let (name, kind) = match ask.action {
        Action::ListRecords { entity } => (entity, Kind::List),
        Action::ViewRecord { entity, .. } | Action::ReadFile { entity, protected: true, .. } => (entity, Kind::View),
        Action::CreateRecord { entity } => (entity, Kind::Create),
        Action::UpdateRecord { entity, .. } => (entity, Kind::Update),
        Action::DeleteRecord { entity, .. } => (entity, Kind::Delete),
        Action::RunOperation { operation } => match &app.definition.operation(operation)?.executor {
            Executor::Crud { collection, action, .. } => (collection, Kind::of(*action)),
            Executor::Http { .. } | Executor::Job { .. } | Executor::Agent { .. } => return None,
        },
        _ => return None,
    };
    Some(Applying { app, collection: entity(app, name)?, kind })
}

impl Kind {
    const fn of(action: CrudAction) -> Self {
        match action {
            CrudAction::List => Self::List,
            CrudAction::Create => Self::Create,
            CrudAction::Update => Self::Update,
            CrudAction::Delete => Self::Delete,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::List => "listRule",
            Self::View => "viewRule",
            Self::Create => "createRule",
            Self::Update => "updateRule",
            Self::Delete => "deleteRule",
        }
    }

    const fn over(self, expr: Expr) -> RowRule {
        match self {
            Self::Create => RowRule::WouldBe(expr),
            _ => RowRule::Stored(expr),
        }
    }
}

impl Applying<'_> {
    /// For a superuser.
    pub(super) const fn waived(&self) -> RowRule {
        self.kind.over(Expr::Always)
    }

    pub(super) fn compiled(&self, ask: &Ask<'_>) -> Result<RowRule, Refusal> {
        let rule = match self.kind {
            Kind::List => &self.collection.list_rule,
            Kind::View => &self.collection.view_rule,
            Kind::Create => &self.collection.create_rule,
            Kind::Update => &self.collection.update_rule,
            Kind::Delete => &self.collection.delete_rule,
        };
        let writes = matches!(self.kind, Kind::Create | Kind::Update | Kind::Delete);
        let expr = match rule.as_deref() {
            // Nobody writes to a view, which is not for a rule to say: the app leg does.
            _ if writes && self.collection.kind == CollectionKind::View => Expr::Never,
            None => {
                return Err(Refusal::new(Code::Forbidden, "Only superusers can perform this action.")
                    .leg("user")
                    .fix("an owner of the app's tenant, in person"));
            }
            Some("") => Expr::Always,
            Some(text) => {
                let scope = Scope {
                    collection: self.collection,
                    model: &self.app.definition.model,
                    now: ask.now,
                    auth: ask.auth,
                    see_hidden: true,
                };
                let compiled = match self.kind {
                    Kind::Create => compile_unsaved(text, &scope),
                    _ => compile(text, &scope),
                };
                compiled.map_err(|error| {
                    let place = format!("{}.{}", self.collection.name, self.kind.name());
                    error
                        .into_rule_refusal(&place)
                        .leg("user")
                        .fix("the app's author, with a rule that can be evaluated")
                })?
            }
        };
        Ok(self.kind.over(expr))
    }
}

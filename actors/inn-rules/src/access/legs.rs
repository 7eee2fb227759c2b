//! The three legs of one decision, and how they are read.

use chrono::{DateTime, Utc};
use inn_protocol::app::AppSnapshot;
use inn_protocol::call::Action;
use inn_protocol::caller::Caller;
use inn_protocol::{Code, Refusal};

use super::rules::{self, RowRule};
use super::{Explanation, Host, LegResult, Permit, app, grant, standing};
use crate::filter::AuthFacts;

/// One question.
#[derive(Clone, Copy)]
pub(super) struct Ask<'a> {
    pub(super) caller: &'a Caller,
    pub(super) action: &'a Action,
    pub(super) app: Option<&'a AppSnapshot>,
    pub(super) auth: &'a AuthFacts,
    pub(super) host: Host,
    pub(super) now: DateTime<Utc>,
}

pub(super) struct Legs {
    user: Result<Permit, Refusal>,
    grant: Result<(), Refusal>,
    app: Result<(), Refusal>,
}

impl Legs {
    pub(super) fn of(ask: &Ask<'_>) -> Self {
        Self { user: user(ask), grant: grant::leg(ask), app: app::leg(ask) }
    }

    /// All three must agree. Which refusal is told: who is not let in learns nothing about the app; then what does
    /// not exist; then what was not granted; and last what only waits for a person's yes.
    pub(super) fn verdict(self) -> Result<Permit, Refusal> {
        let permit = self.user?;
        match self.app {
            Err(refusal) if refusal.code == Code::ApprovalRequired => self.grant.and(Err(refusal)),
            app => app.and(self.grant).map(|()| permit),
        }
    }

    pub(super) fn explanation(self, caller: &Caller) -> Explanation {
        let by_grant = match caller {
            Caller::Agent(_) => "The grant's scopes cover it.",
            _ => "No grant is needed: the caller acts for nobody else.",
        };
        let legs = vec![
            result("user", self.user.as_ref().err(), "The person's role and the collection's rule allow it."),
            result("grant", self.grant.as_ref().err(), by_grant),
            result("app", self.app.as_ref().err(), "The app declares it."),
        ];
        Explanation { allowed: self.verdict().is_ok(), legs }
    }
}

fn result(leg: &'static str, refusal: Option<&Refusal>, agreed: &str) -> LegResult {
    LegResult {
        leg,
        ok: refusal.is_none(),
        reason: refusal.map_or_else(|| agreed.to_owned(), |refusal| refusal.message.clone()),
        code: refusal.map(|refusal| refusal.code),
        scope: refusal.and_then(|refusal| refusal.scope.clone()),
        who_can_fix: refusal.and_then(|refusal| refusal.who_can_fix.clone()),
    }
}

/// The person's own permission: standing in the tenant, then the collection's rule evaluated as that person.
fn user(ask: &Ask<'_>) -> Result<Permit, Refusal> {
    let superuser = standing::of(ask)?.superuser;
    let rule = match rules::applying(ask) {
        None => RowRule::Any,
        Some(applying) if superuser => applying.waived(),
        Some(applying) => applying.compiled(ask)?,
    };
    Ok(Permit { rule, see_hidden: superuser, superuser, auth: ask.auth.clone() })
}

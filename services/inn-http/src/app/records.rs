//! Records, at PocketBase's paths and in its shapes (`reference` notes, section B), behind guard and decision.

mod dress;
mod expand;
mod list;
mod view;
mod write;

use inn_protocol::app::AppSnapshot;
use inn_protocol::model::Collection;
use inn_protocol::{Code, Refusal};
use inn_rules::access::Permit;
use inn_rules::filter::Expr;
use serde::Deserialize;

pub(super) use dress::dress;
pub(super) use list::{list, list_page};
pub(super) use view::view;
pub(super) use write::{answer, check_size, create, delete, receipt_header, update, written};

/// `{entity}` (and `{slug}` on the platform's face).
#[derive(Deserialize)]
pub(super) struct Entity {
    pub(super) entity: String,
}

#[derive(Deserialize)]
pub(super) struct Record {
    pub(super) entity: String,
    pub(super) id: String,
}

pub(super) fn collection<'a>(app: &'a AppSnapshot, entity: &str) -> Result<&'a Collection, Refusal> {
    app.definition.model.collection(entity).ok_or_else(|| {
        Refusal::new(Code::UnknownEntity, "The app has no entity of that name. `GET /api/_a2app/describe` lists them.")
            .leg("app")
    })
}

/// Which stored rows the permit covers.
pub(super) fn rule(permit: &Permit) -> Expr {
    permit.rule.stored().cloned().unwrap_or(Expr::Always)
}

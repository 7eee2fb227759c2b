//! What surrounds every page of somebody signed in.

use inn_ports::Store;
use inn_protocol::Refusal;
use inn_protocol::caller::Person;
use inn_protocol::people::Role;

/// Which entry of the navigation the page belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Here {
    Home,
    Grants,
    Register,
}

/// Who is signed in, where.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub(crate) here: Here,
    pub(crate) email: String,
    pub(crate) tenant: String,
    pub(crate) role: Role,
}

impl Frame {
    /// Asked inside the call that makes the page, so that it tells what that call was decided from.
    pub(crate) async fn of(store: &dyn Store, person: &Person, here: Here) -> Result<Self, Refusal> {
        let session = store.session_view(person.session).await?;
        let tenant = session.map_or_else(String::new, |session| session.tenant.name);
        Ok(Self { here, email: person.email.to_string(), tenant, role: person.role })
    }

    pub(crate) fn is_owner(&self) -> bool {
        self.role == Role::Owner
    }

    pub(crate) fn role(&self) -> &'static str {
        self.role.as_str()
    }
}

//! Sign-in of an app's own users, at PocketBase's paths and in its shapes (`reference` notes on PocketBase, section E).
//!
//! Whoever is not signed in proves something with a password, a code or a token from a mail; the decision asks whether
//! the app has accounts at all, the entry names the record it turned out to be about. Unknown addresses are answered
//! like known ones and take as long.

mod accounts;
mod answer;
mod confirm;
mod letter;
mod methods;
mod otp;
mod own;
mod page;
mod password;
mod post;
mod request;
mod superuser;

pub(super) use confirm::verification as confirm_verification;
pub(super) use confirm::{email_change as confirm_email_change, password_reset as confirm_password_reset};
pub(super) use methods::{methods, oauth2};
pub(super) use otp::{request as request_otp, with_otp};
pub(super) use own::{impersonate, refresh, sign_out};
pub(super) use page::{page, script};
pub(super) use password::with_password;
pub(super) use request::verification as request_verification;
pub(super) use request::{email_change as request_email_change, password_reset as request_password_reset};

use inn_protocol::call::Papers;
use inn_protocol::{Code, Refusal};

use crate::error::ApiError;
use crate::incoming::Incoming;

/// Name of the records' key: whoever changes it ends every token.
const TOKEN_KEY: &str = "tokenKey";

/// Counts the passwords a guest or one of the app's users sends to be hashed: that costs a core for a while each. Members
/// and agents are counted by who they are.
pub(super) fn count_passwords(incoming: &Incoming, passwords: usize) -> Result<(), ApiError> {
    if !matches!(incoming.papers, Papers::None | Papers::Visitor | Papers::AppUser { .. }) {
        return Ok(());
    }
    for _ in 0..passwords {
        incoming.rate_auth("passwords to hash")?;
    }
    Ok(())
}

/// The same for a wrong identity and a wrong password.
fn failed() -> Refusal {
    Refusal::new(Code::SignInFailed, "Failed to authenticate.")
}

/// A way of signing in that the collection does not have.
fn not_allowed(what: &str) -> Refusal {
    Refusal::new(Code::Forbidden, format!("The collection is not configured to allow {what} authentication."))
        .leg("app")
        .fix("the app's author, in the options of the collection")
}
